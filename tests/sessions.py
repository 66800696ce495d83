"""A script of calls that a stock client of OpenAI makes, and what it sees of the answers.

Each call is plain data, so that clients in several languages can make it: this module plays it with the one for Python,
`openai_client.mjs` with the one for Node. What they see is plain data, too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import openai

from proxied import Upstream
from vendor.doubles import Said
from vendor.faults import hang, reset

Json = Any
Ends = Literal["answered", "refused", "broken off", "aborted"]


@dataclass(frozen=True)
class Step:
    """A call, and a second one that gives the results of tools if the first asks for some."""

    name: str
    asks: Json
    """The fields of the request, without the model."""
    script: Callable[[Upstream], Sequence[Any]]
    """What the vendor answers."""
    ends: Ends = "answered"

    @property
    def play(self) -> Json:
        """What a client needs to know."""
        return {"asks": self.asks, "aborts": self.ends == "aborted"}


def _user(content: Json) -> list[Json]:
    return [{"role": "user", "content": content}]


def _tool(name: str) -> Json:
    schema = {"type": "object", "properties": {"id": {"type": "integer"}}}
    return {"type": "function", "function": {"name": name, "description": "finds things", "parameters": schema}}


def _says(*said: Said) -> Callable[[Upstream], Sequence[Any]]:
    return lambda vendor: [vendor.says(one) for one in said]


def _fails(status: int, **headers: str) -> Callable[[Upstream], Sequence[Any]]:
    return lambda vendor: [vendor.error(status, WORDS, **headers)]


def _named(name: str) -> Json:
    return {"type": "function", "function": {"name": name}}


HELLO = _user("hello")
TOOLS = [_tool("find"), _tool("look")]
WORDS = "no such thing"
"""What a vendor says in its errors."""
SCRIPTS = "naïve — 数字 7, 😀 and \u200b“more”\n\ttoo"
CITY = {"name": "Bonn", "size": 3}
FORM = {
    "type": "json_schema",
    "json_schema": {
        "name": "city",
        "strict": True,
        "schema": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "size": {"type": "integer"}},
            "required": ["name", "size"],
            "additionalProperties": False,
        },
    },
}
DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
PICTURE = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{DOT}"}}
PAPER = {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0xLjQgeA=="}}
TURNS = [
    {"role": "system", "content": "be brief"},
    *HELLO,
    {"role": "assistant", "content": "good morning"},
    {"role": "user", "content": [{"type": "text", "text": "and then"}, {"type": "text", "text": "?"}]},
]
FIND, BOTH = (("find", {"id": 7}),), (("find", {"id": 7}), ("look", {"id": 8}))
LONG = "a text that is long enough to break off somewhere"
HELD = {"x_should_retry": "false"}
COUNTED = {"stream": True, "stream_options": {"include_usage": True}}

WHOLE = (
    Step("a text", {"messages": HELLO}, _says(Said("good morning"))),
    Step("every script", {"messages": _user(SCRIPTS)}, _says(Said(SCRIPTS))),
    Step("a long text", {"messages": HELLO}, _says(Said("and so on " * 500))),
    Step("turns and instructions", {"messages": TURNS}, _says(Said("later"))),
    Step("a cap", {"messages": HELLO, "max_completion_tokens": 77}, _says(Said("hi"))),
    Step("the cap by its old name", {"messages": HELLO, "max_tokens": 77}, _says(Said("hi"))),
    Step("a temperature", {"messages": HELLO, "temperature": 0.5}, _says(Said("hi"))),
    Step(
        "other settings",
        {"messages": HELLO, "top_p": 0.9, "stop": ["END"], "seed": 1, "user": "ann"},
        _says(Said("hi")),
    ),
    Step("an answer that is cut off", {"messages": HELLO, "max_tokens": 5}, _says(Said("and so", cut_off=True))),
    Step("reasoning", {"messages": HELLO}, _says(Said("42", thinking="six times seven"))),
    Step("a picture", {"messages": _user([{"type": "text", "text": "look"}, PICTURE])}, _says(Said("a dot"))),
    Step("a paper", {"messages": _user([{"type": "text", "text": "read"}, PAPER])}, _says(Said("x"))),
    Step("a tool", {"messages": HELLO, "tools": TOOLS}, _says(Said(calls=FIND), Said("done"))),
    Step("two tools at once", {"messages": HELLO, "tools": TOOLS}, _says(Said(calls=BOTH), Said("done"))),
    Step(
        "tools beside a text", {"messages": HELLO, "tools": TOOLS}, _says(Said("let me see", calls=BOTH), Said("done"))
    ),
    Step(
        "a tool without arguments",
        {"messages": HELLO, "tools": TOOLS},
        _says(Said(calls=(("find", {}),)), Said("done")),
    ),
    Step(
        "arguments in every script",
        {"messages": HELLO, "tools": TOOLS},
        _says(Said(calls=(("find", {"id": 1, "what": SCRIPTS}),)), Said("done")),
    ),
    Step("no tool", {"messages": HELLO, "tools": TOOLS, "tool_choice": "none"}, _says(Said("no"))),
    Step("maybe a tool", {"messages": HELLO, "tools": TOOLS, "tool_choice": "auto"}, _says(Said("no"))),
    Step(
        "some tool",
        {"messages": HELLO, "tools": TOOLS, "tool_choice": "required"},
        _says(Said(calls=FIND), Said(calls=FIND)),
    ),
    Step(
        "this tool, and no other beside it",
        {"messages": HELLO, "tools": TOOLS, "tool_choice": _named("find"), "parallel_tool_calls": False},
        _says(Said(calls=FIND), Said(calls=FIND)),
    ),
    Step("a form", {"messages": HELLO, "response_format": FORM}, lambda vendor: [vendor.forms(CITY)]),
)
STREAMED = (
    Step("a streamed text", {"messages": HELLO, "stream": True}, _says(Said("good morning to you"))),
    Step("a streamed text with its usage", {"messages": HELLO, **COUNTED}, _says(Said("good morning to you"))),
    Step("every script, streamed", {"messages": _user(SCRIPTS), "stream": True}, _says(Said(SCRIPTS))),
    Step("a long text, streamed", {"messages": HELLO, **COUNTED}, _says(Said("and so on " * 500))),
    Step("cut off, streamed", {"messages": HELLO, "stream": True}, _says(Said("and so", cut_off=True))),
    Step("reasoning, streamed", {"messages": HELLO, **COUNTED}, _says(Said("42", thinking="six times seven"))),
    Step(
        "a tool, streamed", {"messages": HELLO, "tools": TOOLS, "stream": True}, _says(Said(calls=FIND), Said("done"))
    ),
    Step(
        "a text and two tools, streamed",
        {"messages": HELLO, "tools": TOOLS, **COUNTED},
        _says(Said("let me see", calls=BOTH), Said("done")),
    ),
    Step(
        "a form, streamed", {"messages": HELLO, "response_format": FORM, **COUNTED}, lambda vendor: [vendor.forms(CITY)]
    ),
)
FAILED = (
    Step("a bad request", {"messages": HELLO}, _fails(400), "refused"),
    Step("a wrong key", {"messages": HELLO}, _fails(401), "refused"),
    Step("a closed door", {"messages": HELLO}, _fails(403), "refused"),
    Step("no such model", {"messages": HELLO}, _fails(404), "refused"),
    Step("too many requests", {"messages": HELLO}, _fails(429, **HELD), "refused"),
    Step("a fault of the vendor", {"messages": HELLO}, _fails(500, **HELD), "refused"),
    Step("a bad request for a stream", {"messages": HELLO, "stream": True}, _fails(400), "refused"),
    Step("too many requests for a stream", {"messages": HELLO, "stream": True}, _fails(429, **HELD), "refused"),
    Step(
        "an error in a stream",
        {"messages": HELLO, "stream": True},
        lambda vendor: [vendor.says(Said(LONG), vendor.error_event(4))],
        "broken off",
    ),
    Step(
        "a stream that is cut",
        {"messages": HELLO, "stream": True},
        lambda vendor: [vendor.says(Said(LONG), reset(4))],
        "broken off",
    ),
    Step(
        "a stream that nobody wants any more",
        {"messages": HELLO, "stream": True},
        lambda vendor: [vendor.says(Said(LONG), hang(5))],
        "aborted",
    ),
    Step(
        "an answer that nobody waits for",
        {"messages": HELLO},
        lambda vendor: [vendor.says(Said(LONG), hang())],
        "aborted",
    ),
)
STEPS = (*WHOLE, *STREAMED, *FAILED)


# ---------------------------------------------------------------- the client for Python


def client_of(url: str) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=url, api_key="secret-key", max_retries=0, timeout=20)


async def played(client: openai.AsyncOpenAI, model: str, step: Step) -> Json:
    """What the client for Python sees of one step."""
    return await _played(client, {"model": model, **step.asks}, aborts=step.ends == "aborted")


async def _played(client: openai.AsyncOpenAI, asks: Json, *, aborts: bool) -> Json:
    try:
        if not asks.get("stream"):
            answer = await client.with_options(timeout=0.4 if aborts else 20).chat.completions.create(**asks)
            seen = _seen(answer)
        else:
            stream = await client.chat.completions.create(**asks)
            if aborts:
                async for _ in stream:
                    break
                await stream.close()
                return {"aborted": True}
            seen = _seen_of([chunk async for chunk in stream])
    except openai.APITimeoutError:
        return {"aborted": True}
    except openai.APIStatusError as error:
        return {"error": error.status_code, "message": error.message, "type": error.type, "code": error.code}
    except (openai.APIError, openai.APIConnectionError) as error:
        return {"broken": type(error).__name__ == "APIError"}
    except Exception as error:  # what the client lets through of a broken connection
        return {"broken": bool(error)}
    if seen["calls"] and not asks["messages"][-1].get("tool_call_id"):
        return [seen, await _played(client, {**asks, "messages": [*asks["messages"], *_results(seen)]}, aborts=False)]
    return seen


def _results(seen: Json) -> list[Json]:
    """The turn that asks for tools, as it came, and what they give."""
    message = {"role": "assistant", "content": seen["content"] or None, "tool_calls": seen["raw"]}
    return [message, *({"role": "tool", "tool_call_id": call["id"], "content": "found"} for call in seen["raw"])]


def _seen(answer: Any) -> Json:
    (choice,) = answer.choices
    message = choice.message
    return {
        "id": answer.id.partition("-")[0],
        "object": answer.object,
        "dated": answer.created > 0,
        "model": answer.model,
        "content": message.content or "",
        "reasoning": (message.model_extra or {}).get("reasoning_content") or "",
        "finish": choice.finish_reason,
        "usage": _tokens(answer.usage),
        **_calls([call.model_dump(exclude_none=True) for call in message.tool_calls or []]),
    }


def _seen_of(chunks: Sequence[Any]) -> Json:
    """What chunks add up to."""
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    calls: dict[int, Json] = {}
    for part in (part for delta in deltas for part in delta.tool_calls or []):
        call = calls.setdefault(part.index, {"type": "function", "function": {"name": "", "arguments": ""}})
        call.update({key: value for key, value in part.model_dump(exclude_none=True).items() if key not in _SUMMED})
        call["function"]["name"] += (part.function and part.function.name) or ""
        call["function"]["arguments"] += (part.function and part.function.arguments) or ""
    texts = [delta.content for delta in deltas if delta.content]
    finishes = [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices]
    return {
        "ids": len({chunk.id for chunk in chunks}),
        "object": "".join(sorted({chunk.object for chunk in chunks})),
        "dated": all(chunk.created > 0 for chunk in chunks),
        "model": "".join(sorted({chunk.model for chunk in chunks})),
        "role": deltas[0].role,
        "fragments": len(texts) > 1,
        "content": "".join(texts),
        "reasoning": "".join((delta.model_extra or {}).get("reasoning_content") or "" for delta in deltas),
        "finish": "".join(finish or "" for finish in finishes),
        "ends": bool(finishes[-1]),
        "usage": _tokens(chunks[-1].usage),
        **_calls([calls[index] for index in sorted(calls)]),
    }


_SUMMED = frozenset({"index", "function"})


def _tokens(usage: Any) -> Json:
    return usage and [usage.prompt_tokens, usage.completion_tokens, usage.total_tokens]


def _calls(calls: list[Json]) -> Json:
    found = [[call["function"]["name"], json.loads(call["function"]["arguments"])] for call in calls]
    return {"calls": found, "distinct": len({call["id"] for call in calls}) == len(calls), "raw": calls}
