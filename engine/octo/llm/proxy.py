"""What the proxy sends upstream: the request of a client for the API of a connector. Nothing is sent here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from octo.errors import BadRequest
from octo.llm import fim
from octo.llm.credentials import Credentials, join_url
from octo.llm.providers import provider_of
from octo.llm.raw import RawObject
from octo.llm.wire import HttpCall
from octo.llm.wires import anthropic

CHAT: Final = "chat/completions"
FIM: Final = "fim/completions"
MESSAGES: Final = "messages"
RESPONSES: Final = "responses"

_OF: Final = {MESSAGES: "Anthropic", RESPONSES: "OpenAI and Azure"}
"""Whose connectors have an API that is only passed on."""


@dataclass(frozen=True, slots=True)
class ProxyBuildArgs:
    """What a client asks for, and as whom it is asked upstream."""

    method: str
    path: str
    """Below `/v1/`."""
    body: RawObject = field(repr=False)
    """With the model that is to answer."""
    credentials: Credentials
    """Those of the connector."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The client's own, in lower case. Only those of Anthropic's API travel, and only there."""


ProxyRequest: TypeAlias = HttpCall
"""Method, address, headers in order, and the bytes of the body."""


def forwards(path: str, credentials: Credentials, model: str) -> bool:
    """Whether the API of a model has a path itself, so that requests are passed on as they are."""
    provider = provider_of(credentials.provider, model)
    return path in provider.forwards or (path == FIM and provider.fim is not None)


def build_proxy_request(args: ProxyBuildArgs) -> ProxyRequest:
    """The request that goes upstream. Raises BadRequest when the API of the model has no such path.

    The body stays as it is, byte for byte, but for the end user whom the connector names.
    """
    model = args.body.text("model")
    provider = provider_of(args.credentials.provider, model)
    credentials = provider.reached_by(args.credentials)
    stream = args.body.fields.get("stream") is True
    if args.path == FIM and provider.fim is not None:
        fim.check(args.body.fields)
        return _plain(args, provider.fim(credentials.base_url), credentials, stream)
    if args.path not in provider.forwards:
        raise BadRequest(refusal(args.path, provider.connector))
    if args.path == MESSAGES:
        return _messages(args, credentials, model, stream=stream)
    return _plain(args, join_url(credentials.base_url, args.path), credentials, stream)


def _plain(args: ProxyBuildArgs, url: str, credentials: Credentials, stream: bool) -> ProxyRequest:
    body = args.body.with_fields({"user": credentials.user} if credentials.user else {})
    return HttpCall(url, credentials.headers({}), body.raw, stream, method=args.method)


def _messages(args: ProxyBuildArgs, credentials: Credentials, model: str, *, stream: bool) -> ProxyRequest:
    given = {name: value for name, value in args.headers.items() if name.startswith("anthropic-")}
    headers = anthropic.headers(credentials, given)
    if credentials.platform != "vertex":
        return HttpCall(anthropic.url(credentials.base_url), headers, args.body.raw, stream, method=args.method)
    if not model:
        raise BadRequest("`model` is missing", hint="set `model` on the connector, or name it in the request")
    fields = {name: value for name, value in args.body.fields.items() if name not in {"model", "anthropic_version"}}
    body = json.dumps({"anthropic_version": anthropic.VERTEX_VERSION, **fields}, ensure_ascii=False)
    url = anthropic.vertex_url(credentials.base_url, model, stream=stream)
    return HttpCall(url, headers, body.encode(errors="replace"), stream, method=args.method)


def refusal(path: str, connector: str) -> str:
    """Why a path is not there for a type of connector."""
    return f"`/v1/{path}` is there for connectors of {_OF.get(path, 'other providers')}, not for `{connector}`"


# ---------------------------------------------------------------- lists of models


def model_lists(credentials: Credentials) -> tuple[ProxyRequest, ...]:
    """The requests for the models of a connector; none where there is no such list."""
    if credentials.platform == "vertex":
        return ()
    provider = provider_of(credentials.provider, "")
    reached = provider.reached_by(credentials)
    headers = anthropic.headers(reached) if provider.wire is anthropic else reached.headers({})
    sent = tuple((name, value) for name, value in headers if name.lower() != "content-type")
    return tuple(HttpCall(url, sent, b"", method="GET") for url in provider.lists(reached.base_url))


_LISTS: Final = ("data", "models", "modelSummaries", "inferenceProfileSummaries")
_IDS: Final = ("id", "name", "modelId", "inferenceProfileId")
_NAMES: Final = ("display_name", "displayName", "modelName", "inferenceProfileName")


def listed(answer: object) -> list[dict[str, str]]:
    """The models of a list, whoever wrote it: `id`, and `display_name` where it has one. Raises ValueError."""
    found = answer
    if isinstance(answer, dict):
        found = next((answer[name] for name in _LISTS if isinstance(answer.get(name), list)), None)
    if not isinstance(found, list):
        raise ValueError("no list of models")
    return [model for entry in found if isinstance(entry, dict) and (model := _model(entry))]


def _model(entry: dict[str, object]) -> dict[str, str]:
    id = next((value for name in _IDS if isinstance(value := entry.get(name), str)), "").removeprefix("models/")
    shown = next((value for name in _NAMES if isinstance(value := entry.get(name), str)), "")
    if not id:
        return {}
    return {"id": id, "display_name": shown} if shown else {"id": id}
