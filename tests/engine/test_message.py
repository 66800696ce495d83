"""octo/message.py: copies, raw content, and how a message is shown."""

from octo.message import Message


def message(**parts):
    return Message(parts.pop("body", None), parts.pop("vars", None), event_id="0" * 32, **parts)


def test_empty_parts_are_left_out_and_false_values_are_not():
    assert message().text() == '{"event_id":"00000000000000000000000000000000"}'
    assert message(body=False, vars={"b": 1.0, "a": 2.0}, correlation_id="c").text() == (
        '{"event_id":"00000000000000000000000000000000","correlation_id":"c","variables":{"a":2,"b":1},"body":false}'
    )


def test_variables_of_the_runtime_are_not_shown():
    assert message(vars={"__trace": "x"}).shown() == {"event_id": "0" * 32}


def test_raw_content_is_marked_and_an_ordinary_body_ends_it():
    raw = message()
    raw.set_raw("text/plain", "hi")

    assert raw.text() == (
        '{"event_id":"00000000000000000000000000000000",'
        '"body":{"contentType":"text/plain","rawData":"hi"},"raw_content":true}'
    )
    raw.body = {"contentType": "text/plain", "rawData": "hi"}
    assert raw.raw is False


def test_a_clone_shares_neither_body_nor_variables_and_its_numbers_are_doubles():
    original = message(body={"list": [1]}, vars={"a": 1.0}, correlation_id="c")
    copy = original.clone(event_id="1" * 32)

    copy.body["list"].append(2.0)
    copy.vars["b"] = 2.0

    assert original.body == {"list": [1]}
    assert original.vars == {"a": 1.0}
    assert copy.body == {"list": [1.0, 2.0]}
    assert type(copy.body["list"][0]) is float
    assert (copy.event_id, copy.correlation_id) == ("1" * 32, "c")


def test_a_scope_has_variables_of_its_own_and_the_same_body():
    original = message(body={"a": 1.0}, vars={"x": 1.0})
    scope = original.scope()
    scope.vars["x"] = 2.0

    assert scope.body is original.body
    assert original.vars == {"x": 1.0}
