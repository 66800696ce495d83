"""octo/agent/memory/meter.py: estimates, and what they learn from providers."""

import pytest

from octo.agent.memory.meter import Meter, estimate
from octo.llm.chat import ChatMessage, File, Reasoning, Search, Text, ToolCall, ToolResult, user


@pytest.mark.parametrize(
    ("turn", "tokens"),
    [
        (user("abcd" * 3 + "abc"), 3),
        (user("é" * 4), 2),
        (ChatMessage("assistant", (Reasoning("abcd"),)), 1),
        (ChatMessage("assistant", (Reasoning("", "abcdef"),)), 2),
        (ChatMessage("assistant", (Search("abcd"),)), 1),
        (ChatMessage("assistant", (ToolCall("id", "a name that does not count", '{"a":12}'),)), 2),
        (ChatMessage("tool", (ToolResult("id", "t", "abcdefgh"),)), 2),
        (user("", File("image/png", b"x" * 750_000)), 1000),
        (user("", File("image/png", b"x" * 749)), 0),
        (ChatMessage("user", (Text("abc"), Text("d"))), 1),
    ],
    ids=["text", "bytes", "reasoning", "opaque", "search", "arguments", "result", "file", "small file", "together"],
)
def test_a_token_is_four_bytes_or_750_of_a_file(turn, tokens):
    assert estimate([turn]) == tokens


def test_without_a_measurement_the_estimate_counts():
    meter = Meter()

    assert (meter.predict(100), meter.size(100), meter.has_measured, meter.knows) == (100, 100, False, False)


def test_the_first_measurement_tells_what_stands_beside_the_conversation():
    meter = Meter()
    meter.learn(100, 150)

    assert (meter.overhead, meter.predict(120), meter.size(120)) == (50, 170, 120)


def test_two_measurements_tell_what_a_token_of_the_estimate_counts():
    meter = Meter()
    meter.learn(100, 150)
    meter.learn(200, 300)

    assert (meter.scale, meter.overhead, meter.predict(300), meter.size(300)) == (1.5, 0, 450, 450)


@pytest.mark.parametrize(("measured", "scale"), [(1000, 4.0), (101, 0.5), (50, 0.5)], ids=["most", "least", "less"])
def test_a_token_of_the_estimate_counts_half_to_four(measured, scale):
    meter = Meter()
    meter.learn(100, 100)
    meter.learn(200, measured)

    assert meter.scale == scale


def test_two_measurements_of_one_estimate_say_nothing_about_the_scale():
    meter = Meter()
    meter.learn(100, 150)
    meter.learn(100, 170)

    assert (meter.scale, meter.overhead) == (1.0, 70)


def test_what_was_counted_in_a_stored_conversation_is_the_first_scale():
    meter = Meter(estimate=100, tokens=200)

    assert (meter.scale, meter.size(50), meter.knows, meter.has_measured) == (2.0, 100, True, False)


def test_a_prediction_is_never_below_nothing():
    meter = Meter()
    meter.learn(100, 10)

    assert (meter.overhead, meter.predict(0)) == (-90, 0)
