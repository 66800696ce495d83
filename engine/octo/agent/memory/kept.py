"""All that is kept of what was said and learnt, of whatever kind: listed, shown, searched and deleted alike."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, assert_never, get_args

from octo.agent.memory import codec
from octo.agent.memory.threads import payload
from octo.llm.chat import ChatMessage, File, Reasoning, Search, Text, ToolCall, ToolResult
from octo.store import conversations, facts, fulltext, memories, search, threads, transcripts
from octo.store.fulltext import Said, Source
from octo.values import parse

if TYPE_CHECKING:
    from sqlite3 import Connection

Kind: TypeAlias = Literal["managed", "thread", "transcript", "facts"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that is kept: a memory of a block, a thread, a conversation, or what is known of a person."""

    kind: Kind
    id: str
    """The key of a memory, the id of a thread or conversation, the person."""
    owner: str = ""
    """The block of a memory, the agent of a thread or of facts, the flow of a conversation."""
    name: str = ""
    """The title of a thread or conversation."""
    count: int = 0
    """How many messages, turns, rows or facts."""
    size: int = 0
    """In bytes."""
    updated: int | None = None
    """In nanoseconds since 1970; None where that is not kept."""
    workspace: str = ""
    """Of a memory."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that was said, done or learnt."""

    role: str
    """`user`, `assistant`, `tool`, `system`; `fact` for what is known of a person."""
    text: str
    name: str = ""
    """Of a tool or a fact."""
    ok: bool = True
    thinking: str = ""
    arguments: str = ""
    """Of a tool call."""
    at: int | None = None
    why: str = ""
    """Of a question without an answer: the reason, where there is one."""


@dataclass(frozen=True, slots=True)
class Hit:
    """Where the words of a query were found."""

    kind: Kind
    id: str
    owner: str
    role: str
    text: str


# ---------------------------------------------------------------- listing


def items(db: Connection, *, kind: Kind | None = None, flow: str = "", block: str = "") -> list[Item]:
    """What is kept, the latest first. With a flow or a block only what belongs to one."""
    found = [item for one in KINDS if kind in (None, one) for item in _of_kind(db, one, flow, block)]
    return sorted(found, key=lambda item: (-(item.updated or 0), item.kind, item.id, item.owner))


def _of_kind(db: Connection, kind: Kind, flow: str, block: str) -> Iterator[Item]:
    match kind:
        case "managed":
            for row in memories.rows(db, flow=flow, block=block):
                place = row.place
                yield Item(
                    kind, place.key, place.block, "", row.messages, row.size, row.updated, workspace=place.workspace
                )
        case "transcript":
            for one in () if block else transcripts.conversations(db, flow=flow):
                yield Item(kind, one.id, one.flow, one.title, one.rows, one.size, one.updated)
        case "thread":
            if not flow and not block:
                yield from _threads(db)
        case "facts":
            if not flow and not block:
                yield from _people(db)
        case _:
            assert_never(kind)


def _threads(db: Connection) -> Iterator[Item]:
    for thread in threads.rows(db):
        count = len(list(_of_payload(threads.load(db, thread.thread))))
        yield Item("thread", thread.thread, count=count, size=thread.size, updated=thread.updated)
    for row in conversations.rows(db):
        count = row.turns or len(list(_of_payload(_working(db, row.place))))
        yield Item("thread", row.place.thread, row.place.agent, row.title, count, row.size, row.updated)


def _people(db: Connection) -> Iterator[Item]:
    known: dict[facts.Person, list[facts.Fact]] = {}
    for fact in facts.rows(db):
        known.setdefault(fact.person, []).append(fact)
    for (agent, user), found in known.items():
        size = sum(len(f"{fact.name}{fact.value}".encode()) for fact in found)
        yield Item("facts", user, agent, "", len(found), size, max(fact.updated for fact in found))


# ---------------------------------------------------------------- showing


def entries(db: Connection, item: Item) -> list[Entry]:
    """What an item holds, in order. What cannot be read is told in the place of it."""
    match item.kind:
        case "managed":
            return list(_of_payload(memories.load(db, memories.Place(item.workspace, item.id, item.owner))))
        case "thread":
            return list(_of_thread(db, item))
        case "transcript":
            return [_of_row(row) for row in transcripts.rows(db, item.id)]
        case "facts":
            found = facts.rows(db, agent=item.owner, user=item.id)
            return [Entry("fact", fact.value, fact.name, at=fact.updated) for fact in found]
        case _:
            assert_never(item.kind)


def _of_row(row: transcripts.Row) -> Entry:
    if row.role != "tool":
        return Entry(row.role, row.text, ok=row.ok, thinking=row.thinking, at=row.at)
    name = row.text.removeprefix("Used ").removeprefix("Error executing ").removesuffix(" tool")
    return Entry("tool", row.result, name, row.ok, row.thinking, row.arguments, row.at)


def _of_thread(db: Connection, item: Item) -> Iterator[Entry]:
    if not item.owner:
        yield from _of_payload(threads.load(db, item.id))
        return
    place = conversations.Place(item.owner, item.id)
    turns = conversations.last(db, place, -1)
    for turn in turns:
        yield Entry(turn.role, turn.text, ok=not turn.unanswered, at=turn.at, why=turn.stop_reason)
    if not turns:
        yield from _of_payload(_working(db, place))


def _working(db: Connection, place: conversations.Place) -> str | None:
    found = conversations.working(db, place)
    return found.memory if found else None


def _of_payload(text: str | None) -> Iterator[Entry]:
    """The entries of a conversation that is stored as JSON."""
    try:
        stored = parse(text) if text else []
        turns = codec.decode(stored) if isinstance(stored, list) else payload(stored)[0]
    except ValueError as error:
        yield Entry("system", f"(cannot be read: {error})", ok=False)
        return
    for turn in turns:
        yield from _of_turn(turn)


def _of_turn(turn: ChatMessage) -> Iterator[Entry]:
    thinking = "".join(part.text for part in turn.parts if isinstance(part, Reasoning))
    if turn.text.strip() or (thinking and not turn.calls):
        yield Entry(turn.role, turn.text, thinking=thinking)
        thinking = ""
    for part in turn.parts:
        match part:
            case ToolCall():
                yield Entry("assistant", "", part.name, thinking=thinking, arguments=part.arguments)
                thinking = ""
            case ToolResult():
                yield Entry("tool", part.text, part.name, ok=not part.is_error)
            case File():
                yield Entry(turn.role, f"[file: {part.name or 'unnamed'}, {part.mime_type}, {len(part.data)} bytes]")
            case Text() | Reasoning() | Search():
                pass


# ---------------------------------------------------------------- searching


def index(db: Connection) -> bool:
    """Take in a part of what was said since the last search; whether there is more.

    Needs a connection that may write.
    """
    return fulltext.refresh(db, _read)


def find(db: Connection, query: str, *, kinds: Sequence[Kind] = KINDS, most: int = 50) -> list[Hit]:
    """Where all words of a query stand together, the latest first in each kind. Needs a connection that may write."""
    sources = {"managed": "managed", "thread": "thread", "working": "thread", "transcript": "transcript"}
    wanted = [name for name, kind in sources.items() if kind in kinds]
    found = [_hit(hit) for hit in fulltext.search(db, query, kinds=wanted, most=most)]
    for other in search.search(db, query, most=most) if {"thread", "facts"} & set(kinds) else ():
        kind: Kind = "thread" if other.kind == "turn" else "facts"
        if kind in kinds:
            name = other.name if kind == "thread" else other.user
            text = other.text if kind == "thread" else f"{other.name}: {other.text}"
            found.append(Hit(kind, name, other.agent, other.role or "fact", text))
    return sorted(found, key=lambda hit: kinds.index(hit.kind))[:most]


def _hit(hit: fulltext.Hit) -> Hit:
    match hit.source:
        case ("managed", (_, key, block)):
            return Hit("managed", key, block, *hit.said)
        case ("working", (agent, thread)):
            return Hit("thread", thread, agent, *hit.said)
        case ("transcript", (id,)):
            return Hit("transcript", id, "", *hit.said)
    return Hit("thread", hit.source.parts[0], "", *hit.said)


def _read(db: Connection, source: Source) -> Iterable[Said]:
    """The texts of a conversation, for the index."""
    match source:
        case ("managed", parts):
            found: Iterable[Entry] = _of_payload(memories.load(db, memories.Place(*parts)))
        case ("working", parts):
            found = _of_payload(_working(db, conversations.Place(*parts)))
        case ("transcript", (id,)):
            found = entries(db, Item("transcript", id))
        case _:
            found = _of_payload(threads.load(db, source.parts[0]))
    return [Said(entry.role, entry.text or entry.arguments) for entry in found]


# ---------------------------------------------------------------- deleting


def delete(db: Connection, item: Item) -> None:
    """Remove an item; with a conversation go the memories of its runs."""
    match item.kind:
        case "managed":
            memories.delete(db, item.id, item.owner, workspace=item.workspace)
        case "thread" if item.owner:
            conversations.delete(db, conversations.Place(item.owner, item.id))
        case "thread":
            threads.delete(db, item.id)
        case "transcript":
            transcripts.delete(db, item.id)
            memories.delete(db, item.id)
        case "facts":
            facts.delete(db, facts.Person(item.owner, item.id))
