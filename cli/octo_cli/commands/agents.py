"""Edit, deploy and restore agents that flows link."""

from __future__ import annotations

from collections.abc import Callable

GROUP = "Keep"


def verbs() -> tuple[Callable[..., int], ...]:
    """The verbs, whose modules the help of octo does not need."""
    from octo_cli.agents.carry import export, import_
    from octo_cli.agents.change import adopt, deploy, draft, restore
    from octo_cli.agents.keep import clear_history, delete, rename
    from octo_cli.agents.links import check, pin, save, unlink
    from octo_cli.agents.look import diff, history, list_, show

    return (
        *(list_, show, history, diff, draft, deploy, restore, clear_history, rename, delete, adopt, export, import_),
        *(save, unlink, pin, check),
    )
