"""octo/config/pricing.py: what model calls cost, by the rates of the user."""

from dataclasses import replace

import pytest

from octo.config.pricing import Rates, bill, bill_of_failure, cost
from octo.errors import BlockError, ConfigError, ProviderError
from octo.llm.chat import ChatMessage, ChatRequest, ChatResponse, Spent, Text, Usage, user
from octo.llm.credentials import Credentials
from octo.llm.model import HttpModel
from octo.llm.transport import Transport
from octo.llm.wire import Endpoint
from octo.observe import AgentEnded, TurnEnded
from octo.testing import harness
from vendor import AnthropicServer, reply
from vendor.faults import cut as cut_off

CONFIG = """
connectors:
  - name: m
    type: llm-scripted
    settings:
      model: big
      turns:
        - text: hi
          usage: {usage}
flows:
  - name: f
    process:
      - type: ai-agent
        name: ag
        connector: m
        prompt: Do it.
        tools: [{{name: t, description: A tool., process: []}}]
aiPricing:
  {pricing}
"""
RATES = Rates.model_validate({"input": 3, "output": 15, "cacheRead": 0.3, "cacheWrite": 3.75})


class Costs:
    """Keeps what turns and agents cost."""

    kinds = (TurnEnded, AgentEnded)

    def __init__(self):
        self.seen = []

    def notify(self, event):
        self.seen.append(event.usage and event.usage.cost_usd)


async def costs(pricing, usage="{inputTokens: 1000000, outputTokens: 100000}"):
    seen = Costs()
    async with harness.runtime(CONFIG.format(pricing=pricing, usage=usage), observers=[seen]) as octo:
        await octo.invoke("f")
    return seen.seen


async def test_a_turn_costs_what_the_rates_say():
    assert await costs('"m:big": {input: 3, output: 15}') == [4.5, 4.5]


async def test_without_rates_the_cost_is_unknown():
    assert await costs('"m:small": {input: 3, output: 15}') == [None, None]


async def test_without_rates_the_provider_may_tell_the_cost():
    usage = "{inputTokens: 1, outputTokens: 1, reportedCostUSD: 0.25}"

    assert await costs('"m:small": {input: 3, output: 15}', usage) == [0.25, 0.25]


async def test_without_the_tokens_the_cost_is_unknown():
    assert await costs('"m:big": {input: 3, output: 15}', "{inputTokens: 7}") == [None, None]


@pytest.mark.parametrize(
    ("usage", "usd"),
    [
        pytest.param(Usage(input_tokens=100, output_tokens=10, prompt_tokens=100), 0.00045, id="plain"),
        pytest.param(
            Usage(input_tokens=100, output_tokens=10, cached_tokens=80, prompt_tokens=100), 0.000234, id="cached inside"
        ),
        pytest.param(
            Usage(input_tokens=20, output_tokens=10, cached_tokens=80, cache_write_tokens=100, prompt_tokens=200),
            0.000609,
            id="cached beside",
        ),
    ],
)
def test_what_is_cached_has_its_own_rates(usage, usd):
    assert RATES.cost(usage) == pytest.approx(usd)


def test_the_model_that_served_counts_when_the_one_that_was_asked_has_no_rates():
    message = ChatMessage("assistant", (Text("x"),))
    usage = Usage(output_tokens=1_000_000, prompt_tokens=0)
    answer = ChatResponse(message, "end_turn", "big-2026", usage, asked="big", connector="m")

    assert cost({"m:big-2026": RATES}, answer) == 15


@pytest.mark.parametrize(
    ("pricing", "message", "hint"),
    [
        (
            '"m:big": {input: -1, output: 15}',
            "expected a rate from 0 to 1000, in USD per million tokens; found -1",
            None,
        ),
        (
            '"m:big": {input: 1001, output: 15}',
            "expected a rate from 0 to 1000, in USD per million tokens; found 1001",
            None,
        ),
        (
            "big: {input: 1, output: 2}",
            "expected `CONNECTOR:MODEL`, found `big`",
            "write the connector's name, a colon, and the model",
        ),
        ('"n:big": {input: 1, output: 2}', 'connector "n" is not configured', "known names: `m`"),
    ],
)
def test_what_is_refused(pricing, message, hint):
    with pytest.raises(ConfigError) as caught:
        harness.config(CONFIG.format(pricing=pricing, usage="{}"))

    assert [(problem.message, problem.hint) for problem in caught.value.problems] == [(message, hint)]


def test_both_rates_are_required():
    with pytest.raises(ConfigError, match="output"):
        harness.config(CONFIG.format(pricing='"m:big": {input: 1}', usage="{}"))


# ---------------------------------------------------------------- what came to nothing

SPENT = """
connectors:
  - name: dear
    type: llm-scripted
    settings:
      model: big
      fallback: {fallback}
      turns:
        - usage: {{inputTokens: 1000000, outputTokens: 100000}}
          error: {{status: 503, message: busy}}
  - name: cheap
    type: llm-scripted
    settings:
      model: small
      turns:
        - text: whole
          usage: {{inputTokens: 1000000, outputTokens: 100000}}
flows:
  - name: f
    process:
      - type: ai-agent
        name: ag
        connector: dear
        prompt: Do it.
        tools: [{{name: t, description: A tool., process: []}}]
aiPricing:
  "dear:big": {{input: 30, output: 150}}
  "cheap:small": {{input: 3, output: 15}}
"""


class Spending:
    """Keeps the usages that turns and agents end with."""

    kinds = (TurnEnded, AgentEnded)

    def __init__(self):
        self.seen = []

    def notify(self, event):
        usage = event.usage
        self.seen.append(usage and (usage.prompt_tokens, usage.output_tokens, usage.cost_usd))


async def test_what_failed_elsewhere_is_paid_by_the_rates_of_where_it_failed():
    seen = Spending()
    async with harness.runtime(SPENT.format(fallback="[cheap]"), observers=[seen]) as octo:
        await octo.invoke("f")

    assert seen.seen == [(2_000_000, 200_000, 49.5), (2_000_000, 200_000, 49.5)]


async def test_a_call_that_fails_for_good_is_paid_too():
    seen = Spending()
    async with harness.runtime(SPENT.format(fallback="[]"), observers=[seen]) as octo:
        with pytest.raises(BlockError):
            await octo.invoke("f")

    assert seen.seen == [(1_000_000, 100_000, 45.0), (1_000_000, 100_000, 45.0)]


def test_a_bill_holds_the_answer_and_the_attempts_before_it():
    used = Usage(prompt_tokens=1_000_000, output_tokens=0)
    lost = (Spent("m", "big", used), Spent("other", "big", replace(used, reported_cost_usd=7.0)))
    answer = ChatResponse(ChatMessage("assistant", ()), "end_turn", usage=None, asked="big", connector="m", lost=lost)

    assert bill({"m:big": RATES}, answer) == Usage(
        prompt_tokens=2_000_000, output_tokens=0, reported_cost_usd=7.0, cost_usd=10.0
    )
    assert bill({}, replace(answer, lost=())) is None


def test_a_failure_is_billed_by_what_it_used_up():
    error = ProviderError("busy")
    assert bill_of_failure({"m:big": RATES}, error) is None

    error.spent = (Spent("m", "big", Usage(prompt_tokens=1_000_000, output_tokens=0)),)
    paid = bill_of_failure({"m:big": RATES}, error)
    assert paid is not None
    assert paid.cost_usd == 3.0


@pytest.mark.parametrize("broken", [2, 5], ids=["once", "for good"])
async def test_what_broke_off_is_paid_by_the_rates_of_the_model_that_served(broken: int):
    """The model that is asked for has another name than the one that serves, as with an alias."""
    rates = {"claude:claude-x": Rates(input=1000, output=1000)}
    cut = reply("pong", model="claude-x", faults=[cut_off(4)])

    async def no_wait(_: float) -> None:
        """Nobody waits for a double."""

    async def ignore(_: object) -> None:
        """A listener that does not care."""

    with AnthropicServer([*[cut] * broken, reply("pong", model="claude-x")]) as server:
        async with Transport({}, sleep=no_wait) as transport:
            credentials = Credentials("anthropic", server.url, "x-api-key", api_key="secret-key")
            model = HttpModel(Endpoint(credentials, "alias", max_tokens=100), transport, "claude")
            try:
                answer = await model.complete(ChatRequest((user("hi"),)), session={}, on_delta=ignore)
                paid, attempts = bill(rates, answer), broken + 1
            except ProviderError as error:
                paid, attempts = bill_of_failure(rates, error), 4

    assert paid is not None
    assert paid.prompt_tokens == 10 * attempts
    assert paid.cost_usd == pytest.approx((paid.prompt_tokens + (paid.output_tokens or 0)) / 1000)
