"""octo/llm/model.py: an HTTP model from request to response; octo/llm/providers.py: the table it reads."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from octo.errors import BadRequest, ProviderError, RateLimited
from octo.llm.chat import (
    ChatMessage,
    ChatRequest,
    ChatResponse,
    Delta,
    File,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    user,
)
from octo.llm.credentials import Credentials
from octo.llm.model import HttpModel
from octo.llm.providers import PROVIDERS
from octo.llm.transport import Transport
from octo.llm.wire import Endpoint, HttpCall
from vendor.anthropic import AnthropicServer, Redacted, call, error, reply

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 8


def model(url: str, transport: Transport) -> HttpModel:
    credentials = Credentials("anthropic", url, "x-api-key", api_key="secret-key")
    endpoint = Endpoint(credentials, "claude-sonnet-4-6", thinking="adaptive")
    return HttpModel(endpoint, transport, "claude")


async def ignore(_: Delta) -> None:
    """A listener that does not care."""


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_conversation_with_tools_and_thinking_is_taken_turn_by_turn(stream: bool):
    script = [
        reply("I look.", thinking=["first ", Redacted()], calls=[call("t", {"n": 1}), call("t", {"n": 2})]),
        reply(thinking="then\n", calls=[call("t", {"n": 3})]),
        reply("done"),
        reply("again"),
    ]
    turns: list[ChatMessage] = [user("go", File("image/jpeg", PNG, "shot.jpg"))]
    with AnthropicServer(script) as server:
        async with Transport({}) as transport:
            ask = model(server.url, transport)
            for _ in script:
                answer = await ask.complete(ChatRequest(tuple(turns)), session={}, on_delta=ignore if stream else None)
                turns.append(answer.message)
                results = tuple(ToolResult(one.id, one.name, "") for one in answer.calls)
                turns.append(ChatMessage("tool", results) if results else user("and now?"))

        assert (answer.text, server.refusals) == ("again", [])


async def test_an_error_names_the_connector_its_type_and_the_provider():
    with AnthropicServer([error(429, "slow down", x_should_retry="false", retry_after="9")] * 2) as server:
        async with Transport({}) as transport:
            ask, request = model(server.url, transport), ChatRequest((user("x"),))
            with pytest.raises(RateLimited) as plain:
                await ask.complete(request, session={})
            with pytest.raises(RateLimited) as streamed:
                await ask.complete(request, session={}, on_delta=ignore)

    assert str(plain.value) == 'llm-anthropic complete: connector "claude": status 429: slow down'
    assert str(streamed.value) == 'llm-anthropic stream: connector "claude": status 429: slow down'
    assert (plain.value.provider, plain.value.retry_after, plain.value.request_id) == ("anthropic", 9, "req_loopback")


async def test_an_error_says_what_to_do_with_the_model_that_was_asked():
    with AnthropicServer([error(404, "model: claude-x")] * 2) as server:
        async with Transport({}) as transport:
            ask = model(server.url, transport)
            for named, expected in ((None, "claude-sonnet-4-6"), ("claude-x", "claude-x")):
                with pytest.raises(BadRequest) as caught:
                    await ask.complete(ChatRequest((user("x"),), model=named), session={})

                assert str(caught.value) == 'llm-anthropic complete: connector "claude": status 404: model: claude-x'
                assert caught.value.hint == f"check `model`, which is `{expected}`"


async def test_an_effort_that_no_model_knows_is_refused_before_any_call():
    with AnthropicServer([]) as server:
        async with Transport({}) as transport:
            with pytest.raises(BadRequest) as caught:
                request = ChatRequest((user("x"),), reasoning_effort="lots")
                await model(server.url, transport).complete(request, session={})

        assert server.requests == []
    assert str(caught.value) == (
        'llm-anthropic complete: connector "claude": expected one of `none`, `low`, `medium`, `high`, `xhigh`, `max` '
        "as `reasoningEffort`, found `lots`"
    )


async def test_a_file_that_the_model_does_not_take_is_refused_before_any_call():
    with AnthropicServer([]) as server:
        async with Transport({}) as transport:
            ask = model(server.url, transport)
            with pytest.raises(BadRequest) as caught:
                await ask.complete(ChatRequest((user("x", File("image/png", b"<svg/>", "logo.png")),)), session={})

        assert server.requests == []
    accepted = "`application/pdf`, `image/gif`, `image/jpeg`, `image/png`, `image/webp`"
    whose = 'llm-anthropic complete: connector "claude"'
    assert str(caught.value) == f"{whose}: file `logo.png` is of type `image/svg+xml`, accepted are {accepted}"
    assert ask.media_types == frozenset(accepted.replace("`", "").split(", "))


def test_every_provider_is_found_under_its_own_id():
    assert [(id, provider.id) for id, provider in PROVIDERS.items() if id != provider.id] == []


# ---------------------------------------------------------------- whatever comes in, the vendor takes it

TEXTS = st.sampled_from(["", " ", "\n", "x", "x \n", "\ud83d"])
IDS = st.sampled_from(["", "a", "b", "a b", "ü"])
NAMES = st.sampled_from(["t", "lookup", " "])
ARGUMENTS = st.sampled_from(["", "{}", "[]", '{"a": 1}', '{"a":', "null"])
REPLAYS = st.sampled_from([None, {"wire": "gemini", "signature": "x"}, {"wire": "anthropic"}])
FILES = st.sampled_from([File("image/jpeg", PNG), File("application/pdf", b"%PDF-1", "a.pdf")])


def turns_of(role: str, parts: st.SearchStrategy[Part]) -> st.SearchStrategy[ChatMessage]:
    return st.lists(parts, max_size=3).map(lambda found: ChatMessage(role, tuple(found)))  # type: ignore[arg-type]  # one of three


CONVERSATIONS = st.lists(
    st.one_of(
        turns_of("user", st.one_of(st.builds(Text, TEXTS), FILES)),
        turns_of(
            "assistant",
            st.one_of(
                st.builds(Text, TEXTS),
                st.builds(ToolCall, IDS, NAMES, ARGUMENTS),
                st.builds(Reasoning, TEXTS, REPLAYS),
                FILES,
            ),
        ),
        turns_of("tool", st.builds(ToolResult, IDS, NAMES, TEXTS, st.booleans())),
    ),
    max_size=7,
)


@given(turns=CONVERSATIONS, cache=st.booleans())
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_the_vendor_takes_every_conversation(turns: list[ChatMessage], cache: bool, strict: "Strict"):
    request = ChatRequest((*turns, user("go on")), system="s", cache=cache)
    await model("http://unused", strict).complete(request, session={})

    assert strict.refusals == []


class Strict(Transport):
    """Stands for the network: hands each call to the vendor's rules at once."""

    def __init__(self) -> None:
        super().__init__({})
        self.refusals: list[str] = []

    async def send(self, call: HttpCall, *_: object) -> ChatResponse:  # type: ignore[override]  # nothing is decoded
        from vendor.server import Request

        headers = {name.lower(): value for name, value in call.headers}
        request = Request("POST", "/v1/messages", "", headers, call.body, 1)
        if AnthropicServer([]).refuse(request) is not None:
            self.refusals.append(str(request.refusal))
        return ChatResponse(ChatMessage("assistant", ()), "end_turn")


@pytest.fixture
def strict() -> Strict:
    return Strict()


async def test_an_error_is_raised_for_a_conversation_that_holds_nothing():
    with pytest.raises(ProviderError) as caught:
        await model("http://unused", Strict()).complete(ChatRequest(()), session={})

    assert str(caught.value) == 'llm-anthropic complete: connector "claude": the conversation has no user turn'
