"""samples/*_test.yaml: every sample has a suite, and nothing that it is to do is left out."""

from __future__ import annotations

from pathlib import Path

import pytest

from octo.testing.pairing import is_suite
from octo.testing.suite import read_suite

SAMPLES = Path(__file__).parents[2] / "samples"
CONFIGS = [file for file in sorted(SAMPLES.glob("*.yaml")) if not is_suite(file)]


@pytest.mark.parametrize("config", CONFIGS, ids=lambda path: path.name)
def test_every_sample_has_a_suite_that_names_its_command(config):
    suite = config.with_name(f"{config.stem}_test.yaml")

    assert suite.exists(), f"write `samples/{suite.name}`; `octo test samples` runs it"
    assert f"#   octo test samples/{suite.name}\n" in suite.read_text(encoding="utf-8")
    assert [case.name for case in read_suite(suite).value.cases if case.skip] == []
