"""A flow whose block links an agent of the store, and a scripted model that answers it."""

import json
from contextlib import asynccontextmanager
from textwrap import dedent, indent

from fake_model import FakeModel, FakeRuntime, Listener, reply
from octo.agent import versions
from octo.agent.versions import Change
from octo.observe import AgentStarted, LogLine
from octo.store.store import Store
from octo.testing import harness

ME = Change("ann", 0)

SEARCH = {
    "name": "search",
    "description": "Search the documents.",
    "inputSchema": {
        "type": "object",
        "required": ["query"],
        "properties": {"query": {"type": "string"}, "index": {"type": "string"}, "tenant": {"type": "string"}},
    },
    "inputs": {"index": "all_docs"},
    "process": [{"type": "set-payload", "settings": {"value": '{"got": body}'}}],
}

TRIAGE = {"connector": "m", "prompt": "Sort it out.", "tools": [SEARCH]}

CONFIG = """
env:
  - name: REGION
  - name: TONE
    default: kindly
connectors:
  - name: m
    type: llm-scripted
    settings: {turns: [{text: hi}]}
flows:
  - name: f
    process:
      - type: ai-agent
        name: ag
"""


def config_text(keys, more=""):
    return CONFIG + indent(dedent(keys).strip("\n"), "        ") + "\n" + more


class Linking:
    """A runtime with a store, whose model answers from a list."""

    def __init__(self, runtime, store):
        self.runtime, self.store = runtime, store
        self.listener = runtime.heard

    async def deploy(self, name, value):
        return (await versions.deploy(self.store, name, value, ME)).version

    async def run(self, *replies, body=None, vars=None):
        self.runtime.model = FakeModel(list(replies) or [reply("ok")])
        await self.runtime.invoke("f", body, vars=vars)
        return self.runtime.model.requests

    @property
    def stamps(self):
        return [event.stamp for event in self.listener.events if isinstance(event, AgentStarted)]

    @property
    def log(self):
        return [event.text for event in self.listener.events if isinstance(event, LogLine) and event.level != "debug"]


@asynccontextmanager
async def linking(keys="agent: triage", *, more="", environ=None, agents=None, **options):
    heard = Listener(AgentStarted, LogLine)
    config = harness.config(config_text(keys, more), environ=environ)
    with Store() as store:
        runtime = FakeRuntime(config, store=store, observers=[heard], **options)
        runtime.heard = heard
        async with runtime:
            found = Linking(runtime, store)
            for name, value in (agents if agents is not None else {"triage": TRIAGE}).items():
                await found.deploy(name, value)
            yield found


def results(requests):
    """What the model was told of its tool calls."""
    return [
        (json.loads(part.text) if part.text.startswith(("{", "[")) else part.text, part.is_error)
        for turn in requests[-1].messages
        if turn.role == "tool"
        for part in turn.parts
    ]
