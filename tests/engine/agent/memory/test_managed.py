"""octo/agent/memory/managed.py, octo/agent/memory/history.py: what is replayed from run to run, and what is kept."""

import base64
import json

import pytest

from acting import acting, stop
from fake_model import TOOL, FakeModel, FakeRuntime, Listener, call, config_text, reply
from octo.agent.memory import codec, keys
from octo.errors import BlockError, ConfigError, ProviderError
from octo.llm.chat import ChatMessage, File, Text, ToolCall, user
from octo.observe import LogLine
from octo.store import memories
from octo.store.memories import Place
from octo.store.store import Store
from octo.testing import harness

CONFIG = """
service: {{name: shop}}
env: [{{name: API_KEY, default: sesame-open}}]
connectors: [{{name: m, type: llm-scripted, settings: {{turns: [{{text: x}}]}}}}]
{top}
flows:
  - name: f
    process:
      - type: ai-agent
        name: ag
        connector: m
        prompt: Do it.
        answer: text
        tools:
          - {{name: t, description: T., process: [{{type: set-payload, name: look, settings: {{value: '"found"'}}}}]}}
        {keys}
  - name: outer
    process: [{{type: flow-ref, settings: {{flow: f}}}}]
"""
WINDOW = "memory: {kind: window, contextLength: 4}\n        input: body.q"
KEY = keys.key("c", workspace="shop", flow="f")
PLACE = Place("shop", KEY, "f.ag")


ASKED = {"flow": "f", "memory_id": "c"}


class Desk:
    """Runs the agent again and again over one store."""

    def __init__(self):
        self.store = Store()
        self.requests = []
        self.lines = []

    async def ask(self, question, *replies, keys=WINDOW, top="", text=CONFIG, actions=None, body=None, **options):
        log = Listener(LogLine)
        model = FakeModel(replies)
        config = harness.config(text.format(keys=keys, top=top))
        config = acting(config, actions) if actions else config
        runtime = FakeRuntime(config, store=self.store, observers=[log], clock=lambda: 7)
        runtime.model = model
        try:
            async with runtime:
                return await runtime.invoke(body={"q": question} | (body or {}), **ASKED | options)
        finally:
            self.requests = model.requests
            self.lines = [line.text for line in log.events if line.text.startswith("memory: ")]

    def sent(self, request=0):
        """The roles and texts of a request; of calls and results, their text."""
        return [shown(turn) for turn in self.requests[request].messages]

    async def kept(self, place=PLACE):
        stored = await self.store.read(lambda db: memories.load(db, place), None)
        return None if stored is None else [shown(turn) for turn in codec.decode(json.loads(stored))]

    async def keep(self, text, place=PLACE):
        await self.store.write(lambda db: memories.save(db, place, text, 1, now=1))


def shown(turn):
    mark = {"user": "u", "assistant": "a", "tool": "t"}[turn.role]
    return f"{mark}:" + "".join(part.arguments if isinstance(part, ToolCall) else part.text for part in turn.parts)


@pytest.fixture
def desk():
    made = Desk()
    yield made
    made.store.close()


async def test_the_next_run_goes_on_with_what_was_said(desk):
    await desk.ask("one", reply("1"))
    await desk.ask("two", reply("2"))

    assert desk.sent() == ["u:one", "a:1", "u:two"]
    assert await desk.kept() == ["u:one", "a:1", "u:two", "a:2"]


async def test_no_more_than_the_window_is_kept_and_replayed(desk):
    for number in "123":
        await desk.ask(f"q{number}", reply(f"a{number}"))
    await desk.ask("q4", reply("a4"), keys="memory: {kind: window, contextLength: 3}\n        input: body.q")

    assert desk.sent() == ["u:q3", "a:a3", "u:q4"]
    assert await desk.kept() == ["u:q4", "a:a4"]


async def test_calls_and_their_results_are_kept_with_what_vendors_need_to_see_again(desk):
    signed = ToolCall("c1", "t", "{}", {"wire": "w", "signature": "x=="})
    await desk.ask("one", reply("Let me see.", signed, thinking="Hm."), reply("1"))
    await desk.ask("two", reply("2"))

    assert desk.sent() == ["u:one", "a:Hm.Let me see.{}", 't:"found"', "a:1", "u:two"]
    assert desk.requests[0].messages[1].calls == (signed,)


async def test_an_exchange_that_is_longer_than_the_window_is_replayed_whole(desk):
    rounds = [reply("", call("t", {"n": at}, f"c{at}")) for at in range(4)]
    await desk.ask("one", *rounds, reply("1"))
    await desk.ask("two", reply("2"))

    assert len(desk.sent()) == 11
    assert await desk.kept() == ["u:two", "a:2"]


@pytest.mark.parametrize(
    "keys",
    [
        pytest.param("memoryId: body.q", id="another id"),
        pytest.param("name: x", id="another block"),
        pytest.param("top", id="another service"),
    ],
)
async def test_another_id_block_or_service_is_another_memory(desk, keys):
    await desk.ask("one", reply("1"))
    text = CONFIG
    if keys == "name: x":
        text = CONFIG.replace("name: ag", "name: ax")
    elif keys == "top":
        text = CONFIG.replace("name: shop", "name: store")
    more = f"{WINDOW}\n        {keys}" if keys.startswith("memoryId") else WINDOW
    await desk.ask("two", reply("2"), keys=more, text=text)

    assert desk.sent() == ["u:two"]


async def test_a_called_flow_has_the_memory_of_the_run_that_calls_it(desk):
    await desk.ask("one", reply("1"), flow="outer")
    await desk.ask("two", reply("2"), flow="outer")
    assert desk.sent() == ["u:one", "a:1", "u:two"]
    await desk.ask("three", reply("3"))
    assert desk.sent() == ["u:three"]

    assert {row.place for row in await desk.store.read(memories.rows, [])} == {
        PLACE,
        PLACE._replace(key=keys.key("c", workspace="shop", flow="outer")),
    }


async def test_a_uuid_is_one_memory_in_all_flows(desk):
    id = "0c3f4b5e-0000-4000-8000-00000000000a"
    await desk.ask("one", reply("1"), flow="outer", memory_id=id)
    await desk.ask("two", reply("2"), memory_id=id.upper())

    assert desk.sent() == ["u:one", "a:1", "u:two"]


@pytest.mark.parametrize(
    ("keys", "replies"),
    [
        pytest.param("", [ProviderError("down", provider="m")], id="a model call failed"),
        pytest.param("", [reply("", call("t")), ProviderError("down", provider="m")], id="it failed after a tool"),
        pytest.param("maxIterations: 1", [reply("", call("t"))], id="it came to no answer"),
        pytest.param(
            "maxIterations: 1\n        default: {process: []}", [reply("", call("t"))], id="it took the default path"
        ),
        pytest.param("default: {process: []}", [reply("No.", stop="refusal")], id="the model refused"),
    ],
)
async def test_a_run_without_an_answer_keeps_nothing(desk, keys, replies):
    await desk.ask("one", reply("1"))
    try:
        await desk.ask("two", *replies, keys=f"{WINDOW}\n        {keys}")
    except BlockError:
        pass

    assert await desk.kept() == ["u:one", "a:1"]


async def test_a_run_that_a_tool_ended_keeps_nothing(desk):
    await desk.ask("one", reply("", call("t")), reply("1"), actions={"look": stop})

    assert await desk.kept() is None


async def test_of_two_runs_at_once_the_one_that_ends_later_has_its_way(desk):
    async def meanwhile(message, run):
        await run.runtime.invoke("f", {"q": "inner"}, memory_id="c")

    replies = [reply("", call("t")), reply("2"), reply("1")]
    await desk.ask("outer", *replies, actions={"look": meanwhile})

    assert await desk.kept() == ["u:outer", "a:{}", "t:{}", "a:1"]


# ---------------------------------------------------------------- attachments


PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(4)).decode()


@pytest.mark.parametrize(
    ("keys", "kept"),
    [
        pytest.param("", "u:one", id="not kept"),
        pytest.param("keepAttachments: true", "u:[file: plan.png, image/png, 12 bytes]\none", id="kept"),
    ],
)
async def test_of_attachments_no_bytes_are_stored(desk, keys, kept):
    more = f"{WINDOW}\n        attachments: body.files\n        {keys}"
    files = {"files": [{"name": "plan.png", "mimeType": "image/png", "data": PNG}]}
    await desk.ask("one", reply("1"), keys=more, body=files)

    assert await desk.kept() == [kept, "a:1"]


# ---------------------------------------------------------------- limits and faults


async def test_secrets_are_masked_in_what_is_kept(desk):
    await desk.ask("the key is sesame-open", reply("sesame-open it is"))

    assert "sesame" not in str(await desk.kept())


async def test_the_oldest_exchanges_go_when_a_row_would_be_too_large(desk):
    await desk.ask("one", reply("1" * 100))
    stored = await desk.store.read(lambda db: memories.load(db, PLACE), "")
    await desk.ask("two", reply("2"), top=f"store: {{memoryMaxBytes: {len(stored)}}}")

    assert desk.lines == [f"memory: memory of {len(stored) + 85} bytes does not fit; 2 oldest messages dropped"]
    assert await desk.kept() == ["u:two", "a:2"]


async def test_what_does_not_fit_at_all_leaves_the_row_as_it_was(desk):
    await desk.ask("one", reply("1"))
    await desk.ask("two", reply("2" * 100), top="store: {memoryMaxBytes: 90}")

    assert desk.lines == ["memory: memory of 270 bytes does not fit; nothing is stored"]
    assert await desk.kept() == ["u:one", "a:1"]


@pytest.mark.parametrize(
    ("stored", "reason"),
    [
        pytest.param("{", "expecting property name enclosed in double quotes at line 1, column 2", id="no JSON"),
        pytest.param("{}", "expected a list of messages, found a mapping", id="no list"),
        pytest.param(
            '[{"role":"robot","parts":[]}]',
            "message 0: its role is none of `user`, `assistant` and `tool`",
            id="unknown role",
        ),
    ],
)
async def test_a_memory_that_cannot_be_understood_is_as_none_and_stays_as_it_is(desk, stored, reason):
    await desk.keep(stored)
    await desk.ask("two", reply("2"))

    key = (await desk.store.read(memories.rows, []))[0].place.key
    assert desk.lines == [
        f"memory: could not read memory: {reason}; `octo memory delete {key}` forgets it",
        "memory: could not store memory: what is kept could not be read, and is not written over",
    ]
    assert desk.sent() == ["u:two"]
    rows = await desk.store.read(lambda db: db.execute("SELECT messages FROM memories").fetchall(), [])
    assert rows == [(stored,)]


async def test_a_memory_that_cannot_be_read_fails_nothing_and_is_not_written_over(desk):
    await desk.ask("one", reply("1"))
    await desk.store.write(lambda db: db.execute("ALTER TABLE memories RENAME COLUMN messages TO said"))
    message = await desk.ask("two", reply("2"))

    assert message.body == 2.0
    assert desk.lines == [
        "memory: could not read memory: `:memory:`: no such column: messages",
        "memory: could not store memory: what is kept could not be read, and is not written over",
    ]


async def test_a_memory_that_cannot_be_written_fails_nothing(desk):
    await desk.ask("one", reply("1"))
    await desk.store.write(
        lambda db: db.execute("CREATE TRIGGER no BEFORE UPDATE ON memories BEGIN SELECT raise(ABORT, 'full'); END")
    )
    message = await desk.ask("two", reply("2"))

    assert message.body == 2.0
    assert desk.lines == ["memory: could not store memory: `:memory:`: full"]


async def test_a_broken_conversation_is_repaired_with_one_warning(desk):
    broken = codec.encode([user("one"), ChatMessage("assistant", (Text(" "), ToolCall("c1", "t", "{}")))])
    await desk.keep(json.dumps(broken))
    await desk.ask("two", reply("2"))

    assert desk.sent() == ["u:one", "a:{}", "t:interrupted, outcome unknown", "u:two"]
    assert desk.requests[0].messages[2].parts[0].is_error
    assert len(desk.lines) == 1


# ---------------------------------------------------------------- given histories


async def test_a_given_history_is_sent_as_it_is_with_its_system_text_below_the_prompt(desk):
    history = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Where?"}]},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "t", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "there"},
        {"role": "assistant", "content": "There."},
    ]
    await desk.ask("And?", reply("Yes."), keys="previousMessages: body.h\n        input: body.q", body={"h": history})

    assert desk.sent() == ["u:Where?", "a:{}", "t:there", "a:There.", "u:And?"]
    assert desk.requests[0].system.endswith("Do it.\n\nBe brief.")
    assert await desk.store.read(memories.rows, []) == []


async def test_a_given_history_can_stand_for_the_question(desk):
    keys_ = "previousMessages: body.h\n        input: body.q"
    await desk.ask("", reply("Yes."), keys=keys_, body={"h": [{"role": "user", "content": "Where?"}]})

    assert desk.sent() == ["u:Where?"]


@pytest.mark.parametrize(
    ("history", "text"),
    [
        pytest.param("old", "expected a list of messages, found text", id="text"),
        pytest.param({"role": "user"}, "expected a list of messages, found a mapping", id="a mapping"),
        pytest.param(
            [{"role": "user", "content": "a"}, "b"], "message 1: expected a mapping, found text", id="a text in it"
        ),
        pytest.param(
            [{"role": "user", "content": "a"}, {"role": "x"}],
            'message 1: expected `system`, `developer`, `user`, `assistant` or `tool` as `role`, found `"x"`',
            id="a role in it",
        ),
        pytest.param(
            [{"role": "user", "content": 5.0}],
            "message 0: expected text or a list of parts as `content`, found `5`",
            id="content",
        ),
    ],
)
async def test_what_is_no_history_fails_the_block_and_names_the_first_bad_message(desk, history, text):
    with pytest.raises(BlockError) as caught:
        await desk.ask("And?", keys="previousMessages: body.h\n        input: body.q", body={"h": history})

    assert caught.value.message == f'block "ag": ai-agent: previousMessages: {text}'
    assert desk.requests == []


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        pytest.param(
            "input: body.q",
            "`input` is empty and there are no `previousMessages`, so there is nothing to ask the model",
            id="off",
        ),
        pytest.param(
            "input: body.q\n        previousMessages: []",
            "`input` is empty and there are no `previousMessages`, so there is nothing to ask the model",
            id="off, with an empty list",
        ),
        pytest.param(WINDOW, "`input` is empty, and it is needed while memory is on", id="on"),
        pytest.param(
            f"{WINDOW}\n        memoryId: 'null'",
            "`input` is empty, and it is needed while memory is on",
            id="stateless",
        ),
        pytest.param(
            "input: body.q\n        outputType: image",
            "`input` is empty, and it is needed for image output",
            id="image",
        ),
    ],
)
async def test_nothing_to_ask_is_an_error_before_any_model_call(desk, keys, text):
    with pytest.raises(BlockError) as caught:
        await desk.ask("", keys=keys)

    assert caught.value.message == f'block "ag": ai-agent: {text}'
    assert desk.requests == []


async def test_the_older_kind_manual_needs_no_question(desk):
    await desk.ask("", reply("1"), keys="memory: {kind: manual}\n        input: body.q")

    assert desk.sent() == []


@pytest.mark.parametrize("key", ["memoryId", "previousMessages"])
async def test_an_input_that_cannot_be_evaluated_fails_the_block(desk, key):
    with pytest.raises(BlockError) as caught:
        await desk.ask("one", keys=f"{WINDOW}\n        {key}: body.x.y")

    assert caught.value.message == f'block "ag": ai-agent: {key}: evaluate expression: no such key: x'


async def test_an_image_reads_and_keeps_nothing(desk):
    await desk.ask("one", reply("1"))
    await desk.ask("draw", reply("", files=[File("image/png", b"x")]), keys=f"{WINDOW}\n        outputType: image")

    assert desk.sent() == ["u:draw"]
    assert desk.lines == ["memory: image output sends no history; memory settings are not read"]
    assert await desk.kept() == ["u:one", "a:1"]


# ---------------------------------------------------------------- nested agents


NESTED = CONFIG.replace(
    "        {keys}",
    "          - {{name: helper, description: H., inputs: {inputs}, agent: {{connector: m, prompt: Help., tools: [], "
    "memory: {{kind: window, contextLength: 4}}}}}}\n        {keys}",
)


async def help_twice(desk, inputs):
    text = NESTED.replace("{inputs}", inputs)
    for number in "12":
        work = reply("", call("helper", {"user_message": f"h{number}"}))
        await desk.ask(f"q{number}", work, reply(f"n{number}"), reply(f"a{number}"), text=text)
    return desk.sent(1)


async def test_a_nested_agent_has_a_memory_of_its_own_under_the_id_of_the_run(desk):
    assert await help_twice(desk, "{{}}") == ["u:h1", "a:n1", "u:h2"]
    assert await desk.kept(PLACE._replace(block="f.ag[helper]")) == ["u:h1", "a:n1", "u:h2", "a:n2"]


async def test_a_nested_agent_takes_the_id_that_its_tool_is_bound_to(desk):
    assert await help_twice(desk, "{{memoryId: {{expr: body.q}}}}") == ["u:h2"]
    place = Place("shop", keys.key("q1", workspace="shop", flow="f"), "f.ag[helper]")
    assert await desk.kept(place) == ["u:h1", "a:n1"]


async def test_a_nested_agent_with_an_empty_id_remembers_nothing(desk):
    assert await help_twice(desk, "{{memoryId: {{expr: 'null'}}}}") == ["u:h2"]
    assert desk.lines == ["memory: memoryId of this block is empty; running without memory"]


def test_a_history_that_is_the_same_for_all_messages_is_checked_where_it_is_written():
    with pytest.raises(ConfigError) as caught:
        harness.config(config_text(f"previousMessages: [hello]\n{TOOL}"))

    assert [(problem.message, problem.hint) for problem in caught.value.problems] == [
        (
            "ai-agent: previousMessages: message 0: expected a mapping, found text",
            "each message is `{role, content}`, as the Chat Completions API has them",
        )
    ]
