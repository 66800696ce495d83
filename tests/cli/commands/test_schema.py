"""octo_cli/commands/schema.py: the catalogue and the schemas, on standard output or in files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from octo import reference, schema


def test_the_catalogue_is_printed_by_default_and_under_its_other_name(octo: Any) -> None:
    outcome = octo("schema")

    assert (outcome.stderr, outcome.status) == ("", 0)
    assert json.loads(outcome.stdout) == schema.KINDS["capabilities"]()
    assert outcome.stdout.count("\n") == 1
    assert octo("capabilities") == outcome


@pytest.mark.parametrize("kind", schema.KINDS)
def test_a_kind_is_printed_in_the_order_of_its_file(kind: str, octo: Any) -> None:
    made = json.dumps(schema.KINDS[kind]())

    assert json.dumps(json.loads(octo("schema", "--kind", kind).stdout)) == made
    assert json.dumps(json.loads(octo("schema", "--kind", kind, terminal="out").stdout)) == made
    assert json.dumps(yaml.safe_load(octo("schema", "--kind", kind, "--format", "yaml").stdout)) == made


def test_a_file_is_laid_out(octo: Any, tmp_path: Path) -> None:
    assert octo("schema", "--kind", "config", "--out", "config.schema.json") == ("", "", 0)
    assert octo("schema", "--kind", "config", "--format", "yaml", "--out", "config.schema.yaml") == ("", "", 0)

    assert (tmp_path / "config.schema.json").read_text(encoding="utf-8") == schema.text(schema.config())
    assert yaml.safe_load((tmp_path / "config.schema.yaml").read_text(encoding="utf-8")) == schema.config()


def test_all_kinds_and_the_reference_are_written_into_directories(octo: Any, tmp_path: Path) -> None:
    assert octo("schema", "--write", "a/schemas", "--reference", "docs") == ("", "", 0)

    written = {path.name: path.read_text(encoding="utf-8") for path in (tmp_path / "a" / "schemas").iterdir()}
    assert written == {schema.file_name(kind): schema.text(make()) for kind, make in schema.KINDS.items()}
    pages = {path.name: path.read_text(encoding="utf-8") for path in (tmp_path / "docs").iterdir()}
    assert pages == {name: page() for name, page in reference.PAGES.items()}


def test_blocks_of_plug_ins_are_known(octo: Any, plugin: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(plugin))

    config = json.loads(octo("schema", "--kind", "config").stdout)
    catalogue = json.loads(octo("schema").stdout)

    assert config["$defs"]["settings.test-wait"]["properties"].keys() == {"for"}
    assert "test-drop" in [block["type"] for block in catalogue["blocks"]]


def test_the_help_names_every_kind(octo: Any) -> None:
    text = octo("schema", "--help").stdout

    assert [kind for kind in schema.KINDS if f"`{kind}`" not in text] == []


@pytest.mark.parametrize(
    ("args", "error"),
    [
        (
            ("--kind", "confg"),
            "error: `--kind`: there is no `confg`\nhint: did you mean `config`?\n",
        ),
        (
            ("--format", "xml"),
            "error: `--format`: there is no `xml`\nhint: known names: `json`, `yaml`\n",
        ),
        (("--out", "no/such.json"), "error: cannot write `no/such.json`: no such file or directory\n"),
        (("--write", "taken"), "error: cannot write `taken/capabilities.json`: file exists\n"),
    ],
    ids=["kind", "format", "out", "write"],
)
def test_what_cannot_be_done_is_said(args: tuple[str, str], error: str, octo: Any, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("", encoding="utf-8")

    assert octo("schema", *args, terminal="err") == ("", error, 2)
