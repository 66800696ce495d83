"""octo/blocks/set_payload.py: the body becomes the value of an expression."""

import pytest

from octo.errors import BlockError, ConfigError
from octo.testing.harness import config


async def test_the_body_becomes_the_value(run_flow):
    flow = """
      flows:
        - name: main
          process:
            - type: set-payload
              settings: { value: '{"sum": body.a + body.b}' }
    """

    assert (await run_flow(flow, {"a": 1.0, "b": 2.0})).body == {"sum": 3.0}


async def test_settings_may_stand_beside_the_type(run_flow):
    flow = """
      flows:
        - name: main
          process:
            - type: set-payload
              value: '"hello"'
    """

    assert (await run_flow(flow)).body == "hello"


async def test_raw_content_keeps_its_type_until_the_next_ordinary_body(run_flow):
    flow = """
      flows:
        - name: main
          process:
            - { type: set-payload, settings: { value: '"<p>hi</p>"', rawBody: true, contentType: text/html } }
        - name: plain
          process:
            - { type: flow-ref, settings: { flow: main } }
            - { type: set-payload, settings: { value: body.rawData } }
    """

    raw = await run_flow(flow)
    plain = await run_flow(flow, flow="plain")

    assert (raw.body, raw.raw) == ({"contentType": "text/html", "rawData": "<p>hi</p>"}, True)
    assert (plain.body, plain.raw) == ("<p>hi</p>", False)


async def test_raw_content_must_be_text(run_flow):
    flow = """
      flows:
        - name: main
          process:
            - { type: set-payload, settings: { value: '1', rawBody: true, contentType: text/html } }
    """

    with pytest.raises(BlockError) as caught:
        await run_flow(flow)

    assert str(caught.value) == (
        'block "set-payload": set-payload value must be a string when rawBody is set, got a number'
    )


async def test_a_failing_expression_fails_the_block(run_flow):
    flow = """
      flows:
        - name: main
          process:
            - { type: set-payload, name: parse, settings: { value: body.qty } }
    """

    with pytest.raises(BlockError) as caught:
        await run_flow(flow, {})

    assert str(caught.value) == 'block "parse": set-payload value: evaluate expression: no such key: qty'
    assert caught.value.address == "main.parse"
    assert caught.value.location is not None
    assert caught.value.location[1:] == (5, 9)


def test_raw_content_requires_a_type():
    with pytest.raises(ConfigError) as caught:
        config("flows: [{name: main, process: [{type: set-payload, value: '1', rawBody: true}]}]")

    (problem,) = caught.value.problems
    assert problem.message == "set-payload requires `contentType` with `rawBody`"


def test_a_content_type_without_raw_content_is_a_warning():
    loaded = config("flows: [{name: main, process: [{type: set-payload, value: '1', contentType: text/html}]}]")

    (problem,) = loaded.warnings
    assert problem.message == "`contentType` has no effect without `rawBody`"
    assert problem.hint == "add `rawBody: true`"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("", "set-payload requires `value`"),
        ("value: null", "set-payload requires `value`"),
        ("value: ''", "expected an expression, found blank text"),
        ("value: 5", "expected an expression, found a number"),
        ("value: hello", "compile expression \"hello\": undeclared reference to 'hello'"),
    ],
    ids=["missing", "null", "blank", "number", "undeclared"],
)
def test_a_value_that_is_no_expression_is_refused(settings, message):
    with pytest.raises(ConfigError) as caught:
        config("flows: [{name: main, process: [{type: set-payload, settings: {" + settings + "}}]}]")

    assert [problem.message for problem in caught.value.problems] == [message]
