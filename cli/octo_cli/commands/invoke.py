"""Call one flow once and print the message it ends with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import octo
from octo.errors import UsageError
from octo.values import Json
from octo_cli import debugging, diagnostics, inputs, logs, options, output, recording, signals
from octo_cli.inputs import Body
from octo_cli.options import (
    AsJson,
    ConfigPath,
    Data,
    Debug,
    Drafts,
    FlowName,
    RecordValues,
    Spending,
    StoreDirectory,
    Vars,
    Verbose,
)
from octo_cli.session import Session

if TYPE_CHECKING:
    from octo.doubles import Stage
    from octo.invocation import Outcome
    from octo.observe import Observer
    from octo_cli.each import Each

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
    memory_id: Annotated[
        str | None,
        typer.Option(
            "--memory-id", metavar="ID", help="Which memory agents with `memory` go on with, any text; default none"
        ),
    ] = None,
    timeout: Annotated[
        str | None,
        typer.Option("--timeout", metavar="DURATION", help="Limit for the call, for example `30s`; default none"),
    ] = None,
    budget: Spending = None,
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
        typer.Option(
            "--mocks", metavar="JSON|@FILE", help="What stands in for blocks, an object by address; default none"
        ),
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
    each: Annotated[
        str | None,
        typer.Option(
            "--each",
            metavar="FILE|-",
            help="Call the flow for each row of a file: JSON lines, `.csv` or `.tsv`; default once",
        ),
    ] = None,
    parallel: Annotated[
        int | None,
        typer.Option("--parallel", metavar="N", min=1, help="With `--each`: rows that run at once; default 8"),
    ] = None,
    errors: Annotated[
        str | None,
        typer.Option(
            "--errors", metavar="PATH", help="With `--each`: write rows that fail to a file; default standard error"
        ),
    ] = None,
    log: Annotated[
        str | None,
        typer.Option("--log", metavar="FILE", help="Write a run log, for `octo runs show FILE`; default none"),
    ] = None,
    events: Annotated[
        str | None,
        typer.Option("--events", metavar="PATH|-", help="Write the same records as they happen; default none"),
    ] = None,
    stream: Annotated[
        bool,
        typer.Option(
            "--stream/--no-stream", show_default=False, help="Print what agents say while they say it; default off"
        ),
    ] = False,
    drafts: Drafts = False,
    record_values: RecordValues = True,
    store: StoreDirectory = None,
    json: AsJson = False,
    verbose: Verbose = False,
    debug: Debug = False,
) -> int:
    """Call one flow once and print the message it ends with.

    Sources are not started: every flow can be called by its name. The message goes to standard output, everything else
    to standard error. A flow that drops the message prints nothing.

    With `--each`, the flow is called for every row of a file, and every row gives one line: the message, or
    `{"dropped":true}`, or `{"error":"…"}`.
    """
    session: Session = context.obj
    session.debug, session.verbose = debug, verbose
    asked = debugging.requested(session, run_debug_config, mocks=mocks, spies=spies, break_at=break_at)
    variables = inputs.mapping(session, "--vars", vars_) if vars_ else asked.vars
    limit = _seconds(timeout)
    limits = options.limits(budget or ())
    body, rows = Body(None), None
    if each is None:
        _refuse({"--parallel": parallel, "--errors": errors}, "goes with `--each`")
        body = _body(session, data, content_type, set_ or (), attach or (), asked.data)
    else:
        alone = {
            "--data": data,
            "--break-at": asked.doubles.break_at,
            "--spies": asked.doubles.spies,
            "--envelope": envelope,
            "--envelope-out": envelope_out,
            "--events -": events == "-",
            "--stream": stream,
        }
        _refuse(alone, "is about one call, `--each` makes many")
        rows = _rows(each, flow, set_ or (), attach or (), content_type, variables, memory_id, limit, parallel, errors)
    target = inputs.path(envelope_out) if envelope_out else None
    targets = {"--envelope-out": target, "--errors": inputs.path(errors) if errors else None}
    records = {
        option: inputs.path(name) for option, name in (("--log", log), ("--events", events)) if name and name != "-"
    }
    reads = {
        "`--config`": config,
        "`--each`": inputs.path(each) if each and each != "-" else None,
        "`--run-debug-config`": inputs.path(run_debug_config) if run_debug_config else None,
        "`--attach`": [inputs.path(file) for file in attach or ()],
    }
    named = {"`--data`": data, "`--vars`": vars_, "`--mocks`": mocks}
    reads |= {option: inputs.path(text[1:]) for option, text in named.items() if text and text.startswith("@")}
    output.check_targets(targets, reads, records)
    beside = {Path(".env")}
    loaded = octo.load(config, environ=session.environ, rewrite=asked.doubles.rewrite, read=beside)
    output.check_targets(targets, {"the config": beside})
    session.mask = loaded.environment.mask
    for warning in loaded.warnings:
        diagnostics.warn(session, warning)
    stage = asked.doubles.on(loaded)
    with (
        logs.engine_lines(session),
        options.store(session, store, loaded.root) as kept,
        recording.recording(session, log=log, events=events) as recorders,
    ):
        recorders += recording.keeping(session, loaded, kept, values=record_values)

        def engine(observers: Sequence[Observer], *, streaming: bool = False) -> octo.Runtime:
            watching = [*observers, *recorders]
            printed = output.lines(session)
            return octo.Runtime(
                loaded,
                store=kept,
                stage=stage,
                observers=watching,
                outputs=printed,
                limits=limits,
                streaming=streaming,
                drafts_of=options.drafts_of(session, drafts),
            )

        if rows is not None:
            rows.run(session, engine)
            return 0
        outcome = signals.run(session, _call(session, engine, flow, body, variables, memory_id or "", limit, stream))
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
    engine: Callable[..., octo.Runtime],
    flow: str,
    body: Body,
    variables: dict[str, Json],
    memory_id: str,
    limit: float | None,
    stream: bool,
) -> Outcome:
    from octo import invocation  # here, because the help reads this file and needs no event loop
    from octo_cli.progress import FlowLog, Progress

    progress = Progress(session, live=not stream)
    watching = ExitStack()
    watching.callback(progress.close)
    observers: list[Observer] = [FlowLog(session), progress]
    if stream:
        from octo_cli.streaming import Stream

        answers = Stream(session)
        watching.callback(answers.close)
        observers.append(answers)
    runtime = engine(observers=observers, streaming=stream)
    with watching:
        return await invocation.invoke(
            runtime,
            flow,
            body.value,
            vars=variables,
            content_type=body.content_type,
            memory_id=memory_id,
            limit=limit,
        )


def _put_envelope(session: Session, outcome: Outcome, stage: Stage | None, target: Path | None, *, json: bool) -> None:
    from octo.invocation import envelope

    parts = envelope(outcome, stage)
    if target is None:
        output.document(session, parts, json=json)
    else:
        output.to_file(session, parts, target)


def _refuse(given: Mapping[str, object], reason: str) -> None:
    """Raises UsageError for the first of some options that is given."""
    for option, value in given.items():
        if value:
            raise UsageError(f"`{option}` {reason}")


def _rows(
    source: str,
    flow: str,
    assignments: Sequence[str],
    files: Sequence[str],
    content_type: str | None,
    variables: dict[str, Json],
    memory_id: str | None,
    limit: float | None,
    parallel: int | None,
    errors: str | None,
) -> Each:
    from octo_cli.each import AT_ONCE, Each  # here, because the help reads this file and needs no event loop

    return Each(
        source,
        flow,
        assignments=assignments,
        attachments=inputs.attachments(files),
        content_type=content_type,
        vars=variables,
        memory_id=memory_id or "",
        limit=limit,
        parallel=parallel or AT_ONCE,
        errors=inputs.path(errors) if errors else None,
    )


def _body(
    session: Session,
    data: str | None,
    content_type: str | None,
    assignments: Sequence[str],
    files: Sequence[str],
    default: Json,
) -> Body:
    if content_type is not None:
        if assignments or files:
            raise UsageError("`--set` and `--attach` change a JSON body, `--content-type` takes the body as it is")
        return inputs.body(session, data, content_type, default)
    value = inputs.with_settings(inputs.body(session, data, default=default).value, assignments)
    return Body(inputs.with_attachments(value, inputs.attachments(files)))


def _seconds(text: str | None) -> float | None:
    if text is None:
        return None
    from octo.fields import Duration

    hint = "for example `30s`, `250ms` or `1m30s`"
    try:
        seconds = Duration(text).seconds
    except ValueError:
        raise UsageError(f"`--timeout`: expected a duration, found `{text}`", hint=hint) from None
    if not seconds:
        raise UsageError(f"`--timeout`: a call that may take no time does nothing, found `{text}`", hint=hint)
    return seconds
