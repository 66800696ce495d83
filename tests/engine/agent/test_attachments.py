"""octo/agent/attachments.py: files into the first turn, files out of an answer."""

import base64

import pytest

from fake_model import TOOL, config_text
from octo.agent import attachments
from octo.errors import ConfigError, OctoError
from octo.llm.chat import File
from octo.testing import harness

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(250))
JPEG = b"\xff\xd8\xff\xe0" + bytes(20)


def encoded(data):
    return base64.b64encode(data).decode()


def read(value):
    notes = []
    return attachments.read(value, notes.append), notes


@pytest.mark.parametrize("value", [None, []], ids=["null", "empty list"])
def test_no_list_and_an_empty_list_mean_no_files(value):
    assert read(value) == ((), [])


@pytest.mark.parametrize(
    ("entry", "file"),
    [
        pytest.param({"mimeType": "image/png", "data": encoded(PNG)}, File("image/png", PNG), id="base64"),
        pytest.param(
            {"mimeType": "image/png", "data": encoded(PNG), "name": "red.png", "size": 8.0},
            File("image/png", PNG, "red.png"),
            id="name, and keys of no meaning",
        ),
        pytest.param({"data": f"data:image/png;base64,{encoded(PNG)}"}, File("image/png", PNG), id="data URL"),
        pytest.param(
            {"data": f"DATA:Image/PNG;Base64,{encoded(PNG)}"}, File("image/png", PNG), id="data URL in upper case"
        ),
        pytest.param(
            {"data": "data:text/plain;charset=utf-8;base64,aGk="},
            File("text/plain;charset=utf-8", b"hi"),
            id="parameters are part of the type",
        ),
        pytest.param(
            {"mimeType": "text/csv", "data": "data:text/plain;base64,aGk="},
            File("text/csv", b"hi"),
            id="the stated key wins over the data URL",
        ),
        pytest.param({"mimeType": "text/plain", "data": ""}, File("text/plain", b""), id="no bytes"),
        pytest.param({"mimeType": "text/plain", "data": "aGk"}, File("text/plain", b"hi"), id="no padding"),
        pytest.param({"mimeType": "text/plain", "data": "a\r\nG\nk="}, File("text/plain", b"hi"), id="line breaks"),
        pytest.param(
            {"mimeType": "application/x", "data": "_-8="}, File("application/x", b"\xff\xef"), id="URL-safe alphabet"
        ),
        pytest.param({"data": encoded(PNG)}, File("image/png", PNG), id="type from the bytes"),
        pytest.param(
            {"data": "aGk=", "name": "note.txt"}, File("text/plain", b"hi", "note.txt"), id="type from the name"
        ),
        pytest.param(
            {"mimeType": 5.0, "name": 6.0, "data": encoded(PNG)}, File("image/png", PNG), id="no text is not stated"
        ),
    ],
)
def test_an_entry_becomes_a_file(entry, file):
    assert read([entry]) == ((file,), [])


def test_the_bytes_decide_the_type_and_a_wrong_label_is_noted():
    files, notes = read([{"mimeType": "image/png", "data": encoded(JPEG)}])

    assert files == (File("image/jpeg", JPEG),)
    assert notes == ["attachment 0 is image/jpeg by its bytes, not image/png"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param({"data": "aGk="}, "`attachments` must evaluate to a list, got a mapping", id="mapping"),
        pytest.param("aGk=", "`attachments` must evaluate to a list, got text", id="text"),
    ],
)
def test_anything_but_a_list_is_refused(value, text):
    with pytest.raises(OctoError) as caught:
        read(value)

    assert caught.value.message == text


GOOD = {"mimeType": "text/plain", "data": "aGk="}


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        pytest.param("aGk=", "expected a mapping with `mimeType` and `data`, got text", id="text"),
        pytest.param(
            {"mimeType": "text/plain"}, "`data` must be base64 text or a data URL, got nothing", id="without data"
        ),
        pytest.param(
            {"mimeType": "text/plain", "data": 5.0},
            "`data` must be base64 text or a data URL, got a number",
            id="data is a number",
        ),
        pytest.param({"mimeType": "text/plain", "data": "a*b="}, "`data` is not base64 text", id="other characters"),
        pytest.param({"mimeType": "text/plain", "data": "äöü="}, "`data` is not base64 text", id="no ASCII"),
        pytest.param({"mimeType": "text/plain", "data": "a"}, "`data` is not base64 text", id="cut off"),
        pytest.param({"mimeType": "text/plain", "data": "aG=k"}, "`data` is not base64 text", id="padding inside"),
        pytest.param({"data": "data:text/plain,hi"}, "`data` is not base64 text", id="data URL that is not base64"),
        pytest.param({"data": "aGk="}, "`mimeType` is missing, and the bytes do not tell the type", id="no type"),
        pytest.param(
            {"mimeType": "text/plain", "data": "A" * (41 * 1024 * 1024)},
            "`data` holds more than 30 MiB, which is the most that one file may have",
            id="too large",
        ),
    ],
)
def test_a_bad_entry_is_refused_with_its_index(entry, text):
    with pytest.raises(OctoError) as caught:
        read([GOOD, entry])

    assert caught.value.message == f"attachment 1: {text}"


def test_produced_files_are_appended_to_the_list_that_is_there():
    one = attachments.with_produced("no list", [File("image/png", b"hi", "a.png")])

    assert attachments.with_produced(one, [File("image/gif", b"")]) == [
        {"name": "a.png", "mimeType": "image/png", "size": 2.0, "data": "aGk="},
        {"name": "", "mimeType": "image/gif", "size": 0.0, "data": ""},
    ]
    assert len(one) == 1


def test_produced_files_can_be_handed_in_again():
    produced = attachments.with_produced(None, [File("image/png", PNG, "a.png")])

    assert read(produced) == ((File("image/png", PNG, "a.png"),), [])


def test_a_connector_that_reads_text_only_is_refused_where_files_are_sent():
    text = """
      connectors: [{name: seek, type: llm-deepseek, settings: {apiKey: k}}]
      flows:
        - name: f
          process:
            - type: ai-agent
              connector: seek
              prompt: Look.
              input: body.question
              attachments: body.files
              tools: [{name: t, description: T., process: []}]
    """

    with pytest.raises(ConfigError) as error:
        harness.config(text)

    assert [(problem.location.line, problem.message) for problem in error.value.problems] == [
        (10, 'ai-agent: connector "seek" reads text only, so `attachments` cannot be sent')
    ]


@pytest.mark.parametrize(
    ("written", "message", "hint"),
    [
        pytest.param(
            "{a: 1}",
            "ai-agent: `attachments` must evaluate to a list, got a mapping",
            "write `has(body.files) ? body.files : []` for files that may be missing",
            id="no list",
        ),
        pytest.param(
            "[a.png]",
            "ai-agent: attachment 0: expected a mapping with `mimeType` and `data`, got text",
            None,
            id="no file",
        ),
    ],
)
def test_files_that_are_the_same_for_all_messages_are_checked_where_they_are_written(written, message, hint):
    with pytest.raises(ConfigError) as error:
        harness.config(config_text(f"input: body\nattachments: {written}\n{TOOL}"))

    assert [(problem.message, problem.hint) for problem in error.value.problems] == [(message, hint)]
