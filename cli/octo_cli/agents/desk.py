"""What all verbs of `octo agents` begin with: a store, a person, perhaps a config; and the options that say which."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

import octo
from octo.errors import ConfigError, UsageError
from octo_cli import diagnostics, inputs, options, output, signals
from octo_cli.session import Session

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from sqlite3 import Connection
    from typing import Any

    from octo.agent.declared import Declared
    from octo.agent.versions import Change, Deployed
    from octo.config.model import Config
    from octo.errors import Problem
    from octo.store.store import Store
    from octo.values import Json

T = TypeVar("T")

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the agent")]
OfConfig = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="PATH",
        parser=inputs.path,
        help="Config whose store and agents these are; default the store of the working directory",
    ),
]
User = Annotated[
    str | None, typer.Option("--user", metavar="NAME", help="Whose draft; default `OCTO_USER`, else the login name")
]
Yes = Annotated[bool, typer.Option("--yes/--no-yes", show_default=False, help="Do not ask; default off")]
Note = Annotated[
    str | None, typer.Option("--note", metavar="TEXT", help="Why; `octo agents history` shows it; default none")
]
Strict = Annotated[
    bool, typer.Option("--strict/--no-strict", show_default=False, help="Take warnings for problems; default off")
]


@dataclass
class Desk:
    """One command line that works on agents."""

    session: Session
    store: Store
    config: Config | None
    user: str
    json: bool
    now: int

    @property
    def as_document(self) -> bool:
        """Whether a program reads the answer."""
        return self.json or not self.session.for_people(self.session.out)

    @property
    def declared(self) -> Sequence[Declared]:
        """The agents that the config declares, if there is one."""
        if self.config is None or not self.config.declared_agents:
            return ()
        from octo.agent import declared

        return declared.read(self.config)

    def change(self, note: str | None = None, *, strict: bool = False) -> Change:
        """Who changes something now, and why. A note is kept for good: one that looks like a key is doubtful."""
        from octo.agent.versions import Change
        from octo.config import literal
        from octo.errors import Problem

        if note and literal.is_secret(note):
            text = "`--note` looks like a secret, and notes are kept with their versions"
            self.warn([Problem(text, hint="say why, without the key", severity="warning")], strict=strict)
        return Change(self.user, self.now, note or "")

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do work on the store, and close it."""
        with self.store:
            return signals.run(self.session, work)

    def push(self, found: Sequence[Declared], *, adopt: Sequence[str] = ()) -> list[Deployed]:
        """Bring declared agents into the store; what is in force of each then."""
        from octo.agent import declared
        from octo.agent.versions import Deployed
        from octo.store import agents

        news = {one.name: one for one in self.run(declared.push(self.store, found, self.change(), adopt=adopt))}
        rows = self.read(lambda db: {row.name: row.version for row in agents.agents(db)})
        return [Deployed(one.name, rows[one.name], is_new=one.name in news and news[one.name].is_new) for one in found]

    def read(self, work: Callable[[Connection], T]) -> T:
        """Do work that only reads; where there is no store, on an empty one."""
        from octo.store.store import Store

        with self.store if self.store.exists() else Store() as store:
            return signals.run(self.session, _first(store, work))

    def put(self, facts: dict[str, Json]) -> None:
        """Print the answer as one JSON document."""
        output.document(self.session, facts, json=self.json)

    def text(self, words: str) -> None:
        """Print the answer for people."""
        output.text(self.session, words)

    def warn(self, problems: Iterable[Problem], *, strict: bool = False) -> None:
        """Tell what is doubtful; raises ConfigError when that is to stop the command."""
        from dataclasses import replace

        found = list(problems)
        if strict and found:
            raise ConfigError([replace(problem, severity="error") for problem in found])
        for problem in found:
            diagnostics.warn(self.session, problem)

    def needed_config(self, option: str = "--config PATH") -> Config:
        """The config; raises UsageError when none is given."""
        if self.config is None:
            raise UsageError("a config is needed here", hint=f"name it with `{option}`")
        return self.config


async def _first(store: Store, work: Callable[[Connection], T]) -> T:
    """What work on a store gives that is there to be read."""

    def listed(db: Connection) -> list[T]:
        return [work(db)]

    nothing: list[T] = []
    return (await store.read(listed, nothing))[0]


def begin(
    context: typer.Context,
    store: str | None,
    config: Path | None,
    user: str | None = None,
    *,
    json: bool = False,
    debug: bool = False,
    load: bool = True,
) -> Desk:
    """What a verb works with. Raises UsageError for a store that keeps nothing."""
    from octo.agent import declared

    session: Session = context.obj
    session.debug = debug
    found = options.store(session, store, options.beside(config))
    if found.path is None:
        raise UsageError("a store in memory keeps nothing", hint="name a directory with `--store DIR`")
    loaded = None
    if config is not None and load:
        loaded = octo.load(config, environ=session.environ)
        session.mask = loaded.environment.mask
    return Desk(session, found, loaded, user or declared.user(session.environ), json, time.time_ns())
