"""Who may ask: the name that the proxy is called by, the page that a browser asks for, and the token."""

from __future__ import annotations

import binascii
import hmac
from base64 import b64decode
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Final

LOCAL: Final = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True)
class Guard:
    """`hosts` are the names by which the proxy may be called; `any_address` allows every address that is no name.

    A page in a browser can lead a name of its own to this machine, but not an address.
    """

    hosts: frozenset[str] = LOCAL
    any_address: bool = False
    token: str = field(default="", repr=False)

    def knows_host(self, host: str) -> bool:
        name = host_name(host)
        return name in self.hosts or (self.any_address and is_address(name))

    def takes(self, headers: Mapping[str, str], origins: Container[str] = ()) -> bool:
        """Whether no page of another origin has a browser ask, but one of the `origins`.

        A browser says so by itself; programs say nothing of an origin.
        """
        origin = headers.get("origin")
        if origin is None:
            return headers.get("sec-fetch-site") not in {"cross-site", "same-site"}
        own = origin.partition("://")[2].lower() == headers.get("host", "").lower()
        return own or origin in origins or "*" in origins

    def admits(self, headers: Mapping[str, str]) -> bool:
        """Whether a request carries the token, in any of the ways that clients send keys, or as a browser does."""
        if not self.token:
            return True
        return any(hmac.compare_digest(key.encode(), self.token.encode()) for key in _keys(headers))

    def wants(self, headers: Mapping[str, str]) -> str:
        """Why a request without the token is refused."""
        if any(_keys(headers)):
            return "wrong token: the key of the client is not the one that `--token` names"
        return "a token is needed: send that of `--token` as the key, in a browser as the password"


def guard_of(listen_host: str, allowed: Iterable[str], token: str) -> Guard:
    """The guard of a proxy that listens at a host, which is empty for all addresses of the machine."""
    everywhere = not listen_host or listen_host in {"0.0.0.0", "::"}
    own = LOCAL if everywhere or is_loopback(listen_host) else {listen_host.lower()}
    return Guard(frozenset({*own, *(host_name(name) for name in allowed)}), everywhere, token)


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    return host.lower() == "localhost" or (is_address(host) and ip_address(host).is_loopback)


def is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def host_name(host: str) -> str:
    """The name in a `Host` header, which may have a port."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    name, colon, port = host.rpartition(":")
    return (name if colon and port.isdecimal() and ":" not in name else host).lower().rstrip(".")


def _keys(headers: Mapping[str, str]) -> tuple[str, str, str]:
    """What a request carries where keys are sent; empty where nothing is."""
    scheme, _, value = headers.get("authorization", "").partition(" ")
    given = {"bearer": value.strip(), "basic": _password(value)}.get(scheme.lower(), "")
    return given, headers.get("x-api-key", ""), headers.get("api-key", "")


def _password(value: str) -> str:
    try:
        return b64decode(value.strip(), validate=True).decode().partition(":")[2]
    except (binascii.Error, ValueError):
        return ""
