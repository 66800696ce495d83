"""Look at the models that can be called."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from octo_cli import inputs, output, signals
from octo_cli.options import AsJson, ConfigPath, Debug
from octo_cli.session import Session

if TYPE_CHECKING:
    from octo.models import Checked, Configured, Known
    from octo.values import Json

GROUP = "Look"

OfConfig = Annotated[
    Path | None,
    typer.Option(
        "--config", metavar="PATH", parser=inputs.path, help="Config whose connectors are shown, too; default none"
    ),
]


def command(context: typer.Context, config: OfConfig = None, json: AsJson = False, debug: Debug = False) -> None:
    """List the providers of models, and which connectors of a config can be used now

    Of each provider it tells what its models read beside text and what they give. A connector can be used when its
    settings are right, its key is there and what it needs is installed; nothing is called to find that out.
    """
    if context.invoked_subcommand is not None:
        return
    from octo import models

    session: Session = context.obj
    session.debug = debug
    known = models.known()
    found = None if config is None else _configured(session, config)
    if json or not session.for_people(session.out):
        told: dict[str, Json] = {"providers": [_provider(one) for one in known]}
        if found is not None:
            told["connectors"] = [_connector(one) for one in found]
        output.document(session, told, json=json)
        return
    rows = [["CONNECTOR TYPE", "API", "DEFAULT MODEL", "READS", "GIVES"], *map(_row, known)]
    lines = _table(rows) + [f"\n{one.type} is not usable yet: {one.missing}" for one in known if one.missing]
    if found is not None:
        lines += ["", *(_table([["CONNECTOR", "TYPE", "MODEL", "USABLE"], *map(_state, found)]) if found else [])]
        lines += [] if found else ["The config has no connectors to models."]
    output.text(session, "\n".join(lines))


def check(context: typer.Context, config: ConfigPath, json: AsJson = False, debug: Debug = False) -> int:
    """Call the model of each connector once and show what came back

    Each is asked for one word, without those that stand in for it. Exit status 1 means that one gave no answer, or that
    there is none to ask.
    """
    from octo import models

    session: Session = context.obj
    session.debug = debug
    checked = signals.run(session, models.check(_configured(session, config)))
    ok = bool(checked) and all(one.ok for one in checked)
    if json or not session.for_people(session.out):
        output.document(session, {"ok": ok, "connectors": [_outcome(one) for one in checked]}, json=json)
    elif checked:
        output.text(session, "\n".join(line for one in checked for line in _lines(one)))
    else:
        output.text(session, "The config has no connectors to models.")
    return 0 if ok else 1


def verbs() -> tuple[Callable[..., int], ...]:
    return (check,)


def _configured(session: Session, config: Path) -> list[Configured]:
    """The connectors of a config; from now on what its secret variables hold is hidden."""
    from octo import models

    found = models.configured(config, session.environ)
    session.mask = next((one.config.environment.mask for one in found if one.config is not None), session.mask)
    return found


# ---------------------------------------------------------------- as documents


def _provider(known: Known) -> dict[str, Json]:
    return {
        "type": known.type,
        "api": known.api,
        "model": known.model or None,
        "reads": "every type" if known.reads is None else list(known.reads),
        "gives": list(known.gives),
        "missing": known.missing,
    }


def _connector(found: Configured) -> dict[str, Json]:
    return {
        "name": found.name,
        "type": found.type,
        "model": found.model or None,
        "usable": found.config is not None,
        "key": found.key or None,
        "fallback": list(found.fallback),
        "problems": [{"message": message, "hint": hint} for message, hint in found.problems],
    }


def _outcome(checked: Checked) -> dict[str, Json]:
    answer = checked.answer
    usage = answer.usage if answer else None
    return {
        "name": checked.connector.name,
        "type": checked.connector.type,
        "ok": checked.ok,
        "model": (answer.model if answer else checked.connector.model) or None,
        "text": answer.text if answer else None,
        "stopReason": answer.stop_reason if answer else None,
        "seconds": round(checked.seconds, 3),
        "tokensRead": usage.prompt_tokens if usage else None,
        "tokensWritten": usage.output_tokens if usage else None,
        "costUSD": checked.cost,
        "error": checked.fault or None,
        "hint": checked.hint,
    }


# ---------------------------------------------------------------- for people


def _row(known: Known) -> list[str]:
    return [known.type, known.api, known.model or "none", _kinds(known.reads), ", ".join(known.gives)]


def _kinds(reads: tuple[str, ...] | None) -> str:
    """The kinds of files, which take less room than the types."""
    if reads is None:
        return "every type"
    kinds = {"image": "images", "audio": "audio"}
    return ", ".join(dict.fromkeys(kinds.get(one.partition("/")[0], "documents") for one in reads)) or "text only"


def _state(found: Configured) -> list[str]:
    if found.config is None:
        message, hint = found.problems[0]
        usable = f"no: {message}" + (f"; {hint}" if hint else "")
    else:
        usable = "yes" + (f", key from {found.key}" if found.key else "")
    return [found.name, found.type, found.model or "none", usable]


def _lines(checked: Checked) -> list[str]:
    """What came of one call; what to do about a failure stands below it."""
    from octo.runlog.words import duration, money, number, short

    name = checked.connector.name
    answer = checked.answer
    if answer is None:
        return [f"{name}: failed: {checked.error}", *([f"  hint: {checked.hint}"] if checked.hint else [])]
    said = f"`{short(answer.text)}`" if checked.ok else checked.fault
    usage = answer.usage
    tokens = f"{number(usage.prompt_tokens)} → {number(usage.output_tokens)} tokens" if usage else "tokens unknown"
    price = "cost unknown" if checked.cost is None else money(checked.cost)
    return [f"{name}: {answer.model} answered {said} in {duration(checked.seconds)}, {tokens}, {price}"]


def _table(rows: list[list[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
