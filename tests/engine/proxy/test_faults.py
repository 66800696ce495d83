"""octo/proxy/relay.py, octo/llm/transport.py: whatever goes wrong upstream, a client of the proxy is told in the form
that it reads, nothing hangs, and nothing is left behind."""

import asyncio
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import httpx
import pytest

from proxied import UPSTREAMS, Upstream, proxy
from vendor import anthropic, bedrock, responses
from vendor import faults as wrong
from vendor.doubles import DOUBLES, Said
from vendor.faults import Fault
from vendor.server import Answer, Request

Json = Any
TEXT = "a text that is long enough to break off somewhere"
SSE = (("content-type", "text/event-stream"),)
JSON = (("content-type", "application/json"),)


@dataclass(frozen=True)
class Api:
    """An API of the proxy, over one wire."""

    name: str
    upstream: Any
    path: str
    asks: Json
    says: Callable[..., Any]
    text: Callable[[Json], str]
    """The text of an answer, or of an event of one."""
    error_event: Callable[[int], Fault]

    @property
    def passes_on(self) -> bool:
        return self.name in ("chat", "messages", "responses")

    @property
    def streams_frames(self) -> bool:
        """Whether the vendor streams something else than server-sent events."""
        return self.name == "bedrock"

    @property
    def unknown_event(self) -> Fault:
        return bedrock.unknown_frame() if self.streams_frames else wrong.unknown_event()

    async def ask(self, client: httpx.AsyncClient, case: str, *, stream: bool) -> str:
        """How a request ends whose words name the case: in an answer, an error or a stream that breaks off."""
        asks = json.loads(json.dumps(self.asks).replace("CASE", f"<{case}>"))
        response = await client.post(self.path, json={"model": "", **asks, **({"stream": True} if stream else {})})
        if response.status_code != 200:
            error = response.json()["error"]
            assert (error["message"] != "", isinstance(error["type"], str)) == (True, True)
            return f"error {response.status_code}"
        if "event-stream" not in response.headers["content-type"]:
            return "answered" if self.text(response.json()) == TEXT else "another answer"
        return self._end_of(response.text)

    def _end_of(self, events: str) -> str:
        data = [
            line[5:].strip()
            for line in events.replace("\r\n", "\n").replace("\r", "\n").split("\n")
            if line[:5] == "data:"
        ]
        found = [json.loads(one) for one in data if one.startswith('{"')]
        if any(one.get("error") or one.get("type") == "error" for one in found):
            assert "[DONE]" not in data, events
            return "broken off"
        return "answered" if "".join(map(self.text, found)) == TEXT else "cut off"


def _chat_text(told: Json) -> str:
    (choice,) = told.get("choices") or [{}]
    return (choice.get("message") or choice.get("delta") or {}).get("content") or ""


def _messages_text(told: Json) -> str:
    return "".join(block.get("text", "") for block in told.get("content", ())) + told.get("delta", {}).get("text", "")


def _responses_text(told: Json) -> str:
    if told.get("type"):
        return told.get("delta", "") if told["type"].endswith("text.delta") else ""
    return "".join(part["text"] for item in told.get("output", ()) for part in item.get("content", ()))


def _says(upstream: Upstream) -> Callable[..., Any]:
    return lambda *faults: upstream.says(Said(TEXT), *faults)


def _apis() -> list[Api]:
    hello = [{"role": "user", "content": "CASE"}]
    chats = [
        Api(one.name, one, "/v1/chat/completions", {"messages": hello}, _says(one), _chat_text, one.error_event)
        for one in UPSTREAMS
    ]
    chat, claude = UPSTREAMS[:2]
    (double,) = (one for one in DOUBLES if one.name == "Responses")
    gpt = replace(chat, type="llm-openai", model="gpt-5.4", server=double.serve, double="Responses")
    return [
        *chats,
        Api(
            "messages",
            claude,
            "/v1/messages",
            {"messages": hello, "max_tokens": 9},
            _says(claude),
            _messages_text,
            anthropic.error_event,
        ),
        Api(
            "responses",
            gpt,
            "/v1/responses",
            {"input": hello, "store": False},
            _says(gpt),
            _responses_text,
            responses.error_event,
        ),
    ]


APIS = _apis()


# ---------------------------------------------------------------- the cases

Ends = tuple[str, str]
"""How a request ends, and how one for a stream does."""

WELL = ("answered", "answered")


@dataclass(frozen=True)
class Case:
    """What the vendor answers first; all is well when it is asked again."""

    first: Callable[[Api], Any]
    ends: Ends = WELL
    passed_on: Ends | None = None
    """Where the proxy does not translate; as everywhere when it is None."""
    in_frames: Ends | None = None
    """Where the vendor's streams are no server-sent events."""

    def ends_over(self, api: Api) -> Ends:
        if api.streams_frames and self.in_frames:
            return self.in_frames
        return (self.passed_on if api.passes_on else None) or self.ends


def _spoilt(ends: Ends, *faults: Fault, **other: Ends) -> Case:
    return Case(lambda api: api.says(*faults), ends, **other)


def _refused(status: int, answer: Answer, **other: Ends) -> Case:
    return Case(lambda api: answer, (f"error {status}",) * 2, **other)


def _failing(status: int) -> Case:
    headers = {"x_should_retry": "false"} if status in (408, 409, 429) or status >= 500 else {}
    return Case(lambda api: api.upstream.error(status, "scripted", **headers), (f"error {status}",) * 2)


def _damage(answer: Answer) -> Answer:
    return bedrock.corrupted(3)(answer) if answer.streamed else answer


BAD_GATEWAY = wrong.html(502)
BROKEN = ("answered", "broken off")
"""An answer that is not streamed is one piece, and has come before it breaks."""
CASES = {
    "late": _spoilt(WELL, wrong.delay(0.2)),
    "slow": _spoilt(WELL, wrong.drip(0.02)),
    "single bytes": _spoilt(WELL, wrong.rechunk(1)),
    "odd pieces": _spoilt(WELL, wrong.rechunk(3, 50, 1, 7)),
    "packed": _spoilt(WELL, wrong.gzipped()),
    "unknown event": Case(lambda api: api.says(api.unknown_event), ("error 502", "answered")),
    "cut": _spoilt(BROKEN, wrong.cut(3)),
    "closed": _spoilt(BROKEN, wrong.cut(3, "close")),
    "reset": _spoilt(BROKEN, wrong.reset(3)),
    "damaged": Case(lambda api: api.says(_damage) if api.streams_frames else api.says(), WELL, in_frames=BROKEN),
    "too short": _spoilt(("answered again", "answered"), wrong.wrong_length(7)),
    "too long": _spoilt(
        ("answered again", "broken off"),
        wrong.wrong_length(-7),
        in_frames=("answered again", "answered"),
    ),
    "no answer": _spoilt(("answered again",) * 2, wrong.reset()),
    "silent": _spoilt(("error 504",) * 2, wrong.hang()),
    "silent in the middle": _spoilt(BROKEN, wrong.hang(3)),
    "error in the stream": Case(lambda api: api.says(api.error_event(3)), ("error 502", "broken off")),
    "page": _refused(502, wrong.html(200)),
    "gateway": _refused(502, replace(BAD_GATEWAY, headers=(*BAD_GATEWAY.headers, ("x-should-retry", "false")))),
    "redirect": _refused(502, Answer(307, (("location", "https://elsewhere.example/?key=1"),))),
    "nothing": _refused(502, Answer(200, JSON)),
    "no content": _refused(502, Answer(204)),
    "no JSON": _refused(502, Answer(200, JSON, (b"{]",))),
    "no object": _refused(502, Answer(200, JSON, (b"3",))),
    "deep": _refused(502, Answer(200, JSON, (b"[" * 100_000,))),
    "no text": _refused(502, Answer(200, JSON, (b"\xff\xfe\x00",))),
    "senseless events": _refused(
        502, Answer(200, SSE, (b"data: {]\n\n" * 9,), streamed=True), passed_on=("broken off",) * 2
    ),
    "deep events": _refused(
        502, Answer(200, SSE, (b"data: " + b"[" * 100_000 + b"\n\n",) * 9, streamed=True), passed_on=("broken off",) * 2
    ),
    "flood": _refused(502, Answer(200, SSE, (b"data: ", *[b"x" * 2**20] * 33), streamed=True)),
    "flood of JSON": _refused(502, Answer(200, JSON, (b'{"x": "', *[b"x" * 2**20] * 33), streamed=True)),
    "long error": _refused(400, Answer(400, JSON, (b'{"error": {"message": "', *[b"x" * 2**20] * 8), streamed=True)),
    "error without words": _refused(418, Answer(418, (("content-type", "text/plain"),), (b"teapot",))),
    **{f"status {status}": _failing(status) for status in (400, 401, 403, 404, 409, 413, 422, 429, 500, 503, 529)},
}


async def ends(api: Api, cases: Iterable[str], *, stream: bool, limit: int = 60) -> dict[str, str]:
    """How the requests of some cases end, which are made at the same time."""
    cases = list(cases)
    made: Counter[str] = Counter()

    def answer(request: Request) -> Any:
        case = request.body.decode().partition("<")[2].partition(">")[0]
        made[case] += 1
        return CASES[case].first(api) if made[case] == 1 else api.says()

    environ = {"OCTO_AI_TIMEOUT_SECONDS": str(limit)}
    with api.upstream.server(answer) as vendor:
        async with proxy(api.upstream.yaml(vendor.url), environ=environ) as served:
            async with httpx.AsyncClient(base_url=served.url, timeout=60) as client:
                found = await asyncio.gather(*(api.ask(client, case, stream=stream) for case in cases))
            for request in vendor.requests:
                if b"<silent>" in request.body or (stream and b"<silent" in request.body):
                    assert await asyncio.to_thread(request.abandoned.wait, 1)
            assert not served.doors.gateway.busy
            assert len(served.log) == len(cases)
        assert vendor.refusals == []
    return {case: f"{end}{' again' * (made[case] > 1)}" for case, end in zip(cases, found, strict=True)}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
async def test_whatever_goes_wrong_upstream_has_a_proper_end(api: Api, stream: bool):
    silent = {name for name in CASES if "silent" in name}
    found = await ends(api, CASES.keys() - silent, stream=stream) | await ends(api, silent, stream=stream, limit=1)

    left = [task for task in asyncio.all_tasks() if re.search(r"Relay\.answer|Client\.", repr(task))]
    assert left == []
    assert found == {name: case.ends_over(api)[stream] for name, case in CASES.items()}
