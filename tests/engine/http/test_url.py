"""octo/http/url.py: a path and a query below the base URL of an API."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octo.http.url import BaseUrl, reference


@pytest.mark.parametrize(
    ("base", "path", "query", "line"),
    [
        ("http://h/v2", "/a", "", "/v2/a"),
        ("http://h/v2", "a", "", "/v2/a"),
        ("http://h/v2/", "a/", "", "/v2/a/"),
        ("http://h", "v2/a", "", "/v2/a"),
        ("http://h", "", "", "/"),
        ("http://h/v2/", "", "", "/v2/"),
        ("http://h/v2", "/", "", "/v2/"),
        ("http://h/v2?k=1", "a?z=2", "", "/v2/a?k=1&z=2"),
        ("http://h/v2?k=1", "a?z=2", "y=3", "/v2/a?k=1&z=2&y=3"),
        ("http://h", "?z=2", "", "/?z=2"),
        ("http://h", "/a#part?x", "", "/a"),
        ("http://h/v2", "https://other/x?y=1", "", "/v2/x?y=1"),
        ("http://h/v2", "//other/x", "", "/v2/x"),
        ("http://h/v2", "jobs:run", "", "/v2/jobs:run"),
        ("http://h/v2", "/a/../b/./c//d", "", "/v2/a/../b/./c//d"),
        ("http://h", "/ä b?q=ü x", "", "/%C3%A4%20b?q=%C3%BC%20x"),
        ("http://h", "/a%2Fb", "", "/a%2Fb"),
        ("http://user:p%40ss@h:81/v2", "a", "", "/v2/a"),
    ],
)
def test_a_path_goes_below_the_base_url(base, path, query, line):
    assert BaseUrl(base).target(reference(path), query).line == line


def test_credentials_of_the_base_url_are_kept_apart_and_queries_are_not_shown():
    base = BaseUrl("HTTPS://user:p%40ss@h:81/v2?key=k1")
    target = base.target(reference("/a"), "token=t1")

    assert (base.user, base.password) == ("user", "p@ss")
    assert target.url == "https://h:81/v2/a?key=k1&token=t1"
    assert target.shown == "https://h:81/v2/a"


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/a\nb", "it holds a line break or another control character"),
        ("/a\x00", "it holds a line break or another control character"),
        ("/a%zz/b", "it holds the bad escape `%zz`"),
        ("/100%", "it holds the bad escape `%`"),
    ],
)
def test_what_no_url_can_hold_is_refused(path, message):
    with pytest.raises(ValueError) as caught:
        reference(path)

    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("path", "climbs"),
    [
        ("/a/../b", True),
        ("..", True),
        ("/a/%2e%2E/b", True),
        ("/a/..%2fb", True),
        ("/a\\..\\b", True),
        ("/a/..b/c..", False),
        ("/a?x=../..", False),
    ],
)
def test_a_climbing_path_is_known_however_it_is_written(path, climbs):
    assert reference(path).climbs is climbs


@pytest.mark.parametrize(
    ("path", "prefix", "inside"),
    [
        ("/a", "/a", True),
        ("/a/b", "/a", True),
        ("a/b", "a/", True),
        ("/a%20b/c", "/a b", True),
        ("/%61/b", "/a", True),
        ("/anything", "", True),
        ("/anything", "/", True),
        ("/ab", "/a", False),
        ("/a%2Fb", "/a", False),
        ("/./b", "/a", False),
        ("/", "/a", False),
        ("/A", "/a", False),
    ],
)
def test_a_prefix_is_compared_segment_by_segment(path, prefix, inside):
    assert reference(path).inside(reference(prefix)) is inside


@given(st.text("ab/.?#:%25@\\ é", max_size=20))
def test_a_path_never_changes_the_host(text):
    try:
        path = reference(text)
    except ValueError:
        return
    target = BaseUrl("http://user:password@host:81/v2").target(path)

    assert target.url.startswith("http://host:81/v2")
    assert target.line.isascii()
    assert not {" ", "#", "\\"} & set(target.line)
