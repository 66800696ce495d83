"""The table of functions in docs/expressions.md names them all and leads to the pages that explain them.

`OCTO_UPDATE=1 pytest tests/rules/test_function_table.py` writes it anew.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from octo.cel import functions
from octo.cel.functions import Function

DOCS = Path(__file__).parents[2] / "docs"
PAGE, REFERENCE = DOCS / "expressions.md", DOCS / "reference" / "functions.md"
BEGIN, END = "<!-- functions -->\n", "<!-- end of functions -->"


def rows() -> Iterator[str]:
    yield "\n| subject | functions |\n|---|---|\n"
    for title, module in sorted(subjects()):
        anchor = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        names = [name for member in vars(module).values() if isinstance(member, Function) for name in member.names]
        shown = ", ".join(f"`{name}`" for name in dict.fromkeys(names))
        yield f"| [{title}](reference/functions.md#{anchor}) | {shown} |\n"
    yield "\n"


def subjects() -> Iterator[tuple[str, object]]:
    for file in iter_modules(functions.__path__):
        module = import_module(f"{functions.__name__}.{file.name}")
        yield (module.__doc__ or "").partition("\n")[0].rstrip("."), module


def test_the_page_names_every_function_and_leads_to_its_subject() -> None:
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    expected = before + BEGIN + "".join(rows()) + END + after
    if os.environ.get("OCTO_UPDATE"):
        PAGE.write_text(expected, encoding="utf-8")

    assert expected == PAGE.read_text(encoding="utf-8"), "run it once with OCTO_UPDATE=1"


def test_the_reference_has_a_heading_for_every_subject() -> None:
    headings = re.findall(r"(?m)^## (.*)$", REFERENCE.read_text(encoding="utf-8"))

    assert {title for title, _ in subjects()} == set(headings) - {"Element by element"}
