"""octo/blocks/python.py: functions of files beside the config."""

from __future__ import annotations

import asyncio
import time

import pytest

from octo.errors import BlockError, ConfigError
from octo.message import Dropped
from octo.testing.harness import config, runtime

TOOLS = '''\
"""What the tests call."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from datetime import date

import prices
from octo import Dropped, OctoError


@dataclass
class Offer:
    sum: int


calls = []


def offer(body, vars):
    return {"sum": prices.of(body["count"]), "for": vars["who"], "kind": type(body["count"]).__name__}


async def later(body):
    return [body, threading.current_thread() is threading.main_thread()]


def here(body):
    return threading.current_thread() is threading.main_thread()


def nothing():
    return (1, 2.5, True, None, "é", 2**60, float("nan"))


def by_position(body, /, *, note="x"):
    return [body, note]


def only_variables(vars):
    return vars


def counting(body):
    calls.append(body)
    return len(calls)


def changes(body, vars):
    body["count"] = 0
    vars["who"] = "nobody"


def offers(body):
    return {"rows": [1, {"offer": Offer(1)}]}


def keyed(body):
    return {"by": {1: 2}}


def circle(body):
    body["self"] = body
    return body


def fails(body):
    return body["price"]


def stops(body):
    raise StopIteration("no more")


def leaves(body):
    raise SystemExit(3)


def refuses(body):
    raise OctoError("not today", hint="come back tomorrow")


def drops(body):
    raise Dropped


def sleeps(body):
    time.sleep(20)


def two(body, other, *, third):
    return None


answer = 42
'''
FILES = {"tools.py": TOOLS, "prices.py": "def of(count):\n    return count * 2\n"}


def flow(*functions, file="tools.py"):
    blocks = "".join(f"\n      - {{ type: python, file: {file}, function: {name} }}" for name in functions)
    return f"flows:\n  - name: main\n    process:{blocks}\n"


async def call(*functions, body=None, files=FILES):
    async with runtime(flow(*functions), files=files) as octo:
        return await octo.invoke("main", {"count": 3.0} if body is None else body, vars={"who": "Ada"})


@pytest.mark.parametrize(
    ("function", "body"),
    [
        ("offer", {"sum": 6.0, "for": "Ada", "kind": "int"}),
        ("later", [{"count": 3.0}, True]),
        ("here", False),
        ("nothing", [1.0, 2.5, True, None, "é", "1152921504606846976", "NaN"]),
        ("by_position", [{"count": 3.0}, "x"]),
        ("only_variables", {"who": "Ada"}),
    ],
    ids=["body and variables", "async", "in a thread", "no parameter", "by position", "variables"],
)
async def test_what_a_function_returns_becomes_the_body(function, body):
    assert (await call(function)).body == body


async def test_a_function_gets_copies():
    text = flow("changes") + "      - { type: set-payload, value: '[vars.who, vars.before]' }\n"
    text = text.replace("process:", "process:\n      - { type: set-variable, settings: { name: before, value: body } }")

    async with runtime(text, files=FILES) as octo:
        message = await octo.invoke("main", {"count": 3.0}, vars={"who": "Ada"})

    assert message.body == ["Ada", {"count": 3.0}]


async def test_blocks_that_name_one_file_share_its_module_and_configs_do_not():
    assert (await call("counting", "counting")).body == 2.0
    assert (await call("counting")).body == 1.0


async def test_two_configs_have_files_of_one_name_beside_them():
    other = FILES | {"prices.py": "def of(count):\n    return -count\n"}

    assert (await call("offer")).body["sum"] == 6.0
    assert (await call("offer", files=other)).body["sum"] == -3.0


@pytest.mark.parametrize(
    ("function", "message", "line"),
    [
        ("fails", "python `fails`: KeyError: 'price'", 70),
        ("stops", "python `stops`: RuntimeError: coroutine raised StopIteration", None),
        ("leaves", "python `leaves`: SystemExit: 3", 78),
        ("refuses", "python `refuses`: not today", None),
        ("offers", "python `offers`: returned a `Offer`, which has no JSON form, at `rows[1].offer`", None),
        ("keyed", "python `keyed`: returned a mapping with a key that is no text: `1`, at `by`", None),
    ],
    ids=["a mistake", "stop iteration", "exit", "an error of octo", "no JSON", "no text key"],
)
async def test_a_failing_function_fails_the_block_at_its_line(function, message, line):
    with pytest.raises(BlockError) as caught:
        await call(function)

    place = caught.value.location
    assert str(caught.value) == f'block "python": {message}'
    assert (place.file.rpartition("/")[2], place.line) == (("tools.py", line) if line else ("config.yaml", 4))


async def test_a_circle_is_no_json():
    with pytest.raises(BlockError) as caught:
        await call("circle")

    assert str(caught.value) == 'block "python": python `circle`: returned a value that is nested too deeply'


async def test_a_function_may_drop_the_message():
    with pytest.raises(Dropped):
        await call("drops")


async def test_a_function_that_takes_long_is_not_waited_for_when_the_flow_is_cancelled():
    started = time.monotonic()

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await call("sleeps")

    assert time.monotonic() - started < 5


@pytest.mark.parametrize(
    ("function", "files", "found"),
    [
        ("offr", {}, ("config.yaml:4:51", "python: `tools.py` has no function `offr`", "did you mean `offer`?")),
        ("answer", {}, ("config.yaml:4:51", "python: `tools.py` has no function `answer`", None)),
        (
            "two",
            {},
            (
                "tools.py:93:1",
                "python: `two` has parameters that nobody fills: `other`, `third`",
                "a function takes the body, and the variables as `vars`; give other parameters a default",
            ),
        ),
        ("f", {"tools.py": "def f(:\n"}, ("tools.py:1:7", "python: invalid syntax", None)),
        ("f", {"tools.py": "x = 1\n  y = 2\n"}, ("tools.py:2:2", "python: unexpected indent", None)),
        (
            "f",
            {"tools.py": "import os\nimport no_such_module\n"},
            (
                "tools.py:2:1",
                "python: the import fails: ModuleNotFoundError: No module named 'no_such_module'",
                "install it where octo is installed",
            ),
        ),
        (
            "f",
            {"tools.py": "def g():\n    return 1 / 0\n\nx = g()\n"},
            ("tools.py:2:12", "python: the import fails: ZeroDivisionError: division by zero", None),
        ),
        (
            "f",
            {"tools.py": "import prices\n", "prices.py": "def of(:\n"},
            ("prices.py:1:8", "python: invalid syntax", None),
        ),
        ("f", {"tools.py": "raise SystemExit\n"}, ("tools.py:1:1", "python: the import fails: SystemExit", None)),
    ],
    ids=[
        "misspelt",
        "no function",
        "parameters",
        "syntax",
        "indent",
        "import",
        "error at the top",
        "syntax beside it",
        "exit",
    ],
)
def test_what_cannot_be_called_is_reported_when_the_config_is_loaded(function, files, found):
    with pytest.raises(ConfigError) as caught:
        config(flow(function, function), files=FILES | files)

    problem = caught.value.problems[0]
    place = problem.location
    where = f"{place.file.rpartition('/')[2]}:{place.line}:{place.column}"
    assert (where, problem.message) == found[:2]
    assert found[2] is None or problem.hint == found[2]
    assert len(caught.value.problems) == (2 if where.startswith("config") else 1)


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("none.py", "resource `none.py` does not exist"),
        ("../tools.py", 'resource id "../tools.py" escapes the resource root'),
    ],
)
def test_the_file_lies_below_the_config_directory(file, message):
    with pytest.raises(ConfigError) as caught:
        config(flow("offer", file=file), files=FILES)

    assert [(problem.location.column, problem.message) for problem in caught.value.problems] == [(31, message)]


async def test_a_function_without_an_end_is_told_where_it_calls_itself():
    with pytest.raises(BlockError) as caught:
        await call("f", files={"tools.py": "def f(body):\n    return f(body)\n"})

    assert (str(caught.value), caught.value.hint, caught.value.location.line) == (
        'block "python": python `f`: RecursionError: maximum recursion depth exceeded',
        "let the function end before it calls itself again",
        2,
    )
