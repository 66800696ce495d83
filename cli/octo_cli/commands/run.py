"""Start the flows of a config with their sources and serve until a signal comes."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Annotated

import typer

from octo.errors import UsageError
from octo_cli import logs, options, recording, signals
from octo_cli.options import ConfigPath, Debug, Drafts, RecordValues, Spending, StoreDirectory
from octo_cli.session import Session

GROUP = "Run"


def command(
    context: typer.Context,
    config: ConfigPath,
    watch: Annotated[
        bool, typer.Option("--watch/--no-watch", show_default=False, help="Load the config anew on change; default off")
    ] = False,
    drafts: Drafts = False,
    record_values: RecordValues = True,
    store: StoreDirectory = None,
    budget: Spending = None,
    observability: Annotated[
        bool | None,
        typer.Option(
            "--observability/--no-observability",
            show_default=False,
            help="Admin port with probes; default `OCTO_OBSERVABILITY`, else on",
        ),
    ] = None,
    observability_addr: Annotated[
        str | None,
        typer.Option(
            "--observability-addr",
            metavar="HOST:PORT",
            help="Address of the admin port; default `OCTO_OBSERVABILITY_ADDR`, else `:39999`",
        ),
    ] = None,
    metrics: Annotated[
        bool | None,
        typer.Option(
            "--metrics/--no-metrics",
            show_default=False,
            help="Counters at `/metrics` of the admin port; default `OCTO_METRICS`, else off",
        ),
    ] = None,
    metrics_blocks: Annotated[
        str | None,
        typer.Option(
            "--metrics-blocks",
            metavar="ADDRESS,...|*",
            help="Count these blocks too; default `OCTO_METRICS_BLOCKS`, else none",
        ),
    ] = None,
    log: Annotated[
        str | None,
        typer.Option("--log", metavar="FILE", help="Append a run log to a file: `--traces --traces-file FILE` in one"),
    ] = None,
    traces: Annotated[
        bool | None,
        typer.Option(
            "--traces/--no-traces", show_default=False, help="Write a run log; default `OCTO_TRACING`, else off"
        ),
    ] = None,
    traces_file: Annotated[
        str | None,
        typer.Option(
            "--traces-file",
            metavar="FILE",
            help="Where to; default `OCTO_TRACING_FILE`, else `octo-trace-TIME-PID.jsonl` in the working directory",
        ),
    ] = None,
    traces_blocks: Annotated[
        str | None,
        typer.Option(
            "--traces-blocks",
            metavar="ADDRESS,...|*",
            help="Blocks that are told of; default `OCTO_TRACING_BLOCKS`, else `*`",
        ),
    ] = None,
    traces_bodies: Annotated[
        bool | None,
        typer.Option(
            "--traces-bodies/--no-traces-bodies",
            show_default=False,
            help="Include bodies; default `OCTO_TRACING_BODIES`, else on",
        ),
    ] = None,
    traces_vars: Annotated[
        bool | None,
        typer.Option(
            "--traces-vars/--no-traces-vars",
            show_default=False,
            help="Include variables; default `OCTO_TRACING_VARS`, else on",
        ),
    ] = None,
    traces_max_payload: Annotated[
        int | None,
        typer.Option(
            "--traces-max-payload",
            metavar="BYTES",
            min=0,
            help="Leave out what is larger; default `OCTO_TRACING_MAX_PAYLOAD`, else 32768",
        ),
    ] = None,
    traces_buffer: Annotated[
        int | None,
        typer.Option(
            "--traces-buffer",
            metavar="N",
            min=1,
            help="Records that wait to be written; default `OCTO_TRACING_BUFFER`, else 4096",
        ),
    ] = None,
    debug: Debug = False,
) -> int:
    """Start the flows of a config with their sources and serve until a signal comes.

    A line on standard output says that everything has started. Ctrl-C or SIGTERM ends it in good order: sources stop,
    messages that were accepted are finished, and the status is 0. A second signal ends it at once.
    """
    session: Session = context.obj
    session.debug = debug
    choice = options.Choice(session)
    limits = options.limits(budget or ())
    trace = recording.Trace(
        file=_trace_file(choice, log, traces, traces_file),
        bodies=choice.switch(traces_bodies, "OCTO_TRACING_BODIES", True),
        vars=choice.switch(traces_vars, "OCTO_TRACING_VARS", True),
        limit=choice.number(traces_max_payload, "OCTO_TRACING_MAX_PAYLOAD", 32768),
        room=max(1, choice.number(traces_buffer, "OCTO_TRACING_BUFFER", 4096)),
    )
    address = options.address(
        "--observability-addr", choice.text(observability_addr, "OCTO_OBSERVABILITY_ADDR", ":39999")
    )
    observed = choice.switch(observability, "OCTO_OBSERVABILITY", True)
    counted = choice.switch(metrics, "OCTO_METRICS", False)
    blocks = choice.text(metrics_blocks, "OCTO_METRICS_BLOCKS", "")
    recorded = choice.text(traces_blocks, "OCTO_TRACING_BLOCKS", "*")

    from octo_cli.serving import Admin, Program  # here, because the help reads this file and needs no event loop

    admin = Admin(address if observed else "", counted, blocks)
    beside = config if config.is_dir() else config.parent
    with (
        logs.engine_lines(session),
        options.store(session, store, beside) as kept,
        recording.tracing(session, trace) as recorder,
    ):
        program = Program(
            session,
            config,
            kept,
            admin,
            watch=watch,
            recorder=recorder,
            recorded_blocks=recorded,
            limits=limits,
            drafts=drafts,
            values=record_values,
        )
        try:
            signals.run(session, program.run())
        except KeyboardInterrupt:
            return 0
    return 0


def _trace_file(choice: options.Choice, log: str | None, traces: bool | None, file: str | None) -> Path | None:
    """The file of the run log, if there is to be one."""
    if log and file and log != file:
        raise UsageError("`--log` and `--traces-file` name two files", hint="one of them is enough")
    if not log and not choice.switch(traces, "OCTO_TRACING", False):
        return None
    default = f"octo-trace-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.jsonl"
    return Path(log or choice.text(file, "OCTO_TRACING_FILE", default))
