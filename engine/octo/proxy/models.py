"""The models that clients of the proxy can choose, in the form of OpenAI's list."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from typing import Final

from octo.errors import OctoError
from octo.llm import proxy
from octo.proxy.gateway import Reached
from octo.values import Json

_SECONDS: Final = 3.0
"""What the list of one connector may take."""


async def models(connectors: Iterable[Reached]) -> tuple[dict[str, Json], list[str]]:
    """The list, with each model under its own name and under that of its connector; and the connectors without one."""
    reached = list(connectors)
    lists = await asyncio.gather(*map(_of, reached))
    data: list[Json] = []
    for one, found in zip(reached, lists, strict=True):
        for model in _own(one) if found is None else found:
            entry = {**model, "object": "model", "created": model.get("created", 0), "owned_by": one.name}
            data += [entry, {**entry, "id": f"{one.name}/{model['id']}"}]
    failed = [one.name for one, found in zip(reached, lists, strict=True) if found is None]
    return {"object": "list", "data": data}, failed


def _own(reached: Reached) -> list[dict[str, Json]]:
    """The model that a connector has by itself."""
    return [{"id": reached.default_model}] if reached.default_model else []


async def _of(reached: Reached) -> list[dict[str, Json]] | None:
    """The models of a connector; None when it does not tell them."""
    http = reached.http
    if http is None:
        return _own(reached)
    found: list[dict[str, Json]] = []
    try:
        async with asyncio.timeout(_SECONDS):
            calls = proxy.model_lists(await http.credentials())
            for call in calls:
                async with http.forward(call, retries=0) as response:
                    body = await response.aread()
                    if not response.is_success:
                        return None
                found += proxy.listed(json.loads(body))
    except (OctoError, ValueError, RecursionError, TimeoutError):
        return None
    return found if calls else _own(reached)
