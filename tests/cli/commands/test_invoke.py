"""octo_cli/commands/invoke.py: one call of one flow."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

CONFIG = """\
env:
  - name: API_KEY
    default: placeholder
flows:
  - name: double
    process:
      - type: set-variable
        settings: { name: seen, value: 'true' }
      - type: set-payload
        settings: { value: '{"n": body.n * 2}' }
  - name: recovered
    process:
      - type: set-payload
        name: price
        settings: { value: 'body.qty' }
    error:
      - type: set-payload
        settings: { value: '"sorry"' }
  - name: fails
    process:
      - type: set-payload
        name: price
        settings: { value: 'body.qty' }
  - name: tells
    process:
      - type: log
        settings: { message: '"key " + env.API_KEY' }
      - type: set-payload
        settings: { value: '{"key": env.API_KEY, "text": "<" + env.API_KEY + ">"}' }
  - name: empty
"""


@pytest.fixture
def invoke(octo: Any, tmp_path: Path) -> Any:
    (tmp_path / "app.yaml").write_text(CONFIG, encoding="utf-8")

    def call(flow: str, *args: str, **more: Any) -> Any:
        return octo("invoke", "--config", "app.yaml", "--flow", flow, *args, **more)

    return call


def without_id(text: str) -> str:
    return re.sub(r'"event_id": ?"[0-9a-f]{32}"', '"event_id":"…"', text)


def test_the_message_is_printed_on_one_line(invoke: Any) -> None:
    stdout, stderr, status = invoke("double", "--data", '{"n": 4}')

    assert without_id(stdout) == '{"event_id":"…","variables":{"seen":true},"body":{"n":8}}\n'
    assert (stderr, status) == ("", 0)


def test_on_a_terminal_it_is_laid_out(invoke: Any) -> None:
    stdout, stderr, status = invoke("double", "--data", '{"n": 4}', terminal="out err")

    assert without_id(stdout) == (
        '{\n  "event_id":"…",\n  "variables": {\n    "seen": true\n  },\n  "body": {\n    "n": 8\n  }\n}\n'
    )
    assert (stderr, status) == ("", 0)


def test_variables_are_given_and_may_be_replaced(invoke: Any) -> None:
    stdout, _, _ = invoke("double", "--data", '{"n": 4}', "--vars", '{"seen": 1, "more": [2]}')

    assert without_id(stdout) == '{"event_id":"…","variables":{"more":[2],"seen":true},"body":{"n":8}}\n'


def test_a_null_body_is_left_out(invoke: Any) -> None:
    assert without_id(invoke("empty").stdout) == '{"event_id":"…"}\n'


def test_a_recovered_failure_is_no_failure(invoke: Any) -> None:
    stdout, stderr, status = invoke("recovered", "--data", "{}")

    assert without_id(stdout) == (
        '{"event_id":"…","variables":{"error":{"block":"price","flow":"recovered","message":'
        '"block \\"price\\": set-payload value: evaluate expression: no such key: qty"}},"body":"sorry"}\n'
    )
    assert (stderr, status) == ("", 0)


def test_a_failure_ends_with_1_and_names_the_block(invoke: Any) -> None:
    text = 'block "price": set-payload value: evaluate expression: no such key: qty'
    hint = (
        "`has(body.qty)` tells whether it is there, `body.?qty.orValue(…)` reads it if it is there, or something else"
    )
    quoted = text.replace('"', '\\"')

    assert invoke("fails", "--data", "{}", terminal="err") == (
        "",
        f"error: app.yaml:21:9: {text}\n  in flow `fails`, at fails.price\nhint: {hint}\n",
        1,
    )
    assert invoke("fails", "--data", "{}") == (
        "",
        f'level=ERROR msg="cli stopped with error" error="{quoted}" file=app.yaml line=21 column=9 '
        f'address=fails.price hint="{hint}"\n',
        1,
    )


FAILING = """\
connectors:
  - { name: disk, type: file, settings: { root: . } }
  - { name: model, type: llm-scripted, settings: { turns: [{ error: { message: overloaded, status: 400 } }] } }
flows:
  - name: world
    process: [{ type: file-read, connector: disk, path: '"none"' }]
  - name: expression
    process: [{ type: set-payload, value: '1 / 0' }]
  - name: provider
    process: [{ type: ai-agent, connector: model, prompt: Help., tools: [{ name: a, description: b, process: [] }] }]
"""


def test_how_to_recover_is_said_where_the_world_let_a_block_down(octo: Any, tmp_path: Path) -> None:
    (tmp_path / "failing.yaml").write_text(FAILING, encoding="utf-8")
    outcomes = {
        flow: octo("invoke", "--config", "failing.yaml", "--flow", flow, terminal="err").stderr
        for flow in ("world", "expression", "provider")
    }

    assert {flow for flow, shown in outcomes.items() if "can recover from this" in shown} == {"world"}
    assert outcomes["world"].endswith("hint: `handle-errors` or the flow's `error:` chain can recover from this\n")


def test_an_unknown_flow_ends_with_2_and_a_near_miss(invoke: Any) -> None:
    assert invoke("dubble", terminal="err") == (
        "",
        'error: flow "dubble" is not registered\nhint: did you mean `double`?\n',
        2,
    )


def test_a_config_that_cannot_be_loaded_ends_with_2(octo: Any, tmp_path: Path) -> None:
    (tmp_path / "app.yaml").write_text("flows:\n  - nam: x\n", encoding="utf-8")

    assert octo("invoke", "--config", "app.yaml", "--flow", "x", terminal="err") == (
        "",
        'error: app.yaml:2:5: unknown field "nam" in an entry of `flows`\n'
        "    2 |   - nam: x\n"
        "      |     ^^^\n"
        "hint: did you mean `name`?\n",
        2,
    )


def test_secrets_are_masked_in_everything_that_is_printed(invoke: Any) -> None:
    stdout, stderr, status = invoke("tells", environ={"API_KEY": "s3cret-value"})

    assert without_id(stdout) == '{"event_id":"…","body":{"key":"***","text":"\\u003c***\\u003e"}}\n'
    assert re.sub("[0-9a-f]{32}", "…", stderr) == 'level=INFO msg="key ***" event_id=…\n'
    assert status == 0


def test_the_process_log_can_be_made_quiet(invoke: Any) -> None:
    assert invoke("tells", environ={"LOG_LEVEL": "error"}).stderr == ""


@pytest.mark.parametrize("text", ["soon", "3", "-1s"])
def test_a_time_limit_is_a_duration(invoke: Any, text: str) -> None:
    assert invoke("double", f"--timeout={text}", terminal="err") == (
        "",
        f"error: `--timeout`: expected a duration, found `{text}`\nhint: for example `30s`, `250ms` or `1m30s`\n",
        2,
    )


@pytest.mark.parametrize("text", ["0", "0s", "0ms"])
def test_a_call_has_some_time(invoke: Any, text: str) -> None:
    assert invoke("double", "--timeout", text, terminal="err") == (
        "",
        f"error: `--timeout`: a call that may take no time does nothing, found `{text}`\n"
        "hint: for example `30s`, `250ms` or `1m30s`\n",
        2,
    )


def test_a_call_that_takes_too_long_ends_with_1(
    octo: Any, tmp_path: Path, plugin: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(plugin)
    (tmp_path / "slow.yaml").write_text(
        "flows:\n  - name: slow\n    process:\n      - type: if\n        condition: 'true'\n"
        "        then: { process: [{ type: test-wait, for: 30s }] }\n",
        encoding="utf-8",
    )

    outcome = octo("invoke", "--config", "slow.yaml", "--flow", "slow", "--timeout", "20ms", terminal="err")

    assert outcome == (
        "",
        'error: call flow "slow": context deadline exceeded\n'
        "  in flow `slow`, at slow.if[then].test-wait\n"
        "hint: the time limit of a call is 0.02 s here: give it more with `--timeout`, in a suite with `timeout`\n",
        1,
    )


def test_a_dropped_message_prints_nothing(
    octo: Any, tmp_path: Path, plugin: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(plugin)
    (tmp_path / "drop.yaml").write_text("flows: [{name: drop, process: [{type: test-drop}]}]\n", encoding="utf-8")

    assert octo("invoke", "--config", "drop.yaml", "--flow", "drop") == (
        "",
        'level=INFO msg="flow dropped the message" flow=drop\n',
        0,
    )


@pytest.mark.parametrize(
    ("block", "error"),
    [
        ("test-memory", "error: out of memory\nhint: `octo invoke --each FILE` takes a large file row by row\n"),
        (
            "test-recursion",
            'error: limits.yaml:3:15: block "test-recursion": nested too deeply\n'
            "  in flow `limits`, at limits.test-recursion\n",
        ),
        ("test-nest", "error: nested too deeply\n"),
    ],
    ids=["memory", "a block that goes too deep", "an answer that is too deep"],
)
def test_the_limits_of_the_machine_are_no_bug(
    octo: Any, tmp_path: Path, plugin: Path, monkeypatch: pytest.MonkeyPatch, block: str, error: str
) -> None:
    monkeypatch.syspath_prepend(plugin)
    (tmp_path / "limits.yaml").write_text(
        f"flows:\n  - name: limits\n    process: [{{type: {block}}}]\n", encoding="utf-8"
    )

    assert octo("invoke", "--config", "limits.yaml", "--flow", "limits", terminal="err") == ("", error, 1)


def test_a_bug_is_one_line_and_a_report_without_secrets(
    octo: Any, tmp_path: Path, plugin: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(plugin)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "bug.yaml").write_text(
        "env: [{name: API_KEY}]\nflows:\n  - name: bug\n    process: [{type: test-crash}]\n", encoding="utf-8"
    )

    outcome = octo(
        "invoke", "--config", "bug.yaml", "--flow", "bug", environ={"API_KEY": "s3cret-value"}, terminal="err"
    )

    [report] = tmp_path.glob("octo-crash-*.txt")
    text = report.read_text(encoding="utf-8")
    assert outcome == (
        "",
        "error: octo has a bug: KeyError: '***'\n"
        f"hint: attach `{report}` to a bug report; known secrets are masked, but read it before you send it\n",
        1,
    )
    assert "command line: octo invoke --config bug.yaml --flow bug\n" in text
    assert "raise KeyError" in text
    assert "s3cret" not in text


def test_a_log_of_its_own_writes_to_standard_output_or_standard_error_with_secrets_masked(
    octo: Any, tmp_path: Path
) -> None:
    (tmp_path / "logs.yaml").write_text(
        """\
env: [ { name: API_KEY } ]
connectors:
  - { name: out, type: logger }
  - { name: err, type: logger, settings: { output: stderr } }
flows:
  - name: main
    process:
      - { type: log, logger: out, message: '"out " + env.API_KEY' }
      - { type: log, logger: err, message: '"err"' }
""",
        encoding="utf-8",
    )

    outcome = octo(
        "invoke", "--config", "logs.yaml", "--flow", "main", environ={"API_KEY": "sk-hunter2", "LOG_LEVEL": "error"}
    )

    event_id = outcome.stdout[-35:-3]
    assert re.sub(r"(?m)^time=\S+Z ", "", outcome.stdout) == (
        f'level=INFO msg="out ***" event_id={event_id}\n{{"event_id":"{event_id}"}}\n'
    )
    assert outcome.stderr == f'level=INFO msg="err" event_id={event_id}\n'


# ---------------------------------------------------------------- budgets

AGENT = """\
connectors:
  - {name: m, type: llm-scripted, settings: {turns: [{calls: [{name: t}], usage: {inputTokens: 9, outputTokens: 1}}]}}
flows:
  - name: ask
    process:
      - type: ai-agent
        connector: m
        prompt: Do it.
        tools: [{name: t, description: A tool., process: []}]
        default: {process: [{type: set-payload, settings: {value: '"spent"'}}]}
"""


@pytest.mark.parametrize("budget", ["maxTokens=10", "maxDuration=0", "maxCostUSD=0"])
def test_a_budget_is_what_the_agents_of_the_call_may_spend(octo: Any, tmp_path: Path, budget: str) -> None:
    (tmp_path / "agent.yaml").write_text(AGENT, encoding="utf-8")
    outcome = octo("invoke", "--config", "agent.yaml", "--flow", "ask", "--budget", budget)

    assert (json.loads(outcome.stdout)["body"], outcome.status) == ("spent", 0)


@pytest.mark.parametrize(
    ("budget", "text", "hint"),
    [
        ("maxToken=1", "there is no limit `maxToken`", "did you mean `maxTokens`?"),
        (
            "maxTokens=-1",
            "`maxTokens` cannot be `-1`",
            "for example `maxCostUSD=0.5`, `maxTokens=20000` or `maxDuration=2m`, each 0 or more",
        ),
        (
            "maxDuration=long",
            "`maxDuration` cannot be `long`",
            "for example `maxCostUSD=0.5`, `maxTokens=20000` or `maxDuration=2m`, each 0 or more",
        ),
    ],
)
def test_a_budget_that_is_none_is_refused(invoke: Any, budget: str, text: str, hint: str) -> None:
    assert invoke("double", "--budget", budget, terminal="err") == ("", f"error: `--budget`: {text}\nhint: {hint}\n", 2)
