"""octo/http/call.py: calls and answers as values."""

import pytest

from octo.http.call import Answer, excerpt, header_fault


@pytest.mark.parametrize(
    ("content_type", "body", "text"),
    [
        ("text/html", "é€".encode(), "é€"),
        ("text/html; charset=utf-8", "é".encode(), "é"),
        ("text/html; charset=ISO-8859-1", b"\xe9", "é"),
        ('text/html; charset="windows-1252"', b"\x80", "€"),
        ("text/html; charset=iso-8859-99", "é".encode(), "é"),
        ("", b"a\xff\xfeb\xe2\x82", "a��b�"),
    ],
    ids=["by default", "declared", "latin", "windows", "unknown", "broken"],
)
def test_the_text_of_an_answer(content_type, body, text):
    assert Answer("http://h", 200, content_type, body, "").text == text


@pytest.mark.parametrize(
    ("name", "value", "fault"),
    [
        ("X-Id", "a\tb é", None),
        ("X-Id", "a\r\nb", "the value of header `X-Id` holds a line break or another control character"),
        ("X-Id", "a\x00", "the value of header `X-Id` holds a line break or another control character"),
        ("X-Id", "\udcff", "the value of header `X-Id` holds bytes that are not UTF-8"),
        ("X\r\nId", "", "`X Id` is not the name of an HTTP header"),
        ("", "", "`` is not the name of an HTTP header"),
    ],
)
def test_what_is_wrong_with_a_header(name, value, fault):
    assert header_fault(name, value) == fault


def test_an_excerpt_is_one_line_of_200_characters():
    body = ("first\n  second " + "x" * 300).encode()

    assert excerpt(503, body) == "503: first second " + "x" * 187
    assert excerpt(404, b" \n") == "404"
    assert excerpt(400, b"a secret", lambda text: text.replace("secret", "***")) == "400: a ***"
