"""octo/blocks/aggregate.py and octo/services/groups.py: messages brought together in groups."""

import asyncio
import itertools
import subprocess
import sys
from pathlib import Path

import pytest

from acting import acting, drop, runtime
from octo.config.address import find
from octo.errors import BlockError, ConfigError
from octo.message import Dropped
from octo.observe import LogLine
from octo.runtime import Runtime
from octo.services.groups import TAIL
from octo.store.store import Store
from octo.testing.harness import config

SECOND = 10**9


def flow(settings, *, before="", flows=""):
    """A flow whose groups end in the block `end`."""
    return f"""
      flows:
        - name: main
          process:
            {before}
            - {{ type: aggregate, {settings} }}
            - {{ type: set-payload, name: end, settings: {{ value: body }} }}
        {flows}
    """


class Groups:
    """Keeps what the groups became."""

    def __init__(self):
        self.messages = []

    async def __call__(self, message, run):
        self.messages.append(message.clone())

    @property
    def bodies(self):
        return [message.body for message in self.messages]

    @property
    def reasons(self):
        return [message.vars["aggregateReason"] for message in self.messages]


class Clock:
    """A clock that stands until it is set."""

    def __init__(self, now=1_700_000_000 * SECOND):
        self.now = now

    def __call__(self):
        return self.now

    def pass_by(self, seconds):
        self.now += round(seconds * SECOND)


async def run(text, bodies, **options):
    """What the groups of the messages became, and the runtime's answers."""
    groups = Groups()
    async with runtime(text, {"end": groups}, **options) as octo:
        answers = [await octo.invoke("main", body) for body in bodies]
    return groups, answers


# ---------------------------------------------------------------- what goes on, and what comes back


async def test_a_group_of_the_expected_size_goes_on_as_one_message_with_its_own_variables_only():
    before = "- { type: set-variable, settings: { name: mine, value: '1' } }"
    groups, answers = await run(
        flow("correlation: body.tenant, completionSize: '2'", before=before),
        [{"tenant": "a", "n": 1.0}, {"tenant": "b", "n": 2.0}, {"tenant": "a", "n": 3.0}],
    )

    (group,) = groups.messages
    assert group.body == [{"tenant": "a", "n": 1.0}, {"tenant": "a", "n": 3.0}]
    assert group.vars == {"aggregateKey": "a", "aggregateCount": 2.0, "aggregateReason": "size"}
    assert group.event_id not in {answer.event_id for answer in answers}


async def test_the_correlation_id_of_the_first_message_goes_on():
    ids = iter(["first", "second"])
    groups = Groups()

    async def correlate(message, run):
        message.correlation_id = next(ids)

    text = flow("correlation: '\"k\"', completionSize: '2'", before="- { type: log, name: correlate }")
    async with runtime(text, {"end": groups, "correlate": correlate}) as octo:
        await octo.invoke("main")
        await octo.invoke("main")

    assert [message.correlation_id for message in groups.messages] == ["first"]


async def test_the_collected_message_completes_as_it_is_and_its_flow_stops():
    _, (answer,) = await run(flow("correlation: body.k, completionSize: '2'"), [{"k": "a"}])

    assert (answer.body, answer.vars, answer.stopped) == ({"k": "a"}, {}, True)


async def test_build_response_makes_the_answer_of_the_collected_message():
    response = "buildResponse: { process: [ { type: set-payload, settings: { value: '\"taken\"' } } ] }"
    groups, answers = await run(flow(f"correlation: '\"k\"', completionSize: '2', {response}"), [1.0, 2.0])

    assert [answer.body for answer in answers] == ["taken", "taken"]
    assert groups.bodies == [[1.0, 2.0]]


async def test_a_drop_in_build_response_drops_the_message_but_it_is_collected():
    response = "buildResponse: { process: [ { type: log, name: respond } ] }"
    groups = Groups()
    text = flow(f"correlation: '\"k\"', completionSize: '1', {response}")
    async with runtime(text, {"end": groups, "respond": drop}) as octo:
        with pytest.raises(Dropped):
            await octo.invoke("main", 1.0)

    assert groups.bodies == [[1.0]]


async def test_a_failing_group_goes_to_the_error_chain_alone():
    text = """
      flows:
        - name: main
          process:
            - { type: aggregate, correlation: '"k"', completionSize: '2' }
            - { type: set-payload, name: check, settings: { value: 'body.missing' } }
          error: [ { type: log, name: end } ]
    """
    groups, answers = await run(text, [1.0, 2.0])

    assert [answer.body for answer in answers] == [1.0, 2.0]
    (group,) = groups.messages
    assert (group.body, group.vars["error"]["block"]) == ([1.0, 2.0], "check")


async def test_split_and_aggregate_fit_together_without_a_setting():
    text = flow(
        "", before="- { type: split, items: body }\n            - { type: set-payload, settings: { value: '-body' } }"
    )
    text = text.replace("{ type: aggregate,  }", "{ type: aggregate }")
    groups, (answer,) = await run(text, [[1.0, 2.0, 3.0]])

    assert groups.bodies == [[-1.0, -2.0, -3.0]]
    assert groups.messages[0].vars == {
        "aggregateKey": answer.event_id,
        "aggregateCount": 3.0,
        "aggregateReason": "size",
    }


@pytest.mark.parametrize("items", ["mode: lines", "items: body.split('\\n')"], ids=["lines", "list"])
async def test_elements_that_overtake_each_other_are_in_their_places_again(items):
    order = {"a": 0.01, "b": 0.0, "c": 0.006, "d": 0.0}

    async def delay(message, run):
        await asyncio.sleep(order[message.body])

    text = flow(
        "completionTimeout: 5s",
        before=f"- {{ type: split, {items} }}\n            - {{ type: log, name: delay }}",
    )
    groups = Groups()
    async with runtime(text, {"end": groups, "delay": delay}) as octo:
        await octo.invoke("main", "a\nb\nc\nd")

    assert groups.bodies == [["a", "b", "c", "d"]]


# ---------------------------------------------------------------- append


PLACED = flow(
    "correlation: '\"k\"', completionSize: 'body.size', maxGroups: 5",
    before="- { type: set-variable, settings: { name: groupIndex, value: body.at } }",
)


@pytest.mark.parametrize(
    ("arrivals", "body"),
    [
        ([(2.0, 3), (0.0, 3), (1.0, 3)], [0.0, 1.0, 2.0]),
        ([(None, 2), (None, 2)], [None, None]),
        ([(1.5, 2), (-1.0, 2)], [1.5, -1.0]),
        ([(2.0, 2), (0.0, 2)], [0.0, 2.0]),
        ([(1.0, 3), ("x", 3), (True, 3)], [None, 1.0, "x", True]),
        ([(1.0, 2), (1.0, 2)], [None, 1.0]),
    ],
    ids=["out of order", "without an index", "no whole numbers", "not below the size", "gaps", "twice"],
)
async def test_a_whole_index_below_the_size_gives_a_body_its_place(arrivals, body):
    groups, _ = await run(PLACED, [{"at": at, "size": float(size)} for at, size in arrivals])

    assert [[each and each["at"] for each in group] for group in groups.bodies] == [body]


async def test_many_bodies_stay_in_order_and_nothing_is_left_behind():
    count = 5 * TAIL + 3
    groups = Groups()
    store = Store()
    text = flow(f"correlation: '\"k\"', completionSize: '{count}'")
    async with runtime(text, {"end": groups}, store=store) as octo:
        for number in range(count):
            await octo.invoke("main", float(number))
        left = await store.read(lambda db: db.execute("SELECT count(*) FROM entries").fetchone()[0], None)

    assert groups.bodies == [[float(number) for number in range(count)]]
    assert left == 2  # the index, and for a while the memory that the group is closed


# ---------------------------------------------------------------- expressions


SUM = "strategy: expression, expression: '(vars.group.acc == null ? 0.0 : vars.group.acc) + body.n'"


async def test_an_expression_folds_the_messages():
    groups, _ = await run(
        flow(f"correlation: body.k, {SUM}, completionSize: '3'"),
        [{"k": key, "n": number} for number, key in ((1.0, "a"), (10.0, "b"), (2.0, "a"), (20.0, "b"), (3.0, "a"))],
    )

    assert groups.bodies == [6.0]


async def test_expressions_see_the_group_and_the_completion_expression_sees_it_after_the_message():
    clock = Clock()
    seen = '{"group": vars.group, "body": body}'
    text = flow(
        "correlation: '\"k\"', strategy: expression, "
        f"expression: '{seen}', completionExpression: 'vars.group.count == 2.0 && vars.group.acc.body == 2.0'"
    )
    groups = Groups()
    async with runtime(text, {"end": groups}, clock=clock) as octo:
        await octo.invoke("main", 1.0)
        clock.pass_by(1.5)
        answer = await octo.invoke("main", 2.0)

    first = {
        "key": "k",
        "count": 0.0,
        "size": -1.0,
        "acc": None,
        "firstAt": "2023-11-14T22:13:20.000Z",
        "lastAt": "2023-11-14T22:13:20.000Z",
        "ageMs": 0.0,
        "idleMs": 0.0,
    }
    second = first | {"count": 1.0, "acc": {"group": first, "body": 1.0}, "ageMs": 1500.0, "idleMs": 1500.0}
    assert groups.bodies == [{"group": second, "body": 2.0}]
    assert groups.reasons == ["expression"]
    assert "group" not in answer.vars


async def test_a_completion_expression_sees_what_was_appended():
    groups, _ = await run(
        flow("correlation: '\"k\"', completionExpression: 'vars.group.acc == [1.0, 2.0]'"), [1.0, 2.0, 3.0]
    )

    assert groups.bodies == [[1.0, 2.0]]


async def test_the_size_wins_over_the_expression():
    groups, _ = await run(flow("correlation: '\"k\"', completionSize: '1', completionExpression: 'true'"), [1.0])

    assert groups.reasons == ["size"]


async def test_the_size_is_learned_once_from_the_first_message_that_gives_one():
    groups, _ = await run(flow("correlation: '\"k\"', completionSize: 'body'"), [0.0, -1.0, 2.5, 5.0, 1.0, 9.0])

    assert groups.bodies == [[0.0, -1.0, 2.5, 5.0, 1.0]]


@pytest.mark.parametrize(
    ("settings", "body", "text"),
    [
        ("correlation: body.k", {}, "aggregate correlation: evaluate expression: no such key: k"),
        ("correlation: body.k", {"k": ""}, "aggregate correlation: it is empty"),
        (
            "correlation: '\"k\"', strategy: expression, expression: body.k",
            {},
            "aggregate expression: evaluate expression: no such key: k",
        ),
        ("completionSize: '\"x\"'", {}, "aggregate completionSize must evaluate to a number, got text"),
        (
            "completionExpression: '1'",
            {},
            "aggregate completionExpression must evaluate to a bool, got a number",
        ),
        ("", {}, "aggregate correlation: evaluate expression: no such key: groupId"),
    ],
    ids=["correlation", "empty key", "expression", "size", "completion expression", "no group id"],
)
async def test_failing_expressions_fail_the_block(settings, body, text):
    if settings and "correlation" not in settings:
        settings = f"correlation: '\"k\"', {settings}"
    async with runtime(flow(settings).replace("aggregate,  }", "aggregate }"), {}) as octo:
        with pytest.raises(BlockError) as caught:
            await octo.invoke("main", body)

    assert str(caught.value) == f'block "aggregate": {text}'


async def test_keys_that_are_no_text_are_taken_as_json():
    groups, _ = await run(flow("correlation: body.k, completionSize: '2'"), [{"k": [1.0]}, {"k": "[1]"}])

    assert [group.vars["aggregateKey"] for group in groups.messages] == ["[1]"]


async def test_a_key_that_is_a_secret_still_finds_its_group():
    text = "env: [{name: PIN, secret: true}]" + flow("correlation: body.pin, completionSize: '2'").replace(
        "\n      ", "\n"
    )
    loaded = acting(config(text, environ={"PIN": "271828"}), {"end": (groups := Groups())})
    async with Runtime(loaded) as octo:
        for number in (1.0, 2.0):
            await octo.invoke("main", {"pin": "271828", "n": number})

    (group,) = groups.messages
    assert group.vars["aggregateKey"] == "271828"
    assert [body["n"] for body in group.body] == [1.0, 2.0]


# ---------------------------------------------------------------- time


@pytest.mark.parametrize(
    ("counts_from", "released"), [("first", [None, [1.0, 2.0]]), ("last", [None, None, [1.0, 2.0]])]
)
async def test_a_group_whose_time_is_over_goes_on_as_it_is(counts_from, released):
    clock, groups = Clock(), Groups()
    text = flow(f"correlation: '\"k\"', completionTimeout: 3s, timeoutFrom: {counts_from}")
    found = []
    async with runtime(text, {"end": groups}, clock=clock) as octo:
        block = find(octo.config, "main.aggregate")
        await octo.invoke("main", 1.0)
        clock.pass_by(2)
        await octo.invoke("main", 2.0)
        for _ in released:
            clock.pass_by(0.999 if not found else 1.001)
            await block.sweep(octo)
            await asyncio.sleep(0.001)
            found.append(groups.bodies[0] if groups.bodies else None)

    assert found == released
    assert groups.reasons == ["timeout"]


async def test_the_timer_of_the_runtime_releases_groups():
    groups = Groups()
    async with runtime(flow("correlation: '\"k\"', completionTimeout: 1ms"), {"end": groups}) as octo:
        await octo.invoke("main", 1.0)
        for _ in range(400):
            if groups.bodies:
                break
            await asyncio.sleep(0.01)

    assert groups.bodies == [[1.0]]


async def test_the_timer_ends_with_the_runtime_and_an_incomplete_group_is_kept(tmp_path):
    text = flow("correlation: '\"k\"', completionTimeout: 30s, completionSize: '2'")
    groups = Groups()
    for body in (1.0, 2.0):
        with Store(tmp_path) as store:
            async with asyncio.timeout(5), runtime(text, {"end": groups}, store=store) as octo:
                await octo.invoke("main", body)

    assert groups.bodies == [[1.0, 2.0]]


async def test_a_timer_that_cannot_read_the_store_says_so_and_goes_on(tmp_path):
    class Log:
        kinds = (LogLine,)

        def __init__(self):
            self.lines = []

        def notify(self, event):
            self.lines.append((event.level, event.text))

    log = Log()
    (tmp_path / "octo.db").write_text("no database, but long enough to be looked at" * 100, encoding="utf-8")
    with Store(tmp_path) as store:
        text = flow("correlation: '\"k\"', completionTimeout: 1ms")
        async with runtime(text, {}, store=store, observers=[log]):
            await asyncio.sleep(1.1)

    assert log.lines == [("error", f"aggregate `aggregate`: `{tmp_path / 'octo.db'}` is not an SQLite file")]


async def test_a_config_with_a_timer_touches_no_store_until_a_message_comes(tmp_path):
    with Store(tmp_path / "store") as store:
        async with runtime(flow("correlation: '\"k\"', completionTimeout: 3s"), {}, store=store) as octo:
            await find(octo.config, "main.aggregate").sweep(octo)

    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------- too many groups


@pytest.mark.parametrize("policy", ["fail", "complete", "drop"])
async def test_a_message_for_which_there_is_no_room(policy):
    groups = Groups()
    text = flow(f"correlation: body, maxGroups: 2, completionSize: '2', onOverflow: {policy}")
    async with runtime(text, {"end": groups}) as octo:
        for body in ("a", "b"):
            await octo.invoke("main", body)
        if policy == "fail":
            with pytest.raises(BlockError) as caught:
                await octo.invoke("main", "c")
            assert str(caught.value) == (
                'block "aggregate": aggregate: 2 groups are open, as many as `maxGroups` allows'
            )
        elif policy == "drop":
            with pytest.raises(Dropped):
                await octo.invoke("main", "c")
        else:
            await octo.invoke("main", "c")
        await octo.invoke("main", "b")

    expected = [["a"], ["b", "b"]] if policy == "complete" else [["b", "b"]]
    assert groups.bodies == expected
    assert groups.reasons == (["overflow", "size"] if policy == "complete" else ["size"])


async def test_room_is_made_again_when_a_group_goes_on():
    groups, _ = await run(flow("correlation: body, maxGroups: 1, completionSize: '2'"), ["a", "a", "b", "b", "a", "a"])

    assert groups.bodies == [["a", "a"], ["b", "b"], ["a", "a"]]


async def test_a_message_that_fails_and_a_group_of_one_take_up_no_room():
    text = flow(f"correlation: body.k, {SUM}, completionSize: 'body.size', maxGroups: 1")
    groups = Groups()
    async with runtime(text, {"end": groups}) as octo:
        with pytest.raises(BlockError):
            await octo.invoke("main", {"k": "a", "size": 2.0})
        await octo.invoke("main", {"k": "b", "n": 1.0, "size": 1.0})
        await octo.invoke("main", {"k": "c", "n": 1.0, "size": 2.0})
        await octo.invoke("main", {"k": "d", "n": 2.0, "size": 1.0})
        await octo.invoke("main", {"k": "c", "n": 3.0, "size": 2.0})

    assert groups.bodies == [1.0, 2.0, 4.0]


# ---------------------------------------------------------------- concurrency


async def test_messages_at_the_same_time_lose_nothing():
    groups = Groups()
    async with runtime(flow(f"correlation: body.k, {SUM}, completionSize: '50'"), {"end": groups}) as octo:
        await asyncio.gather(
            *(octo.invoke("main", {"k": str(number % 4), "n": float(number)}) for number in range(400))
        )

    assert sum(groups.bodies) == sum(range(400))
    assert len(groups.bodies) == 8


async def test_processes_that_share_a_store_share_the_groups(tmp_path):
    """Each body ends up in exactly one group of exactly the size that was asked for."""
    script = Path(__file__).with_name("aggregate_process.py")
    processes = [
        await asyncio.create_subprocess_exec(
            sys.executable, str(script), str(tmp_path), name, "60", stdout=subprocess.PIPE
        )
        for name in ("a", "b", "c")
    ]
    outputs = [(await process.communicate())[0].decode().split() for process in processes]

    groups = [group.split(",") for output in outputs for group in output]
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert {len(group) for group in groups} == {4}
    assert sorted(itertools.chain(*groups)) == sorted(f"{name}{number}" for name in "abc" for number in range(60))


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("strategy: expression", "aggregate requires `expression` in strategy `expression`"),
        ("expression: body", "aggregate takes no `expression` in strategy `append`"),
        ("completionTimeout: '0'", "`completionTimeout` must be greater than 0"),
        ("maxGroups: 0", "`maxGroups` must be greater than 0"),
        ("strategy: fold", "expected `append` or `expression`, found `fold`"),
        ("onOverflow: wait", "expected `fail` or `complete` or `drop`, found `wait`"),
        ("timeoutFrom: now", "expected `first` or `last`, found `now`"),
    ],
)
def test_faulty_settings_are_refused(settings, message):
    with pytest.raises(ConfigError) as caught:
        config(flow(settings))

    assert [problem.message for problem in caught.value.problems] == [message]


SAME = "another `aggregate` keeps its groups under the store key `{}` already"


@pytest.mark.parametrize(
    ("blocks", "found"),
    [
        ("{type: aggregate, storeKey: s}, {type: aggregate, storeKey: s}, {type: log}", [SAME.format("s")]),
        ("{type: aggregate}, {type: aggregate}, {type: log}", [SAME.format("main.aggregate")]),
        ("{type: aggregate, name: a}, {type: aggregate, storeKey: main.a}, {type: log}", [SAME.format("main.a")]),
        ("{type: aggregate, name: a}, {type: aggregate, name: b}, {type: log}", []),
    ],
    ids=["same key", "same address", "key like an address", "different names"],
)
def test_two_aggregates_never_share_their_groups(blocks, found):
    text = f"flows: [{{name: main, process: [{blocks}]}}]"
    try:
        problems = list(config(text).warnings)
    except ConfigError as error:
        problems = list(error.problems)

    assert [problem.message for problem in problems] == found


def test_it_is_never_the_last_block_of_its_chain():
    with pytest.raises(ConfigError, match="`aggregate` cannot be the last block of its chain"):
        config("flows: [{name: main, process: [{type: aggregate}]}]")
