"""What an agent knows about a person: told to the model at the start, and kept by the tools that it is given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from octo.agent.tools import BuiltIn
from octo.errors import OctoError
from octo.llm.chat import ChatMessage, ToolDefinition, user
from octo.store import facts
from octo.store.facts import Fact, Person

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from sqlite3 import Connection

    from octo.agent.tools import Serve
    from octo.message import Message
    from octo.run import Run
    from octo.store.search import Hit
    from octo.values import Json

_MOST_FACTS: Final = 50
_MOST_BYTES: Final = 8 * 1024
_MOST_OF_ONE: Final = 1024
"""Bytes of one fact in the preamble."""
_MOST_HITS: Final = 10
_SHOWN: Final = 500
"""Characters of a hit."""


def _definition(tool: str, description: str, **parts: str) -> ToolDefinition:
    properties = {part: {"type": "string", "description": text} for part, text in parts.items()}
    schema: Json = {"type": "object", "required": list(parts), "properties": properties}
    return ToolDefinition(tool, description, schema)


_REMEMBER: Final = _definition(
    "remember",
    "Keep a fact about the person for later conversations. A fact of the same name is replaced.",
    name="What the fact is about, in a word or two.",
    value="The fact.",
)
_FORGET: Final = _definition("forget", "Forget a fact about the person.", name="The name under which it was kept.")
_SEARCH: Final = _definition(
    "search_memory",
    "Search earlier conversations with the person, and the facts about them.",
    query="Words that all have to occur.",
)


def tools(person: Person | None) -> tuple[BuiltIn, ...]:
    """The tools by which the model keeps and finds what it knows about a person; None is nobody that is known."""

    def about(work: Callable[[dict[str, Json], Person, Run], Awaitable[str]]) -> Serve:
        async def serve(arguments: dict[str, Json], message: Message, run: Run) -> str:
            if person is None:
                raise OctoError("it is not known who the person is, so nothing is kept about anybody")
            return await work(arguments, person, run)

        return serve

    return (
        BuiltIn(_REMEMBER, about(_remember)),
        BuiltIn(_FORGET, about(_forget)),
        BuiltIn(_SEARCH, about(_search), idempotent=True),
    )


async def _remember(arguments: dict[str, Json], person: Person, run: Run) -> str:
    name, value = _part(arguments, "name"), _part(arguments, "value")
    mask, now = run.runtime.config.environment.mask, run.runtime.clock()
    await run.runtime.store.write(lambda db: facts.save(db, person, mask(name), mask(value), now=now))
    return f"remembered: {name}"


async def _forget(arguments: dict[str, Json], person: Person, run: Run) -> str:
    name, mask = _part(arguments, "name"), run.runtime.config.environment.mask
    store = run.runtime.store
    found = await store.write(lambda db: facts.delete(db, person, mask(name))) if store.exists() else 0
    return f"forgotten: {name}" if found else f"nothing was kept under {name}, so there is nothing left of it"


async def _search(arguments: dict[str, Json], person: Person, run: Run) -> str:
    from octo.store.search import search

    query = _part(arguments, "query")

    def work(db: Connection) -> list[Hit]:
        return search(db, query, agent=person.agent, user=person.user, most=_MOST_HITS)

    hits: list[Hit] = []
    if run.runtime.store.exists():
        async with run.runtime.store.to_search() as store:
            hits = await store.write(work)
    return "\n".join(map(_line, hits)) or "nothing was found in memory"


def _part(arguments: dict[str, Json], name: str) -> str:
    text: str = arguments[name].strip()
    if not text:
        raise OctoError(f"`{name}` is blank, and must be text")
    return text


def _line(hit: Hit) -> str:
    text = " ".join(hit.text.split())
    text = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    return f"fact {' '.join(hit.name.split())}: {text}" if hit.kind == "fact" else f"{hit.role}: {text}"


# ---------------------------------------------------------------- what is told at the start


async def preamble(person: Person, run: Run, warn: Callable[[str], None]) -> ChatMessage | None:
    """The turn that tells the model what it knows about a person; none when that is nothing."""
    try:
        known: list[Fact] = await run.runtime.store.read(
            lambda db: facts.rows(db, agent=person.agent, user=person.user), []
        )
    except OctoError as error:
        warn(f"what is known about the person cannot be read: {error.message}")
        return None
    if not known:
        return None
    lines: list[str] = []
    room = _MOST_BYTES
    for fact in known[:_MOST_FACTS]:
        line = _clipped(" ".join(f"{fact.name}: {fact.value}".split()), _MOST_OF_ONE)
        room -= len(line.encode()) + 1
        if room < 0:
            break
        lines.append(line)
    omitted = len(known) - len(lines)
    more = [f"({omitted} more: use `search_memory`)"] if omitted else []
    return user("\n".join(["What you remember about the person:", *lines, *more]))


def _clipped(text: str, most: int) -> str:
    data = text.encode()
    return text if len(data) <= most else f"{data[: most - 3].decode(errors='ignore')}…"
