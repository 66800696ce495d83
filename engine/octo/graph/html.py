"""The picture of a config as one HTML page that needs nothing else."""

from __future__ import annotations

from pathlib import Path

from octo.graph.picture import Picture


def page(picture: Picture) -> str:
    """The page: drawn with HTML and CSS alone, without a script, for screens of any width and for paper."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    loader = FileSystemLoader(Path(__file__).parent, encoding="utf-8")
    templates = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    flows = {stream.name: stream.id for stream in picture.flows}
    connectors = {outlet.name: outlet.id for outlet in picture.connectors}
    text = templates.get_template("page.html.j2").render(picture=picture, flows=flows, connectors=connectors)
    return f"{text.strip()}\n"
