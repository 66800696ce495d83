"""Where models on Azure answer: from the many addresses that its portals show to the root of the API."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit

_HOSTS: Final = (
    ".azure.com",
    ".azure.us",
    ".azure.cn",
    ".azure-api.net",
    ".azure-api.us",
    ".azure-api.cn",
)
_DEPLOYMENTS: Final = "/openai/deployments"
_PROJECT: Final = r"/api/projects/[^/]+"
_OF_ANOTHER_API: Final = re.compile(
    rf"/openai/deployments(/.*)?$|({_PROJECT})?(/openai/v1|/anthropic/v1|/openai|/anthropic)$|/models$|{_PROJECT}$"
)
_OPERATION: Final = re.compile(r"/(responses|chat/completions|messages)$")
"""What calls append, and portals show with the rest of the address."""
_DATED: Final = re.compile(r"api-version=\d{4}-\d\d-\d\d[^&]*(&|$)")
"""The version of an older API, which the ones without a version in their paths refuse."""


def is_azure(base_url: str) -> bool:
    """Whether an address is one of Azure, by its host or by the path of a deployment."""
    parts = urlsplit(base_url)
    host = (parts.hostname or "").lower().rstrip(".")
    return host.endswith(_HOSTS) or _DEPLOYMENTS in parts.path


def openai_root(base_url: str) -> str:
    """The root of the OpenAI API of an Azure resource. A path that is not one of Azure's own stays as it is."""
    address, query = _split(base_url)
    if _DEPLOYMENTS in address:
        root = f"{address.partition(_DEPLOYMENTS)[0].rstrip('/')}/openai/v1"
    elif address.endswith("/openai"):
        root = f"{address}/v1"
    elif not urlsplit(address).path or re.search(f"{_PROJECT}$", address):
        root = f"{re.sub(f'{_PROJECT}$', '', address)}/openai/v1"
    else:
        return address + query
    return root + _undated(query)


def openai_root_if_azure(base_url: str) -> str:
    """An address that need not be one of Azure; another one stays as it is."""
    return openai_root(base_url) if is_azure(base_url) else base_url


def claude_root(base_url: str) -> str:
    """The root of the Anthropic API of an Azure resource, whichever of its APIs the address is of."""
    address, query = _split(base_url)
    return f"{_OF_ANOTHER_API.sub('', address).rstrip('/')}/anthropic{_undated(query)}"


def _split(base_url: str) -> tuple[str, str]:
    """The address without an operation or slashes at its end, and the query with its mark."""
    address, mark, query = base_url.partition("?")
    root = _OPERATION.sub("", address.rstrip("/"))
    if root.endswith("/openai/v1") and root != address.rstrip("/"):
        return root, _undated(mark + query)
    return root.rstrip("/"), mark + query


def _undated(query: str) -> str:
    return _DATED.sub("", query).rstrip("&?")
