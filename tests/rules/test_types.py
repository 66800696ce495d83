"""octo/registry.py: every file declares a type, and every declared type leads back to its file."""

from pathlib import Path

import pytest

import octo
from octo import registry
from octo.errors import OctoError

ENGINE = Path(octo.__file__).parent
FILES = [path for kind in ("blocks", "connectors") for path in (ENGINE / kind).glob("*.py") if path.stem != "__init__"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_file_declares_types_and_each_leads_back_to_it(path):
    find = registry.block if path.parent.name == "blocks" else registry.connector
    names = list(registry.declared(path))

    assert names != []
    assert {find(name).__module__ for name in names} == {f"octo.{path.parent.name}.{path.stem}"}


def test_a_misspelt_type_is_answered_with_the_near_miss():
    with pytest.raises(OctoError) as caught:
        registry.block("set-paylod")

    assert str(caught.value) == 'block "set-paylod" not registered'
    assert caught.value.hint == "did you mean `set-payload`?"


@pytest.mark.parametrize("name", ["spy", "mock", "breakpoint", "../run", "If", "", "run", "set_payload"])
def test_what_is_no_block_type_is_refused(name):
    with pytest.raises(OctoError, match="not registered"):
        registry.block(name)
