"""An agent out of its block, and back into it: what the block says then."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from octo.agent.authored import SPELLINGS, in_one_spelling
from octo.agent.value import NamedAgent
from octo.errors import OctoError, UsageError
from octo.values import Json

_FALLBACKS: Final = ("input", "attachments", "enabledTools")
"""What an agent may say for blocks that do not."""
_OF_AGENTS: Final = NamedAgent.yaml_keys().keys() - {"name", "description", *_FALLBACKS}


def taken_out(block: Mapping[str, Json]) -> tuple[dict[str, Json], list[str]]:
    """The agent that is written in a block, as it is written, and the keys that it takes from there."""
    keys = [key for key in block if SPELLINGS.get(key, key) in _OF_AGENTS]
    return in_one_spelling({key: block[key] for key in keys}), keys


def put_in(
    block: Mapping[str, Json], agent: Mapping[str, Json], read: Callable[[str], str]
) -> tuple[dict[str, Json], list[str]]:
    """What a block that links an agent has to say in place of that, and the keys that it loses.

    Bindings of the block become those of the tools; those of tools that there are not stay. `read` gives the text of a
    file below the config directory. Raises UsageError for an agent that cannot stand in a block.
    """
    own = in_one_spelling(block)
    if not agent.get("tools") and agent.get("outputType") != "image":
        raise UsageError("the agent has no tools, and in a block it needs one", hint="leave the link as it is")
    overlay = own.get("toolInputs") or {}
    said = {key: item for key, item in agent.items() if key in _OF_AGENTS and key != "tools"}
    said |= {key: agent[key] for key in _FALLBACKS if _is_set(agent.get(key)) and not _is_set(own.get(key))}
    if "prompt" in said:
        said["prompt"] = _prompt(said["prompt"], read)
    tools = agent.get("tools") or []
    said["tools"] = [_tool(tool, overlay.get(tool.get("name"), {})) for tool in tools]
    left = {name: inputs for name, inputs in overlay.items() if name not in {tool.get("name") for tool in tools}}
    lost = [key for key in block if SPELLINGS.get(key, key) in ("agent", "toolInputs")]
    return said | ({"toolInputs": left} if left else {}), lost


def _is_set(value: Json) -> bool:
    return value is not None and not (isinstance(value, str) and not value.strip())


def _prompt(prompt: Json, read: Callable[[str], str]) -> Json:
    """The file that a prompt is kept in, if it still says the same; else the text."""
    if not isinstance(prompt, dict):
        return prompt
    text, resource = prompt.get("text"), str(prompt.get("resource"))
    try:
        return {"resource": resource} if text is None or read(resource) == text else text
    except OctoError:
        return text


def _tool(tool: Mapping[str, Json], inputs: Mapping[str, Json]) -> dict[str, Json]:
    """A tool with the bindings of its block, and with the description that one in a block needs."""
    own = tool.get("inputs") or {}
    if "agent" in tool:  # what that is given has several spellings
        over = {SPELLINGS.get(name, name) for name in inputs}
        own = {name: one for name, one in own.items() if name in inputs or SPELLINGS.get(name, name) not in over}
    bound = {**own, **inputs}
    found = {**tool, "inputs": bound} if bound else dict(tool)
    if "process" in tool and not str(tool.get("description") or "").strip():
        found["description"] = tool.get("name")
    return found
