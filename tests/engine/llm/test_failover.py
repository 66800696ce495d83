"""octo/llm/failover.py: who stands in for a connector that cannot answer, and for how long."""

import logging

import pytest

from fake_model import FakeModel, reply
from octo.errors import (
    AuthenticationFailed,
    BadRequest,
    ContextTooLong,
    NotAnAnswer,
    OutOfTime,
    ProviderError,
    RateLimited,
    Truncated,
    Unreachable,
)
from octo.llm.chat import ChatRequest, Retry, Spent, Usage, user
from octo.llm.failover import Failover, is_curable

ASK = ChatRequest((user("hello"),), model="big", reasoning_effort="high")
BUSY = ProviderError("status 503: busy", status=503, retryable=True)


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self):
        self.seconds = 0.0

    def __call__(self):
        return int(self.seconds * 1e9)


def failover(*replies, clock=None):
    """A failover over models `a`, `b`, … with these replies, and the models."""
    models = {name: FakeModel(answers) for name, answers in zip("abc", replies, strict=False)}
    return Failover({name: lambda m=model: m for name, model in models.items()}, clock=clock or Clock()), models


async def test_the_first_that_can_answer_does(caplog):
    asked, models = failover([BUSY], [reply("from b")])

    with caplog.at_level(logging.WARNING, "octo.llm"):
        answer = await asked.complete(ASK, session={})

    assert (answer.text, answer.passed_over) == ("from b", ("a",))
    assert (models["a"].requests[0].model, models["b"].requests[0].model) == ("big", None)
    assert models["b"].requests[0].reasoning_effort is None
    assert caplog.messages == ['connector "a" cannot answer, connector "b" is asked: status 503: busy']


async def test_what_those_used_up_that_failed_is_told():
    broken, gone = ProviderError("cut", retryable=True), ProviderError("cut, too", retryable=True)
    broken.spent = (Spent("a", "big", Usage(prompt_tokens=10)),)
    gone.spent = (Spent("b", "small", Usage(prompt_tokens=20)),)
    asked, _ = failover([broken], [gone], [reply("from c")])
    answer = await asked.complete(ASK, session={})

    assert answer.lost == (*broken.spent, *gone.spent)

    asked, _ = failover([broken], [gone])
    with pytest.raises(ProviderError) as caught:
        await asked.complete(ASK, session={})
    assert caught.value.spent == (Spent("a", "big", Usage(prompt_tokens=10)), *gone.spent)


async def test_one_that_failed_is_not_asked_again_for_a_minute():
    clock = Clock()
    asked, _ = failover([BUSY, reply("from a")], [reply("b 1"), reply("b 2")], clock=clock)
    texts = []
    for seconds in (0, 59.9, 60):
        clock.seconds = seconds
        texts.append((await asked.complete(ASK, session={})).text)

    assert texts == ["b 1", "b 2", "from a"]


async def test_a_provider_may_ask_for_a_longer_rest():
    clock = Clock()
    asked, _ = failover(
        [RateLimited("slow", status=429, retry_after=90), reply("a")], [reply("b 1"), reply("b 2")], clock=clock
    )
    texts = []
    for seconds in (0, 89, 90):
        clock.seconds = seconds
        texts.append((await asked.complete(ASK, session={})).text)

    assert texts == ["b 1", "b 2", "a"]


async def test_when_none_can_answer_the_error_tells_of_all_and_all_are_asked_again():
    asked, _ = failover([ProviderError("down", status=500), reply("back")], [Unreachable("no route")])

    with pytest.raises(ProviderError) as caught:
        await asked.complete(ASK, session={})

    assert str(caught.value) == 'down; connector "b": no route'
    assert (await asked.complete(ASK, session={})).text == "back"


async def test_what_is_wrong_with_the_request_is_wrong_everywhere():
    asked, models = failover([BadRequest("no such field", status=400)], [reply("x")])

    with pytest.raises(BadRequest, match="no such field"):
        await asked.complete(ASK, session={})
    assert models["b"].requests == []


async def test_one_that_stands_in_and_refuses_the_request_is_passed_over():
    asked, _ = failover([Unreachable("no route")], [BadRequest("no images", status=400)], [reply("from c")])

    assert (await asked.complete(ASK, session={})).passed_over == ("a", "b")


async def test_a_request_for_one_connector_goes_nowhere_else():
    asked, models = failover([], [Unreachable("no route")])

    with pytest.raises(Unreachable) as caught:
        await asked.complete(ChatRequest((user("hello"),), only="b"), session={})

    assert str(caught.value) == "no route; no other connector is asked once a tool with effects has run"
    assert caught.value.hint == "a tool that may be called again without harm says `idempotent: true`"
    assert models["a"].requests == []


async def test_a_listener_is_told_that_what_it_heard_does_not_count():
    asked, _ = failover([BUSY], [reply("x")])
    heard = []

    async def listen(delta):
        heard.append(delta)

    await asked.complete(ASK, session={}, on_delta=listen)
    assert heard == [Retry(1, BUSY.message)]


def test_a_way_that_one_needs_is_the_way_of_all():
    models = {"a": FakeModel([]), "b": FakeModel([])}
    models["b"].answers_by_tool = lambda model, with_tools: True

    assert Failover({name: lambda m=model: m for name, model in models.items()}).answers_by_tool("x", with_tools=True)


@pytest.mark.parametrize(
    ("error", "curable"),
    [
        (RateLimited("", status=429), True),
        (Unreachable(""), True),
        (OutOfTime(""), True),
        (Truncated(""), True),
        (NotAnAnswer(""), True),
        (AuthenticationFailed("", status=401), True),
        (BadRequest("", status=404), True),
        (ProviderError("", status=402), True),
        (ProviderError("", status=500), True),
        (BadRequest("", status=400), False),
        (ContextTooLong("", status=400), False),
        (ProviderError("the answer is too long", status=200), False),
    ],
    ids=lambda value: value if isinstance(value, bool) else f"{type(value).__name__} {value.status}",
)
def test_what_may_be_answered_elsewhere(error, curable):
    assert is_curable(error) == curable
