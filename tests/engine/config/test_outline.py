"""octo/config/outline.py: blocks as they are written stand where the built ones will stand."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from octo.block import Block
from octo.config.address import blocks, find
from octo.config.load import load
from octo.config.model import Config
from octo.config.outline import Outline, edit, outline, put
from octo.testing.harness import config

SAMPLES = Path(__file__).parents[3] / "samples"
ENVIRON = {"PATH": os.environ["PATH"], "ANTHROPIC_API_KEY": "sk-ant-sample"}


def both(file: Path) -> tuple[Config, Config]:
    """A config, and the outline of the data that it is built from."""
    seen: list[Any] = []

    def look(data: dict[str, Any]) -> tuple[dict[str, Any], list[Any]]:
        seen.append(data)
        return data, []

    return load(file, environ=ENVIRON, cwd=SAMPLES, rewrite=look), outline(seen[0])


def places(chain: tuple[Block, ...]) -> list[Any]:
    """Where blocks stand and what they are called, with the same of every branch."""
    return [
        (
            block.place,
            block.type,
            sorted((branch.name, branch.path, places(branch.chain)) for branch in block.branches()),
        )
        for block in chain
    ]


@pytest.mark.parametrize(
    "file",
    [file for file in sorted(SAMPLES.glob("*.yaml")) if not file.stem.endswith("_test")],
    ids=lambda path: path.name,
)
def test_what_is_written_in_a_sample_stands_where_it_is_built(file: Path) -> None:
    built, written = both(file)

    assert [(flow.name, places(flow.process), places(flow.error or ())) for flow in written.flows] == [
        (flow.name, places(flow.process), places(flow.error or ())) for flow in built.flows
    ]


def test_branches_of_a_processor_belong_to_each_block_that_refers_to_it(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(
        """
        processors:
          - name: guard
            type: handle-errors
            settings: { process: [ { type: log, name: try } ], error: [ { type: log } ] }
        flows:
          - name: main
            process:
              - { ref: guard }
              - { ref: guard, name: own, settings: { error: [ { type: log, name: mine } ] } }
        """,
        encoding="utf-8",
    )
    built, written = both(file)

    assert places(written.flows[0].process) == places(built.flows[0].process)
    assert find(written, "main.own[error].mine").place.path == ("flows", 0, "process", 1, "error", 0)


def test_a_processor_that_holds_itself_is_no_trouble() -> None:
    written = outline(
        {
            "processors": [{"name": "a", "type": "foreach", "settings": {"body": {"process": [{"ref": "a"}]}}}],
            "flows": [{"name": "main", "process": [{"ref": "a"}]}],
        }
    )

    assert find(written, "main.a[body].a[body].a").address == "main.a[body].a[body].a"


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"flows": None},
        {"flows": {"name": "main"}},
        {"flows": [None, 1, {"name": 3}, {"process": []}, {"name": "main", "process": 5, "error": [1, None]}]},
        {"processors": [1, {"name": "a", "settings": 4}], "flows": [{"name": "m", "process": [{"ref": "a"}]}]},
    ],
)
def test_data_of_any_shape_has_an_outline(data: Any) -> None:
    for _, block in blocks(outline(data)):
        assert isinstance(block, Outline)


def test_a_block_is_put_where_another_stands_and_the_data_given_stays_as_it_is() -> None:
    data: Any = {
        "processors": [{"name": "loop", "type": "foreach", "settings": {"body": {"process": [{"type": "log"}]}}}],
        "flows": [
            {"name": "a", "process": [{"type": "if", "settings": {"then": {"process": [{"type": "log"}]}}}]},
            {"name": "b", "process": [{"ref": "loop"}, {"type": "log"}]},
        ],
    }
    before = str(data)
    block = config("flows: [ { name: m, process: [ { type: log, name: new } ] } ]").flows[0].process[0]

    beneath = put(data, ("flows", 0, "process", 0, "then", "process", 0), block)
    borrowed = put(data, ("flows", 1, "process", 0, "body", "process", 0), block)

    assert beneath["flows"][0]["process"] == [{"type": "if", "settings": {"then": {"process": [block]}}}]
    assert borrowed["flows"][1]["process"] == [{"ref": "loop", "body": {"process": [block]}}, {"type": "log"}]
    assert borrowed["processors"] == data["processors"]
    assert str(data) == before


def test_a_path_that_leads_into_text_leads_nowhere() -> None:
    data: dict[str, Any] = {"flows": [{"name": "f", "process": [{"type": "log", "settings": {"message": "'x'"}}]}]}

    with pytest.raises(KeyError):
        edit(data, ("flows", 0, "process", 0, "message", "expr"), lambda value: value)
