"""Call an HTTP API."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Self
from urllib.parse import urlencode

from pydantic import AfterValidator, Field, model_validator

from octo.block import Block, Finding
from octo.errors import near
from octo.fields import Bool, ConnectorName, Expression, Text, one_of
from octo.http.call import METHODS, Answer, Call, HttpError, header_fault, is_token
from octo.http.url import Reference, reference
from octo.message import Message
from octo.refusals import Refusals, refusal
from octo.run import Run, RunError
from octo.values import Json, clean_text, dumps, kind_of, parse, render

if TYPE_CHECKING:
    from octo.config.model import Config

DYNAMIC_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
"""What `rest-dynamic` sends."""


class HttpClientName(ConnectorName):
    """The name of a configured `http-client` connector."""

    __slots__ = ()
    type = "http-client"


class _Asked(NamedTuple):
    """What a block asks for, before its values are rendered."""

    method: str
    path: Reference
    query: Mapping[str, Json]
    headers: Mapping[str, Json]


class _Request(Block):
    """What `rest` and `rest-dynamic` have in common."""

    connector: HttpClientName
    """The `http-client` connector that knows the API."""

    body: Expression | None = None
    """Body of the request: text as it is, any other value as JSON."""

    body_type: Annotated[Literal["raw", "multipart"], one_of("raw", "multipart")] = "raw"
    """`multipart` sends `body`, which must be a parts map, as `multipart/form-data`."""

    fail_on_error: Bool = True
    """Fail when the status of the answer is 400 or more; else such an answer is taken like any other."""

    status_var: Text = "statusCode"
    """Variable that takes the status of the answer."""

    @model_validator(mode="after")
    def _multipart_has_a_body(self) -> Self:
        refusals = Refusals()
        if self.body_type == "multipart" and self.body is None:
            refusals.add("`bodyType: multipart` requires `body`", "bodyType", hint="add `body:` with a parts map")
        refusals.raise_if_any()
        return self

    async def execute(self, message: Message, run: Run) -> Message:
        from octo.http.session import HttpSession

        session = run.connector(self.connector, HttpSession)
        try:
            answer = await session.send(self._call(message, run))
        except HttpError as error:
            raise RunError(f"{self.type} {error.message}", hint=error.hint) from error
        message.vars[self.status_var.strip() or "statusCode"] = float(answer.status)
        if answer.status >= 400 and self.fail_on_error:
            raise RunError(f"{self.type} request to {answer.url} returned {answer.summary}")
        _take(answer, message)
        return message

    def _asked(self, message: Message, run: Run) -> _Asked:
        raise TypeError(f"block type `{self.type}` asks for nothing")

    def _call(self, message: Message, run: Run) -> Call:
        asked = self._asked(message, run)
        headers = {name: clean_text(render(value)) for name, value in asked.headers.items()}
        query = sorted((clean_text(name), clean_text(render(value))) for name, value in asked.query.items())
        body = None
        if self.body is not None:
            body, content_type = self._body(run.evaluate(self.body, message, f"{self.type} body"), run)
            if content_type:
                headers = {name: text for name, text in headers.items() if name.lower() != "content-type"}
                headers["content-type"] = content_type
        return Call(asked.method, asked.path, urlencode(query), tuple(headers.items()), body)

    def _body(self, value: Json, run: Run) -> tuple[bytes, str]:
        """The bytes to send, and the content type that goes with them whatever the headers say."""
        if self.body_type == "raw":
            return (clean_text(value) if isinstance(value, str) else dumps(value)).encode(), ""
        from octo import multipart

        boundary = f"octo-{run.runtime.new_id()}"
        try:
            return multipart.encode(value, boundary), f"multipart/form-data; boundary={boundary}"
        except ValueError as error:
            raise RunError(f"{self.type} body: {error}") from error


def _take(answer: Answer, message: Message) -> None:
    """Make an answer the body of the message: JSON is known by its content."""
    text = answer.text
    if not text.strip("\ufeff \t\r\n"):
        message.body = None
        return
    try:
        message.body = parse(text.removeprefix("\ufeff"))
    except ValueError:
        message.set_raw(answer.content_type, text)


# ---------------------------------------------------------------- rest


def _method(value: str) -> str:
    method = value.strip().upper() or "GET"
    if not is_token(method):
        raise refusal(f"expected an HTTP method, found `{value}`")
    return method


def _path(value: str) -> str:
    try:
        reference(value)
    except ValueError as error:
        raise refusal(f"expected a path, found `{value}`: {error}") from None
    return value


class Rest(_Request, type="rest", group="integration"):
    """Call an HTTP API on a fixed path; its answer becomes the message body.

    A JSON answer becomes its value, an empty one null, and any other raw content.
    """

    method: Annotated[Text, AfterValidator(_method)] = "GET"
    """HTTP method."""

    path: Annotated[Text, AfterValidator(_path)] = ""
    """Path below the `baseURL` of the connector; it may have a query."""

    query: dict[str, Expression] = Field(default_factory=dict)
    """Query parameters, each an expression."""

    headers: dict[str, Expression] = Field(default_factory=dict)
    """Headers, each an expression."""

    @model_validator(mode="after")
    def _header_names(self) -> Self:
        refusals = Refusals()
        for name in self.headers:
            if fault := header_fault(name, ""):
                refusals.add(fault, "headers", name, at="key")
        refusals.raise_if_any()
        return self

    def check(self, config: Config) -> Iterator[Finding]:
        if self.method not in METHODS and (match := near(self.method, METHODS)):
            yield Finding(
                f"`{self.method}` is no usual HTTP method", ("method",), f"did you mean `{match}`?", warning=True
            )
        if reference(self.path).host:
            hint = "requests go to the `baseURL` of the connector; keep the path only"
            yield Finding("scheme and host of `path` have no effect", ("path",), hint, warning=True)

    def _asked(self, message: Message, run: Run) -> _Asked:
        def values(expressions: Mapping[str, Expression], what: str) -> dict[str, Json]:
            return {
                name: run.evaluate(expression, message, f'{self.type} {what} "{name}"')
                for name, expression in expressions.items()
            }

        return _Asked(self.method, reference(self.path), values(self.query, "query"), values(self.headers, "header"))


# ---------------------------------------------------------------- rest-dynamic


def _allowed(values: tuple[str, ...]) -> tuple[str, ...]:
    methods = tuple(value.strip().upper() for value in values)
    for method, value in zip(methods, values, strict=True):
        if method not in METHODS:
            match = near(method, METHODS)
            raise refusal(f"expected an HTTP method, found `{value}`", f"did you mean `{match}`?" if match else None)
    return methods


class RestDynamic(_Request, type="rest-dynamic", group="integration"):
    """Call an HTTP API with method, path, query and headers that the message decides.

    Scheme, host and credentials come from the connector all the same. The answer is taken as by `rest`.
    """

    method: Expression[str]
    """HTTP method."""

    path: Expression[str]
    """Path below the `baseURL` of the connector; it may have a query, but no host and no `..`."""

    query: Expression | None = None
    """Query parameters: an object or null."""

    headers: Expression | None = None
    """Headers: an object or null."""

    allow_methods: Annotated[tuple[Text, ...], AfterValidator(_allowed)] = ()
    """The methods that may be sent; all when empty."""

    path_prefix: Annotated[Text, AfterValidator(_path)] = ""
    """The path must be this one or lie below it, segment by segment."""

    def _asked(self, message: Message, run: Run) -> _Asked:
        return _Asked(
            self._allowed_method(run.evaluate(self.method, message, f"{self.type} method")),
            self._allowed_path(run.evaluate(self.path, message, f"{self.type} path")),
            self._object(self.query, "query", message, run),
            self._object(self.headers, "headers", message, run),
        )

    def _allowed_method(self, value: str) -> str:
        method = value.strip().upper()
        allowed = [name for name in DYNAMIC_METHODS if not self.allow_methods or name in self.allow_methods]
        if method not in allowed:
            listed = ", ".join(allowed) or "none"
            shown = " ".join(value.split())
            raise RunError(f"{self.type}: method `{shown}` is not allowed, only {listed}")
        return method

    def _allowed_path(self, value: str) -> Reference:
        shown = " ".join(value.partition("?")[0].split())
        try:
            path = reference(value)
        except ValueError as error:
            raise RunError(f"{self.type}: `{shown}` is no path: {error}") from None
        if path.scheme or path.host:
            raise RunError(f"{self.type}: path `{shown}` names a scheme or a host, which come from the connector")
        if not path.path:
            raise RunError(f"{self.type}: the path is empty", hint="the path of the connector itself is `/`")
        if path.climbs:
            raise RunError(f"{self.type}: path `{shown}` holds a `..` segment")
        if not path.inside(reference(self.path_prefix)):
            raise RunError(f"{self.type}: path `{shown}` is not inside `{self.path_prefix}`")
        return path

    def _object(self, expression: Expression | None, key: str, message: Message, run: Run) -> dict[str, Json]:
        value: Any = None if expression is None else run.evaluate(expression, message, f"{self.type} {key}")
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise RunError(f"{self.type} {key} must evaluate to an object or null, got {kind_of(value)}")
        return value
