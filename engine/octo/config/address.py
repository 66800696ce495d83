"""Block addresses, `flow[chain].block[branch].block`: naming every block, and finding one by its name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from octo.block import Block, Branch, Chain, branches_of
from octo.config.model import Config, Flow
from octo.errors import UsageError, near
from octo.fields import Model

if TYPE_CHECKING:
    from octo.config.agents import DeclaredAgent

_MARKS = (".", "[", "]", ",")
"""What divides addresses, and lists of them."""
_SEGMENT = re.compile(r"([^\[\].,]+)(?:\[([^\[\].,]+)\])?")


def place(config: Config) -> None:
    """Give every block of a config its address and its path, those in the tools of declared agents too."""
    for index, flow in enumerate(config.flows):
        flow.put_at(f"flows[{index}]")
        _place(Branch("", ("process",), flow.process), flow.title, ("flows", index))
        _place(Branch("", ("error",), flow.error or ()), f"{flow.title}[error]", ("flows", index))
    for declared in config.declared_agents:
        for branch in tools_of(declared):
            _place(branch, f"{declared.name}[{branch.name}]", declared.path)


def _place(branch: Branch, prefix: str, path: tuple[str | int, ...]) -> None:
    for index, block in enumerate(branch.chain):
        here = (*path, *branch.path_of(index))
        address = f"{prefix}.{block.place.selector}"
        block.put_at(replace(block.place, address=address, path=here))
        for inner in block.branches():
            _place(inner, f"{address}[{inner.name}]", here)


def tools_of(declared: DeclaredAgent) -> Iterator[Branch]:
    """The chains in the tools of an agent that a config declares."""
    for index, tool in enumerate(getattr(declared.agent, "tools", ())):
        yield from branches_of(tool, ("tools", index))


def place_in(owner: Block, entry: Model, path: tuple[str | int, ...]) -> None:
    """Give the blocks of an entry addresses below a block that has the entry from elsewhere."""
    for branch in branches_of(entry, path):
        _place(branch, f"{owner.address}[{branch.name}]", owner.place.path)


def walk(chain: Chain) -> Iterator[Block]:
    """Every block of a chain and of the chains inside it, in the order they are written."""
    for block in chain:
        yield block
        for branch in block.branches():
            yield from walk(branch.chain)


def blocks(config: Config) -> Iterator[tuple[Flow, Block]]:
    """Every block of a config with its root flow."""
    for flow in config.flows:
        for chain in (flow.process, flow.error or ()):
            for block in walk(chain):
                yield flow, block


def find(config: Config, address: str) -> Block:
    """The block that an address names. Raises UsageError that says what exists instead; whoever shows it, names the
    address.
    """
    try:
        return _find(config, address)
    except UsageError as error:
        raise _divided(config, address) or error from None


def linked(config: Config, address: str) -> bool:
    """Whether an address leads into a tool of an agent that is looked up when its block runs.

    Raises UsageError when the config declares the agent, and it has no such block.
    """
    segments = address.split(".")
    for end in range(2, len(segments)):
        selector, _, member = segments[end - 1].partition("[")
        try:
            block = _find(config, ".".join([*segments[: end - 1], selector]))
        except UsageError:
            return False
        of_block = {branch.name for branch in block.branches()}
        if getattr(block, "link", None) is not None and member.removesuffix("]") not in of_block:
            _check_inner(config, block, address)
            return True
    return False


def _check_inner(config: Config, block: Block, address: str) -> None:
    link = getattr(block, "link", None)
    if getattr(link, "version", 0) is not None:
        return  # an outline, or a pin: nobody knows its tools
    agent = next((one.agent for one in config.declared_agents if one.name == getattr(link, "name", "")), None)
    known: list[str] = []
    deeper: list[str] = []
    for tool in getattr(agent, "tools", ()):
        place_in(block, tool, ("tools", tool.name))
        for branch in branches_of(tool, ()):
            known += [inner.address for inner in walk(branch.chain)]
            deeper += [f"{inner.address}[" for inner in walk(branch.chain) if getattr(inner, "link", None)]
    if agent is not None and address not in known and not address.startswith(tuple(deeper)):
        raise UsageError(
            f"the tools of the agent have no such block (blocks: {', '.join(known) or 'none'})",
            hint=_meant(address, known),
        )


def _find(config: Config, address: str) -> Block:
    segments = [_SEGMENT.fullmatch(segment) for segment in address.split(".")]
    first, *rest = segments
    if first is None or not rest or None in rest:
        raise UsageError(
            "that is no block address",
            hint="write `flow.block`, or `flow.block[branch].block` for an inner block",
        )
    chain = _flow_chain(config, first[1], first[2])
    block: Block | None = None
    for position, segment in enumerate(rest):
        assert segment is not None
        block = _select(config, chain, segment[1])
        last = position == len(rest) - 1
        if last and segment[2] is not None:
            raise UsageError("that names a branch, not a block", hint="name a block inside it after a dot")
        if not last:
            chain = _branch(block, segment[2])
    assert block is not None
    return block


def _divided(config: Config, address: str) -> UsageError | None:
    """The error of an address with a name in it that no address can hold."""
    for name in dict.fromkeys(_all_names(config)):
        marks = [mark for mark in _MARKS if mark in name]
        if marks and (name in address or re.split(r"[.\[]", address)[-1] == name.partition(",")[0]):
            return UsageError(
                f"no address can hold the name `{name}`: `{marks[0]}` divides addresses",
                hint=f"give it a name without {', '.join(f'`{mark}`' for mark in _MARKS)}",
            )
    return None


def _all_names(config: Config) -> Iterator[str]:
    for flow in config.flows:
        yield flow.name or ""
    for _, block in blocks(config):
        yield block.place.selector
        yield from (branch.name for branch in block.branches())


def _flow_chain(config: Config, name: str, chain: str | None) -> Chain:
    flow = config.flow(name)
    if flow is None:
        raise _unknown("flow", name, [flow.name for flow in config.flows if flow.name], "flows")
    if chain not in (None, "process", "error"):
        raise _unknown("chain", str(chain), ["process", "error"], "chains")
    return (flow.error or ()) if chain == "error" else flow.process


def _select(config: Config, chain: Chain, selector: str) -> Block:
    for matches in (
        [block for block in chain if block.place.name == selector],
        [block for block in chain if block.type == selector],
        [block for block in chain if block.place.ref == selector],
    ):
        if len(matches) > 1:
            places = ", ".join(_written_at(config, block) for block in matches)
            raise UsageError(
                f'"{selector}" matches {len(matches)} blocks in the same chain ({places})',
                hint="give the block a `name`",
            )
        if matches:
            return matches[0]
    names = [block.place.selector for block in chain]
    raise UsageError(
        f'no block "{selector}" in that chain (blocks: {", ".join(names) or "none"})', hint=_meant(selector, names)
    )


def _written_at(config: Config, block: Block) -> str:
    """Where a block is written; its place in the chain, before the config is built."""
    origin = config.__dict__.get("origin")
    if origin is None:
        return f"block {int(block.place.path[-1]) + 1} of the chain"
    location = origin.locate(block.place.path)
    return f"{location.file}:{location.line}"


def _branch(block: Block, name: str | None) -> Chain:
    branches = list(block.branches())
    names = [branch.name for branch in branches]
    if name is None:
        raise UsageError(
            f"block `{block.place.selector}` needs a branch here (branches: {', '.join(names) or 'none'})",
            hint=f"write it like `{block.place.selector}[{names[0]}].block`" if names else None,
        )
    for branch in branches:
        if branch.name == name:
            return branch.chain
    for branch in branches:
        if name.isdecimal() and branch.path[1:2] == (int(name),):
            return branch.chain
    raise UsageError(
        f'block `{block.place.selector}` has no branch "{name}" (branches: {", ".join(names) or "none"})',
        hint=_meant(name, names),
    )


def _unknown(kind: str, name: str, known: Sequence[str], plural: str) -> UsageError:
    return UsageError(f'no {kind} named "{name}" ({plural}: {", ".join(known) or "none"})', hint=_meant(name, known))


def _meant(name: str, known: Sequence[str]) -> str | None:
    match = near(name, known)
    return f"did you mean `{match}`?" if match else None
