"""What the proxy answers, as an OpenAPI description: at `/openapi.json`, for tools that read such."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from octo.llm import fim
from octo.llm.proxy import CHAT, FIM, MESSAGES, RESPONSES
from octo.values import Json

_VERSION: Final = "3.1.0"
_BASE64: Final = "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?"


def description(version: str, connectors: Iterable[str], *, with_token: bool) -> dict[str, Json]:
    """The description of a proxy with these connectors."""
    named = {"name": "connector", "in": "path", "required": True, "schema": {"enum": list(connectors)}}
    api: dict[str, Json] = {f"/v1/{path}": operations for path, operations in _API.items()}
    below = {f"/c/{{connector}}{path}": _with_parameter(named, operations) for path, operations in api.items()}
    schemes = {"token": {"type": "http", "scheme": "bearer", "description": "The text of `--token`"}}
    return {
        "openapi": _VERSION,
        "info": {"title": "octo proxy", "version": version},
        "paths": {**api, **below, **_REST},
        "components": {"schemas": _SCHEMAS, **({"securitySchemes": schemes} if with_token else {})},
        **({"security": [{"token": []}]} if with_token else {}),
    }


def _with_parameter(parameter: Json, operations: Json) -> Json:
    return {**operations, "parameters": [parameter, *operations.get("parameters", ())]}


def _ref(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


def _answer(words: str, **contents: Json) -> Json:
    content = {_TYPES[name]: {"schema": schema} if schema else {} for name, schema in contents.items()}
    return {"description": words, "content": content}


_TYPES: Final = {
    "json": "application/json",
    "events": "text/event-stream",
    "html": "text/html",
    "text": "text/plain",
}

_TEXT: Final = {"type": "string"}
_ERROR: Final = _answer("An error; its status, or that of the provider", json=_ref("Error"))


def _post(summary: str, asks: str, answer: str) -> Json:
    body = {"required": True, "content": {"application/json": {"schema": _ref(asks)}}}
    well = _answer("The answer, or its events under `stream`", json=_ref(answer), events=None)
    return {
        "parameters": [
            {
                "name": "X-Octo-Connector",
                "in": "header",
                "description": "The connector that answers",
                "schema": {"type": "string", "pattern": "^[ -~]*$"},
            }
        ],
        "post": {"summary": summary, "requestBody": body, "responses": {"200": well, "default": _ERROR}},
    }


def _get(summary: str, words: str, *, is_open: bool = False, **contents: Json) -> Json:
    answers = {"200": _answer(words, **contents), "default": _ERROR}
    return {"get": {"summary": summary, "responses": answers, **({"security": []} if is_open else {})}}


_API: Final[dict[str, Json]] = {
    CHAT: _post("Chat completions, over every connector", "ChatRequest", "ChatAnswer"),
    FIM: _post("Code at a cursor, over every connector", "FimRequest", "Object"),
    MESSAGES: _post("Anthropic's Messages API, over connectors that have it", "Object", "Object"),
    RESPONSES: _post("OpenAI's Responses API, over connectors that have it", "Object", "Object"),
    "models": _get("The models that can be chosen", "All that their providers list", json=_ref("Models")),
}
_REST: Final[dict[str, Json]] = {
    "/": _get("A page for people", "Connectors, and what to paste into a client", html=_TEXT),
    "/healthz": _get("Whether the proxy is there", "It is", is_open=True, text=_TEXT),
    "/openapi.json": _get("This description", "OpenAPI", json=_ref("Object")),
}


# ---------------------------------------------------------------- schemas


def _object(required: Iterable[str] = (), **properties: Json) -> Json:
    return {"type": "object", "required": list(required), "properties": properties}


def _or_null(*kinds: str) -> Json:
    return {"type": [*kinds, "null"]}


def _list(of: Json) -> Json:
    return {"type": "array", "items": of}


def _just(*values: Json) -> Json:
    return {"enum": list(values)}


_FILE: Final = {"type": "string", "pattern": f"^data:[a-z]+/[a-z]+;base64,{_BASE64}$"}
_FUNCTION: Final = _object(
    ["name"], name=_TEXT, description=_or_null("string"), parameters={"type": ["object", "null"]}
)
_CALL: Final = _object(
    ["id", "type", "function"],
    id=_TEXT,
    type=_just("function"),
    function=_object(["name", "arguments"], name=_TEXT, arguments=_TEXT),
)
_TEXT_PART: Final = _object(["type", "text"], type=_just("text"), text=_TEXT)
_PART: Final = {
    "oneOf": [
        _TEXT_PART,
        _object(["type", "image_url"], type=_just("image_url"), image_url=_object(["url"], url=_FILE)),
        _object(["type", "file"], type=_just("file"), file=_object(["file_data"], file_data=_FILE, filename=_TEXT)),
        _object(
            ["type", "input_audio"],
            type=_just("input_audio"),
            input_audio=_object(
                ["data"], data={"type": "string", "pattern": f"^{_BASE64}$"}, format=_just("mp3", "wav")
            ),
        ),
    ]
}


def _content(part: Json) -> Json:
    return {"anyOf": [_TEXT, _list(part), {"type": "null"}]}


_MESSAGE: Final = {
    "oneOf": [
        _object(["role", "content"], role=_just("system", "developer"), content=_content(_TEXT_PART)),
        _object(["role", "content"], role=_just("user"), content=_content(_PART)),
        _object(
            ["role"],
            role=_just("assistant"),
            content=_content(_TEXT_PART),
            tool_calls={"anyOf": [_list(_CALL), {"type": "null"}]},
        ),
        _object(
            ["role", "tool_call_id", "content"], role=_just("tool"), tool_call_id=_TEXT, content=_content(_TEXT_PART)
        ),
    ]
}
_FORM: Final = {
    "oneOf": [
        _object(["type"], type=_just("text", "json_object")),
        _object(
            ["type", "json_schema"],
            type=_just("json_schema"),
            json_schema=_object(["schema"], name=_TEXT, schema={"type": "object"}),
        ),
    ]
}
_SCHEMAS: Final[dict[str, Json]] = {
    "Object": {"type": "object"},
    "ChatRequest": _object(
        ["messages"],
        model=_or_null("string"),
        messages=_list(_MESSAGE),
        tools={
            "anyOf": [
                _list(_object(["type", "function"], type=_just("function"), function=_FUNCTION)),
                {"type": "null"},
            ]
        },
        tool_choice={
            "anyOf": [
                _just("none", "auto", "required", None),
                _object(["type", "function"], type=_just("function"), function=_object(["name"], name=_TEXT)),
            ]
        },
        parallel_tool_calls=_or_null("boolean"),
        response_format=_FORM,
        reasoning_effort=_or_null("string"),
        max_completion_tokens={"type": ["integer", "null"], "minimum": 1},
        max_tokens={"type": ["integer", "null"], "minimum": 1},
        temperature=_or_null("number"),
        top_p=_or_null("number"),
        stop={"anyOf": [_TEXT, _list(_TEXT), {"type": "null"}]},
        n={"type": ["integer", "null"], "maximum": 1},
        user=_or_null("string"),
        stream=_or_null("boolean"),
        stream_options=_object(include_usage={"type": "boolean"}),
    ),
    "ChatAnswer": _object(
        ["id", "object", "created", "model", "choices"],
        id=_TEXT,
        object=_just("chat.completion"),
        created={"type": "integer"},
        model=_TEXT,
        choices=_list(
            _object(["index", "message", "finish_reason"], index={"type": "integer"}, message={"type": "object"})
        ),
        usage={"type": "object"},
    ),
    "FimRequest": _object(["prompt"], model=_or_null("string"), stream=_or_null("boolean"), **fim.SCHEMA),
    "Models": _object(
        ["object", "data"],
        object=_just("list"),
        data=_list(
            _object(
                ["id", "object", "created", "owned_by"],
                id=_TEXT,
                object=_just("model"),
                created={"type": "integer"},
                owned_by=_TEXT,
                display_name=_TEXT,
            )
        ),
    ),
    "Error": _object(
        ["error"],
        error=_object(
            ["message"],
            message=_TEXT,
            type=_TEXT,
            param=_or_null("string"),
            code=_or_null("string", "integer"),
        ),
    ),
}
