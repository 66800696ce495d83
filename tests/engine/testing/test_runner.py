"""octo/testing/runner.py, octo/testing/trial.py, octo/testing/results.py, octo/testing/workspace.py: cases run, in
process and each in a process of its own.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess

import pytest

from octo.errors import ConfigError
from octo.testing.pairing import pairs
from octo.testing.results import Result
from octo.testing.runner import Runner, Surroundings
from octo.testing.trial import shuffled, trials
from shop import FUNCTIONS, SHOP, SLOW, statuses
from suites import COMMAND, run, write

# ---------------------------------------------------------------- what a case is made of


async def test_mocks_of_a_case_replace_those_of_the_file_or_take_them_away(tmp_path):
    suite = """
        flow: drops
        mocks: { drops.it: { default: { body: 7 } } }
        cases:
          - { name: the file's, expect: { body: 7 } }
          - { name: its own, mocks: { drops.it: { default: { body: 8 } } }, expect: { body: 8 } }
          - { name: none, mocks: { drops.it: null }, expect: { body: 1 } }
    """

    assert await statuses(tmp_path, suite) == ["passed"] * 3


async def test_variables_come_from_the_case_the_file_the_env_file_and_around_in_this_order(tmp_path):
    suite = """
        flow: tells
        cases:
          - { name: case, env: { CITY: case }, expect: { that: [ 'body.city == "case"' ] } }
          - { name: file, expect: { that: [ 'body.city == "file"' ] } }
        env: { CITY: file }
    """
    around = {"environ": {"CITY": "around"}, "variables": {"CITY": "env file"}}

    assert await statuses(tmp_path, suite, **around) == ["passed", "passed"]
    bare = "flow: tells\ncases: [ { name: one, expect: { that: [ 'body.city == \"env file\"' ] } } ]"
    assert await statuses(tmp_path, bare, **around) == ["passed"]
    assert await statuses(tmp_path, bare.replace("env file", "around"), environ={"CITY": "around"}) == ["passed"]
    assert "CITY" not in os.environ


async def test_each_case_has_a_store_of_its_own(tmp_path):
    suite = """
        flow: counts
        cases:
          - { name: one, expect: { vars: { n: 0 } } }
          - { name: two, expect: { vars: { n: 0 } } }
    """

    assert await statuses(tmp_path, suite) == ["passed", "passed"]
    assert not (tmp_path / ".octo").exists()


async def test_a_case_that_is_skipped_is_not_run(tmp_path):
    suite = "flow: drops\ncases: [ { name: one, skip: later, expect: { body: 5 } }, { name: two, skip: '' } ]"

    assert await statuses(tmp_path, suite) == ["skipped", "passed"]


# ---------------------------------------------------------------- what cannot be judged


@pytest.mark.parametrize(
    ("case", "error"),
    [
        (
            "spies: { quote.totl: {} }",
            '3:27: spy "quote.totl": no block "totl" in that chain (blocks: order, price, total)\n'
            "hint: did you mean `total`?",
        ),
        (
            "mocks: { quote.totl: { default: { body: 1 } } }",
            '3:27: mock "quote.totl": no block "totl" in that chain (blocks: order, price, total)\n'
            "hint: did you mean `total`?",
        ),
        (
            "models: { prices: [] }",
            '3:28: model "prices": it is a connector of type `http-client`, which is no model\n'
            "hint: the config declares no connector to a model",
        ),
        (
            "sent: { quote.x: {} }",
            '3:26: sent "quote.x": no block "x" in that chain (blocks: order, price, total)',
        ),
        (
            "log: [ { kind: llm.turn, path: shop.x } ]",
            '3:43: log "shop.x": no flow named "shop" (flows: quote, drops, tells, counts, many, recovers)',
        ),
        (
            "tools: [ { name: t, count: 0 } ]",
            '3:29: tools "t": no agent has a tool of this name (tools: none)',
        ),
    ],
    ids=["spy", "mock", "model", "sent", "log", "tool"],
)
@pytest.mark.parametrize("isolated", [False, True], ids=["in process", "isolated"])
async def test_a_case_that_names_what_does_not_exist_errs(tmp_path, case, error, isolated):
    suite = f"flow: quote\ncases:\n  - {{ name: one, {case} }}\n"

    (result,) = await run(tmp_path, SHOP, suite, isolated=isolated)

    assert (result.status, result.error) == ("errored", f"{tmp_path / 'app_test.yaml'}:{error}")


async def test_a_mock_of_the_file_that_names_nothing_is_told_at_its_place_for_every_case(tmp_path):
    suite = "flow: quote\nmocks: { quote.totl: { default: { body: 1 } } }\ncases: [ { name: one }, { name: two } ]\n"

    one, two = await run(tmp_path, SHOP, suite)

    assert one.error == two.error
    assert one.error.startswith(f'{tmp_path / "app_test.yaml"}:2:10: mock "quote.totl"')


@pytest.mark.parametrize("isolated", [False, True], ids=["in process", "isolated"])
async def test_cases_of_a_config_that_does_not_load_err(tmp_path, isolated):
    config = "flows: [ { name: a, process: [ { type: set-paylod } ] } ]"

    (result,) = await run(tmp_path, config, "flow: a\ncases: [ { name: one } ]", isolated=isolated)

    assert (result.status, result.error) == (
        "errored",
        f'{tmp_path / "app.yaml"}:1:40: block "set-paylod" not registered\nhint: did you mean `set-payload`?',
    )


@pytest.mark.parametrize("isolated", [False, True], ids=["in process", "isolated"])
async def test_a_connector_that_does_not_open_is_an_error(tmp_path, isolated):
    config = """
        connectors: [ { name: db, type: database, settings: { driver: sqlite, dsn: no/where/x.db } } ]
        flows: [ { name: a, process: [] } ]
    """

    (result,) = await run(tmp_path, config, "flow: a\ncases: [ { name: one } ]", isolated=isolated)

    assert result.status == "errored"
    assert result.error.startswith('connector "db" (database): ')


async def test_a_case_that_does_not_end_is_cancelled_and_is_an_error(tmp_path):
    (tmp_path / "slow.py").write_text(FUNCTIONS, encoding="utf-8")
    suite = write(tmp_path, SLOW, "flow: deaf\ncases: [ { name: one, timeout: 50ms } ]")
    runner = Runner(Surroundings(environ={}, cwd=tmp_path, grace=0.2))
    results: list[Result] = []

    await runner.run(trials(pairs([suite])), results.append)
    runner.workspace.remove()

    (result,), (task,) = results, runner.abandoned
    assert (result.status, result.error) == (
        "errored",
        "the case had not ended 0.2 s after its time limit of 0.05 s, and was cancelled",
    )
    await end(task)


async def end(task):
    """Take a task apart that does not listen when it is cancelled."""
    coroutine = task.get_coro()
    for _ in range(5):
        task.cancel()
        await asyncio.sleep(0)
    coroutine.close()


# ---------------------------------------------------------------- many cases


SLEEPY = """
    flows:
      - name: nap
        process: [ { type: python, name: it, settings: { file: nap.py, function: nap } } ]
      - name: flips
        process: [ { type: python, name: it, settings: { file: nap.py, function: flip } } ]
      - name: breaks
        process: [ { type: python, name: it, settings: { file: nap.py, function: crash } } ]
"""
NAPS = """
import asyncio

started, count = [], 0

async def nap(body):
    started.append(body)
    await asyncio.sleep(0.02)
    return list(started)

def flip(body):
    global count
    count += 1
    return count % 2

def crash(body):
    raise SystemExit(0)
"""
FIVE = "flow: nap\ncases:\n" + "".join(
    f"  - {{ name: n{number}, input: {{ data: {number} }}, expect: {{ that: ['size(body) > {limit}'] }} }}\n"
    for number, limit in enumerate((0, 9, 0, 0, 0))
)


@pytest.fixture
def naps(tmp_path):
    (tmp_path / "nap.py").write_text(NAPS, encoding="utf-8")
    return tmp_path


async def test_after_a_failure_no_more_cases_are_started_if_that_is_asked(naps):
    results = await run(naps, SLEEPY, FIVE, fail_fast=True, parallel=1)

    assert [result.status for result in results] == ["passed", "failed", "not-run", "not-run", "not-run"]


async def test_results_are_the_same_in_any_order_and_at_any_width(naps):
    suite = FIVE.replace("size(body) > 9", "1 > 9").replace("size(body) > 0", "1 > 0")
    found = trials(pairs([write(naps, SLEEPY, suite)]))
    seen = set()
    for order, width in ((found, 1), (found, 5), (shuffled(found, "a"), 2), (shuffled(found, "b"), 2)):
        results: list[Result] = []
        runner = Runner(Surroundings(environ={}, cwd=naps, parallel=width))
        await runner.run(order, results.append)
        runner.workspace.remove()
        seen.add(tuple(sorted((result.trial.name, result.status) for result in results)))

    assert len(seen) == 1
    assert shuffled(found, "a") == shuffled(found, "a") != shuffled(found, "b")


async def test_a_case_that_passes_only_sometimes_is_flaky(naps):
    suite = "flow: flips\ncases: [ { name: one, expect: { body: 1 } } ]"

    (flaky,) = await run(naps, SLEEPY, suite, repeat=3)
    (steady,) = await run(naps, SLEEPY, suite.replace("body: 1", "body: 5"), repeat=3)

    assert (flaky.status, flaky.runs, flaky.passed_runs, flaky.is_flaky) == ("failed", 3, 2, True)
    assert (steady.status, steady.passed_runs, steady.is_flaky) == ("failed", 0, False)


async def test_cases_that_an_interruption_cuts_off_are_not_run(naps):
    suite = "flow: nap\ncases: [ { name: one }, { name: two } ]"
    found = trials(pairs([write(naps, SLEEPY, suite)]))
    runner = Runner(Surroundings(environ={}, cwd=naps))
    results: list[Result] = []

    task = asyncio.create_task(runner.run(found, results.append))
    await asyncio.sleep(0.01)
    task.cancel()

    assert await task is False
    assert [(result.trial.name, result.status) for result in results] == [("one", "not-run"), ("two", "not-run")]


async def test_a_block_that_would_end_the_process_fails_its_case_only(naps):
    (result,) = await run(naps, SLEEPY, "flow: breaks\ncases: [ { name: one } ]")

    assert result.lines == [
        'expect: the flow failed: block "it": python `crash`: SystemExit: 0',
        f"  in breaks.it at {naps / 'nap.py'}:17:5",
    ]


async def test_what_a_flow_logs_is_kept_from_the_level_of_errors_on(tmp_path):
    config = """
        flows:
          - name: a
            process:
              - { type: log, settings: { message: '"aloud"', level: error } }
              - { type: log, settings: { message: '"in passing"' } }
    """
    suite = "flow: a\ncases: [ { name: one } ]"

    (quiet,) = await run(tmp_path, config, suite)
    (own,) = await run(tmp_path, config, suite, level="", environ={"LOG_LEVEL": "info"})
    (process,) = await run(tmp_path, config, suite, isolated=True)

    said = [re.sub(r"time=\S+ | event_id=\S+", "", result.stderr) for result in (quiet, process)]
    assert said == ['level=ERROR msg="aloud"'] * 2
    assert "in passing" in own.stderr


# ---------------------------------------------------------------- by hand


@pytest.mark.parametrize("isolated", [False, True], ids=["in process", "isolated"])
async def test_the_command_of_a_case_makes_the_same_call(tmp_path, isolated):
    suite = """
        flow: tells
        env: { CITY: "Bergen, it's wet" }
        inputs: { three: { data: 3, vars: { x: 1 } } }
        cases:
          - name: "A case: of /it/"
            input: three
            expect: { body: 4 }
    """
    around = {"command": COMMAND} if isolated else {}
    found = trials(pairs([write(tmp_path, SHOP, suite)]))
    runner = Runner(
        Surroundings(environ=dict(os.environ), variables={"API_KEY": "from the file"}, cwd=tmp_path, **around)
    )
    results: list[Result] = []
    await runner.run(found, results.append)
    directory = runner.workspace.directory
    assert directory is not None
    names = sorted(path.name for path in directory.iterdir())
    command = results[0].reproduce.replace("octo invoke", " ".join((*COMMAND, "invoke")))

    done = subprocess.run(
        ["sh", "-c", command], capture_output=True, cwd=tmp_path, stdin=subprocess.DEVNULL, check=True
    )
    runner.workspace.remove()

    assert names == ["001-a-case-of-it.env", "001-a-case-of-it.envelope.json", "001-a-case-of-it.json"]
    assert json.loads(done.stdout)["result"] | {"event_id": ""} == results[0].envelope["result"] | {"event_id": ""}
    assert json.loads(done.stdout)["result"]["body"]["city"] == "Bergen, it's wet"


async def test_when_nothing_falls_short_no_directory_is_left(tmp_path):
    found = trials(pairs([write(tmp_path, SHOP, "flow: drops\ncases: [ { name: one } ]")]))
    runner = Runner(Surroundings(environ=dict(os.environ), cwd=tmp_path, command=COMMAND))
    await runner.run(found, lambda result: None)
    made = runner.workspace.directory
    runner.workspace.clear()

    assert made is not None
    assert not made.exists()
    assert runner.workspace.directory is None


async def test_the_files_of_a_case_are_for_their_owner_only(tmp_path):
    suite = "flow: drops\nenv: { A: b }\ncases: [ { name: one, expect: { body: 5 } } ]"
    runner = Runner(Surroundings(environ={}, cwd=tmp_path))
    await runner.run(trials(pairs([write(tmp_path, SHOP, suite)])), lambda result: None)
    directory = runner.workspace.directory
    assert directory is not None
    modes = {path.stat().st_mode & 0o777 for path in directory.iterdir()}
    runner.workspace.remove()

    assert modes == {0o600}


def test_cases_are_chosen_by_a_part_of_their_name(tmp_path):
    suite = write(tmp_path, SHOP, "flow: drops\ncases: [ { name: Big order }, { name: small ORDER }, { name: none } ]")

    assert [trial.name for trial in trials(pairs([suite]), containing="order")] == ["Big order", "small ORDER"]


def test_the_problems_of_all_suites_are_reported_together(tmp_path):
    write(tmp_path, SHOP, "flow: a\n", "one")
    write(tmp_path, SHOP, "flow: a\ncases: [ { name: a }, { name: a } ]", "two")

    with pytest.raises(ConfigError) as caught:
        trials(pairs([tmp_path]))

    assert [str(problem).removeprefix(f"{tmp_path}/") for problem in caught.value.problems] == [
        "one_test.yaml:1:1: parse suite: missing key `cases`",
        'two_test.yaml:2:31: parse suite: two cases are called "a"',
    ]


# ---------------------------------------------------------------- what is odd, what is secret


async def test_a_case_that_expects_less_than_it_seems_to_is_noted(tmp_path):
    suite = """
        flow: many
        cases:
          - name: one
            input: { data: [ 1 ] }
            expect: { body: [ 2 ], that: [] }
            spies: { 'many.foreach[body].each': {} , many.foreach: { records: [ { output: { that: [] } } ] } }
            log: [ { kind: flow.completed, that: [] } ]
    """

    (result,) = await run(tmp_path, SHOP, suite)

    assert (result.status, result.notes) == (
        "passed",
        (
            "`spies: many.foreach[body].each` expects nothing: give it a `count` or `records`",
            "`expect.that` is empty and expects nothing",
            "`spies.many.foreach.records[0].output.that` is empty and expects nothing",
            "`log[0].that` is empty and expects nothing",
        ),
    )


@pytest.mark.parametrize("isolated", [False, True], ids=["in process", "isolated"])
async def test_secrets_in_names_are_hidden_also_in_those_of_files_and_of_cases_that_do_not_run(tmp_path, isolated):
    suite = """
        flow: tells
        cases:
          - { name: "with s3cret-value", expect: { that: [ 'body.key == "s3cret-value?"' ] } }
          - { name: "later s3cret-value", skip: "no s3cret-value" }
    """
    environ = {**(os.environ if isolated else {}), "API_KEY": "s3cret-value"}

    failed, skipped = await run(tmp_path, SHOP, suite, isolated=isolated, environ=environ)

    assert (failed.name, skipped.name, skipped.skip) == ("with ***", "later ***", "no ***")
    assert failed.lines[0] == 'expect.that: body.key == "***?" is false'
    assert "001-with.json" in failed.reproduce
    assert "s3cret" not in failed.reproduce


@pytest.mark.parametrize("isolated", [False, True], ids=["in process", "isolated"])
async def test_a_variable_that_is_missing_is_given_in_the_suite(tmp_path, isolated):
    config = """
        env: [ { name: TOWN, required: true } ]
        flows: [ { name: a, process: [ { type: log, settings: { message: env.TOWN } } ] } ]
    """

    (result,) = await run(tmp_path, config, "flow: a\ncases: [ { name: one } ]", isolated=isolated)

    assert result.error == (
        f'{tmp_path / "app.yaml"}:2:16: required environment variable "TOWN" is not set\n'
        "hint: give it a value in the suite, under `env:`: `TOWN: …`"
    )
