"""octo/multipart.py: from a parts map to the body of a request, and back."""

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


def shown(name="", data="", **more):
    part = {"filename": "", "contentType": "", "encoding": "text", "size": float(len(data)), "headers": {}}
    return {"name": name, "data": data, **part, **more}


@pytest.mark.parametrize(
    ("value", "part"),
    [
        ("grün", shown("p", "grün", size=5.0)),
        (1000000.0, shown("p", "1000000")),
        (None, shown("p", "")),
        (
            {"data": "QUJD", "encoding": "base64", "filename": "a.txt", "headers": {"X-N": 1.0, "content-type": "no"}},
            shown("p", "QUJD", filename="a.txt", encoding="base64", size=3.0, headers={"X-N": "1"}),
        ),
        ({"contentType": "text/csv"}, shown("p", contentType="text/csv")),
    ],
    ids=["text", "number", "null", "file", "empty"],
)
def test_a_value_has_a_part_object(value, part):
    assert multipart.part("p", value) == part


def test_parts_of_one_name_become_a_list():
    parts = multipart.add(multipart.add(multipart.add({}, "a", 1.0), "a", 2.0), "a", 3.0)

    assert parts == {"a": [1.0, 2.0, 3.0]}


DISPOSITION = b'Content-Disposition: form-data; name="n"'


@pytest.mark.parametrize(
    ("body", "parts"),
    [
        (b"--b\r\n" + DISPOSITION + b"\r\n\r\none\r\ntwo\r\n--b--\r\n", {"n": shown("n", "one\r\ntwo")}),
        (b"before\n--b\n" + DISPOSITION + b"\n\nx\n--b--\nafter\n--b\n", {"n": shown("n", "x")}),
        (b"--b \t\r\n\r\nx\r\n--b--", {"": shown("", "x")}),
        (b"--b\r\n" + DISPOSITION + b"\r\n\r\n--b--", {"n": shown("n")}),
        (b"--b\r\n" + DISPOSITION + b"\r\n\r\n--bc\r\n--b--", {"n": shown("n", "--bc")}),
        (b"--b--", {}),
        (
            b"--b\r\n\r\n1\r\n--b\r\n\r\n2\r\n--b\r\nX-A: y\r\n z\r\nCONTENT-type: a/b\r\n\r\n3\r\n--b--",
            {"": [shown("", "1"), shown("", "2"), shown("", "3", contentType="a/b", headers={"X-A": "y z"})]},
        ),
        (
            b'--b\r\nContent-Disposition: form-data; name=n; filename="a \\"b\\".bin"\r\n\r\n\x00\xff\r\n--b--',
            {"n": shown("n", "AP8=", filename='a "b".bin', encoding="base64", size=2.0)},
        ),
        (
            b"--b\r\nContent-Disposition: form-data; name=n; filename=\"?\"; filename*=UTF-8''%e2%82%ac"
            b"\r\n\r\n\r\n--b--",
            {"n": shown("n", "", filename="\u20ac", encoding="base64")},
        ),
        (b"--b\r\n" + DISPOSITION + b"\r\n\r\n\xff\r\n--b--", {"n": shown("n", "\ufffd", size=1.0)}),
    ],
    ids=[
        "field",
        "line feeds",
        "no headers",
        "empty",
        "longer boundary",
        "no parts",
        "repeated",
        "file",
        "wide file name",
        "no text",
    ],
)
def test_a_body_is_read(body, parts):
    assert multipart.decode(body, "multipart/form-data; boundary=b") == parts
    assert multipart.decode(body, 'Multipart/Form-Data; charset=x; BOUNDARY="b"') == parts


@pytest.mark.parametrize(
    ("body", "content_type", "message"),
    [
        (b"", "multipart/form-data", "content type `multipart/form-data` has no boundary"),
        (b"--c--", "multipart/form-data; boundary=b", "the boundary `b` does not occur in the data"),
        (b"--b\r\n\r\nx", "multipart/form-data; boundary=b", "the data ends before `--b--`"),
        (b"--b\r\n\r\n" * 300 + b"--b--", "multipart/form-data; boundary=b", "there are more than 256 parts"),
        (
            b"--b\r\nx: " + b"y" * 16384 + b"\r\n\r\n\r\n--b--",
            "multipart/form-data; boundary=b",
            "a part has more than 16 KiB of headers",
        ),
        (b"--b\r\nx\r\n\r\n--b--", "a/b; boundary=b", "a part begins with a line that is no header"),
    ],
    ids=["no boundary", "unused", "cut off", "many", "large headers", "no header"],
)
def test_what_is_no_multipart_is_refused(body, content_type, message):
    with pytest.raises(ValueError) as caught:
        multipart.decode(body, content_type)

    assert str(caught.value) == message


@pytest.mark.parametrize("boundary", ["", "a\r\nb", "a ", "a" * 71, "ä", '"'])
def test_a_boundary_that_would_break_the_header_is_refused(boundary):
    with pytest.raises(
        ValueError, match=r"^a boundary has 1 to 70 letters, digits and signs, and no other characters$"
    ):
        multipart.encode({}, boundary)


def test_a_boundary_that_occurs_in_the_data_is_refused():
    with pytest.raises(ValueError, match=r'^part "p" of the parts map: the boundary `b` occurs in its data$'):
        multipart.encode({"p": "x\r\n--b--"}, "b")


@given(
    st.dictionaries(
        st.text('abc "\\;=é\t', min_size=1),
        st.lists(st.tuples(st.sampled_from(["", "f", 'a"\\;é']), st.binary(max_size=40)), min_size=1, max_size=3),
        max_size=3,
    )
)
def test_what_is_written_is_read_back(given_parts):
    parts = {}
    for name, files in given_parts.items():
        for filename, data in files:
            text = data.hex() if not filename else base64.b64encode(data).decode()
            value = {"filename": filename, "data": text, "encoding": "base64" if filename else "text"}
            value["contentType"] = "application/octet-stream" if filename else ""
            parts = multipart.add(parts, name, multipart.part(name, value))

    assert multipart.decode(multipart.encode(parts, "0123456789"), "a/b; boundary=0123456789") == parts
