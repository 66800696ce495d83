"""What is wrong with a text that is no YAML, in words for the person who edits it."""

from __future__ import annotations

import re

import yaml

from octo.config.source import SourceText
from octo.errors import Problem

_SYNTAX: dict[str, tuple[str, str | None]] = {
    "mapping values are not allowed in this context": (
        "found `:` where no key can stand",
        "quote a value that contains `: `, or check the indentation",
    ),
    "did not find expected key": (
        "expected a key",
        "check the indentation: keys of one mapping start in one column",
    ),
    "did not find expected '-' indicator": (
        "expected `- `",
        "check the indentation: items of one list start in one column",
    ),
    "could not find expected ':'": (
        "expected `:` after a key",
        "a key is followed by `: `; a text over several lines needs `|` or quotes",
    ),
    "did not find expected ',' or ']'": (
        "expected `,` or `]`",
        "close the list, or quote a text that starts with `[`",
    ),
    "did not find expected ',' or '}'": (
        "expected `,` or `}`",
        "close the mapping, or quote a text that starts with `{`",
    ),
    "did not find expected <document start>": (
        "expected the end of the file",
        "check the indentation, or quote the text that ends above",
    ),
    "did not find expected node content": (
        "expected a value",
        "close the list or mapping above with `]` or `}`, or quote the text",
    ),
    "did not find expected comment or line break": (
        "expected the end of the line",
        "a text under `|` or `>` starts on the next line",
    ),
    "found unknown escape character": (
        "found an unknown escape",
        "use single quotes, where a backslash is an ordinary character",
    ),
    "found undefined tag handle": (
        "found a tag that is not declared",
        "remove it, or quote a text that starts with `!`",
    ),
    "did not find expected alphabetic or numeric character": (
        "expected a name after `*` or `&`",
        "quote a text that starts with `*` or `&`",
    ),
    "found incompatible YAML document": (
        "found an unknown YAML version",
        "remove the `%YAML` line",
    ),
}
"""libyaml's words, ours, and what to do."""
_NO_TOKEN = "found character that cannot start any token"
_CONTEXTS = {
    "while parsing a block mapping": "mapping",
    "while parsing a flow mapping": "mapping",
    "while parsing a block collection": "list",
    "while parsing a flow sequence": "list",
}


def syntax_problem(source: SourceText, error: yaml.MarkedYAMLError) -> Problem:
    found = str(error.problem)
    mark, context = error.problem_mark, error.context_mark
    index = min(mark.index, len(source.text)) if mark is not None else 0
    character = source.text[index : index + 1]
    if found == "found unexpected end of stream" and context is not None:
        quote = source.text[context.index : context.index + 1]
        hint = f"end the text with `{quote}`"
        return source.problem("quotes are not closed", context.index, hint=hint)
    if character == "\t" and (found == _NO_TOKEN or "tab" in found):
        return source.problem("found a tab where only spaces may indent", index, hint="indent with spaces")
    if found == _NO_TOKEN:
        hint = "put the value in quotes"
        return source.problem(f"a value cannot start with `{character}`", index, hint=hint)
    message, advice = _SYNTAX.get(found, (found, None))
    kind = _CONTEXTS.get(error.context or "")
    if kind and context is not None and context.index != index:
        message += f" in the {kind} that starts at line {context.line + 1}"
    return source.problem(message, index, hint=advice)


def character_problem(source: SourceText) -> Problem:
    """The first control character that no YAML text may hold."""
    found = re.search("[\x00-\x08\x0b\x0c\x0e-\x1f]", source.text)
    index = found.start() if found else 0
    code = ord(source.text[index]) if found else 0
    hint = f"remove it, or write `\\x{code:02x}` in double quotes"
    return source.problem(f"control character U+{code:04X} is not allowed", index, hint=hint)
