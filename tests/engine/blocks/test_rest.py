"""octo/blocks/rest.py: calls of an HTTP API, and what becomes of their answers."""

import json
import re

import pytest

from http_api import Api, as_json, text
from octo.errors import BlockError, ConfigError
from octo.testing.harness import config


def flow(url="http://127.0.0.1:1", type="rest", base="", **settings):
    """A config with one call."""
    block = {"type": type, "settings": {"connector": "api"} | settings}
    return json.dumps(
        {
            "connectors": [{"name": "api", "type": "http-client", "settings": {"baseURL": url + base}}],
            "flows": [{"name": "main", "process": [block]}],
        }
    )


def answering(answer):
    return Api(lambda request: answer)


# ---------------------------------------------------------------- the request


@pytest.mark.parametrize(
    ("settings", "asked"),
    [
        ({}, {"method": "GET", "target": "/v2?k=1", "body": ""}),
        ({"method": " post ", "path": "a/"}, {"method": "POST", "target": "/v2/a/?k=1", "body": ""}),
        ({"method": "", "path": "/a?z=2"}, {"method": "GET", "target": "/v2/a?k=1&z=2", "body": ""}),
        (
            {"query": {"z": "body.n", "a": '"x &+"', "m": "{'l': [1, null]}"}},
            {
                "method": "GET",
                "target": "/v2?k=1&a=x+%26%2B&m=%7B%22l%22%3A%5B1%2Cnull%5D%7D&z=1000000",
                "body": "",
            },
        ),
        ({"path": "/a/../b/%2e/c"}, {"method": "GET", "target": "/v2/a/../b/%2e/c?k=1", "body": ""}),
        ({"method": "PUT", "body": "body"}, {"method": "PUT", "target": "/v2?k=1", "body": '{"n":1000000}'}),
        ({"method": "PUT", "body": '"plain"'}, {"method": "PUT", "target": "/v2?k=1", "body": "plain"}),
        ({"method": "PUT", "body": "null"}, {"method": "PUT", "target": "/v2?k=1", "body": "null"}),
        ({"method": "PURGE"}, {"method": "PURGE", "target": "/v2?k=1", "body": ""}),
    ],
    ids=["base", "method", "query", "parameters", "as written", "JSON", "text", "null", "other method"],
)
async def test_what_is_asked_for(run_flow, settings, asked):
    with Api() as api:
        message = await run_flow(flow(api.url, base="/v2?k=1", **settings), {"n": 1000000.0})

    assert message.body == asked
    assert message.vars == {"statusCode": 200.0}


async def test_a_form_is_sent_as_text(run_flow):
    settings = {
        "method": "POST",
        "body": "toFormData(body)",
        "headers": {"Content-Type": "'application/x-www-form-urlencoded'"},
    }
    with Api() as api:
        message = await run_flow(flow(api.url, **settings), {"b": "x y", "a": [1.0, 2.0]})

    assert message.body["body"] == "a=1&a=2&b=x+y"
    assert api.headers("content-type") == ["application/x-www-form-urlencoded"]


async def test_parts_are_sent_as_multipart_with_a_boundary_of_their_own(run_flow):
    parts = {
        "title": "report",
        "file": {"filename": "a.bin", "contentType": "application/x-a", "encoding": "base64", "data": "AP8="},
    }
    settings = {"method": "POST", "bodyType": "multipart", "body": "body", "headers": {"Content-Type": "'text/plain'"}}
    with Api() as api:
        await run_flow(flow(api.url, **settings), parts)
        await run_flow(flow(api.url, **settings), parts)

    first, second = (
        re.fullmatch("multipart/form-data; boundary=(octo-[0-9a-f]{32})", header)[1]
        for header in api.headers("content-type")
    )
    assert first != second
    assert api.requests[0].body.replace(first.encode(), b"B") == (
        b'--B\r\nContent-Disposition: form-data; name="file"; filename="a.bin"\r\nContent-Type: application/x-a\r\n\r\n'
        b'\x00\xff\r\n--B\r\nContent-Disposition: form-data; name="title"\r\n\r\nreport\r\n--B--\r\n'
    )


async def test_a_body_that_is_no_parts_map_fails_before_anything_is_sent(run_flow):
    with Api() as api, pytest.raises(BlockError) as caught:
        await run_flow(flow(api.url, method="POST", bodyType="multipart", body="body"), "text")

    assert str(caught.value) == 'block "rest": rest body: expected a parts map, found text'
    assert api.requests == []


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"body": "body.a"}, "rest body: evaluate expression: no such key: a"),
        ({"query": {"q": "body.a"}}, 'rest query "q": evaluate expression: no such key: a'),
        ({"headers": {"X-Id": "body.a"}}, 'rest header "X-Id": evaluate expression: no such key: a'),
    ],
    ids=["body", "query", "header"],
)
async def test_an_expression_that_fails_is_named(run_flow, settings, message):
    with pytest.raises(BlockError) as caught:
        await run_flow(flow(**settings), {})

    assert str(caught.value) == f'block "rest": {message}'


# ---------------------------------------------------------------- the answer


@pytest.mark.parametrize(
    ("answer", "body", "raw"),
    [
        (text('{"n": 1}', content_type="text/plain"), {"n": 1.0}, False),
        (text("\ufeff[1]"), [1.0], False),
        (text("null"), None, False),
        (text(""), None, False),
        (text(" \r\n"), None, False),
        (text("<p>é</p>", content_type="text/html"), {"contentType": "text/html", "rawData": "<p>é</p>"}, True),
        (text('{"n": 1', 200, "application/json"), {"contentType": "application/json", "rawData": '{"n": 1'}, True),
        (text("NaN"), {"contentType": "text/plain", "rawData": "NaN"}, True),
        (text(b"\xff\x00a"), {"contentType": "text/plain", "rawData": "\ufffd\x00a"}, True),
        (text("[" * 100_000), {"contentType": "text/plain", "rawData": "[" * 100_000}, True),
        (text("--b--", content_type="multipart/mixed; boundary=b"), None, True),
    ],
    ids=["JSON", "byte order mark", "null", "empty", "blank", "text", "cut", "NaN", "bytes", "deep", "multipart"],
)
async def test_an_answer_is_known_by_its_content(run_flow, answer, body, raw):
    with answering(answer) as api:
        message = await run_flow(flow(api.url), "before")

    if "multipart" in dict(answer.headers)["content-type"]:
        body = {"contentType": "multipart/mixed; boundary=b", "rawData": "--b--"}
    assert (message.body, message.raw) == (body, raw)


async def test_an_ordinary_answer_ends_raw_content(run_flow):
    config_text = json.loads(flow())
    raw = {"type": "set-payload", "settings": {"value": "'x'", "rawBody": True, "contentType": "text/plain"}}
    config_text["flows"][0]["process"].insert(0, raw)
    with answering(as_json({"n": 1})) as api:
        config_text["connectors"][0]["settings"]["baseURL"] = api.url
        message = await run_flow(json.dumps(config_text))

    assert (message.body, message.raw) == ({"n": 1.0}, False)


async def test_a_head_request_has_no_body(run_flow):
    with Api(lambda request: text("")) as api:
        message = await run_flow(flow(api.url, method="head"), "before")

    assert message.body is None
    assert api.requests[0].method == "HEAD"


async def test_a_bad_status_fails_after_the_variable_is_set(run_flow):
    config_text = json.loads(flow())
    config_text["flows"][0]["error"] = [
        {"type": "set-payload", "settings": {"value": "[vars.statusCode, vars.error.message, body]"}}
    ]
    with answering(text("no such\n  depot: " + "x" * 300, 404)) as api:
        config_text["connectors"][0]["settings"]["baseURL"] = f"{api.url}/v2"
        message = await run_flow(json.dumps(config_text), "before")

    assert message.body == [
        404.0,
        f'block "rest": rest request to {api.url}/v2 returned 404: no such depot: ' + "x" * 185,
        "before",
    ]


@pytest.mark.parametrize(
    ("settings", "variables"),
    [
        ({}, {"statusCode": 503.0}),
        ({"statusVar": "status"}, {"status": 503.0}),
        ({"statusVar": ""}, {"statusCode": 503.0}),
    ],
    ids=["usual", "named", "blank"],
)
async def test_a_bad_status_may_be_an_answer_like_any_other(run_flow, settings, variables):
    with answering(as_json({"error": "busy"}, 503)) as api:
        message = await run_flow(flow(api.url, failOnError=False, **settings))

    assert (message.body, message.vars) == ({"error": "busy"}, variables)


async def test_a_status_below_400_is_no_failure(run_flow):
    with answering(text("", 304)) as api:
        message = await run_flow(flow(api.url))

    assert (message.body, message.vars) == (None, {"statusCode": 304.0})


# ---------------------------------------------------------------- rest-dynamic

DYNAMIC = {
    "type": "rest-dynamic",
    "method": 'has(body.verb) ? body.verb : "GET"',
    "path": "body.path",
    "query": "body.?query.orValue(null)",
    "headers": "body.?headers.orValue(null)",
}


async def test_the_message_decides_what_is_asked_for(run_flow):
    body = {"verb": " options", "path": "/slots?z=1", "query": {"n": 2.0, "a": None}, "headers": {"X-Id": True}}
    with Api() as api:
        message = await run_flow(flow(api.url, base="/v2", body="'text'", **DYNAMIC), body)

    assert message.body == {"method": "OPTIONS", "target": "/v2/slots?z=1&a=null&n=2", "body": "text"}
    assert api.headers("x-id") == ["true"]


@pytest.mark.parametrize("path", ["/depots", "depots/", "/depots/a/b", "/depots?x=..", "/depots/a%20b", "/%64epots/x"])
async def test_a_path_inside_the_prefix_is_sent(run_flow, path):
    with Api() as api:
        message = await run_flow(flow(api.url, pathPrefix="/depots", **DYNAMIC), {"path": path})

    assert message.body["target"] == "/" + path.removeprefix("/")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"verb": "TRACE"}, "method `TRACE` is not allowed, only GET, POST"),
        ({"verb": "DELETE"}, "method `DELETE` is not allowed, only GET, POST"),
        ({"verb": "GET\r\nX: 1"}, "method `GET\r\nX: 1` is not allowed, only GET, POST"),
        ({"path": ""}, "the path is empty"),
        ({"path": "?a=1"}, "the path is empty"),
        (
            {"path": "https://other/depots"},
            "path `https://other/depots` names a scheme or a host, which come from the connector",
        ),
        (
            {"path": "//other/depots?k=v"},
            "path `//other/depots` names a scheme or a host, which come from the connector",
        ),
        ({"path": "file:x"}, "path `file:x` names a scheme or a host, which come from the connector"),
        ({"path": "/depots/../x"}, "path `/depots/../x` holds a `..` segment"),
        ({"path": "/depots/%2e%2E/x"}, "path `/depots/%2e%2E/x` holds a `..` segment"),
        ({"path": "/depots/..%2fx"}, "path `/depots/..%2fx` holds a `..` segment"),
        ({"path": "/depotsb"}, "path `/depotsb` is not inside `/depots`"),
        ({"path": "/"}, "path `/` is not inside `/depots`"),
        ({"path": "/depots/%"}, "`/depots/%` is no path: it holds the bad escape `%`"),
        ({"path": "/depots/a\nb"}, "`/depots/a b` is no path: it holds a line break or another control character"),
    ],
)
async def test_nothing_else_is_sent(run_flow, body, message):
    settings = DYNAMIC | {"pathPrefix": "/depots", "allowMethods": ["get", " POST "]}
    with Api() as api, pytest.raises(BlockError) as caught:
        await run_flow(flow(api.url, **settings), {"path": "/depots"} | body)

    assert str(caught.value) == f'block "rest-dynamic": rest-dynamic: {" ".join(message.split())}'
    assert api.requests == []


@pytest.mark.parametrize("key", ["query", "headers"])
async def test_query_and_headers_must_be_objects(run_flow, key):
    with pytest.raises(BlockError) as caught:
        await run_flow(flow(**DYNAMIC), {"path": "/a", key: ["x"]})

    assert str(caught.value) == (
        f'block "rest-dynamic": rest-dynamic {key} must evaluate to an object or null, got a list'
    )


async def test_a_header_that_the_message_spoils_is_never_sent(run_flow):
    with Api() as api, pytest.raises(BlockError) as caught:
        await run_flow(flow(api.url, **DYNAMIC), {"path": "/a", "headers": {"X: 1\r\nY": "z"}})

    assert str(caught.value) == (
        f'block "rest-dynamic": rest-dynamic request to {api.url}/a: `X: 1 Y` is not the name of an HTTP header'
    )
    assert api.requests == []


# ---------------------------------------------------------------- loading


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"connector": "apu"}, 'connector "apu" is not configured'),
        ({"method": "G T"}, "expected an HTTP method, found `G T`"),
        ({"path": "/100%"}, "expected a path, found `/100%`: it holds the bad escape `%`"),
        ({"headers": {"a b": "1"}}, "`a b` is not the name of an HTTP header"),
        ({"query": {"a": 1}}, "expected an expression, found a number"),
        ({"query": "{}"}, "`query`: expected a mapping, found text"),
        ({"bodyType": "form"}, "expected `raw` or `multipart`, found `form`"),
        ({"bodyType": "multipart"}, "`bodyType: multipart` requires `body`"),
        ({"type": "rest-dynamic"}, "rest-dynamic requires `method`"),
        (
            {"type": "rest-dynamic", "method": "'GET'", "path": "''", "allowMethods": ["GTE"]},
            "expected an HTTP method, found `GTE`",
        ),
        (
            {"type": "rest-dynamic", "method": "'GET'", "path": "''", "pathPrefix": "/%"},
            "expected a path, found `/%`: it holds the bad escape `%`",
        ),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, message):
    with pytest.raises(ConfigError) as caught:
        config(flow(**settings))

    assert caught.value.problems[0].message == message


def test_the_connector_must_be_an_http_client():
    with pytest.raises(ConfigError) as caught:
        config("""
          connectors: [{name: model, type: llm-scripted, settings: {turns: [{text: hi}]}}]
          flows: [{name: main, process: [{type: rest, settings: {connector: model}}]}]
        """)

    (problem,) = caught.value.problems
    assert problem.message == 'connector "model" is a `llm-scripted`, which is no http-client connector'
    assert problem.hint == "declare a connector of type `http-client`"


@pytest.mark.parametrize(
    ("settings", "message", "hint"),
    [
        ({"method": "psot"}, "`PSOT` is no usual HTTP method", "did you mean `POST`?"),
        (
            {"path": "https://other/x"},
            "scheme and host of `path` have no effect",
            "requests go to the `baseURL` of the connector; keep the path only",
        ),
    ],
)
def test_what_has_no_effect_is_a_warning(settings, message, hint):
    (problem,) = config(flow(**settings)).warnings

    assert (problem.message, problem.hint) == (message, hint)
