"""Evaluate one expression and print what it yields."""

from __future__ import annotations

import os
import time
from typing import Annotated

import typer

from octo.errors import ExpressionError, UsageError
from octo.values import Json
from octo_cli import diagnostics, inputs, output
from octo_cli.options import AsJson, Data, Debug, Vars
from octo_cli.session import Session

GROUP = "Write"


def command(
    context: typer.Context,
    expression: Annotated[
        str | None, typer.Argument(metavar="EXPRESSION", show_default=False, help="The expression")
    ] = None,
    expr: Annotated[str | None, typer.Option("--expr", hidden=True)] = None,
    data: Data = None,
    vars_: Vars = None,
    env: Annotated[
        str | None,
        typer.Option(
            "--env", metavar="JSON|@FILE", help="Environment: a JSON object, or a file that holds it; default empty"
        ),
    ] = None,
    json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Evaluate one expression and print what it yields.

    Prints {"ok": true, "result": ...}; when the expression does not compile or fails, {"ok": false, "result": null,
    "error": ...}. The exit status is 0 in both cases.
    """
    session: Session = context.obj
    session.debug = debug
    given = [text for text in (expression, expr) if text is not None]
    if len(given) != 1:
        raise UsageError(
            "`octo expr` takes one expression", hint="for example `octo expr 'body.n + 1' --data '{\"n\": 2}'`"
        )
    names = {
        "body": inputs.body(session, data).value,
        "vars": inputs.mapping(session, "--vars", vars_),
        "env": inputs.mapping(session, "--env", env),
    }
    output.document(session, _answer(session, given[0], names), json=json)
    return 0


def _answer(session: Session, source: str, names: dict[str, Json]) -> dict[str, Json]:
    from octo import cel

    activation = {**names, "eventID": os.urandom(16).hex(), "correlationID": "", "now": cel.Timestamp(time.time_ns())}
    try:
        program = cel.compile(source, activation.keys())
    except ExpressionError as error:
        return _refused(session, error, f'compile expression "{source}": {error.message}')
    try:
        return {"ok": True, "result": program(activation)}
    except ExpressionError as error:
        return _refused(session, error, f"evaluate expression: {error.message}")


def _refused(session: Session, error: ExpressionError, text: str) -> dict[str, Json]:
    diagnostics.point(session, error)
    return {"ok": False, "result": None, "error": text}
