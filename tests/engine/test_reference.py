"""octo/reference.py: pages on which every block, connector and function stands."""

from __future__ import annotations

import re

from octo import reference, registry
from octo.cel.functions import known
from octo.cel.parser import MACROS


def test_every_type_has_a_section():
    for page, kind in ((reference.blocks(), "blocks"), (reference.connectors(), "connectors")):
        assert sorted(re.findall(r"(?m)^## `(.*)`$", page)) == sorted(registry.known(kind))


def test_a_section_has_a_table_of_keys_and_one_for_each_mapping_in_it():
    section = reference.blocks().partition("## `switch`\n")[2].partition("\n## ")[0]

    assert (
        section
        == """
Run the first chain whose guard is true; later guards are not evaluated.

| key | kind | default | |
| --- | --- | --- | --- |
| `cases` | list: mapping | required | The guarded branches, in order. |
| `default` | chain | | Runs when no guard is true; without it the message passes unchanged. |

An entry of `cases`: One branch of a `switch`.

| key | kind | default | |
| --- | --- | --- | --- |
| `when` | expression (true or false) | required | The guard; must be true or false. |
| `name` | text | | Name of the branch, for addresses. |
| `process` | blocks | | Runs when the guard is the first that is true. |
"""
    )


def test_every_function_stands_in_the_page_of_functions():
    page = reference.functions()

    assert [name for name in known() if f"{name}(" not in page] == []


def test_the_forms_that_are_no_functions_are_explained():
    assert reference.macro_names() == MACROS


def test_a_function_is_shown_with_the_kinds_of_its_arguments():
    page = reference.functions()

    for form in (
        "| `string.indexOf(part: string, [start: int]): int` |",
        "`size(value: string or bytes or list or map): int`<br>`(string or bytes or list or map).size(): int`",
        "| `list.join([separator: string]): string` |",
        "Needs `pip install 'octo-runner[crypto]'`.",
    ):
        assert form in page
