"""Call one flow once and print the message it ends with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import octo
from octo.errors import UsageError
from octo.values import Json
from octo_cli import debugging, diagnostics, inputs, logs, options, output, signals
from octo_cli.inputs import Body
from octo_cli.options import AsJson, ConfigPath, Data, Debug, FlowName, StoreDirectory, Vars, Verbose
from octo_cli.session import Session

if TYPE_CHECKING:
    from octo.doubles import Stage
    from octo.invocation import Outcome
    from octo.store.store import Store

GROUP = "Run"


def command(
    context: typer.Context,
    config: ConfigPath,
    flow: FlowName,
    data: Data = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="PATH=VALUE", help="Put a value below the body, JSON or text; repeatable"),
    ] = None,
    attach: Annotated[
        list[str] | None,
        typer.Option("--attach", metavar="FILE", help="Append a file to `body.files`; repeatable"),
    ] = None,
    content_type: Annotated[
        str | None,
        typer.Option("--content-type", metavar="MIME", help="Take the body as raw content of this type; default JSON"),
    ] = None,
    vars_: Vars = None,
    timeout: Annotated[
        str | None,
        typer.Option("--timeout", metavar="DURATION", help="Limit for the call, for example `30s`; default none"),
    ] = None,
    break_at: Annotated[
        str | None,
        typer.Option("--break-at", metavar="ADDRESS", help="Halt after this block and show the message; default none"),
    ] = None,
    spies: Annotated[
        str | None,
        typer.Option("--spies", metavar="ADDRESS,...", help="Show what went into and out of blocks; default none"),
    ] = None,
    mocks: Annotated[
        str | None,
        typer.Option("--mocks", metavar="JSON", help="What stands in for blocks, an object by address; default none"),
    ] = None,
    run_debug_config: Annotated[
        str | None,
        typer.Option(
            "--run-debug-config", metavar="PATH", help="File with input, breakpoint, spies and mocks; default none"
        ),
    ] = None,
    envelope: Annotated[
        bool,
        typer.Option(
            "--envelope/--no-envelope", show_default=False, help="Print how the call ended, as JSON; default off"
        ),
    ] = False,
    envelope_out: Annotated[
        str | None,
        typer.Option("--envelope-out", metavar="PATH", help="Write that to a file; default standard output"),
    ] = None,
    store: StoreDirectory = None,
    json: AsJson = False,
    verbose: Verbose = False,
    debug: Debug = False,
) -> int:
    """Call one flow once and print the message it ends with.

    Sources are not started: every flow can be called by its name. The message goes to standard output, everything else
    to standard error. A flow that drops the message prints nothing.
    """
    session: Session = context.obj
    session.debug, session.verbose = debug, verbose
    asked = debugging.requested(run_debug_config, mocks=mocks, spies=spies, break_at=break_at)
    body = _body(data, content_type, set_ or (), attach or (), asked.data)
    variables = inputs.mapping("--vars", vars_) if vars_ else asked.vars
    limit = _seconds(timeout)
    target = inputs.path(envelope_out) if envelope_out else None
    if target is not None:
        output.check_target("--envelope-out", target)
    loaded = octo.load(config, environ=session.environ, rewrite=asked.doubles.rewrite)
    session.mask = loaded.environment.mask
    for warning in loaded.warnings:
        diagnostics.warn(session, warning)
    stage = asked.doubles.on(loaded)
    with logs.engine_lines(session), options.store(session, store, loaded.root) as kept:
        outcome = signals.run(session, _call(session, loaded, kept, stage, flow, body, variables, limit))
    if envelope or target or asked.doubles.watching:
        _put_envelope(session, outcome, stage, target, json=json)
    elif outcome.error is not None:
        raise outcome.error
    elif outcome.message is None:
        logs.write(session, "info", "flow dropped the message", {"flow": flow})
    else:
        output.document(session, outcome.message.shown(), json=json)
    return 0


async def _call(
    session: Session,
    config: octo.Config,
    store: Store,
    stage: Stage | None,
    flow: str,
    body: Body,
    variables: dict[str, Json],
    limit: float | None,
) -> Outcome:
    from octo import invocation  # here, because the help reads this file and needs no event loop
    from octo_cli.progress import FlowLog, Progress

    progress = Progress(session)
    runtime = octo.Runtime(
        config, store=store, stage=stage, observers=[FlowLog(session), progress], outputs=output.lines(session)
    )
    try:
        return await invocation.invoke(
            runtime, flow, body.value, vars=variables, content_type=body.content_type, limit=limit
        )
    finally:
        progress.close()


def _put_envelope(session: Session, outcome: Outcome, stage: Stage | None, target: Path | None, *, json: bool) -> None:
    from octo.invocation import envelope

    parts = envelope(outcome, stage)
    if target is None:
        output.document(session, parts, json=json)
    else:
        output.to_file(session, parts, target)


def _body(
    data: str | None, content_type: str | None, assignments: Sequence[str], files: Sequence[str], default: Json
) -> Body:
    body = inputs.body(data, content_type, default)
    if body.content_type is None:
        return Body(inputs.with_attachments(inputs.with_settings(body.value, assignments), files))
    if assignments or files:
        raise UsageError("`--set` and `--attach` change a JSON body, `--content-type` takes the body as it is")
    return body


def _seconds(text: str | None) -> float | None:
    if text is None:
        return None
    from octo.fields import Duration

    try:
        return Duration(text).seconds
    except ValueError:
        raise UsageError(
            f"`--timeout`: expected a duration, found `{text}`", hint="for example `30s`, `250ms` or `1m30s`"
        ) from None
