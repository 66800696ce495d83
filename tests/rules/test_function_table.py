"""The tables of functions in docs/expressions.md are made of the functions themselves.

`OCTO_UPDATE=1 pytest tests/rules/test_function_table.py` writes them anew.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from octo.cel import functions
from octo.cel.functions import Function
from octo.fields import camel

PAGE = Path(__file__).parents[2] / "docs" / "expressions.md"
BEGIN, END = "<!-- functions -->\n", "<!-- end of functions -->"
KINDS = {
    "str": "string",
    "UInt": "uint",
    "float": "double",
    "Number": "number",
    "dict": "map",
    "Kind": "type",
    "Value": "any kind",
}


def tables() -> Iterator[str]:
    for file in sorted(iter_modules(functions.__path__), key=lambda file: file.name):
        module = import_module(f"{functions.__name__}.{file.name}")
        yield f"\n### {module.__doc__.splitlines()[0].rstrip('.')}\n\n| call | gives | what it is |\n|---|---|---|\n"
        for member in vars(module).values():
            if isinstance(member, Function):
                yield row(member)
    yield "\n"


def row(member: Function) -> str:
    calls = ", ".join(f"`{call(name, member)}`" for name in member.names)
    kind = member.implementation.__annotations__["return"].partition("[")[0]
    text = " ".join(member.documentation.split()).replace("|", "\\|")
    return f"| {calls} | {KINDS.get(kind, kind.lower())} | {text} |\n"


def call(name: str, member: Function) -> str:
    """`value.name(needed[, optional])`, `name(first, …)`."""
    words = [camel(word) for word in member.words]
    needed, optional = words[: member.required], words[member.required :]
    value = needed.pop(0) if name.startswith(".") else ""
    shown = ", ".join(needed) + "".join(f"[, {word}]" for word in optional) + (", …" if member.rest else "")
    return f"{value}{name}({shown if needed else shown.replace('[, ', '[', 1)})"


def test_the_page_shows_every_function_with_its_reference_text() -> None:
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    expected = before + BEGIN + "".join(tables()) + END + after
    if os.environ.get("OCTO_UPDATE"):
        PAGE.write_text(expected, encoding="utf-8")

    assert expected == PAGE.read_text(encoding="utf-8"), "run it once with OCTO_UPDATE=1"
