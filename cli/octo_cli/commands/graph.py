"""Draw the flows of a config: blocks, branches, tools, connectors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

import octo
from octo import edit
from octo.errors import OctoError, Problem, UsageError
from octo.logline import printable
from octo_cli import diagnostics, inputs, options, output
from octo_cli.options import ConfigPath, Debug, StoreDirectory
from octo_cli.session import Session

if TYPE_CHECKING:
    from collections.abc import Mapping

    from octo.config.model import Config
    from octo.fields import Model
    from octo.graph.picture import Picture
    from octo.graph.tree import Line, Style
    from octo.store.store import Store

GROUP = "Write"

Format = Literal["tree", "mermaid", "html"]

_BY_SUFFIX: Final[dict[str, Format]] = {
    ".html": "html",
    ".htm": "html",
    ".mmd": "mermaid",
    ".mermaid": "mermaid",
    ".txt": "tree",
    "": "tree",
}
_LOOKS: Final[dict[Style, dict[str, Any]]] = {
    "title": {"bold": True, "underline": True},
    "source": {"fg": "green", "bold": True},
    "type": {"fg": "cyan"},
    "name": {"bold": True},
    "branch": {"fg": "blue"},
    "tool": {"fg": "magenta"},
    "events": {"fg": "bright_black"},
    "default": {"fg": "yellow"},
    "error": {"fg": "red"},
    "link": {"fg": "green"},
    "faint": {"dim": True},
}


def command(
    context: typer.Context,
    config: ConfigPath,
    flow: Annotated[
        str | None, typer.Option("--flow", metavar="NAME", help="Draw this flow only; default all of them")
    ] = None,
    format_: Annotated[
        Format | None,
        typer.Option("--format", help="How to draw; default what the name of `--out` says, else `tree`"),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="PATH", parser=inputs.path, help="File to write; default standard output"),
    ] = None,
    store: StoreDirectory = None,
    debug: Debug = False,
) -> int:
    """Draw the flows of a config: blocks, branches, tools, connectors.

    Agents that blocks link are looked up in the store. `tree` is for the terminal, `mermaid` for documents, `html` is
    one page that needs no network.
    """
    from octo.graph.picture import draw

    session: Session = context.obj
    session.debug = debug
    output.check_targets({"--out": out}, {"`--config`": config})
    format_ = format_ or _by_name(out)
    beside = {Path(".env")}
    loaded = octo.load(config, environ=session.environ, read=beside)
    output.check_targets({"--out": out}, {"the config": beside})
    session.mask = loaded.environment.mask
    for warning in loaded.warnings:
        diagnostics.warn(session, warning)
    picture = draw(loaded, flow, _agents(session, loaded, options.store(session, store, options.beside(config))))
    if out is None:
        width = _width(session) if format_ == "tree" else None
        output.put_lines(session, _lines(picture, format_, coloured=session.coloured(session.out), width=width))
    else:
        edit.replace(out, "".join(f"{line}\n" for line in _lines(picture, format_)).encode())
    return 0


def _agents(session: Session, config: Config, store: Store) -> Mapping[str, Model]:
    """The agents that the config links. What a store that cannot be read holds is not drawn."""
    from octo.config.address import blocks
    from octo_cli import signals

    if not any(getattr(block, "link", None) for _, block in blocks(config)):
        return {}
    from octo.agent import links

    try:
        with store:
            return signals.run(session, links.seen(config, store))
    except OctoError as error:
        problem = Problem(f"agents are drawn as the config declares them: {error}", hint=error.hint, severity="warning")
        diagnostics.warn(session, problem)
        return {}


def _by_name(out: Path | None) -> Format:
    """Raises UsageError for a name that says nothing."""
    found = _BY_SUFFIX.get(out.suffix.lower()) if out else "tree"
    if found is None:
        known = ", ".join(f"`{suffix}`" for suffix in _BY_SUFFIX if suffix)
        raise UsageError(
            f"`--out`: nothing is known of how to draw a `{out.suffix if out else ''}`",
            hint=f"end the name in one of {known}, or say how with `--format`",
        )
    return found


def _width(session: Session) -> int | None:
    """How long a line may be: the width of a terminal; in a pipe there is no limit."""
    if not session.for_people(session.out):
        return None
    import shutil

    return shutil.get_terminal_size().columns


def _lines(picture: Picture, format_: Format, *, coloured: bool = False, width: int | None = None) -> list[str]:
    match format_:
        case "tree":
            from octo.graph import tree

            paint = _painted if coloured else _plain
            return [paint(tree.cut(line, width)) for line in tree.lines(picture)]
        case "mermaid":
            from octo.graph import mermaid

            return list(mermaid.lines(picture))
        case "html":
            from octo.graph import html

            return printable(html.page(picture)).rstrip("\n").split("\n")


def _plain(line: Line) -> str:
    return "".join(printable(span.text) for span in line)


def _painted(line: Line) -> str:
    return "".join(typer.style(printable(span.text), **_LOOKS.get(span.style, {})) for span in line)
