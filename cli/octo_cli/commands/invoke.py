"""Call one flow once and print the message it ends with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

import octo
from octo.errors import OctoError, UsageError
from octo.values import Json
from octo_cli import diagnostics, inputs, logs, options, output, signals
from octo_cli.inputs import Body
from octo_cli.options import AsJson, ConfigPath, Data, Debug, FlowName, StoreDirectory, Vars, Verbose
from octo_cli.session import Session

if TYPE_CHECKING:
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
    body = _body(data, content_type, set_ or (), attach or ())
    variables = inputs.mapping("--vars", vars_)
    limit = _seconds(timeout)
    loaded = octo.load(config, environ=session.environ)
    session.mask = loaded.environment.mask
    for warning in loaded.warnings:
        diagnostics.warn(session, warning)
    with logs.engine_lines(session), options.store(session, store, loaded.root) as kept:
        message = signals.run(session, _call(session, loaded, kept, flow, body, variables, limit))
    if message is None:
        logs.write(session, "info", "flow dropped the message", {"flow": flow})
    else:
        output.document(session, message.shown(), json=json)
    return 0


async def _call(
    session: Session,
    config: octo.Config,
    store: Store,
    flow: str,
    body: Body,
    variables: dict[str, Json],
    limit: float | None,
) -> octo.Message | None:
    """The message that the flow ends with, or None when it dropped it."""
    import asyncio  # here, because the help reads this file and needs no event loop

    from octo_cli.progress import FlowLog, Progress

    progress = Progress(session)
    try:
        async with octo.Runtime(
            config, store=store, observers=[FlowLog(session), progress], outputs=output.lines(session)
        ) as runtime:
            clock = asyncio.timeout(limit)
            try:
                async with clock:
                    return await runtime.invoke(flow, body.value, vars=variables, content_type=body.content_type)
            except octo.Dropped:
                return None
            except TimeoutError as error:
                if not clock.expired():
                    raise
                raise OctoError(f'call flow "{flow}": context deadline exceeded') from error
    finally:
        progress.close()


def _body(
    data: str | None, content_type: str | None, assignments: list[str] | tuple[()], files: list[str] | tuple[()]
) -> Body:
    body = inputs.body(data, content_type)
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
