"""Fixtures for all tests."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from octo.message import Message
from octo.testing.harness import runtime

pytest_plugins = ["servers"]

RunFlow = Callable[..., Awaitable[Message]]


@pytest.fixture
def run_flow() -> RunFlow:
    """`await run_flow(yaml, body)` calls the flow `main` of a config and gives the message that came out."""

    async def call(text: str, body: Any = None, *, flow: str = "main", vars: Any = None, **options: Any) -> Message:
        async with runtime(text, **options) as octo:
            return await octo.invoke(flow, body, vars=vars)

    return call
