"""What a case names of its config: the flow, blocks whose run log it looks at, and tools."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from octo.config import address
from octo.config.model import Config
from octo.errors import ConfigError, Problem, UsageError, did_you_mean
from octo.testing.trial import Trial

AGENT: Final = "ai-agent"
"""The type of the blocks that have tools."""
ASKING: Final = frozenset({AGENT, "ai-router", "ai-mapping", "ai-retry"})
"""The types of the blocks that talk with a model."""


def addresses_of(trial: Trial, config: Config) -> dict[str, str]:
    """The addresses of a case whose run log is looked at, each as the log writes it.

    Raises ConfigError for a flow that does not exist, for addresses that name no block or none with an agent where one
    is needed, and for a tool that is not to be called and does not exist.
    """
    found: dict[str, str] = {}
    problems: list[Problem] = []
    case, flow = trial.case, trial.suite.flow
    if config.flow(flow) is None:
        flows = [known.name for known in config.flows if known.name]
        text = f'there is no flow "{flow}" (flows: {", ".join(flows) or "none"})'
        hint = did_you_mean(flow, flows) or f"the config is `{trial.pair.config}`"
        problems.append(trial.sheet.problem(("flow",), text, hint))
    named: list[tuple[tuple[str | int, ...], str]] = [(("sent", name), name) for name in case.sent]
    named += [(("tools", index, "block"), call.block) for index, call in enumerate(case.tools) if call.block]
    named += [(("log", index, "path"), logged.path) for index, logged in enumerate(case.log) if logged.path]
    for keys, name in named:
        try:
            if address.linked(config, name):
                found[name] = name
                continue
            block = address.find(config, name)
        except UsageError as error:
            problems.append(trial.problem(keys, f'{keys[0]} "{name}": {error.message}', error.hint))
            continue
        found[name] = block.place.address
        fitting = {"sent": ASKING, "tools": {AGENT}}.get(str(keys[0]), {block.type})
        if block.type not in fitting:
            fault, none = ("asks no model", "no block does") if keys[0] == "sent" else ("is no agent", "there is none")
            others = [other.address for _, other in address.blocks(config) if other.type in fitting]
            problems.append(trial.problem(keys, f"`{name}` {fault}", did_you_mean(name, others) or none))
    if any(call.count == 0 for call in case.tools):
        tools = list(dict.fromkeys(_tools(config)))
        for index, call in enumerate(case.tools):
            if call.count == 0 and call.name not in tools:
                text = f'tools "{call.name}": no agent has a tool of this name (tools: {", ".join(tools) or "none"})'
                problems.append(trial.problem(("tools", index, "name"), text, did_you_mean(call.name, tools)))
    if problems:
        raise ConfigError(problems)
    return found


def has_tools(config: Config) -> bool:
    """Whether models may call tools, and so some that do not exist."""
    return any(True for _ in _tools(config))


def _tools(config: Config) -> Iterator[str]:
    """The names of all tools, those of agents with a name included."""
    for _, block in address.blocks(config):
        yield from (tool.name for tool in getattr(block, "tools", ()))
    for agent in config.declared_agents:
        tools = agent.written.get("tools")
        for tool in tools if isinstance(tools, list) else ():
            if isinstance(tool, dict) and isinstance(tool.get("name"), str):
                yield tool["name"]
