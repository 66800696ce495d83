"""octo_cli/commands/memory.py, octo_cli/memory_table.py, octo_cli/asking.py, octo/agent/memory/kept.py: what is
remembered, as a list, as conversations, searched, exported and forgotten.
"""

from __future__ import annotations

import asyncio
import io
import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from octo.agent.memory import codec
from octo.llm.chat import ChatMessage, File, Reasoning, Text, ToolCall, ToolResult, user
from octo.store import conversations, facts, memories, transcripts
from octo.store import entries as kv
from octo.store.conversations import Turn
from octo.store.facts import Person
from octo.store.memories import Place
from octo.store.store import Store
from octo.store.threads import NAMESPACE, PREFIX
from octo.store.transcripts import Row
from octo_cli.asking import agreed
from octo_cli.session import Session

DAY = 86_400 * 10**9
NOON = 1_767_441_600 * 10**9
"""2026-01-03 12:00 in Greenwich."""
KEY = "a50aa946-4690-51c3-a731-9eda2ff3b248"
CHAT = "0c3f4b5e-0000-4000-8000-00000000000a"
STATION = [
    user("Where is the station?"),
    ChatMessage("assistant", (Reasoning("Look it up."), ToolCall("1", "find", '{"what":"station"}'))),
    ChatMessage("tool", (ToolResult("1", "find", "no map", is_error=True),)),
    ChatMessage("assistant", (Text("Two streets east.\n\x1b[31mReally."),)),
]


def moment(days: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime((NOON + days * DAY) // 10**9))


def fill(db: Any) -> None:
    """A store with one thing of each kind, each a day later."""
    messages = json.dumps(codec.encode(STATION))
    memories.save(db, Place("shop", KEY, "ask.desk"), messages, 4, now=NOON)
    memories.save(db, Place("shop", CHAT, "chat.desk"), json.dumps(codec.encode([user("Hi")])), 1, now=NOON + DAY)
    thread = {"v": 1, "tokens": 9, "messages": codec.encode([user("An umbrella?"), user("Now?")])}
    kv.put(db, NAMESPACE, f"{PREFIX}desk:ada", json.dumps(thread), 3, now=NOON - DAY)
    place = conversations.Place("support", "t1")
    conversations.append(
        db, place, [Turn("user", "My order", NOON), Turn("assistant", "Sent", NOON)], user="ada", now=0
    )
    conversations.set_title(db, place, "An order")
    db.execute("UPDATE threads SET updated = ?", (NOON + 2 * DAY,))
    transcripts.begin(db, CHAT, flow="chat", title="Hi", now=NOON)
    rows = [
        Row("user", "Hi", NOON),
        Row("tool", "Used find tool", NOON, True, "r1", "desk", "Hm.", '{"what":"order"}', '"12"'),
        Row("tool", "Error executing book", NOON, False, "r1", "desk", "", "{}", "full"),
        Row("assistant", "Order 12.", NOON + 3 * DAY, True, "r1", "desk"),
    ]
    transcripts.append(db, CHAT, rows)
    facts.save(db, Person("support", "ada"), "diet", "vegan", now=NOON + 4 * DAY)
    facts.save(db, Person("support", "ada"), "town", "Oslo", now=NOON)


@pytest.fixture
def memory(octo: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """`octo memory` over a store with one thing of each kind, on a terminal of 100 columns."""
    monkeypatch.setenv("COLUMNS", "100")
    with Store(tmp_path / ".octo") as store:
        asyncio.run(store.write(fill))
    return lambda *args, **more: octo("memory", *args, **more)


def found(outcome: Any) -> list[tuple[str, str]]:
    """The kinds and ids of what a document lists."""
    document = json.loads(outcome.stdout)
    return [(item["kind"], item["id"]) for item in document.get("memories", document.get("found"))]


def put_thread(folder: Path, id: str, text: str, now: int) -> None:
    with Store(folder / ".octo") as store:
        turns = json.dumps(codec.encode([user(text)]))
        asyncio.run(store.write(lambda db: kv.put(db, NAMESPACE, PREFIX + id, turns, 1, now=now)))


ODD = "desk\0\x1f \U0001f389"
"""An id with characters that end or part texts elsewhere."""


def test_an_id_may_hold_any_character(octo: Any, tmp_path: Path) -> None:
    put_thread(tmp_path, ODD, "odd ones", 2)
    put_thread(tmp_path, "desk", "even ones", 1)

    assert found(octo("memory", "list")) == [("thread", ODD), ("thread", "desk")]
    assert found(octo("memory", "search", "odd")) == [("thread", ODD)]
    assert found(octo("memory", "show", ODD)) == [("thread", ODD)]
    assert octo("memory", "delete", ODD, "--yes").status == 0
    assert found(octo("memory", "search", "ones")) == [("thread", "desk")]
    assert found(octo("memory", "list")) == [("thread", "desk")]


def test_an_id_of_an_agent_may_hold_any_character(octo: Any, tmp_path: Path) -> None:
    def fill(db: Any) -> None:
        memory = json.dumps({"v": 1, "messages": codec.encode([user("odd ones")])})
        conversations.save_working(db, conversations.Place(ODD, ODD), memory, expected=None, user="", now=1)

    with Store(tmp_path / ".octo") as store:
        asyncio.run(store.write(fill))

    assert json.loads(octo("memory", "search", "odd").stdout) == {
        "found": [{"kind": "thread", "id": ODD, "agent": ODD, "role": "user", "text": "odd ones"}]
    }


def test_threads_of_agents_without_an_id_are_listed_the_latest_first(octo: Any, tmp_path: Path) -> None:
    config = """
connectors: [{ name: m, type: llm-scripted, settings: { rules: [{ when: 'true', text: Yes }] } }]
flows:
  - name: ask
    process:
      - type: ai-agent
        name: a
        connector: m
        prompt: Say.
        input: body
        memoryThreadId: body
        tools: [{ name: t, description: T., process: [{ type: log, settings: { message: body } }] }]
"""
    (tmp_path / "app.yaml").write_text(config, encoding="utf-8")
    for thread in ("b", "a", "c", "b"):
        assert octo("invoke", "--config", "app.yaml", "--flow", "ask", "--data", f'"{thread}"').status == 0

    assert found(octo("memory", "list", "--kind", "thread")) == [("thread", "b"), ("thread", "c"), ("thread", "a")]


@pytest.mark.parametrize(
    ("words", "ids"),
    [
        (["红色"], ["chairs"]),
        (["椅子"], ["chairs"]),
        (["红色", "octo"], ["chairs"]),
        (["🎉"], ["chairs"]),
        (["ลูกค้า"], ["thai"]),
        (["绿色"], []),
        (["octo", "绿色"], []),
    ],
    ids=["inside", "at the end", "with another", "a picture", "Thai", "another", "with one that is there"],
)
def test_text_without_spaces_is_searched(octo: Any, tmp_path: Path, words: list[str], ids: list[str]) -> None:
    put_thread(tmp_path, "chairs", "octo, 我喜欢红色椅子🎉", 1)
    put_thread(tmp_path, "thai", "สวัสดีลูกค้าทุกท่าน", 2)

    assert [id for _, id in found(octo("memory", "search", *words))] == ids


# ---------------------------------------------------------------- list


def test_everything_is_listed_the_latest_first(memory: Any) -> None:
    lines = f"""\
KIND        KEY       OF         TITLE     COUNT       SIZE  UPDATED
facts       ada       support                  2   17 bytes  {moment(4)}
transcript  0c3f4b5e  chat       Hi            4   74 bytes  {moment(3)}
thread      t1        support    An order      2   12 bytes  {moment(2)}
managed     0c3f4b5e  chat.desk                1   45 bytes  {moment(1)}
managed     a50aa946  ask.desk                 4  375 bytes  {moment(0)}
thread      desk:ada                           2  137 bytes  {moment(-1)}
"""

    assert memory("list", terminal="out") == (lines, "", 0)


def test_the_list_is_one_document_in_a_pipe(memory: Any) -> None:
    outcome = memory("list", "--kind", "managed")

    assert json.loads(outcome.stdout) == {
        "memories": [
            {
                "kind": "managed",
                "id": CHAT,
                "block": "chat.desk",
                "workspace": "shop",
                "count": 1,
                "bytes": 45,
                "updated": "2026-01-04T12:00:00.000000Z",
            },
            {
                "kind": "managed",
                "id": KEY,
                "block": "ask.desk",
                "workspace": "shop",
                "count": 4,
                "bytes": 375,
                "updated": "2026-01-03T12:00:00.000000Z",
            },
        ],
        "more": False,
    }
    assert memory("list", "--kind", "managed", "--json", terminal="out") == outcome


@pytest.mark.parametrize(
    ("args", "ids"),
    [
        (["--kind", "transcript"], [("transcript", CHAT)]),
        (["--kind", "facts"], [("facts", "ada")]),
        (["--kind", "thread"], [("thread", "t1"), ("thread", "desk:ada")]),
        (["--flow", "chat"], [("transcript", CHAT), ("managed", CHAT)]),
        (["--block", "ask.desk"], [("managed", KEY)]),
        (["--limit", "1"], [("facts", "ada")]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value[0], str) else "",
)
def test_a_part_of_it_is_listed(memory: Any, args: list[str], ids: list[tuple[str, str]]) -> None:
    assert found(memory("list", *args)) == ids


def test_a_long_list_says_that_there_is_more(memory: Any) -> None:
    assert memory("list", "--limit", "1", terminal="out").stdout.splitlines()[-1] == "older ones: `--limit 5`"
    assert json.loads(memory("list", "--limit", "1").stdout)["more"] is True


def test_long_titles_are_cut_to_the_width_of_the_terminal(memory: Any, tmp_path: Path) -> None:
    def name(db: Any) -> None:
        conversations.set_title(db, conversations.Place("support", "t1"), "A\tvery \x1b[31mlong title 日本 " * 9)

    with Store(tmp_path / ".octo") as store:
        asyncio.run(store.write(name))
    lines = memory("list", "--kind", "thread", terminal="out").stdout.splitlines()

    assert lines[1].startswith("thread  t1        support  A very \\u001b[31mlong title 日本")
    assert lines[1].count("…") == 1


def test_nothing_is_remembered_in_a_store_that_is_not_there(octo: Any, tmp_path: Path) -> None:
    assert octo("memory", "list", terminal="out") == ("nothing is remembered yet\n", "", 0)
    assert octo("memory", "list") == ('{"memories":[],"more":false}\n', "", 0)
    assert octo("memory", "search", "word", terminal="out") == ("nothing was found\n", "", 0)
    assert list(tmp_path.glob(".octo")) == []


def test_nothing_of_a_kind_is_kept(memory: Any) -> None:
    assert memory("list", "--flow", "other", terminal="out") == ("nothing of that kind is kept\n", "", 0)


# ---------------------------------------------------------------- show


def test_a_memory_reads_as_a_conversation(memory: Any) -> None:
    assert memory("show", "a50a", terminal="out") == (
        f"""\
managed {KEY}, block ask.desk
4 messages, 375 bytes, {moment(0)}

user       Where is the station?
thinks     Look it up.
  →        find {{"what":"station"}}
  ✗        find no map
assistant  Two streets east.
           \\u001b[31mReally.
""",
        "",
        0,
    )


def test_a_transcript_reads_as_a_conversation(memory: Any) -> None:
    shown = memory("show", CHAT, "--kind", "transcript", terminal="out")

    assert shown.stdout == (
        f"""\
transcript {CHAT}, flow chat: Hi
4 rows, 74 bytes, {moment(3)}

user       Hi
thinks     Hm.
  →        find {{"what":"order"}}
  ←        "12"
  →        book {{}}
  ✗        full
assistant  Order 12.
"""
    )


def test_a_thread_and_a_person_are_shown(memory: Any) -> None:
    assert memory("show", "t1", terminal="out").stdout.splitlines() == [
        "thread t1, agent support: An order",
        f"2 messages, 12 bytes, {moment(2)}",
        "",
        "user       My order",
        "assistant  Sent",
    ]
    assert memory("show", "ada", terminal="out").stdout.splitlines() == [
        "facts ada, agent support",
        f"2 facts, 17 bytes, {moment(4)}",
        "",
        "diet       vegan",
        "town       Oslo",
    ]


def test_a_question_without_an_answer_says_why(octo: Any, tmp_path: Path) -> None:
    def fill(db: Any) -> None:
        turns = [
            Turn("user", "Now?", NOON, unanswered=True, stop_reason="refused"),
            Turn("user", "And?", NOON, unanswered=True),
        ]
        conversations.append(db, conversations.Place("support", "t2"), turns, user="", now=0)

    with Store(tmp_path / ".octo") as store:
        asyncio.run(store.write(fill))

    assert octo("memory", "show", "t2", terminal="out").stdout.splitlines()[3:] == [
        "user       Now?",
        "  ✗        no answer: refused",
        "user       And?",
        "  ✗        no answer",
    ]
    (item,) = json.loads(octo("memory", "show", "t2").stdout)["memories"]
    at = "2026-01-03T12:00:00.000000Z"
    assert item["entries"] == [
        {"role": "user", "text": "Now?", "ok": False, "reason": "refused", "at": at},
        {"role": "user", "text": "And?", "ok": False, "at": at},
    ]


def test_all_that_has_a_key_is_shown_as_one_document(memory: Any) -> None:
    document = json.loads(memory("show", CHAT, "--last", "1").stdout)

    assert [(item["kind"], item["entries"]) for item in document["memories"]] == [
        ("transcript", [{"role": "assistant", "text": "Order 12.", "at": "2026-01-06T12:00:00.000000Z"}]),
        ("managed", [{"role": "user", "text": "Hi"}]),
    ]


def test_what_cannot_be_read_is_told_in_its_place(memory: Any, tmp_path: Path) -> None:
    with Store(tmp_path / ".octo") as store:
        asyncio.run(store.write(lambda db: memories.save(db, Place("", KEY, "x"), '{"v": 2}', 1, now=1)))

    shown = memory("show", KEY, "--block", "x", terminal="out").stdout.splitlines()
    assert shown[-1] == "system     (cannot be read: it was written by another version of octo)"


def test_files_of_a_thread_are_told_and_not_shown(memory: Any, tmp_path: Path) -> None:
    turns = codec.encode([ChatMessage("user", (File("image/png", b"123", "a.png"), Text("Look")))], files=True)
    with Store(tmp_path / ".octo") as store:
        asyncio.run(
            store.write(lambda db: kv.put(db, NAMESPACE, f"{PREFIX}files", json.dumps(turns), 1, now=NOON - DAY))
        )

    assert memory("show", "files", terminal="out").stdout.splitlines()[3:] == [
        "user       Look",
        "user       [file: a.png, image/png, 3 bytes]",
    ]


@pytest.mark.parametrize(
    ("args", "message", "hint"),
    [
        (
            ["show", "t2"],
            "nothing is kept under `t2`",
            f"known names: `{CHAT}`, `{KEY}`, `ada`, `desk:ada`, `t1`",
        ),
        (["show", "des"], "nothing is kept under `des`", "did you mean `desk:ada`?"),
        (["show", "x", "--kind", "managd"], "`--kind`: there is no kind `managd`", "did you mean `managed`?"),
        (["delete", "a50aa946", "--yes"], "nothing is kept under `a50aa946`", f"did you mean `{KEY}`?"),
        (
            ["show", "x", "--store", ":memory:"],
            "a store in memory keeps nothing",
            "name a directory with `--store DIR`",
        ),
        (["key", " ", "--flow", "f"], "a blank id names no memory", None),
        (["key", "x", "--flow", ""], "a blank flow names no memory", None),
        (
            ["key", "x", "--flow", "enrch", "--config", "app.yaml"],
            'flow "enrch" is not registered',
            "did you mean `enrich`?",
        ),
        (
            ["delete", "t1", "--kind", "facts", "--yes"],
            "nothing is kept under `t1` with `--kind facts`",
            "without, there is: thread",
        ),
        (
            ["show", CHAT, "--kind", "managed", "--block", "other"],
            f"nothing is kept under `{CHAT}` with `--kind managed` and `--block other`",
            "without, there is: managed and transcript",
        ),
        (["list", "--config", "ap.yaml"], "config `ap.yaml` does not exist", "did you mean `app.yaml`?"),
        (
            ["search", "x", "--config", ""],
            "`--config` is empty",
            "give it the name of a file or a directory",
        ),
        (
            ["list", "--store", "app.yaml"],
            "cannot create the store `app.yaml`: a file of that name exists",
            "name another directory with `--store DIR`",
        ),
        (
            ["delete", "t1"],
            "forget thread of `support` under `t1`: nobody is there to be asked",
            "`--yes` does it without asking",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_done_is_told(
    memory: Any, tmp_path: Path, args: list[str], message: str, hint: str | None
) -> None:
    (tmp_path / "app.yaml").write_text("flows: [{name: enrich}]\n", encoding="utf-8")
    told = f"error: {message}\n" + (f"hint: {hint}\n" if hint else "")

    assert memory(*args, terminal="err") == ("", told, 2)


def test_the_beginning_of_two_keys_stands_for_neither(memory: Any, tmp_path: Path) -> None:
    with Store(tmp_path / ".octo") as store:
        asyncio.run(store.write(lambda db: memories.save(db, Place("", KEY[:-1] + "0", "x"), "[]", 0, now=1)))

    assert memory("show", "a50aa9", terminal="err") == (
        "",
        "error: 2 keys begin with `a50aa9`\nhint: give more of it, or `--kind`\n",
        2,
    )


@pytest.mark.parametrize(
    ("written", "error", "hint"),
    [
        (
            b"no database" * 100,
            "`.octo/octo.db` is not an SQLite file",
            "move it away, or name another directory with `--store DIR`",
        ),
        (None, "the value of `agent-memory/t` in `.octo/octo.db` is not JSON: ", "`octo memory delete` and the block "),
    ],
    ids=["no database", "one value"],
)
def test_a_thread_that_cannot_be_read_says_what_can_be_done(
    octo: Any, tmp_path: Path, written: bytes | None, error: str, hint: str
) -> None:
    config = """
connectors: [{ name: m, type: llm-scripted, settings: { rules: [{ when: 'true', text: Yes }] } }]
flows:
  - name: ask
    process:
      - type: ai-agent
        name: a
        connector: m
        prompt: Say.
        input: '"hi"'
        memoryThreadId: '"t"'
        tools: [{ name: t, description: T., process: [{ type: log, settings: { message: body } }] }]
"""
    (tmp_path / "app.yaml").write_text(config, encoding="utf-8")
    if written is None:
        with Store(tmp_path / ".octo") as store:
            asyncio.run(store.write(lambda db: kv.put(db, NAMESPACE, f"{PREFIX}t", "{", 1, now=1)))
    else:
        (tmp_path / ".octo").mkdir()
        (tmp_path / ".octo" / "octo.db").write_bytes(written)

    outcome = octo("invoke", "--config", "app.yaml", "--flow", "ask", terminal="err")

    assert f"ai-agent: the conversation of thread `t` cannot be read: {error}" in outcome.stderr
    assert f"\nhint: {hint}" in outcome.stderr
    assert outcome.status == 1


# ---------------------------------------------------------------- search


@pytest.mark.parametrize(
    ("words", "hits"),
    [
        (["station"], [("managed", KEY), ("managed", KEY)]),
        (["STREET", "east"], [("managed", KEY)]),
        (["umbrella"], [("thread", "desk:ada")]),
        (["order"], [("thread", "t1"), ("transcript", CHAT)]),
        (["vegan"], [("facts", "ada")]),
        (["station", "umbrella"], []),
        (["…"], []),
    ],
    ids=lambda value: " ".join(value) if value and isinstance(value[0], str) else "",
)
def test_all_kinds_are_searched(memory: Any, words: list[str], hits: list[tuple[str, str]]) -> None:
    assert found(memory("search", *words)) == hits
    assert found(memory("search", *words)) == hits


def test_a_kind_is_searched_alone(memory: Any) -> None:
    assert found(memory("search", "order", "--kind", "transcript")) == [("transcript", CHAT)]
    assert found(memory("search", "order", "--limit", "1")) == [("thread", "t1")]


def test_what_was_found_is_shown_with_the_text_around_it(memory: Any, tmp_path: Path) -> None:
    long = json.dumps(codec.encode([user("before " * 20 + "needle\n" + "behind " * 20)]))
    with Store(tmp_path / ".octo") as store:
        asyncio.run(store.write(lambda db: memories.save(db, Place("", KEY, "x.y"), long, 1, now=NOON)))

    assert memory("search", "needle", terminal="out").stdout == (
        "KIND     KEY       OF   WHO   TEXT\n"
        "managed  a50aa946  x.y  user  …ore before before before before before before before before needle b…\n"
    )


def test_what_was_said_since_the_last_search_is_found_and_what_is_gone_is_not(memory: Any, tmp_path: Path) -> None:
    assert found(memory("search", "station"))
    place = Place("shop", KEY, "ask.desk")
    with Store(tmp_path / ".octo") as store:
        new = json.dumps(codec.encode([user("Where is the harbour?")]))
        asyncio.run(store.write(lambda db: memories.save(db, place, new, 1, now=NOON + 9 * DAY)))

    assert found(memory("search", "station")) == []
    assert found(memory("search", "harbour")) == [("managed", KEY)]


# ---------------------------------------------------------------- key, export


def test_the_key_of_an_id_is_printed(memory: Any, tmp_path: Path) -> None:
    assert memory("key", "customer-1", "--flow", "enrich", "--workspace", "ai-agent") == (f"{KEY}\n", "", 0)
    (tmp_path / "app.yaml").write_text("service: {name: ai-agent}\nflows: [{name: enrich}]\n", encoding="utf-8")
    assert memory("key", "customer-1", "--flow", "enrich", "--config", "app.yaml", "--json") == (
        f'{{"key":"{KEY}"}}\n',
        "",
        0,
    )


def test_everything_is_exported_to_a_file(memory: Any, tmp_path: Path) -> None:
    assert memory("export", "--out", "all.json") == ("", "", 0)

    document = json.loads((tmp_path / "all.json").read_text(encoding="utf-8"))
    assert [len(item["entries"]) for item in document["memories"]] == [2, 4, 2, 1, 4, 2]
    assert (tmp_path / "all.json").stat().st_mode & 0o777 == 0o600


def test_a_part_is_exported_to_standard_output(memory: Any) -> None:
    assert found(memory("export", "t1")) == [("thread", "t1")]
    assert json.loads(memory("export", "t1").stdout)["memories"][0]["entries"] == [
        {"role": "user", "text": "My order", "at": "2026-01-03T12:00:00.000000Z"},
        {"role": "assistant", "text": "Sent", "at": "2026-01-03T12:00:00.000000Z"},
    ]


# ---------------------------------------------------------------- delete


@pytest.mark.parametrize(
    ("args", "told", "left"),
    [
        (["t1"], "thread of `support`", [0, 1, 3, 4, 5]),
        (["desk:ada"], "thread", [0, 1, 2, 3, 4]),
        (["ada"], "facts of `support`", [1, 2, 3, 4, 5]),
        ([KEY], "managed of `ask.desk`", [0, 1, 2, 3, 5]),
        ([CHAT], "transcript of `chat`, managed of `chat.desk`", [0, 2, 4, 5]),
        ([CHAT, "--kind", "transcript"], "transcript of `chat`", [0, 2, 4, 5]),
        ([CHAT, "--kind", "managed"], "managed of `chat.desk`", [0, 1, 2, 4, 5]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) and isinstance(value[0], str) else "",
)
def test_what_has_a_key_is_forgotten(memory: Any, args: list[str], told: str, left: list[int]) -> None:
    before = json.loads(memory("list").stdout)["memories"]
    memory("search", "order")

    assert memory("delete", *args, "--yes", terminal="out") == (f"forgot {told}\n", "", 0)
    assert json.loads(memory("list").stdout)["memories"] == [before[at] for at in left]


def test_what_is_forgotten_is_no_longer_in_the_index(memory: Any, tmp_path: Path) -> None:
    memory("search", "station")
    assert memory("delete", KEY, "--yes") == ('{"path":".octo/octo.db","deleted":1}\n', "", 0)

    with Store(tmp_path / ".octo") as store:
        texts = asyncio.run(store.read(lambda db: db.execute("SELECT text FROM kept_texts").fetchall(), []))
    assert not [text for (text,) in texts if "station" in text]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("answer", "is_agreed"), [("y\n", True), ("Yes\n", True), ("n\n", False), ("", False)])
def test_the_person_at_the_terminal_is_asked(monkeypatch: pytest.MonkeyPatch, answer: str, is_agreed: bool) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    screen = Terminal()

    assert agreed(Session({}, err=screen), "forget \x1b[2Jit?") is is_agreed
    assert screen.getvalue() == "forget \\u001b[2Jit? [y/N] "


def test_no_control_character_of_an_id_reaches_the_terminal(memory: Any, tmp_path: Path) -> None:
    with Store(tmp_path / ".octo") as store:
        asyncio.run(store.write(lambda db: kv.put(db, NAMESPACE, f"{PREFIX}a\x1b[2J\x9b", "[]", 1, now=NOON - DAY)))

    for args in (["list"], ["show", "a\x1b[2J\x9b"], ["show", "zz"], ["delete", "a\x1b[2J\x9b"], ["export", "--json"]):
        ran = memory(*args, terminal="out err")
        assert not {"\x1b", "\x9b"} & set(ran.stdout + ran.stderr), args
