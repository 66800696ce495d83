"""Serve the models of a config to clients of OpenAI and Anthropic."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from octo.errors import OctoError, UsageError
from octo_cli import inputs, logs, options, signals
from octo_cli.options import ConfigPath, Debug
from octo_cli.session import Session

GROUP = "Run"


def command(
    context: typer.Context,
    config: ConfigPath,
    connector: Annotated[
        str,
        typer.Option(
            "--connector",
            metavar="NAME",
            show_default=False,
            help="The connector of requests that name none; default the only one",
        ),
    ] = "",
    listen: Annotated[
        str | None,
        typer.Option(
            "--listen", metavar="HOST:PORT", help="Where to; default `OCTO_PROXY_LISTEN`, else `127.0.0.1:4180`"
        ),
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(
            "--token", metavar="TEXT", help="The key that clients must send; default `OCTO_PROXY_TOKEN`, else any key"
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host", metavar="NAME", help="A further name that the proxy is called by; may be repeated"
        ),
    ] = None,
    cors: Annotated[
        list[str] | None,
        typer.Option("--cors", metavar="ORIGIN", help="Pages of this origin may call it, too; may be repeated"),
    ] = None,
    log: Annotated[
        Path | None,
        typer.Option(
            "--log",
            metavar="FILE",
            parser=inputs.path,
            help="Append a record of each request to a run log; default none",
        ),
    ] = None,
    debug: Debug = False,
) -> int:
    """Serve the models of a config to clients of OpenAI and Anthropic.

    A line on standard output says where. A client names the model as `CONNECTOR/MODEL`, or has a base URL of its own
    for each connector: `http://127.0.0.1:4180/c/CONNECTOR/v1`. The page at `/` shows what to set; the token is its
    password. The config is loaded anew when it changes. Ctrl-C or SIGTERM ends it.
    """
    session: Session = context.obj
    session.debug = debug
    choice = options.Choice(session)
    address = options.address("--listen", choice.text(listen, "OCTO_PROXY_LISTEN", "127.0.0.1:4180"))
    secret = choice.text(token, "OCTO_PROXY_TOKEN", "").strip()

    from octo import server
    from octo.proxy.guard import is_loopback

    if not (secret.isascii() and secret.isprintable()) or " " in secret:
        raise UsageError(
            "`--token`: no client can send a key with other characters than those of ASCII, or with spaces",
            hint="write letters, digits and signs only",
        )

    if hint := server.missing():
        raise OctoError("`octo proxy` needs the extra `server`", hint=hint)
    host, _ = server.split_address(address)
    if not secret and not is_loopback(host):
        raise UsageError(
            f"`--listen {address}`: others than this machine can reach it, and there is no token",
            hint="`--token`, or the variable `OCTO_PROXY_TOKEN`, says what clients must send as their key",
        )

    from octo_cli.proxying import ProxyProgram, Wanted

    wanted = Wanted(config, address, connector, secret, allow_host or (), cors or (), log)
    with logs.engine_lines(session):
        try:
            signals.run(session, ProxyProgram(session, wanted).run())
        except KeyboardInterrupt:
            return 0
    return 0
