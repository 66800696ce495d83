"""octo_cli/debugging.py: mocks, spies and a breakpoint from flags and debug configs."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

CONFIG = """\
env:
  - name: API_KEY
    default: placeholder
flows:
  - name: shop
    process:
      - type: rest
        name: price
        settings: { connector: nowhere }
      - type: set-payload
        name: total
        settings: { value: 'body.price * vars.?rate.orValue(1.0)' }
  - name: same
    process: [ { type: delete-variable, name: it, settings: { name: none } } ]
  - name: tells
    process: [ { type: set-payload, name: it, settings: { value: '"key " + env.API_KEY' } } ]
  - name: drops
    process: [ { type: delete-variable, name: it, settings: { name: none } } ]
"""
PRICE = '{"shop.price": {"default": {"body": {"price": 3}}}}'


@pytest.fixture
def invoke(octo: Any, tmp_path: Path) -> Any:
    (tmp_path / "app.yaml").write_text(CONFIG, encoding="utf-8")

    def call(flow: str, *args: str, debug: str = "", **more: Any) -> Any:
        if debug:
            (tmp_path / "debug.yaml").write_text(debug, encoding="utf-8")
            args = ("--run-debug-config", "debug.yaml", *args)
        return octo("invoke", "--config", "app.yaml", "--flow", flow, *args, **more)

    return call


def parsed(outcome: Any) -> Any:
    """The envelope of a command that did its work, ids and times cut out."""
    assert (outcome.status, outcome.stderr, outcome.stdout.count("\n")) == (0, "", 1)
    return without_ids(json.loads(outcome.stdout))


def without_ids(value: Any) -> Any:
    match value:
        case dict():
            return {key: without_ids(item) for key, item in value.items() if key not in ("event_id", "at")}
        case list():
            return [without_ids(item) for item in value]
    return value


# ---------------------------------------------------------------- what is printed


def test_mocks_alone_print_the_message(invoke: Any) -> None:
    assert parsed(invoke("shop", "--mocks", PRICE)) == {"body": 3}


@pytest.mark.parametrize(
    "case", ['{"body": null}', '{"body": null, "error": "", "drop": false}'], ids=["alone", "blank"]
)
def test_a_mock_gives_a_null_body(invoke: Any, case: str) -> None:
    mocks = f'{{"shop.price": {{"default": {{"body": 1}}}}, "same.it": {{"default": {case}}}}}'
    assert parsed(invoke("same", "--mocks", mocks, "--data", "7", "--envelope")) == {"result": {}}


def test_the_envelope_tells_how_the_call_ended(invoke: Any) -> None:
    assert parsed(invoke("same", "--mocks", PRICE, "--data", "7", "--envelope")) == {"result": {"body": 7}}
    mocks = PRICE[:-1] + ', "drops.it": {"default": {"drop": true}}}'
    assert parsed(invoke("drops", "--mocks", mocks, "--envelope")) == {"dropped": True}


@pytest.mark.parametrize(
    ("args", "error"),
    [
        (("shop", "--mocks", '{"shop.price": {"default": {"error": "closed"}}}'), 'block "price": closed'),
        (("shpo", "--mocks", PRICE), 'flow "shpo" is not registered'),
    ],
    ids=["failed", "unknown flow"],
)
def test_a_failure_is_in_the_envelope_and_the_status_is_0(invoke: Any, args: tuple[str, ...], error: str) -> None:
    assert parsed(invoke(*args, "--envelope")) == {"error": error}
    assert invoke(*args).status != 0


def test_a_breakpoint_and_spies_print_an_envelope(invoke: Any) -> None:
    records = [{"seq": 1, "input": {}, "output": {"body": {"price": 3}}}]

    outcome = invoke("shop", "--mocks", PRICE, "--break-at", "shop.price", "--spies", "shop.price, shop.total")

    assert parsed(outcome) == {
        "reached": True,
        "block": "shop.price",
        "message": {"body": {"price": 3}},
        "spies": [{"address": "shop.price", "records": records}, {"address": "shop.total", "records": []}],
    }


def test_the_envelope_is_laid_out_on_a_terminal(invoke: Any) -> None:
    outcome = invoke("same", "--mocks", PRICE, "--spies", "shop.total", terminal="out")

    lines = outcome.stdout.splitlines()
    assert lines[:3] == ["{", '  "result": {', f'    "event_id": {lines[2].partition(": ")[2]}']
    assert lines[3:] == [
        "  },",
        '  "spies": [',
        "    {",
        '      "address": "shop.total",',
        '      "records": []',
        "    }",
        "  ]",
        "}",
    ]


def test_secrets_are_masked_in_envelopes(invoke: Any) -> None:
    outcome = invoke("tells", "--mocks", PRICE, "--spies", "tells.it", environ={"API_KEY": "s3cret-value"})

    assert "s3cret-value" not in outcome.stdout
    assert parsed(outcome)["result"] == {"body": "key ***"}


def test_an_envelope_in_a_file_is_whole_and_private(invoke: Any, tmp_path: Path) -> None:
    target = tmp_path / "out.json"
    target.write_text("an old and longer text " * 9, encoding="utf-8")

    outcome = invoke("same", "--mocks", PRICE, "--data", "7", "--envelope-out", "out.json")

    assert outcome == ("", "", 0)
    text = target.read_text(encoding="utf-8")
    assert text.endswith("\n")
    assert without_ids(json.loads(text)) == {"result": {"body": 7}}
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["app.yaml", "out.json"]


def test_a_link_to_the_file_stays_a_link(invoke: Any, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "out.json").symlink_to(tmp_path / "there" / "real.json")

    invoke("same", "--mocks", PRICE, "--envelope-out", "out.json")

    assert (tmp_path / "out.json").is_symlink()
    assert without_ids(json.loads((tmp_path / "there" / "real.json").read_text(encoding="utf-8"))) == {"result": {}}


@pytest.mark.parametrize(
    ("target", "text"),
    [
        (".", "`--envelope-out`: `.` is a directory"),
        ("no/where.json", "`--envelope-out`: there is no directory `no`"),
    ],
)
def test_a_file_that_cannot_be_written_is_told_before_the_call(invoke: Any, target: str, text: str) -> None:
    outcome = invoke("same", "--mocks", PRICE, "--envelope-out", target, terminal="err")

    assert (outcome.stdout, outcome.stderr.splitlines()[0], outcome.status) == ("", f"error: {text}", 2)


def test_the_time_limit_is_in_the_envelope(octo: Any, tmp_path: Path) -> None:
    (tmp_path / "app.yaml").write_text(
        "flows: [{name: hangs, process: [{type: cli-run, settings: {program: '\"sleep\"', args: '[\"20\"]'}}]}]",
        encoding="utf-8",
    )
    from os import environ

    outcome = octo(
        "invoke", "--config", "app.yaml", "--flow", "hangs", "--timeout", "100ms", "--envelope", environ=environ
    )

    assert parsed(outcome) == {"error": 'call flow "hangs": context deadline exceeded'}


# ---------------------------------------------------------------- debug configs

FILE = """\
input:
  data: { n: 2 }
  vars: { rate: 2 }
breakAt: same.it
spies: [ same.it ]
mocks:
  shop.price: { default: { body: { price: 5 } } }
"""


def test_a_debug_config_gives_input_and_doubles(invoke: Any) -> None:
    message = {"variables": {"rate": 2}, "body": {"n": 2}}

    assert parsed(invoke("same", debug=FILE)) == {
        "reached": True,
        "block": "same.it",
        "message": message,
        "spies": [{"address": "same.it", "records": [{"seq": 1, "input": message, "output": message}]}],
    }


def test_numbers_of_a_debug_config_are_those_of_json(invoke: Any) -> None:
    debug = "input: { data: { n: 9007199254740993, m: 3 } }\nmocks: {shop.price: {default: {drop: true}}}"

    assert parsed(invoke("same", debug=debug)) == {"body": {"n": 9007199254740992, "m": 3}}


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (("--data", "1"), {"variables": {"rate": 2}, "body": 1}),
        (("--data", "null"), {"variables": {"rate": 2}}),
        (("--data", ""), {"variables": {"rate": 2}, "body": {"n": 2}}),
        (("--vars", '{"x": 1}'), {"variables": {"x": 1}, "body": {"n": 2}}),
        (("--vars", "{}"), {"body": {"n": 2}}),
        (("--set", "m=3"), {"variables": {"rate": 2}, "body": {"m": 3, "n": 2}}),
        (
            ("--content-type", "text/plain"),
            {
                "variables": {"rate": 2},
                "body": {"contentType": "text/plain", "rawData": '{"n":2}'},
                "raw_content": True,
            },
        ),
    ],
    ids=["data", "null data", "empty data", "vars", "no vars", "set", "content type"],
)
def test_a_flag_replaces_a_part_of_the_input(invoke: Any, args: tuple[str, ...], expected: Any) -> None:
    assert parsed(invoke("same", *args, debug=FILE))["message"] == expected


@pytest.mark.parametrize("data", ["", "  data: null\n"])
def test_without_data_in_the_file_standard_input_is_read(invoke: Any, data: str) -> None:
    debug = f"input:\n  vars: {{ rate: 2 }}\n{data}mocks: {{shop.price: {{default: {{drop: true}}}}}}\n"

    assert parsed(invoke("same", debug=debug, stdin='{"from": "pipe"}'))["body"] == {"from": "pipe"}
    assert parsed(invoke("same", debug=FILE, stdin='{"from": "pipe"}'))["message"]["body"] == {"n": 2}


def test_each_flag_replaces_its_section_whole(invoke: Any) -> None:
    assert parsed(
        invoke("shop", "--mocks", PRICE, "--break-at", "shop.price", "--spies", "shop.total", debug=FILE)
    ) == {
        "reached": True,
        "block": "shop.price",
        "message": {"variables": {"rate": 2}, "body": {"price": 3}},
        "spies": [{"address": "shop.total", "records": []}],
    }


# ---------------------------------------------------------------- what is wrong


def test_problems_of_a_debug_config_are_shown_at_their_places(invoke: Any) -> None:
    debug = "breakAt: shop.totl\nspies: [shop.total, shop.total]\nmocks:\n  shop.price: { default: { body: 1 } }\n"
    outcome = invoke("shop", debug=debug, terminal="err")
    assert (outcome.stdout, outcome.status) == ("", 2)
    assert outcome.stderr == (
        'error: debug.yaml:1:10: breakpoint "shop.totl": no block "totl" in that chain (blocks: price, total)\n'
        "    1 | breakAt: shop.totl\n"
        "      |          ^^^^^^^^^\n"
        "hint: did you mean `total`?\n"
        "\n"
        'error: debug.yaml:2:21: spy "shop.total": the address is given twice\n'
        "    2 | spies: [shop.total, shop.total]\n"
        "      |                     ^^^^^^^^^^\n"
        "hint: remove one of them\n"
    )


def test_a_mock_of_nothing_is_shown_at_its_address(invoke: Any) -> None:
    debug = "mocks:\n  shop.price: { default: { body: 1 } }\n  shop.totl: { default: { body: 1 } }\n"

    assert invoke("shop", debug=debug, terminal="err") == (
        "",
        'error: debug.yaml:3:3: mock "shop.totl": no block "totl" in that chain (blocks: price, total)\n'
        "    3 |   shop.totl: { default: { body: 1 } }\n"
        "      |   ^^^^^^^^^\n"
        "hint: did you mean `total`?\n",
        2,
    )


def test_problems_of_flags_name_the_kind_and_what_exists(invoke: Any) -> None:
    outcome = invoke("shop", "--mocks", PRICE, "--spies", "shop.price[x].y", "--break-at", "x.y", "--envelope")

    assert (outcome.stdout, outcome.status) == ("", 2)
    assert outcome.stderr == (
        'level=ERROR msg="config problem" error="breakpoint \\"x.y\\": no flow named \\"x\\" '
        '(flows: shop, same, tells, drops)"\n'
        'level=ERROR msg="config problem" error="spy \\"shop.price[x].y\\": it lies inside the block that mock '
        '\\"shop.price\\" replaces" hint="nothing inside a mocked block runs; remove one of them"\n'
        'level=ERROR msg="cli stopped with error" error="breakpoint \\"x.y\\": no flow named \\"x\\" (flows: shop, '
        'same, tells, drops)\\nspy \\"shop.price[x].y\\": it lies inside the block that mock \\"shop.price\\" '
        'replaces"\n'
    )


@pytest.mark.parametrize(
    ("mocks", "stderr"),
    [
        (
            '{"shop.price": {"default": {"body": 1, "eror": "x"}, "cases": [{"when": "true", "body": 2}]}}',
            'error: parse mock "shop.price": unknown field "eror" in `default`\n'
            '      | {"cases":[{"body":2,"when":"true"}],"default":{"body":1,"eror":"x"}}\n'
            "      |                                                         ^^^^^^\n"
            "hint: did you mean `error`?\n",
        ),
        (
            '{"shop.price": {"cases": [{"when": "body.", "body": 2}]}}',
            'error: parse mock "shop.price": compile expression "body.": expected a name after `.`, found end of '
            "expression\n"
            '      | {"cases":[{"body":2,"when":"body."}]}\n'
            "      |                                  ^\n",
        ),
        (
            '{"shop.price": 1}',
            'error: parse mock "shop.price": expected a mapping with keys such as `cases`, `default`, found a number\n'
            "      | 1\n"
            "      | ^\n",
        ),
        (
            '{"shop.price": ',
            "error: parse --mocks JSON: expecting value at line 1, column 16\n",
        ),
        (
            "[]",
            "error: parse --mocks JSON: expected an object, found a list\nhint: for example '{\"a\": 1}'\n",
        ),
    ],
    ids=["an unknown key", "no expression", "no mapping", "no JSON", "no object"],
)
def test_a_mock_on_the_command_line_that_cannot_be_used(invoke: Any, mocks: str, stderr: str) -> None:
    outcome = invoke("shop", "--mocks", mocks, terminal="err")

    assert (outcome.stdout, outcome.stderr, outcome.status) == ("", stderr, 2)


@pytest.mark.parametrize("option", ["--mocks", "--spies", "--break-at"])
@pytest.mark.parametrize("text", ["", " "], ids=["empty", "blank"])
def test_an_empty_flag_is_refused(invoke: Any, option: str, text: str) -> None:
    assert invoke("drops", option, text, terminal="err") == (
        "",
        f"error: `{option}` is empty\nhint: leave it out, or fill the shell variable that it takes\n",
        2,
    )


def test_an_address_that_is_mocked_twice_is_refused(invoke: Any) -> None:
    mock = '"shop.price": {"default": {"drop": true}}'

    assert invoke("shop", "--mocks", f"{{{mock}, {mock}}}", terminal="err") == (
        "",
        "error: parse --mocks JSON: `shop.price` is given 2 times\nhint: keep one of them\n",
        2,
    )


def test_one_report_has_the_problems_of_all_sections(invoke: Any) -> None:
    debug = (
        "breakAt: tells.at\nspies: [tells.its, tells.it]\nmocks:\n"
        "  shop.price: {default: {drop: true}}\n  shop.prise: {default: {drop: true}}\n"
    )

    outcome = invoke("tells", debug=debug, terminal="err")

    errors = [line for line in outcome.stderr.splitlines() if line.startswith("error: debug.yaml")]
    assert (errors, outcome.status) == (
        [
            'error: debug.yaml:1:10: breakpoint "tells.at": no block "at" in that chain (blocks: it)',
            'error: debug.yaml:2:9: spy "tells.its": no block "its" in that chain (blocks: it)',
            'error: debug.yaml:5:3: mock "shop.prise": no block "prise" in that chain (blocks: price, total)',
        ],
        2,
    )


def test_a_breakpoint_on_a_block_that_fails_tells_why_though_the_flow_recovers(octo: Any, tmp_path: Path) -> None:
    (tmp_path / "app.yaml").write_text(
        """
flows:
  - name: mends
    process: [ { type: set-payload, name: bad, settings: { value: body.none } } ]
    error: [ { type: set-payload, settings: { value: '"mended"' } } ]
""",
        encoding="utf-8",
    )
    outcome = octo("invoke", "--config", "app.yaml", "--flow", "mends", "--data", "{}", "--break-at", "mends.bad")

    assert parsed(outcome) == {
        "reached": False,
        "block": "mends.bad",
        "error": "set-payload value: evaluate expression: no such key: none",
    }


def test_half_an_emoji_in_a_mock_is_replaced(invoke: Any) -> None:
    mocks = '{"shop.price": {"default": {"body": {"price": 1, "q": "\\ud83d \\ud83d\\ude00"}}}}'

    assert (
        parsed(invoke("shop", "--mocks", mocks, "--break-at", "shop.price"))["message"]["body"]["q"]
        == "\ufffd \U0001f600"
    )


# ---------------------------------------------------------------- written models

AGENT = """\
connectors:
  - { name: claude, type: llm-anthropic, settings: { apiKey: k } }
  - { name: files, type: file, settings: { root: . } }
flows:
  - name: main
    process:
      - type: ai-agent
        connector: claude
        prompt: Do it.
        tools: [ { name: look, description: Looks., process: [] } ]
"""


@pytest.fixture
def agent(octo: Any, tmp_path: Path) -> Any:
    """Call an agent with what a debug config says of models."""
    (tmp_path / "agent.yaml").write_text(AGENT, encoding="utf-8")

    def call(models: str, **more: Any) -> Any:
        (tmp_path / "debug.yaml").write_text(f"models:\n  {models}\n", encoding="utf-8")
        return octo("invoke", "--config", "agent.yaml", "--flow", "main", "--run-debug-config", "debug.yaml", **more)

    return call


def test_replies_of_a_debug_config_are_given_in_the_place_of_a_model(agent: Any) -> None:
    body = parsed(agent("claude: [ { calls: [ { name: look, args: { at: 1 } } ] }, { text: done } ]"))["body"]

    assert body == "done"


@pytest.mark.parametrize(
    ("models", "error"),
    [
        (
            "claude: [ { calls: [ { name: look } ] } ]",
            'debug.yaml:2:3: model "claude": turn 2 is not written, which was asked with '
            '{"results":[{"id":"call_1","isError":false,"name":"look","text":"{}"}],"role":"tool"}',
        ),
        ("clade: []", 'debug.yaml:2:3: model "clade": no connector has this name (models: claude)'),
        ("files: []", 'debug.yaml:2:3: model "files": it is a connector of type `file`, which is no model'),
        (
            "claude: [ { txt: a } ]",
            'debug.yaml:2:15: parse debug config "debug.yaml": field txt not found in an entry of `claude`',
        ),
    ],
    ids=["used up", "no connector", "no model", "no reply"],
)
def test_models_that_cannot_be_given_end_with_2(agent: Any, models: str, error: str) -> None:
    outcome = agent(models, terminal="err")

    assert (outcome.stdout, outcome.status) == ("", 2)
    assert f"error: {error}\n" in outcome.stderr
