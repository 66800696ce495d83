"""octo/__init__.py: the public names, and that each leads to what it names."""

import ast
from pathlib import Path

import octo


def declared_for_type_checkers() -> dict[str, str]:
    tree = ast.parse(Path(octo.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    return {
        alias.name: str(node.module) for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }


def test_the_mapping_and_the_imports_for_type_checkers_name_the_same_things():
    assert declared_for_type_checkers() == octo._HOME
    assert sorted(octo.__all__) == sorted(octo._HOME)


def test_every_public_name_can_be_imported():
    missing = [name for name in octo.__all__ if getattr(octo, name, None) is None]

    assert missing == []


def test_a_name_that_does_not_exist_is_an_attribute_error():
    try:
        octo.Blok  # noqa: B018  (the access is the test)
    except AttributeError as error:
        assert str(error) == "module `octo` has no attribute `Blok`"
    else:
        raise AssertionError("no error")
