"""octo/fields.py, octo/refusals.py: field types read YAML values, and a lone variable by the kind of its field."""

import pytest

from octo.errors import ConfigError
from octo.fields import Duration
from octo.testing.harness import config, runtime


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("0", 0),
        ("250ms", 250_000_000),
        ("1m30s", 90_000_000_000),
        ("1.5h", 5_400_000_000_000),
        ("3us", 3_000),
        ("3µs", 3_000),
        ("7ns", 7),
        (".5s", 500_000_000),
    ],
)
def test_a_duration_is_numbers_with_units(text, ns):
    assert Duration(text).ns == ns


@pytest.mark.parametrize("text", ["", "5", "s", "-1s", "1 s", "1d", "1s5", "1e3s", "soon"])
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(ValueError, match=r"^" + text.replace(".", r"\.") + "$"):
        Duration(text)


TYPED = """
  env:
    - {{ name: K, default: {default} }}
  service: {{ name: '${{K}}' }}
  flows:
    - name: main
      workers: ${{K}}
      process: []
"""


@pytest.mark.parametrize("text", ["0123", "12", "-3", "1.0"])
def test_a_variable_in_a_number_field_is_read_as_a_number_and_stays_text_in_a_text_field(text):
    loaded = config(TYPED.format(default=f"'{text}'"))

    assert loaded.flows[0].workers == int(float(text))
    assert loaded.service.name == text


@pytest.mark.parametrize("text", ["true", "no", "null", "~", "2024-01-01", "12:30", "1_000", "", "1.5", "[1]"])
def test_a_variable_that_is_no_number_is_refused_in_a_number_field_without_showing_its_value(text):
    with pytest.raises(ConfigError) as caught:
        config(TYPED.format(default=f"'{text}'"))

    (problem,) = caught.value.problems
    assert problem.message == "`workers`: expected a whole number, found the value of `${K}`, which is none"
    assert problem.location is not None
    assert problem.location[1:] == (7, 14)


@pytest.mark.parametrize(
    ("line", "message", "hint"),
    [
        ('workers: "4"', "`workers`: expected a whole number, found the text `4`", "write it without quotes"),
        ("workers: 1.5", "`workers`: expected a whole number, found the number 1.5", None),
        ("workers: true", "`workers`: expected a whole number, found the boolean true", None),
        ("name: [x]", "`name`: expected text, found a list", None),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused(line, message, hint):
    with pytest.raises(ConfigError) as caught:
        config(f"flows: [{{ process: [], {line} }}, {{name: other}}]")

    problem = caught.value.problems[0]
    assert (problem.message, problem.hint) == (message, hint)


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("yes", "write `true`; only `true` and `false` are booleans"),
        ("off", "write `false`; only `true` and `false` are booleans"),
        ('"true"', "write it without quotes"),
    ],
)
def test_only_true_and_false_are_booleans(word, hint):
    with pytest.raises(ConfigError) as caught:
        config(f"flows: [{{ name: main, process: [ {{ type: log, full: {word} }} ] }}]")

    (problem,) = caught.value.problems
    assert problem.message == f"`full`: expected `true` or `false`, found the text `{word.strip(chr(34))}`"
    assert problem.hint == hint


async def test_expressions_see_declared_variables_as_text():
    flow = """
      env: [ { name: RATE, default: 25 }, { name: CITY, default: Oslo } ]
      flows:
        - name: main
          process: [ { type: set-payload, settings: { value: '[env.RATE, "${CITY}", string(size(env))]' } } ]
    """

    async with runtime(flow, environ={"CITY": "Rome", "OTHER": "x"}) as octo:
        assert (await octo.invoke("main")).body == ["25", "Rome", "2"]


async def test_now_is_the_clock_of_the_runtime():
    from octo.runtime import Runtime

    loaded = config("flows: [{ name: main, process: [ { type: set-payload, settings: { value: now } } ] }]")

    async with Runtime(loaded, clock=lambda: 1_700_000_000_500_000_000) as octo:
        assert (await octo.invoke("main")).body == "2023-11-14T22:13:20.5Z"
