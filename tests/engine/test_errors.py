"""octo/errors.py: what can go wrong, and near misses."""

import pytest

from octo.errors import (
    AuthenticationFailed,
    BadRequest,
    BlockError,
    ConfigError,
    ConnectorError,
    ContextTooLong,
    ExpressionError,
    Location,
    OctoError,
    Problem,
    ProviderError,
    RateLimited,
    StoreError,
    Truncated,
    UsageError,
    did_you_mean,
    missing_extra,
    near,
)

HERE = Location("a.yaml", 3, 7)


def test_a_problem_reads_place_first() -> None:
    assert str(Problem("unknown key `x`", HERE)) == "a.yaml:3:7: unknown key `x`"
    assert str(Problem("no such file")) == "no such file"


def test_a_config_error_holds_every_problem_and_points_at_the_first() -> None:
    problems = [Problem("one", HERE, "try"), Problem("two")]
    error = ConfigError(problems)

    assert str(error) == "a.yaml:3:7: one\ntwo"
    assert (error.problems, error.location, error.hint) == (tuple(problems), HERE, "try")


def test_block_errors_nest_as_blocks_nest() -> None:
    cause = OctoError("no answer", hint="wait", location=HERE)
    inner = BlockError("inner", cause, address="flow.outer.inner", location=Location("a.yaml", 1, 1))
    outer = BlockError("outer", inner, address="flow.outer", location=Location("a.yaml", 2, 2))

    assert str(outer) == 'block "outer": block "inner": no answer'
    assert (outer.hint, outer.location, outer.address) == ("wait", HERE, "flow.outer.inner")


def test_a_block_error_stands_where_the_block_does_if_the_cause_has_no_place() -> None:
    assert BlockError("log", OctoError("no"), location=HERE).location == HERE


def test_an_expression_error_points_into_its_source() -> None:
    error = ExpressionError("no such key: a", source="body.a", column=6, length=1, hint="has(body.a)")

    assert (str(error), error.source, error.column, error.hint) == ("no such key: a", "body.a", 6, "has(body.a)")


def test_a_provider_error_carries_what_a_retry_needs() -> None:
    error = RateLimited("slow down", provider="p", status=429, retry_after=2.5, request_id="r", retryable=True)

    assert (error.provider, error.status, error.retry_after, error.request_id, error.retryable) == (
        "p",
        429,
        2.5,
        "r",
        True,
    )


@pytest.mark.parametrize(
    "kind",
    [
        AuthenticationFailed,
        RateLimited,
        ContextTooLong,
        BadRequest,
        Truncated,
        ProviderError,
        ConnectorError,
        StoreError,
        UsageError,
    ],
)
def test_every_kind_is_an_octo_error_with_a_hint(kind: type[OctoError]) -> None:
    error = kind("what", hint="do")

    assert (str(error), error.hint, error.location) == ("what", "do", None)
    assert isinstance(error, OctoError)


@pytest.mark.parametrize(
    ("name", "known", "expected"),
    [
        ("set-paylod", ["set-payload", "set-variable"], "set-payload"),
        ("MaxIterations", ["maxIterations"], "maxIterations"),
        ("zzz", ["set-payload"], None),
        ("x", [], None),
    ],
)
def test_the_nearest_name_is_offered(name: str, known: list[str], expected: str | None) -> None:
    assert near(name, known) == expected


@pytest.mark.parametrize(
    ("name", "known", "expected"),
    [
        ("flwo", ["flow", "block"], "did you mean `flow`?"),
        ("zzz", ["flow", "block"], "known names: `flow`, `block`"),
        ("zzz", [f"n{i}" for i in range(61)], "known names: " + ", ".join(f"`n{i}`" for i in range(60)) + ", …"),
        ("zzz", [], None),
    ],
    ids=["near miss", "few names", "many names", "no names"],
)
def test_a_hint_offers_a_near_miss_or_the_names(name: str, known: list[str], expected: str | None) -> None:
    assert did_you_mean(name, iter(known)) == expected


def test_an_optional_package_that_is_missing_is_named_with_the_command_that_installs_it() -> None:
    assert missing_extra("json", "formats") is None
    assert missing_extra("no_such_package", "formats") == "install it: pip install 'octo-runner[formats]'"
