"""Edit, deploy and restore agents that flows link."""

from __future__ import annotations

from octo_cli.agents.carry import export, import_
from octo_cli.agents.change import adopt, deploy, draft, restore
from octo_cli.agents.keep import clear_history, delete, rename
from octo_cli.agents.links import check, pin, save, unlink
from octo_cli.agents.look import diff, history, list_, show

GROUP = "Keep"

VERBS = (
    *(list_, show, history, diff, draft, deploy, restore, clear_history, rename, delete, adopt, export, import_),
    *(save, unlink, pin, check),
)
