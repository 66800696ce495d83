"""octo/proxy/app.py, octo/proxy/client.py, octo/proxy/gateway.py, octo/proxy/guard.py, octo/proxy/models.py,
octo/proxy/page.py: routes, who may ask, which connector answers, and requests that are wrong."""

import asyncio
import json
from typing import Any

import httpx
import pytest
from anthropic import APIStatusError, AsyncAnthropic

from octo.proxy.guard import Guard, guard_of
from proxied import UPSTREAMS, gateway, proxy
from vendor import AnthropicServer, reply, sigv4
from vendor.bedrock import KEYS, REGION, BedrockServer
from vendor.chat import ChatServer
from vendor.chat import reply as chat_reply
from vendor.faults import delay, hang, rechunk, reset
from vendor.server import Answer, Request, Server

TWO = """
connectors:
  - name: one
    type: llm-scripted
    settings: { model: small, rules: [{ when: "true", text: from one }] }
  - name: two
    type: llm-scripted
    settings: { model: large, rules: [{ when: "true", text: from two }] }
"""
HELLO = {"messages": [{"role": "user", "content": "hello"}]}


async def asked(url: str, path: str, body: Any = HELLO, **headers: str) -> httpx.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    async with httpx.AsyncClient(timeout=60) as client:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return await client.post(url + path, content=content, headers=named)


async def got(url: str, path: str, **headers: str) -> httpx.Response:
    async with httpx.AsyncClient() as client:
        return await client.get(url + path, headers={name.replace("_", "-"): value for name, value in headers.items()})


def told(response: httpx.Response) -> str:
    """The message of an error in the form of OpenAI."""
    error = response.json()["error"]
    assert error.keys() == {"message", "type", "param", "code"}
    return str(error["message"])


@pytest.mark.parametrize(
    ("path", "model", "headers", "text"),
    [
        ("/c/two/v1/chat/completions", "", {}, "from two"),
        ("/c/two/v1/chat/completions", "one/x", {}, "from two"),
        ("/v1/chat/completions", "", {"x_octo_connector": "two"}, "from two"),
        ("/v1/chat/completions", "two/x", {}, "from two"),
        ("/v1/chat/completions", "x/two", {}, "from one"),
        ("/v1/chat/completions", "", {}, "from one"),
        ("/v1/fim/completions", "two/x", {}, "from two"),
    ],
)
async def test_which_connector_answers(path: str, model: str, headers: dict[str, str], text: str):
    async with proxy(TWO, default="one") as served:
        answer = await asked(served.url, path, {**HELLO, "model": model, "prompt": "a = "}, **headers)

    assert answer.json()["choices"][0]["message"]["content"] == text


async def test_without_a_choice_the_names_are_told():
    async with proxy(TWO) as served:
        none = await asked(served.url, "/v1/chat/completions")
        wrong = await asked(served.url, "/c/tow/v1/chat/completions")

    assert none.status_code == 400
    assert told(none) == "no connector is named: write `NAME/MODEL` as the model, with NAME one of `one`, `two`"
    assert wrong.status_code == 404
    assert told(wrong) == "there is no connector `tow`: did you mean `two`?"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{", "the body is not a JSON object: it ends too early"),
        (b"[]", "the body is not a JSON object: expected `{` at character 0"),
        ({"model": 1}, "expected text as `model`"),
        ({}, "expected a list of objects as `messages`, found `null`"),
        (
            {"messages": [{"role": "x"}]},
            'expected `system`, `developer`, `user`, `assistant` or `tool` as `role`, found `"x"`',
        ),
        ({**HELLO, "temperature": "hot"}, 'expected a number as `temperature`, found `"hot"`'),
    ],
)
async def test_a_body_that_is_wrong(body: Any, message: str):
    async with proxy(TWO, default="one") as served:
        answer = await asked(served.url, "/v1/chat/completions", body)

    assert (answer.status_code, told(answer)) == (400, message)


@pytest.mark.parametrize("path", ["chat", "fim"])
async def test_a_whole_number_may_be_written_with_a_fraction_of_nothing(path: str):
    async with proxy(TWO, default="one") as served:
        body = {**HELLO, "prompt": "a = ", "n": 1.0, "max_tokens": 5.0}
        answer = await asked(served.url, f"/v1/{path}/completions", body)

    assert answer.status_code == 200


async def test_a_body_that_is_too_long():
    async with proxy(TWO, default="one") as served:
        answer = await asked(served.url, "/v1/chat/completions", b" " * (64 * 2**20 + 1))

    assert (answer.status_code, told(answer)) == (413, "the body is longer than 64 MiB")


@pytest.mark.parametrize("path", ["/nothing", "/v1/embeddings", "/c/one/v1"])
async def test_what_there_is_not(path: str):
    async with proxy(TWO, default="one") as served:
        answer = await got(served.url, path)

    assert (answer.status_code, told(answer)) == (404, f"there is no `GET {path}`")


async def test_another_method_is_told_which_one_to_take():
    async with proxy(TWO, default="one") as served:
        call = await got(served.url, "/v1/chat/completions")
        page = await asked(served.url, "/v1/models")

    assert (call.status_code, call.headers["allow"], page.headers["allow"]) == (405, "POST", "GET")
    assert told(call) == "`/v1/chat/completions` takes `POST`, not `GET`"


async def test_what_there_is_not_below_a_path_of_anthropic_is_told_in_its_form():
    async with proxy(TWO, default="one") as served:
        answer = await asked(served.url, "/c/one/v1/messages/count_tokens")

    error = {
        "message": "there is no `POST /c/one/v1/messages/count_tokens`",
        "type": "invalid_request_error",
        "param": None,
        "code": "not_found",
    }
    assert (answer.status_code, answer.json()) == (404, {"type": "error", "error": error})


async def test_names_of_fields_that_make_no_difference_are_told_whatever_they_are():
    odd = {"seed": 1, "a\r\nset-cookie: x=1": 1, "naïve \x00": 1, "数": 1, "x" * 5000: 1}
    async with proxy(TWO, default="one") as served:
        answer = await asked(served.url, "/v1/chat/completions", {**HELLO, **odd})

    told = answer.headers["x-octo-ignored"]
    assert (answer.status_code, "set-cookie" in answer.headers, len(told)) == (200, False, 2000)
    assert told.startswith("a??set-cookie: x=1, naïve ?, seed, xxx")


async def test_a_host_of_another_name_is_refused():
    async with proxy(TWO, default="one") as served:
        refused = await asked(served.url, "/v1/chat/completions", host="evil.example")
        local = await asked(served.url, "/v1/chat/completions", host="localhost:1")

    assert (refused.status_code, local.status_code) == (403, 200)
    assert told(refused) == "the proxy is not called `evil.example`; `--allow-host` allows a name"


@pytest.mark.parametrize(
    ("listen", "allowed", "host", "known"),
    [
        ("127.0.0.1", [], "[::1]:4180", True),
        ("127.0.0.1", [], "10.0.0.1:4180", False),
        ("127.0.0.1", ["box.example"], "Box.Example:80", True),
        ("", [], "10.0.0.1:4180", True),
        ("0.0.0.0", [], "evil.example", False),
        ("10.0.0.1", [], "10.0.0.1", True),
        ("10.0.0.1", [], "10.0.0.2", False),
        ("127.0.0.1", [], "", False),
    ],
)
def test_the_names_of_a_proxy(listen: str, allowed: list[str], host: str, known: bool):
    assert guard_of(listen, allowed, "").knows_host(host) is known


async def test_only_the_token_opens():
    async with proxy(TWO, default="one", guard=Guard(token="open")) as served:
        answers = [
            await asked(served.url, "/v1/chat/completions", **headers)
            for headers in (
                {},
                {"authorization": "Bearer wrong"},
                {"authorization": "Bearer open"},
                {"x_api_key": "open"},
                {"authorization": "Basic eDpvcGVu"},
            )
        ]
        page, alive = await got(served.url, "/"), await got(served.url, "/healthz")

    assert [answer.status_code for answer in answers] == [401, 401, 200, 200, 200]
    assert answers[0].json()["error"]["code"] == "invalid_api_key"
    assert told(answers[0]).startswith("a token is needed: ")
    assert told(answers[1]) == "wrong token: the key of the client is not the one that `--token` names"
    assert (page.status_code, page.headers["www-authenticate"], alive.status_code) == (
        401,
        'Basic realm="octo proxy"',
        200,
    )


async def test_pages_of_other_origins_may_ask_only_when_they_are_allowed():
    async with proxy(TWO, default="one", cors=["https://a.example"]) as served:
        allowed = await asked(served.url, "/v1/chat/completions", origin="https://a.example")
        other = await asked(served.url, "/v1/chat/completions", origin="https://b.example")

    assert allowed.headers["access-control-allow-origin"] == "https://a.example"
    assert (other.status_code, told(other)) == (
        403,
        "pages of `https://b.example` may not ask; `--cors` allows an origin",
    )
    assert "access-control-allow-origin" not in other.headers


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": "https://b.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://localhost:9", "content_type": "text/plain"}, 403),
        ({"sec_fetch_site": "cross-site"}, 403),
        ({"sec_fetch_site": "none"}, 200),
        ({"sec_fetch_site": "same-origin", "origin": "http://localhost:1", "host": "localhost:1"}, 200),
        ({}, 200),
    ],
    ids=lambda value: "-".join(map(str, value.values())) if isinstance(value, dict) else None,
)
async def test_no_page_of_another_origin_has_a_model_called(headers: dict[str, str], status: int):
    async with proxy(TWO, default="one") as served:
        call = await asked(served.url, "/v1/chat/completions", **headers)
        page = await got(served.url, "/", **headers)

    assert (call.status_code, page.status_code) == (status, 200)


async def test_the_page_shows_connectors_and_what_to_paste():
    async with proxy(TWO) as served:
        page = (await got(served.url, "/")).text

    assert f"export OPENAI_BASE_URL={served.url}/v1 OPENAI_API_KEY=none" in page
    assert "<code>two/large</code>" in page


class Lists(Server):
    def answer(self, request: Request) -> Answer:
        status = 404 if request.path.startswith("/away") else 200
        return Answer(status, (("content-type", "application/json"),), (b'{"data": [{"id": "a"}]}',))


async def test_models_are_listed_under_both_names_and_a_list_that_fails_is_named():
    with Lists() as lists:
        yaml = (
            TWO
            + f"""
  - name: far
    type: llm-custom
    settings: {{ baseURL: '{lists.url}/v1' }}
  - name: away
    type: llm-custom
    settings: {{ baseURL: '{lists.url}/away/v1' }}
"""
        )
        async with proxy(yaml) as served:
            answer = await got(served.url, "/v1/models", x_octo_connector="")
            one = await got(served.url, "/c/far/v1/models")

    assert [model["id"] for model in answer.json()["data"]] == [
        "small",
        "one/small",
        "large",
        "two/large",
        "a",
        "far/a",
    ]
    assert answer.headers["x-octo-ignored"] == "away"
    assert [model["id"] for model in one.json()["data"]] == ["a", "far/a"]


class BedrockLists(Server):
    """Lists the models of Bedrock, of both kinds."""

    def answer(self, request: Request) -> Answer:
        kind, id = ("modelSummaries", "modelId")
        if request.path == "/inference-profiles":
            kind, id = ("inferenceProfileSummaries", "inferenceProfileId")
        return Answer(200, (("content-type", "application/json"),), (json.dumps({kind: [{id: kind}]}).encode(),))


async def test_calls_of_bedrock_are_signed_for_clients_as_for_agents():
    settings = f"region: {REGION}, awsAccessKeyId: {KEYS.id}, awsSecretAccessKey: {KEYS.secret}, model: m"
    with BedrockServer([reply("hi")]) as vendor, BedrockLists() as lists:
        yaml = f"""
          connectors:
            - {{ name: aws, type: llm-bedrock, settings: {{ baseURL: '{vendor.url}', {settings} }} }}
            - {{ name: lists, type: llm-bedrock, settings: {{ baseURL: '{lists.url}', {settings} }} }}
        """
        async with proxy(yaml) as served:
            answer = await asked(served.url, "/c/aws/v1/chat/completions")
            models = await got(served.url, "/c/lists/v1/models")

    assert (answer.json()["choices"][0]["message"]["content"], vendor.refusals) == ("hi", [])
    assert [model["id"] for model in models.json()["data"][::2]] == ["modelSummaries", "inferenceProfileSummaries"]
    assert [sigv4.fault(request, KEYS, REGION, "bedrock") for request in lists.requests] == [None, None]


# ---------------------------------------------------------------- streams


async def test_a_stream_is_told_to_be_alive_only_between_whole_events():
    with ChatServer([chat_reply("good morning", fragment=50, faults=[rechunk(40), _slow(0.12)])]) as vendor:
        async with proxy(UPSTREAMS[0].yaml(vendor.url), keep_alive=0.03) as served:
            answer = await asked(served.url, "/v1/chat/completions", {**HELLO, "stream": True})

    events = answer.text.split("\n\n")
    assert ": keepalive" in events
    assert all(event in ("", ": keepalive") or event.startswith("data: ") for event in events)
    assert all(json.loads(event[6:]) for event in events if event.startswith("data: {"))


def _slow(seconds: float) -> Any:
    from vendor.faults import drip

    return drip(seconds)


@pytest.mark.parametrize("ends", ["well", "badly"])
async def test_a_stream_that_is_translated_is_told_to_be_alive_before_its_first_word(ends: str):
    late = [reply("good morning", faults=[delay(0.3)])]
    refused = [Answer(400, (("content-type", "application/json"),), (b'{"error": {"message": "no"}}',), delay=0.3)]
    with AnthropicServer(late if ends == "well" else refused) as vendor:
        async with proxy(UPSTREAMS[1].yaml(vendor.url), keep_alive=0.1) as served:
            answer = await asked(served.url, "/v1/chat/completions", {**HELLO, "stream": True})

    first, alive, *_, last, _ = answer.text.split("\n\n")
    assert json.loads(first[6:])["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert alive == ": keepalive"
    assert (last == "data: [DONE]", '"error"' in last) == ((True, False) if ends == "well" else (False, True))


async def test_an_answer_that_is_no_stream_is_never_told_to_be_alive():
    with ChatServer([chat_reply("good morning", faults=[_slow(0.2)])]) as vendor:
        async with proxy(UPSTREAMS[0].yaml(vendor.url), keep_alive=0.03) as served:
            answer = await asked(served.url, "/v1/chat/completions")

    assert answer.json()["choices"][0]["message"]["content"] == "good morning"


async def test_a_flood_without_an_end_of_an_event_is_cut_off():
    flood = Answer(200, (("content-type", "text/event-stream"),), (b"data: ", *[b"x" * 2**20] * 40), streamed=True)
    with ChatServer([flood]) as vendor:
        async with proxy(UPSTREAMS[0].yaml(vendor.url)) as served:
            answer = await asked(served.url, "/v1/chat/completions", {**HELLO, "stream": True})

    assert json.loads(answer.text.removeprefix("data: "))["error"]["message"].endswith("is longer than 32 MiB")


async def test_two_hundred_idle_clients_keep_nobody_waiting():
    async with proxy(TWO, default="one") as served:
        port = int(served.url.rpartition(":")[2])
        idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(200)]
        answer = await asked(served.url, "/v1/chat/completions")
        for _, writer in idle:
            writer.close()

    assert answer.status_code == 200


# ---------------------------------------------------------------- clients of Anthropic

VERSION = {"anthropic-version": "2023-06-01"}
ASKING: Any = {"model": "models/claude-x", "max_tokens": 50, "messages": [{"role": "user", "content": "hello"}]}


async def test_the_stock_client_of_anthropic_cannot_tell_the_proxy_from_the_vendor():
    script = [
        reply("good morning"),
        reply("good evening"),
        Answer(
            400,
            (("content-type", "application/json"),),
            (b'{"type":"error","error":{"type":"invalid_request_error","message":"no"}}',),
        ),
        reply("x" * 40, faults=[reset(4)]),
    ]
    with AnthropicServer(script, api_key="secret-key") as vendor:
        async with (
            proxy(UPSTREAMS[1].yaml(vendor.url)) as served,
            AsyncAnthropic(base_url=served.url, api_key="any", max_retries=0) as client,
        ):
            whole = await client.messages.create(**ASKING)
            async with client.messages.stream(**ASKING) as stream:
                streamed = await stream.get_final_message()
            with pytest.raises(APIStatusError) as refused:
                await client.messages.create(**ASKING)
            with pytest.raises(APIStatusError) as broken:
                async with client.messages.stream(**ASKING) as stream:
                    await stream.get_final_message()

    assert [block.text for message in (whole, streamed) for block in message.content if block.type == "text"] == [
        "good morning",
        "good evening",
    ]
    assert refused.value.status_code == 400
    assert "broke off" in str(broken.value)
    assert vendor.refusals == []
    assert {request.json["model"] for request in vendor.requests} == {"claude-x"}
    assert served.log[1].output_tokens == streamed.usage.output_tokens


async def test_a_vendor_that_stalls_lets_go_when_the_client_does():
    with AnthropicServer([reply("x" * 40, faults=[hang(3)])]) as vendor:
        async with (
            proxy(UPSTREAMS[1].yaml(vendor.url)) as served,
            AsyncAnthropic(
                base_url=served.url, api_key="any", max_retries=0, default_headers=VERSION, timeout=0.3
            ) as client,
        ):
            with pytest.raises(Exception, match=r".*"):
                async with client.messages.stream(**ASKING) as stream:
                    await stream.get_final_message()
            assert await asyncio.to_thread(vendor.requests[0].abandoned.wait, 0.1)


async def test_errors_for_clients_of_anthropic_have_their_form_too():
    async with proxy(TWO, default="one", guard=Guard(token="open")) as served:
        closed = await asked(served.url, "/v1/messages", ASKING)
        wrong = await asked(served.url, "/c/one/v1/messages", ASKING, authorization="Bearer open")

    assert closed.json() == {
        "type": "error",
        "error": {
            "message": "a token is needed: send that of `--token` as the key, in a browser as the password",
            "type": "authentication_error",
            "param": None,
            "code": "invalid_api_key",
        },
    }
    assert (wrong.status_code, wrong.json()["type"]) == (400, "error")


async def test_what_a_vendor_says_of_limits_and_retries_travels_and_cookies_do_not():
    headers = (
        ("content-type", "application/json"),
        ("x-request-id", "r1"),
        ("x-ratelimit-remaining-requests", "9"),
        ("ratelimit-reset", "3"),
        ("x-should-retry", "false"),
        ("set-cookie", "a=b"),
        ("alt-svc", "h3"),
        ("connection", "keep-alive"),
    )
    answer = Answer(200, headers, (b'{"choices": []}',))
    with ChatServer([answer]) as vendor:
        async with proxy(UPSTREAMS[0].yaml(vendor.url)) as served:
            told = await asked(served.url, "/v1/chat/completions", HELLO)

    assert vendor.requests[0].headers["accept-encoding"] == "identity"
    assert sorted(told.headers.keys() - {"date"}) == [
        "content-length",
        "content-type",
        "ratelimit-reset",
        "x-ratelimit-remaining-requests",
        "x-request-id",
        "x-should-retry",
    ]


async def test_a_body_as_long_as_it_may_be_is_passed_on():
    text = "x" * (64 * 2**20 - 100)
    with ChatServer(lambda _: chat_reply("long")) as vendor:
        async with proxy(UPSTREAMS[0].yaml(vendor.url)) as served:
            answer = await asked(served.url, "/v1/chat/completions", {"messages": [{"role": "user", "content": text}]})

    assert answer.json()["choices"][0]["message"]["content"] == "long"


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/models", "/", "/openapi.json", "/c/one/v1/messages"])
async def test_without_a_token_nothing_is_told(path: str):
    async with proxy(TWO, default="one", guard=Guard(token="open")) as served, httpx.AsyncClient() as client:
        answers = [await client.request(method, served.url + path) for method in ("GET", "POST", "PUT", "DELETE")]

    assert {answer.status_code for answer in answers} == {401}


async def test_a_gateway_that_is_replaced_serves_its_requests_to_the_end():
    async with gateway(TWO) as before:
        with before.used():
            waiting = asyncio.create_task(before.until_unused())
            await asyncio.sleep(0.01)
            assert not waiting.done()
        await asyncio.wait_for(waiting, 1)


TOOL = {"type": "function", "function": {"name": "find", "parameters": {"type": "object"}}}
FORM = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}}
BROKEN_CALL = {"id": "call_1", "type": "function", "function": {"name": "find", "arguments": "{oh"}}
BROKEN_HISTORY = [
    *HELLO["messages"],
    {"role": "assistant", "tool_calls": [BROKEN_CALL]},
    {"role": "tool", "tool_call_id": "call_1", "content": "what?"},
]


@pytest.mark.parametrize(
    ("name", "fields", "ignored"),
    [
        ("gemini", {"parallel_tool_calls": False, "tools": [TOOL]}, "parallel_tool_calls"),
        ("anthropic", {"parallel_tool_calls": False, "tools": [TOOL]}, None),
        ("gemini", {"response_format": {"type": "grammar", "grammar": "x"}}, "response_format"),
        ("gemini", {"response_format": {"type": ["text"]}}, "response_format"),
        ("anthropic", {"reasoning_effort": "low", "tools": [TOOL], "tool_choice": "required"}, "reasoning_effort"),
        ("anthropic", {"reasoning_effort": "low", "tools": [TOOL]}, None),
        ("anthropic", {"temperature": 0.5, "top_p": 0.9}, "top_p"),
        ("anthropic", {"temperature": 0.5, "model": "claude-opus-4-7"}, "temperature"),
        ("anthropic", {"temperature": 0.5, "reasoning_effort": "low", "max_tokens": 2000}, "temperature"),
        ("bedrock", {"temperature": 0.5, "top_p": 0.9}, "top_p"),
        ("gemini", {"temperature": 0.5, "top_p": 0.9}, None),
        (
            "anthropic",
            {"messages": BROKEN_HISTORY, "tools": [TOOL]},
            "messages.tool_calls.function.arguments",
        ),
    ],
)
async def test_what_makes_no_difference_to_a_model_is_named(name: str, fields: Any, ignored: str | None):
    (upstream,) = (one for one in UPSTREAMS if one.name == name)
    with upstream.server([upstream.reply("hi")]) as vendor:
        async with proxy(upstream.yaml(vendor.url)) as served:
            answer = await asked(served.url, "/v1/chat/completions", {**HELLO, **fields})

    assert (answer.status_code, answer.headers.get("x-octo-ignored")) == (200, ignored)


@pytest.mark.parametrize("cap", [0, -3])
async def test_a_cap_below_one_is_refused(cap: int):
    async with proxy(TWO, default="one") as served:
        answer = await asked(served.url, "/v1/chat/completions", {**HELLO, "max_tokens": cap})

    assert (answer.status_code, told(answer)) == (
        400,
        f"expected a whole number from 1 as `max_tokens`, found `{cap}`",
    )


@pytest.mark.parametrize("tools", [[], [TOOL]], ids=["alone", "beside tools"])
async def test_a_model_by_any_name_gives_an_answer_of_the_form_that_is_asked_for(tools: list[Any]):
    (claude,) = (one for one in UPSTREAMS if one.name == "anthropic")
    with claude.server([claude.forms({"id": 7})]) as vendor:
        async with proxy(claude.yaml(vendor.url).replace("claude-sonnet-4-5", "house-model")) as served:
            fields = {**HELLO, "response_format": FORM, **({"tools": tools} if tools else {})}
            answer = await asked(served.url, "/v1/chat/completions", fields)

    (choice,) = answer.json()["choices"]
    assert (json.loads(choice["message"]["content"]), choice["finish_reason"]) == ({"id": 7}, "stop")
    assert "structured_output" in [tool["name"] for tool in json.loads(vendor.requests[0].body)["tools"]]


async def test_a_tool_that_a_client_wants_called_goes_before_the_form_of_an_answer():
    (claude,) = (one for one in UPSTREAMS if one.name == "anthropic")
    with claude.server([claude.reply(calls=[claude.call("find", {})])]) as vendor:
        async with proxy(claude.yaml(vendor.url)) as served:
            choice = {"type": "function", "function": {"name": "find"}}
            fields = {**HELLO, "response_format": FORM, "tools": [TOOL], "tool_choice": choice}
            answer = await asked(served.url, "/v1/chat/completions", fields)

    assert json.loads(vendor.requests[0].body)["tool_choice"] == {"type": "tool", "name": "find"}
    assert answer.headers["x-octo-ignored"] == "response_format"
