"""Runs of one agent, each in a runtime of its own, all on one store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from acting import Action, acting
from fake_model import FakeModel, FakeRuntime, Listener, Ran, config_text
from octo.llm.chat import ChatResponse
from octo.observe import LogLine, Observer
from octo.services.base import Services
from octo.store.store import Store
from octo.testing import harness

TOOL = """
tools:
  - name: t
    description: A tool.
    process:
      - type: set-payload
        name: work
        settings: {value: '{"done": body}'}
"""
SAYS = "input: body.say\nanswer: text\nmemoryThreadId: body.chat\n"


@dataclass
class Remembering:
    """An agent with some keys, which is called again and again."""

    directory: Path
    keys: str = SAYS + TOOL
    environ: dict[str, str] = field(default_factory=dict)
    services: Services | None = None
    actions: dict[str, Action] = field(default_factory=dict)
    """What blocks do instead of what they say, by their names."""
    store: type[Store] = Store
    log: list[str] = field(default_factory=list)
    """The lines of the last run, but for those that only debugging shows."""

    async def run(
        self,
        *replies: ChatResponse | Exception,
        body: Any = None,
        observers: Sequence[Observer] = (),
        memory_id: str = "",
        **vars: Any,
    ) -> Ran:
        """One run in a runtime of its own, as a process would make it."""
        log = Listener(LogLine)
        model = FakeModel(replies)
        declared = "".join(f"\n  - {{name: {name}, secret: true}}" for name in self.environ)
        config = harness.config(
            config_text(self.keys) + (f"\nenv:{declared}\n" if declared else ""), environ=self.environ
        )
        with self.store(self.directory) as store:
            runtime = FakeRuntime(
                acting(config, self.actions), observers=[log, *observers], store=store, services=self.services
            )
            runtime.model = model
            try:
                async with runtime:
                    message = await runtime.invoke("f", body, vars=vars, memory_id=memory_id)
            finally:
                self.log = [event.text for event in log.events if event.level != "debug"]  # type: ignore[attr-defined]  # only log lines
        assert model.replies == []
        return Ran(message, model.requests, self.log)

    async def say(self, text: str, *replies: ChatResponse | Exception, chat: str = "c", **more: Any) -> Ran:
        """One run on a thread."""
        return await self.run(*replies, body={"say": text, "chat": chat}, **more)

    async def stored(self, work: Any) -> Any:
        """What a function of the store's connection gives."""
        with Store(self.directory) as store:
            return await store.write(work)
