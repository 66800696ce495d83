"""How AWS checks the signature of a request: the algorithm as its documentation tells it, and nothing else.

"Create a signed AWS API request", in the reference of IAM.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

from vendor.server import Request

_AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=(?P<id>[^/]+)/(?P<date>\d{8})/(?P<region>[^/]+)/(?P<service>[^/]+)/aws4_request, "
    r"SignedHeaders=(?P<headers>[a-z0-9;.-]+), Signature=(?P<signature>[0-9a-f]{64})"
)
LONGEST_AGE = timedelta(minutes=5)


@dataclass(frozen=True)
class KeyPair:
    id: str = "AKIDLOOPBACK"
    secret: str = "loopback/secret+key"
    token: str = ""


def fault(request: Request, keys: KeyPair, region: str, service: str) -> tuple[str, str] | None:
    """The kind and the text of the error of a request that is not signed as it must be."""
    parts = _AUTHORIZATION.fullmatch(request.headers.get("authorization", ""))
    if parts is None:
        return "IncompleteSignatureException", "Authorization header requires 'Credential' parameter."
    if parts["id"] != keys.id or request.headers.get("x-amz-security-token", "") != keys.token:
        return "UnrecognizedClientException", "The security token included in the request is invalid."
    if (parts["region"], parts["service"]) != (region, service):
        return "InvalidSignatureException", f"Credential should be scoped to a valid region and service, not {parts[2]}"
    stamp = request.headers.get("x-amz-date", "")
    moment = _moment(stamp)
    if moment is None or stamp[:8] != parts["date"]:
        return "IncompleteSignatureException", "Date in Credential scope does not match YYYYMMDD from ISO-8601 version"
    if abs(datetime.now(UTC) - moment) > LONGEST_AGE:
        return "InvalidSignatureException", f"Signature expired: {stamp} is now earlier than it may be"
    signed = parts["headers"].split(";")
    must = {"host", *(name for name in request.headers if name.startswith("x-amz-"))}
    if signed != sorted(signed) or not must <= set(signed):
        return "InvalidSignatureException", "'Host' and all 'X-Amz-*' headers must be signed, in order"
    scope = f"{parts['date']}/{region}/{service}/aws4_request"
    if not hmac.compare_digest(signature(request, signed, stamp, scope, keys.secret), parts["signature"]):
        return (
            "InvalidSignatureException",
            "The request signature we calculated does not match the signature you provided. The Canonical String for "
            f"this request should have been '{canonical(request, signed)}'",
        )
    return None


def signature(request: Request, signed: list[str], stamp: str, scope: str, secret: str) -> str:
    digest = hashlib.sha256(canonical(request, signed).encode()).hexdigest()
    key = f"AWS4{secret}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.digest(key, f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{digest}".encode(), "sha256").hex()


def canonical(request: Request, signed: list[str]) -> str:
    """The canonical request; paths are encoded once more than they are sent."""
    query = "&".join(sorted(request.query.split("&"))) if request.query else ""
    headers = "".join(f"{name}:{' '.join(_text(request.headers.get(name, '')).split())}\n" for name in signed)
    body = hashlib.sha256(request.body).hexdigest()
    return "\n".join(
        (request.method, quote(request.path, safe="/-_.~"), query, headers, ";".join(signed), body),
    )


def _text(value: str) -> str:
    """A header as it was sent: the server reads bytes as Latin-1."""
    return value.encode("latin-1").decode()


def _moment(stamp: str) -> datetime | None:
    try:
        return datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    except ValueError:
        return None
