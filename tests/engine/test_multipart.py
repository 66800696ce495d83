"""octo/multipart.py: from a parts map to the body of a request."""

import base64
from email import message_from_bytes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octo import multipart


def parts_of(body: bytes, boundary: str):
    """The parts of a body as another library reads them: name, file name, content type, bytes."""
    head = f"content-type: multipart/form-data; boundary={boundary}\r\n\r\n".encode()
    return [
        (
            part.get_param("name", header="content-disposition"),
            part.get_filename(),
            part["content-type"],
            part.get_payload(decode=True),
        )
        for part in message_from_bytes(head + body).get_payload()
    ]


def test_a_body_is_written_in_the_order_of_names():
    parts = {
        "photo": {"filename": "a.png", "contentType": "image/png", "encoding": "base64", "data": "AAH/"},
        "count": 3.0,
    }

    assert multipart.encode(parts, "xyz") == (
        b'--xyz\r\nContent-Disposition: form-data; name="count"\r\n\r\n3\r\n'
        b'--xyz\r\nContent-Disposition: form-data; name="photo"; filename="a.png"\r\nContent-Type: image/png\r\n\r\n'
        b"\x00\x01\xff\r\n--xyz--\r\n"
    )


@pytest.mark.parametrize(
    ("value", "parts"),
    [
        ("text", [("p", None, None, b"text")]),
        (None, [("p", None, None, b"")]),
        (True, [("p", None, None, b"true")]),
        (["a", 2.0], [("p", None, None, b"a"), ("p", None, None, b"2")]),
        ([], []),
        ({"data": "x", "contentType": "text/csv"}, [("p", None, "text/csv", b"x")]),
        ({"filename": 'a "b".bin'}, [("p", 'a "b".bin', "application/octet-stream", b"")]),
        ({"data": "grün", "encoding": "text"}, [("p", None, None, "grün".encode())]),
        ({"data": "QUJD\n", "encoding": "base64"}, [("p", None, None, b"ABC")]),
    ],
    ids=["text", "null", "boolean", "list", "empty list", "type", "file", "unicode", "base64"],
)
def test_a_value_becomes_parts(value, parts):
    assert parts_of(multipart.encode({"p": value}, "b"), "b") == parts


def test_a_received_part_is_passed_on_with_its_headers():
    part = {
        "name": "doc",
        "filename": "a.txt",
        "contentType": "text/plain",
        "encoding": "base64",
        "size": 3.0,
        "data": "QUJD",
        "headers": {"X-Id": "7", "Content-Type": "ignored"},
    }

    assert multipart.encode({"doc": part}, "b") == (
        b'--b\r\nContent-Disposition: form-data; name="doc"; filename="a.txt"\r\n'
        b"Content-Type: text/plain\r\nX-Id: 7\r\n\r\nABC\r\n--b--\r\n"
    )


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ("text", "expected a parts map, found text"),
        (["a"], "expected a parts map, found a list"),
        ({"p": {"a": 1.0}}, 'part "p" of the parts map: expected a part with `data`, found a mapping without it'),
        ({"p": [["a"]]}, 'part "p" of the parts map: expected a value or a part, found a list in a list'),
        ({"p": {"data": 5.0}}, 'part "p" of the parts map: `data` must be text, got a number'),
        ({"p": {"data": "?", "encoding": "base64"}}, 'part "p" of the parts map: `data` is not base64'),
        (
            {"p": {"data": "a", "encoding": "hex"}},
            'part "p" of the parts map: `encoding` must be `text` or `base64`, got `hex`',
        ),
        ({"a\r\nb": "x"}, 'part "a  b" of the parts map: the name holds a line break'),
        ({"p": {"filename": "a\nb"}}, 'part "p" of the parts map: `filename` holds a line break'),
        ({"p": {"data": "", "contentType": "a\rb"}}, 'part "p" of the parts map: `contentType` holds a line break'),
        ({"p": {"data": "", "headers": ["x"]}}, 'part "p" of the parts map: `headers` must be a mapping, got a list'),
        ({"p": {"data": "", "headers": {"a b": "x"}}}, 'part "p" of the parts map: `a b` is not the name of a header'),
        ({"p": {"data": "", "headers": {"a": "x\ny"}}}, 'part "p" of the parts map: header `a` holds a line break'),
    ],
)
def test_what_is_no_parts_map_is_refused(parts, message):
    with pytest.raises(ValueError) as caught:
        multipart.encode(parts, "b")

    assert str(caught.value) == message


@given(st.dictionaries(st.text('abc "\\;=é', min_size=1), st.binary(max_size=40), max_size=4))
def test_every_name_and_all_bytes_arrive(parts):
    body = multipart.encode(
        {name: {"data": base64.b64encode(data).decode(), "encoding": "base64"} for name, data in parts.items()},
        "0123456789abcdef",
    )

    chunks = body.split(b"--0123456789abcdef")[1:-1]
    assert [chunk.partition(b"\r\n\r\n")[2][:-2] for chunk in chunks] == [parts[name] for name in sorted(parts)]
    assert [chunk.partition(b"\r\n\r\n")[0].decode() for chunk in chunks] == [
        '\r\nContent-Disposition: form-data; name="' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'
        for name in sorted(parts)
    ]
