"""Where a request goes: the base URL of an API, and a path and query below it."""

from __future__ import annotations

import re
from typing import Final, NamedTuple
from urllib.parse import quote, unquote, urlsplit

_REFERENCE: Final = re.compile(
    r"(?:(?:[A-Za-z][A-Za-z0-9+.-]*:)?//(?P<host>[^/?#]*))?(?P<path>[^?#]*)(?:\?(?P<query>[^#]*))?(?:#.*)?", re.DOTALL
)
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2}).{0,2}", re.DOTALL)
_SAFE: Final = "%/:@!$&'()*+,;=~?"
"""What may stand in a path or a query beside letters, digits and `-._`; a path has lost its `?` before."""


class Reference(NamedTuple):
    """A path below a base URL, with its query; both percent-encoded."""

    path: str
    query: str
    scheme: bool
    """Whether it began like an absolute URL."""
    host: bool
    """Whether it also named a host, which does not count."""

    @property
    def segments(self) -> tuple[str, ...]:
        """The decoded segments of the path; a slash in front or at the end makes none."""
        return tuple(unquote(segment) for segment in self.path.strip("/").split("/"))

    @property
    def climbs(self) -> bool:
        """Whether a server could read a `..` in the path, however it is written."""
        return ".." in re.split(r"[/\\]", unquote(self.path))

    def inside(self, prefix: Reference) -> bool:
        """Whether the path lies in the subtree of another one, compared segment by segment."""
        wanted = prefix.segments if prefix.path.strip("/") else ()
        return self.segments[: len(wanted)] == wanted


def reference(text: str) -> Reference:
    """Read the path of a setting. Raises ValueError for what no URL can hold."""
    if _CONTROL.search(text):
        raise ValueError("it holds a line break or another control character")
    if bad := _BAD_ESCAPE.search(text):
        raise ValueError(f"it holds the bad escape `{bad[0]}`")
    match = _REFERENCE.fullmatch(text)
    assert match is not None  # every text has this form
    return Reference(
        quote(match["path"], safe=_SAFE),
        quote(match["query"] or "", safe=_SAFE),
        scheme=_SCHEME.match(text) is not None,
        host=match["host"] is not None,
    )


class Target(NamedTuple):
    """The absolute URL of one request, without user and password."""

    origin: str
    path: str
    query: str

    @property
    def line(self) -> str:
        """The path and query, as the first line of the request has them."""
        return f"{self.path}?{self.query}" if self.query else self.path

    @property
    def url(self) -> str:
        return self.origin + self.line

    @property
    def shown(self) -> str:
        """The URL as error texts may show it: queries hold keys."""
        return self.origin + self.path


class BaseUrl:
    """What all requests of a connector have in common. The URL must be absolute."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        user, _, host = parts.netloc.rpartition("@")
        self.origin = f"{parts.scheme.lower()}://{host}"
        self.user = unquote(user.partition(":")[0])
        self.password = unquote(user.partition(":")[2])
        self._path = quote(parts.path, safe=_SAFE)
        self._query = quote(parts.query, safe=_SAFE)

    def target(self, below: Reference, query: str = "") -> Target:
        """Join a path, its query and a further encoded query. No `.` or `..` is resolved."""
        path = self._path
        if below.path:
            path = f"{path.rstrip('/')}/{below.path.lstrip('/')}"
        query = "&".join(part for part in (self._query, below.query, query) if part)
        return Target(self.origin, path if path.startswith("/") else f"/{path}", query)
