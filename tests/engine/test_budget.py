"""octo/budget.py: what an agent may spend, and who pays for the agents inside it."""

import logging

import pytest

from fake_model import TOOL, FakeModel, FakeRuntime, Listener, call, config_text, reply, run
from octo.budget import Budget, Limits
from octo.errors import BlockError, ConfigError
from octo.llm.chat import Usage
from octo.observe import AgentGaveUp
from octo.testing import harness

DEFAULT = "default: {process: [{type: set-payload, settings: {value: '\"spent\"'}}]}\n"
TEN = Usage(input_tokens=6, output_tokens=4, prompt_tokens=6)
INNER = """
tools:
  - name: t
    description: Ask another.
    process:
      - type: ai-agent
        connector: m
        prompt: Do the other.
        tools:
          - name: u
            description: A tool.
            process: []
"""


class Clock:
    seconds = 0.0

    def __call__(self):
        return self.seconds


async def test_what_is_spent_is_looked_at_before_each_call():
    gave_up = Listener(AgentGaveUp)
    ran = await run(
        f"budget: {{maxTokens: 15}}\n{DEFAULT}{TOOL}",
        reply("", call("t"), usage=TEN),
        reply("", call("t"), usage=TEN),
        observers=[gave_up],
    )

    assert ran.message.body == "spent"
    assert [(event.reason, event.detail, event.iteration) for event in gave_up.events] == [
        ("budget exceeded", "`maxTokens` is 15, 20 are used up", 3)
    ]


@pytest.mark.parametrize("limit", ["maxTokens: 0", "maxCostUSD: 0", "maxDuration: 0"])
async def test_nothing_allows_no_call(limit):
    assert (await run(f"budget: {{{limit}}}\n{DEFAULT}{TOOL}")).message.body == "spent"


async def test_money_is_what_the_provider_reports():
    paid = Usage(output_tokens=1, reported_cost_usd=0.02)
    ran = await run(f"budget: {{maxCostUSD: 0.02}}\n{DEFAULT}{TOOL}", reply("", call("t"), usage=paid))

    assert ran.message.body == "spent"


async def test_without_a_default_path_the_block_fails():
    with pytest.raises(BlockError, match=r"budget exceeded \(`maxTokens` is 0, 0 are used up\), and no default path"):
        await run(f"budget: {{maxTokens: 0}}\n{TOOL}")


async def test_agents_inside_are_charged_to_the_one_around():
    ran = await run(
        f"budget: {{maxTokens: 15}}\n{DEFAULT}{INNER}", reply("", call("t"), usage=TEN), reply("inner", usage=TEN)
    )

    assert ran.message.body == "spent"


async def test_an_agent_inside_stops_when_the_one_around_has_nothing_left():
    inner = reply("", call("u"), usage=TEN)
    ran = await run(f"budget: {{maxTokens: 20}}\n{DEFAULT}{INNER}", reply("", call("t"), usage=TEN), inner)

    assert ran.message.body == "spent"


async def test_a_run_may_have_a_budget_that_all_its_agents_are_charged_to():
    config = harness.config(config_text(f"{DEFAULT}{TOOL}"))
    limits = Limits.model_validate({"maxTokens": 10})
    async with FakeRuntime(config, limits=limits) as octo:
        octo.model = FakeModel([reply("", call("t"), usage=TEN)])
        assert (await octo.invoke("f")).body == "spent"
        octo.model = FakeModel([reply("each run has its own", usage=TEN)])
        assert (await octo.invoke("f")).body == "each run has its own"


def test_a_limit_of_money_needs_someone_who_tells_what_a_call_costs():
    text = config_text(f"model: big\nbudget: {{maxCostUSD: 1}}\n{DEFAULT}{TOOL}").replace(
        "type: llm-scripted\n    settings: {turns: [{text: x}]}", "type: llm-anthropic\n    settings: {apiKey: k}"
    )
    with pytest.raises(ConfigError) as caught:
        harness.config(text)
    (problem,) = caught.value.problems

    assert problem.message == 'ai-agent: what a call of connector "m" costs is not known'
    assert problem.hint == "give rates: `aiPricing: {'m:big': {input: …, output: …}}`"
    assert harness.config(f"{text}\naiPricing: {{'m:big': {{input: 1, output: 2}}}}").warnings == ()


def test_time_is_spent_while_nothing_happens():
    clock = Clock()
    budget = Budget(Limits.model_validate({"maxDuration": "30s"}), clock)

    before, clock.seconds = budget.excess, 30.0
    assert (before, budget.excess) == ("", "`maxDuration` is 30 s, 30 s are used up")


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ("{maxTokens: -1}", "expected 0 or more, found -1"),
        ("{maxCostUSD: -0.5}", "expected 0 or more, found -0.5"),
        ("{maxMoney: 1}", 'unknown field "maxMoney"'),
    ],
)
async def test_what_is_refused(keys, text):
    with pytest.raises(ConfigError, match=text):
        await run(f"budget: {keys}\n{TOOL}")


async def test_a_limit_that_cannot_hold_is_told_of_once(caplog):
    """Without rates nobody knows what a call cost, and without a usage not even what it read."""
    with caplog.at_level(logging.WARNING, "octo.budget"):
        await run(
            f"budget: {{maxTokens: 99, maxCostUSD: 1}}\n{TOOL}",
            reply("", call("t"), usage=TEN),
            reply("", call("t"), usage=None),
            reply("done", usage=None),
        )

    assert caplog.messages == [
        "a model call does not count for the budget's `maxCostUSD`: what it cost is not known; rates stand under "
        "`aiPricing`",
        "a model call does not count for the budget's `maxTokens`: its provider does not tell how many tokens it used",
    ]
