"""schemas/ and docs/reference/: what is checked in is what the models make now, and a validator agrees with octo.

The validator is one that knows nothing of octo; it judges every sample, and configs that are wrong in one place.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from mutants import SOURCES, mutants
from octo import reference, schema
from octo.config.document import parse

ROOT = Path(__file__).parents[2]
SCHEMAS, REFERENCE = ROOT / "schemas", ROOT / "docs" / "reference"
SAMPLES = sorted((ROOT / "samples").rglob("*.yaml"))
ANEW = "run `octo schema --write schemas --reference docs/reference`"
SEMANTIC = {"unknown-connector", "unknown-ref", "unknown-name"}
"""Faults that only octo can see: a schema does not know what a config declares, and no expressions."""


def kind_of(file: Path) -> str:
    if file.parent.name == "debug":
        return "debug-config"
    if file.stem.endswith(".agent"):
        return "agent"
    return "suite" if file.stem.endswith("_test") else "config"


def is_data(path: tuple[str | int, ...]) -> bool:
    """Whether the author decides what stands at a path of a file beside a config: values, names and addresses."""
    named = {"inputs", "mocks", "models", "spies", "sent", "env"}
    return path[-1] in {"data", "body"} or bool(named & {*path[-2:-1]} or {"data", "body", "vars"} & {*path[:-1]})


@pytest.fixture(scope="module")
def validators() -> dict[str, Draft202012Validator]:
    made = {kind: make() for kind, make in schema.KINDS.items() if kind != "capabilities"}
    for document in made.values():
        Draft202012Validator.check_schema(document)
    return {kind: Draft202012Validator(document) for kind, document in made.items()}


def faults(validator, data) -> list[str]:
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(data)]


@pytest.mark.parametrize("kind", schema.KINDS)
def test_a_schema_that_is_checked_in_is_the_one_that_the_models_make(kind):
    file = SCHEMAS / schema.file_name(kind)
    kept = file.read_text(encoding="utf-8") if file.exists() else ""

    assert kept == schema.text(schema.KINDS[kind]()), ANEW


def test_there_are_no_other_schemas():
    assert {file.name for file in SCHEMAS.iterdir()} == set(map(schema.file_name, schema.KINDS))


@pytest.mark.parametrize("page", reference.PAGES)
def test_a_page_of_the_reference_is_the_one_that_the_models_make(page):
    file = REFERENCE / page
    kept = file.read_text(encoding="utf-8") if file.exists() else ""

    assert kept == reference.PAGES[page](), ANEW


def test_links_of_the_reference_lead_to_a_heading():
    for page, make in reference.PAGES.items():
        for target in re.findall(r"\]\(([^)\s]+)\)", make()):
            name, _, anchor = target.partition("#")
            file = (REFERENCE / name).resolve() if name else REFERENCE / page
            headings = re.findall(r"(?m)^#+ (.*)$", file.read_text(encoding="utf-8"))
            anchors = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
            assert not anchor or anchor in anchors, f"{page}: {target}"


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.name)
def test_a_sample_names_its_schema_in_its_first_line(sample):
    first = sample.read_text(encoding="utf-8").partition("\n")[0]

    assert re.fullmatch(r"# yaml-language-server: \$schema=(\S+)", first), first
    named = (sample.parent / first.partition("=")[2]).resolve()
    assert named == SCHEMAS / schema.file_name(kind_of(sample))


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.name)
def test_a_sample_is_accepted(sample, validators):
    assert faults(validators[kind_of(sample)], parse(sample.read_bytes(), sample.name).data) == []


@pytest.mark.parametrize("kind", sorted(set(map(kind_of, SAMPLES))))
def test_nine_of_ten_structural_faults_are_refused(kind, validators):
    samples = {str(file): file.read_text(encoding="utf-8") for file in SAMPLES if kind_of(file) == kind}
    refused, accepted = 0, []
    for name, text in (SOURCES if kind == "config" else samples).items():
        for mutant in mutants(parse(text, name).data):
            if mutant.kind in SEMANTIC or (kind != "config" and is_data(mutant.at)):
                continue
            if validators[kind].is_valid(mutant.data):
                accepted.append(f"{name} {mutant.kind} {mutant.at}")
            else:
                refused += 1

    assert refused > 0
    assert len(accepted) <= 0.10 * (refused + len(accepted)), "\n".join(accepted)


def test_the_catalogue_names_no_word_that_the_config_schema_does_not_know():
    catalogue = json.loads((SCHEMAS / "capabilities.json").read_text(encoding="utf-8"))
    config = json.loads((SCHEMAS / "config.schema.json").read_text(encoding="utf-8"))

    for block in catalogue["blocks"]:
        known = config["$defs"][f"settings.{block['type']}"]["properties"]
        assert {field["name"] for field in block["fields"]} <= known.keys()
