"""octo/cel/functions/multipart.py: multipart form data."""

import pytest

from octo.cel import compile as compile_expression
from octo.errors import ExpressionError


def evaluate(source, body=None):
    return compile_expression(source, ["body"])({"body": body})


TYPE = "multipart/form-data; boundary=octo-multipart"
PHOTO = {"data": "AAH/", "encoding": "base64", "filename": "a.png", "contentType": "image/png"}
FIELD = {
    "name": "n",
    "filename": "",
    "contentType": "",
    "encoding": "text",
    "size": 2.0,
    "data": "30",
    "headers": {},
}


def test_parts_are_added_one_after_the_other():
    assert evaluate("multipart()") == {}
    assert evaluate("multipart().addPart('n', 30)") == {"n": FIELD}
    assert evaluate("multipart().addPart('n', 30).addPart('n', '30')") == {"n": [FIELD, FIELD]}
    assert evaluate("body.addPart('n', 30) == body", {}) is False


def test_parts_become_text():
    assert evaluate("toMultipart({'b': 'x', 'a': {'data': 'aGk=', 'encoding': 'base64', 'filename': 'f'}})") == (
        '--octo-multipart\r\nContent-Disposition: form-data; name="a"; filename="f"\r\n'
        "Content-Type: application/octet-stream\r\n\r\nhi\r\n"
        '--octo-multipart\r\nContent-Disposition: form-data; name="b"\r\n\r\nx\r\n--octo-multipart--\r\n'
    )
    assert evaluate("toMultipart(multipart(), 'mine')") == "--mine--\r\n"


def test_text_becomes_parts():
    text = evaluate("toMultipart({'n': 30})")

    assert evaluate(f"fromMultipart(body, '{TYPE}')", text) == {"n": FIELD}
    assert evaluate("fromMultipart(body)", {"rawData": text, "contentType": TYPE}) == {"n": FIELD}


def test_the_parts_of_a_raw_body_that_are_decoded_already_are_taken():
    body = {"rawData": "\ufffd", "contentType": TYPE, "parts": {"p": PHOTO}}

    assert evaluate("fromMultipart(body)", body) == {"p": PHOTO}


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("fromMultipart({'rawData': 'x'})", "`fromMultipart` needs a raw body, with `rawData` and `contentType`"),
        ("fromMultipart('x', 'text/plain')", "text is not multipart: content type `text/plain` has no boundary"),
        (
            "fromMultipart('x', 'a/b; boundary=q')",
            "text is not multipart: the boundary `q` does not occur in the data",
        ),
        (
            "multipart().addPart('a', {'data': 1})",
            'part "a" of the parts map: `data` must be text, got a number',
        ),
        ("multipart().addPart('a\\n', 1)", 'part "a " of the parts map: the name holds a line break'),
        ("toMultipart({'a': {'data': '*', 'encoding': 'base64'}})", 'part "a" of the parts map: `data` is not base64'),
        ("toMultipart({'a': {'data': '/w==', 'encoding': 'base64'}})", "a part holds bytes that are no text"),
        ("toMultipart({}, 'a\\r\\nb')", "a boundary has 1 to 70 letters, digits and signs, and no other characters"),
        ("toMultipart('x')", "no such overload: toMultipart(string)"),
    ],
)
def test_what_is_no_multipart_is_refused(source, message):
    with pytest.raises(ExpressionError) as caught:
        evaluate(source)

    assert caught.value.message == message
