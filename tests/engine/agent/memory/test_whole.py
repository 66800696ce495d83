"""octo/agent/memory/whole.py, octo/llm/facts.py: a conversation that is kept whole, its older part as a summary."""

import json

import pytest

from fake_model import FakeModel, FakeRuntime, Listener, call, reply
from octo.agent.memory import codec, keys
from octo.errors import ProviderError
from octo.llm.chat import Usage
from octo.llm.facts import context_window
from octo.observe import AgentEnded, LogLine
from octo.store import memories
from octo.store.memories import Place
from octo.store.store import Store
from octo.testing import harness

CONFIG = """
connectors: [{{name: m, type: llm-scripted, settings: {{turns: [{{text: x}}]}}}}]
flows:
  - name: f
    process:
      - type: ai-agent
        name: ag
        connector: m
        prompt: Do it.
        answer: text
        input: body
        memory: {{kind: compaction, contextWindow: {window}}}
        tools:
          - {{name: t, description: T., process: [{{type: set-payload, settings: {{value: '"found"'}}}}]}}
        {keys}
"""
PLACE = Place("", keys.key("c", workspace="", flow="f"), "f.ag")
LONG = "x" * 4000
"""A thousand tokens by the estimate."""


class Desk:
    """Runs an agent that keeps all, again and again over one store."""

    def __init__(self):
        self.store = Store()
        self.requests = []
        self.warnings = []
        self.usage = None

    async def ask(self, question, *replies, window=10_000, keys=""):
        log, ended = Listener(LogLine), Listener(AgentEnded)
        model = FakeModel(replies)
        config = harness.config(CONFIG.format(window=window, keys=keys))
        runtime = FakeRuntime(config, store=self.store, observers=[log, ended])
        runtime.model = model
        async with runtime:
            await runtime.invoke("f", question, memory_id="c")
        self.requests = model.requests
        self.warnings = [line.text for line in log.events if line.level == "warn"]
        self.usage = ended.events[0].usage

    async def kept(self):
        stored = await self.store.read(lambda db: memories.load(db, PLACE), "[]")
        return [turn.text[:60] for turn in codec.decode(json.loads(stored))]

    def sent(self, request):
        return [turn.text[:60] for turn in self.requests[request].messages]


@pytest.fixture
def desk():
    made = Desk()
    yield made
    made.store.close()


async def exchanges(desk, count):
    for at in range(count):
        await desk.ask(f"q{at} {LONG}", reply(f"a{at}"))


async def test_everything_is_kept_as_long_as_it_fits(desk):
    await exchanges(desk, 3)

    assert [text[:2] for text in await desk.kept()] == ["q0", "a0", "q1", "a1", "q2", "a2"]


async def test_the_older_part_is_summed_up_before_the_first_call_of_a_run(desk):
    await exchanges(desk, 7)
    await desk.ask(f"q7 {LONG}", reply("They talked."), reply("a7"))

    summary, question = desk.requests
    assert (summary.tools, summary.messages[0].text[:8]) == ((), "user: q0")
    assert [text[:54] for text in desk.sent(1)] == [
        "Summary of the earlier conversation:\nThey talked.",
        *[f"{kind}{at} {LONG}"[:54] if kind == "q" else f"a{at}" for at in (4, 5, 6) for kind in "qa"],
        f"q7 {LONG}"[:54],
    ]
    assert question.tools


async def test_a_summary_is_summed_up_again(desk):
    await exchanges(desk, 7)
    await desk.ask(f"q7 {LONG}", reply("They talked."), reply("a7"))
    for at in range(8, 11):
        await desk.ask(f"q{at} {LONG}", reply(f"a{at}"))
    await desk.ask(f"q11 {LONG}", reply("They talked on."), reply("a11"))

    assert "They talked." in desk.requests[0].messages[0].text
    assert desk.sent(1)[0] == "Summary of the earlier conversation:\nThey talked on."


async def test_what_the_provider_counted_counts_before_the_estimate(desk):
    usage = Usage(prompt_tokens=7_999, output_tokens=1)
    for at in range(3):
        await desk.ask(f"q{at}", reply(f"a{at}"))
    await desk.ask(
        "q3", reply("", call("t"), usage=usage), reply("They talked."), reply("a3", usage=Usage(prompt_tokens=50))
    )

    assert [len(request.messages) for request in desk.requests] == [7, 1, 4]
    assert (await desk.kept())[:2] == ["Summary of the earlier conversation:\nThey talked.", "q3"]


async def test_it_is_looked_at_once_more_at_the_end(desk):
    for at in range(3):
        await desk.ask(f"q{at}", reply(f"a{at}"))
    await desk.ask("q3", reply("a3", usage=Usage(prompt_tokens=9_000)), reply("They talked."))

    assert await desk.kept() == ["Summary of the earlier conversation:\nThey talked.", "q3", "a3"]


async def test_the_tokens_of_a_summary_are_those_of_the_block(desk):
    await exchanges(desk, 7)
    one, other = Usage(prompt_tokens=100, output_tokens=5), Usage(prompt_tokens=10, output_tokens=2)
    await desk.ask(f"q7 {LONG}", reply("They talked.", usage=one), reply("a7", usage=other))

    assert (desk.usage.prompt_tokens, desk.usage.output_tokens) == (110, 7)


@pytest.mark.parametrize(
    ("failure", "warnings"),
    [
        pytest.param(
            ProviderError("down", provider="m"),
            ["the conversation could not be summarized: ai-agent: down"],
            id="it fails",
        ),
        pytest.param(reply(" "), [], id="it is blank"),
    ],
)
async def test_a_summary_that_is_none_fails_nothing(desk, failure, warnings):
    await exchanges(desk, 7)
    await desk.ask(f"q7 {LONG}", failure, reply("a7"), reply("They talked."))

    assert len(desk.requests[1].messages) == 15
    assert desk.warnings == warnings
    assert (await desk.kept())[0] == "Summary of the earlier conversation:\nThey talked."


async def test_after_three_failures_in_a_row_no_more_are_tried(desk):
    await exchanges(desk, 7)
    rounds = [answer for at in range(3) for answer in (reply(" "), reply("", call("t", id=f"c{at}")))]
    await desk.ask(f"q7 {LONG}", *rounds, reply("a7"))

    assert len(desk.requests) == 7


async def test_few_turns_that_take_little_room_are_not_summed_up(desk):
    await desk.ask("q0", reply("a0"))
    await desk.ask("q1", reply("a1", usage=Usage(prompt_tokens=9_000)))

    assert await desk.kept() == ["q0", "a0", "q1", "a1"]


async def test_few_turns_that_take_much_room_are(desk):
    await desk.ask(LONG * 3, reply("a0"))
    await desk.ask(LONG * 5, reply("They talked."), reply("a1"))

    assert [text[:36] for text in desk.sent(1)] == ["Summary of the earlier conversation:", "x" * 36]


async def test_the_newest_exchange_stays_however_long_it_is(desk):
    rounds = [reply("", call("t", {"n": "y" * 4000}, f"c{at}")) for at in range(4)]
    await desk.ask("q0", *rounds, reply("a0"), window=3_000)

    assert len(await desk.kept()) == 10


async def test_the_window_is_never_larger_than_what_a_prompt_may_have(desk):
    for at in range(3):
        await desk.ask(f"q{at} {LONG}", reply(f"a{at}"), window=0)
    await desk.ask(f"q3 {LONG}", reply("They talked."), reply("a3"), window=0, keys="contextMaxTokens: 5000")

    assert desk.sent(1)[0] == "Summary of the earlier conversation:\nThey talked."


@pytest.mark.parametrize(
    ("model", "window"),
    [
        ("claude-sonnet-4-5", 200_000),
        ("us.anthropic.claude-3-5-sonnet-20240620-v1:0", 200_000),
        ("gpt-4.1-mini", 1_047_576),
        ("openai/gpt-4o", 128_000),
        ("gpt-4-32k", 32_768),
        ("gpt-4-0613", 8_192),
        ("gpt-5.2", 400_000),
        ("o3", 200_000),
        ("gemini-3-pro", 1_048_576),
        ("amazon.nova-lite-v1:0", 300_000),
        ("proto3", None),
        ("", None),
    ],
)
def test_the_windows_of_models(model, window):
    assert context_window(model) == window


def test_an_agent_says_its_window_or_has_that_of_its_model():
    said = harness.config(CONFIG.format(window=9, keys=""))
    known = harness.config(CONFIG.format(window=0, keys="model: gpt-4"))

    assert [config.flows[0].process[0].window(config) for config in (said, known)] == [9, 8_192]
