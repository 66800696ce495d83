"""octo_cli/main.py: finding commands, help, faults of the command line."""

from __future__ import annotations

from typing import Any

import pytest

HELP = """\
Usage: octo COMMAND ...

  Run declarative flows with LLM agents in them: test, replay, resume and
  measure them

Options:
  --version             Show the version and exit
  --install-completion  Install completion for the current shell
  --show-completion     Show completion for the current shell, to copy it or
                        customize the installation
  -h, --help            Show this message and exit

Write:
  expr      Evaluate one expression and print what it yields
  fmt       Lay out config files without losing a comment
  graph     Draw the flows of a config: blocks, branches, tools, connectors
  new       Make a small project to start from
  schema    Print the catalogue of blocks, or a JSON Schema for an editor
  validate  Check a config and show every problem in it

Run:
  invoke    Call one flow once and print the message it ends with
  proxy     Serve the models of a config to clients of OpenAI and Anthropic
  run       Start the flows of a config with their sources and serve until a
            signal comes

Test:
  test      Run test suites that lie beside flows

Look:
  models    Look at the models that can be called
  runs      Look at what runs did, while they go on or afterwards

Keep:
  agents    Edit, deploy and restore agents that flows link
  memory    Look at what agents remember, and forget it
  store     Look after the file in which octo keeps things

Other:
  version   Print the version of octo
"""


@pytest.mark.parametrize("args", [[], ["-h"], ["--help"], ["help"]], ids=["nothing", "-h", "--help", "help"])
def test_the_help_lists_the_commands_under_their_headings(octo: Any, args: list[str]) -> None:
    assert octo(*args) == (HELP, "", 0)


def test_help_of_a_command_is_the_same_in_both_spellings(octo: Any) -> None:
    shown = octo("version", "--help")

    assert octo("help", "version") == shown
    assert octo("help", "memory", "list") == octo("memory", "list", "--help")
    assert octo("memory", "help", "list") == octo("memory", "list", "--help")
    assert shown == (
        "Usage: octo version [OPTIONS]\n\n  Print the version of octo\n\nOptions:\n"
        "  -h, --help  Show this message and exit\n",
        "",
        0,
    )


@pytest.mark.parametrize(
    ("args", "text", "hint"),
    [
        (["invok"], "`octo` has no command `invok`", "did you mean `invoke`?"),
        (["init"], "`octo` has no command `init`", "did you mean `new`?"),
        (
            ["zzz"],
            "`octo` has no command `zzz`",
            "known names: `agents`, `expr`, `fmt`, `graph`, `invoke`, `memory`, `models`, `new`, `proxy`, `run`, "
            "`runs`, `schema`, `store`, `test`, `validate`, `version`",
        ),
        (["--zzz"], "`octo` has no option `--zzz`", "the command comes first: `octo COMMAND --zzz`"),
        (["--config", "x"], "`octo` has no option `--config`", "the command comes first: `octo COMMAND --config`"),
        (["--config=x", "expr"], "`octo` has no option `--config`", "the command comes first: `octo COMMAND --config`"),
        (["--versoin"], "`octo` has no option `--versoin`", "did you mean `--version`?"),
        (["store", "--json"], "`octo store` has no option `--json`", "the verb comes first: `octo store VERB --json`"),
        (
            ["expr", "-body.n"],
            "`octo expr` has no option `-b`",
            "an argument that begins with `-` stands after `--`: `octo expr -- -body.n`",
        ),
        (
            ["expr", "-vars == 1"],
            "`octo expr` has no option `-v`",
            "an argument that begins with `-` stands after `--`: `octo expr -- '-vars == 1'`",
        ),
        (["expr", "--zzz"], "`octo expr` has no option `--zzz`", "see `octo expr --help`"),
        (["validate", "--config", "x", "-1"], "`octo validate` takes no argument `-1`", "see `octo validate --help`"),
        (["validate", "--config", ""], "`--config` is empty", "give it the name of a file or a directory"),
        (["validate", "--config="], "`--config` is empty", "give it the name of a file or a directory"),
        (["invoke", "--attach", ""], "`--attach` is empty", "give it the name of a file or a directory"),
        (["invoke", "--envelope-out="], "`--envelope-out` is empty", "give it the name of a file or a directory"),
        (
            ["invoke", "--run-debug-config", ""],
            "`--run-debug-config` is empty",
            "give it the name of a file or a directory",
        ),
        (["invoke", "--each", ""], "`--each` is empty", "give it the name of a file or a directory"),
        (["schema", "--write", ""], "`--write` is empty", "give it the name of a file or a directory"),
        (["store", "backup", ""], "`FILE` is empty", "give it the name of a file or a directory"),
        (["fmt", "--", "a.yaml", ""], "`FILE` is empty", "give it the name of a file or a directory"),
        (["new", ""], "`DIR` is empty", "give it the name of a file or a directory"),
        (["expr", "1", "--data", "@"], "`--data`: the name of the file is empty", "write `--data @FILE`"),
        (["expr", "1", "--vars", "@"], "`--vars`: the name of the file is empty", "write `--vars @FILE`"),
        (["validate"], "`octo validate` needs `--config`", "see `octo validate --help`"),
        (["validate", "a b.yaml"], "`octo validate` needs `--config`", "write `--config 'a b.yaml'`"),
        (["validate", "--confg", "x"], "`octo validate` has no option `--confg`", "did you mean `--config`?"),
        (["validate", "-config", "x"], "`octo validate` has no option `-config`", "did you mean `--config`?"),
        (["validate", "--config"], "option `--config` needs a value", "see `octo validate --help`"),
        (["version", "now"], "`octo version` takes no argument `now`", "see `octo version --help`"),
        (["version", "--", "-x"], "`octo version` takes no argument `-x`", "see `octo version --help`"),
        (
            ["expr", "1", "--json=perhaps"],
            "`--json` is on or off, found `perhaps`",
            "write `--json` or `--json=false`",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_command_line_that_cannot_be_carried_out_ends_with_2_and_a_hint(
    octo: Any, args: list[str], text: str, hint: str
) -> None:
    record = f'level=ERROR msg="cli stopped with error" error="{text}" hint="{hint}"\n'

    assert octo(*args) == ("", record, 2)
    assert octo(*args, terminal="err") == ("", f"error: {text}\nhint: {hint}\n", 2)


def test_an_unknown_log_level_is_reported_and_means_info(octo: Any) -> None:
    assert octo("version", environ={"LOG_LEVEL": "loud"}) == (
        "octo 0.1.0\n",
        'level=WARN msg="`LOG_LEVEL` is `loud`, expected `debug`, `info`, `warn` or `error`; using `info`"\n',
        0,
    )


def test_in_the_help_of_a_command_arguments_and_options_read_alike(octo: Any) -> None:
    lines = octo("store", "backup", "--help").stdout.splitlines()

    assert lines[0] == "Usage: octo store backup [OPTIONS] FILE"
    assert lines[-1] == "  -h, --help            Show this message and exit"
