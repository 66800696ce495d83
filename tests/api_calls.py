"""A flow that calls an API with an `http-client`."""

import json
from contextlib import asynccontextmanager

import pytest

from octo.errors import BlockError
from octo.observe import LogLine
from octo.testing.harness import runtime


class Lines:
    """Keeps the lines of the process log."""

    kinds = (LogLine,)

    def __init__(self):
        self.lines = []

    def notify(self, event):
        self.lines.append((event.level, event.text, event.fields))


def flows(settings, **block):
    """A config that calls `GET /a`, or what the settings of the block say, with these settings of the connector."""
    rest = {"connector": "api", "path": "/a"} | block
    return json.dumps(
        {
            "connectors": [{"name": "api", "type": "http-client", "settings": settings}],
            "flows": [{"name": "main", "process": [{"type": "rest", "settings": rest}]}],
        }
    )


@asynccontextmanager
async def calling(api, settings=None, *, environ=None, log=None, **block):
    """`await call(body)` runs the flow of `flows` against an API."""
    text = flows({"baseURL": api.url} | (settings or {}), **block)
    async with runtime(text, environ=environ or {}, observers=[log] if log else []) as octo:

        async def call(body=None, **variables):
            return await octo.invoke("main", body, vars=variables)

        yield call


async def failure(api, settings=None, **options):
    """The text that a call fails with, without the label of the block."""
    async with calling(api, settings, **options) as call:
        with pytest.raises(BlockError) as caught:
            await call({})
    return str(caught.value).removeprefix('block "rest": ').replace(api.url, "URL")
