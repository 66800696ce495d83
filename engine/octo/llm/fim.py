"""Code that is filled in at a cursor: asked for as such, or in a conversation where a provider knows no other way."""

from __future__ import annotations

from typing import Final

from octo.errors import BadRequest
from octo.llm.wire import shown
from octo.values import Json

_INSTRUCTION: Final = (
    "You complete code. The user gives the code before and after the cursor. Answer only with the code that belongs "
    "at the cursor: no explanation, no Markdown, nothing of what stands before or after it."
)
_MAX_TOKENS: Final = 256
_FIELDS: Final = {
    "prompt": (("string",), "text"),
    "suffix": (("string", "null"), "text"),
    "temperature": (("integer", "number", "null"), "a number"),
    "max_tokens": (("integer", "null"), "a whole number"),
    "stop": (("string", "array", "null"), "text or a list of texts"),
}
_KINDS: Final[dict[str, type]] = {
    "string": str,
    "number": float,
    "integer": int,
    "array": list,
    "null": type(None),
}
SCHEMA: Final[dict[str, Json]] = {
    name: {"type": list(kinds), "items": {"type": "string"}} if "array" in kinds else {"type": list(kinds)}
    for name, (kinds, _) in _FIELDS.items()
} | {"max_tokens": {"type": ["integer", "null"], "minimum": 1}}
"""The JSON Schema of each field."""
_KEPT: Final = ("stop", "stream", "stream_options", "user")


def check(fields: dict[str, Json]) -> None:
    """Raises BadRequest for fields of another kind than there can be."""
    for name, (kinds, expected) in _FIELDS.items():
        value = fields.get(name)
        if "integer" in kinds and isinstance(value, float) and value.is_integer():
            continue
        if not isinstance(value, tuple(_KINDS[kind] for kind in kinds)) or isinstance(value, bool):
            found = shown(value) if name in fields else "none"
            raise BadRequest(f"expected {expected} as `{name}`, found {found}")


def as_chat(fields: dict[str, Json]) -> dict[str, Json]:
    """The same request as one for an answer in a conversation. Raises BadRequest."""
    check(fields)
    temperature, max_tokens = fields.get("temperature"), fields.get("max_tokens")
    code = f"<prefix>\n{fields['prompt']}\n</prefix>\n<suffix>\n{fields.get('suffix') or ''}\n</suffix>"
    return {
        "model": fields.get("model"),
        "messages": [{"role": "system", "content": _INSTRUCTION}, {"role": "user", "content": code}],
        "temperature": 0 if temperature is None else temperature,
        "max_tokens": _MAX_TOKENS if max_tokens is None else max_tokens,
        **{name: fields[name] for name in _KEPT if name in fields},
    }
