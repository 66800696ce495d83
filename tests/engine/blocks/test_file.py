"""octo/blocks/file.py: reading and writing files."""

import pytest

from octo.blocks.file import content_type
from octo.errors import BlockError, ConfigError
from octo.testing.harness import config


def flow(root, *blocks: str, settings: str = "") -> str:
    lines = "".join(f"\n                - {block}" for block in blocks)
    return f"""
          connectors: [{{ name: files, type: file, settings: {{ root: '{root}', {settings} }} }}]
          flows:
            - name: main
              process:{lines}
    """


def read(settings: str) -> str:
    return f"{{ type: file-read, connector: files, {settings} }}"


def write(settings: str) -> str:
    return f"{{ type: file-write, connector: files, {settings} }}"


async def test_the_body_becomes_the_raw_content_and_nothing_is_parsed(run_flow, tmp_path):
    (tmp_path / "a.json").write_text('{"n": 1}', encoding="utf-8")

    message = await run_flow(flow(tmp_path, read("path: 'body.name + \".json\"'")), {"name": "a"})

    assert (message.body, message.raw) == ({"contentType": "application/json", "rawData": '{"n": 1}'}, True)


async def test_a_variable_gets_the_content_and_the_body_stays(run_flow, tmp_path):
    (tmp_path / "1").write_text("é", encoding="utf-8")

    message = await run_flow(flow(tmp_path, read("path: body, resultVar: text")), 1.0)

    assert (message.body, message.vars, message.raw) == (1.0, {"text": "é"}, False)


async def test_a_type_can_be_given(run_flow, tmp_path):
    (tmp_path / "a").write_text("<p>", encoding="utf-8")

    message = await run_flow(flow(tmp_path, read("path: '\"a\"', contentType: text/html")))

    assert message.body == {"contentType": "text/html", "rawData": "<p>"}


@pytest.mark.parametrize(
    ("data", "encoding", "content"),
    [
        (b"ok \xf0\x9f\x98", "text", "ok \ufffd"),
        (b"\xff\x00a\r\n", "text", "\ufffd\0a\r\n"),
        (b"\xff\x00", "base64", "/wA="),
        (b"", "text", ""),
    ],
    ids=["half a character at the end", "no text", "binary", "empty"],
)
async def test_bytes_become_text_that_every_border_takes(run_flow, tmp_path, data, encoding, content):
    (tmp_path / "a").write_bytes(data)

    message = await run_flow(flow(tmp_path, read(f"path: '\"a\"', encoding: {encoding}")))

    assert message.body == {"contentType": "application/octet-stream", "rawData": content}
    assert message.text().encode("utf-8")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a.yaml", "application/yaml"),
        ("a.YML", "application/yaml"),
        ("a.toml", "application/toml"),
        ("a.json", "application/json"),
        (".env", "text/plain; charset=utf-8"),
        ("x/a.txt", "text/plain; charset=utf-8"),
        ("a.md", "text/markdown; charset=utf-8"),
        ("a.csv", "text/csv; charset=utf-8"),
        ("a.tsv", "text/tab-separated-values; charset=utf-8"),
        ("a.png", "image/png"),
        ("a.tar.gz", "application/gzip"),
        ("x.d/a", "application/octet-stream"),
        ("a.unheard-of", "application/octet-stream"),
    ],
)
def test_the_type_follows_from_the_extension(path, expected):
    assert content_type(path) == expected


@pytest.mark.parametrize(
    ("body", "settings", "data"),
    [
        ({"b": 1.0, "a": "é"}, "", b'{"a":"\xc3\xa9","b":1}'),
        ("text", "", b'"text"'),
        (None, "", b"null"),
        ("text", "content: body", b"text"),
        ({"a": 1.0}, "content: body", b'{"a":1}'),
        ("half \ud83d", "content: body", b"half \xef\xbf\xbd"),
        ("/w A=\n", "content: body, encoding: base64", b"\xff\x00"),
    ],
    ids=["body", "text body", "no body", "text", "mapping", "half a character", "base64"],
)
async def test_the_content_is_written_and_the_message_passes_unchanged(run_flow, tmp_path, body, settings, data):
    message = await run_flow(flow(tmp_path, write(f"path: '\"a\"', resultVar: written, {settings}")), body)

    assert (tmp_path / "a").read_bytes() == data
    assert (message.body, message.vars) == (body, {"written": {"path": "a", "bytes": float(len(data))}})


async def test_raw_content_is_written_as_it_is(run_flow, tmp_path):
    (tmp_path / "a.txt").write_text("as it is", encoding="utf-8")

    message = await run_flow(flow(tmp_path, read("path: '\"a.txt\"'"), write("path: '\"b.txt\"'")))

    assert (tmp_path / "b.txt").read_text(encoding="utf-8") == "as it is"
    assert message.raw


async def test_directories_are_created_when_the_connector_allows_it(run_flow, tmp_path):
    block = write("path: '\"x/y.txt\"', content: body")
    with pytest.raises(BlockError) as caught:
        await run_flow(flow(tmp_path, block), "a")
    await run_flow(flow(tmp_path, block, settings="createDirs: true"), "a")

    assert str(caught.value) == 'block "file-write": file-write: path "x/y.txt": no such file or directory'
    assert (tmp_path / "x" / "y.txt").read_text(encoding="utf-8") == "a"


@pytest.mark.parametrize(
    ("block", "text"),
    [
        (read("path: '\"../a\"'"), 'block "file-read": file-read: path "../a" escapes the root'),
        (write("path: '\"\"'"), 'block "file-write": file-write: path is empty'),
        (
            write("path: '\"a\"', content: '\"?\"', encoding: base64"),
            'block "file-write": file-write: content is not base64',
        ),
        (read("path: body.x"), 'block "file-read": file-read path: evaluate expression: no such key: x'),
    ],
    ids=["outside", "empty", "base64", "expression"],
)
async def test_what_cannot_be_done_fails_the_block(run_flow, tmp_path, block, text):
    with pytest.raises(BlockError) as caught:
        await run_flow(flow(tmp_path, block), {})

    assert str(caught.value) == text
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("block", "message"),
    [
        (read("path: body, encoding: hex"), "expected `text` or `base64`, found `hex`"),
        (read("encoding: text"), "file-read requires `path`"),
        ("{ type: file-write, connector: fles, path: body }", 'connector "fles" is not configured'),
    ],
    ids=["encoding", "path", "connector"],
)
def test_settings_that_cannot_work_are_refused(tmp_path, block, message):
    with pytest.raises(ConfigError) as caught:
        config(flow(tmp_path, block))

    assert [problem.message for problem in caught.value.problems] == [message]
