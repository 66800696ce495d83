"""octo/llm/media.py: what a file is by its bytes, and whether a model takes it."""

import logging

import pytest

from octo.errors import BadRequest
from octo.llm import media
from octo.llm.chat import ChatMessage, File, Text, user

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 8
IMAGES = frozenset({"image/png", "image/jpeg"})


@pytest.mark.parametrize(
    ("data", "mime_type"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0\0\x10JFIF", "image/jpeg"),
        (b"GIF89a....", "image/gif"),
        (b"GIF87a....", "image/gif"),
        (b"RIFF\x10\0\0\0WEBPVP8 ", "image/webp"),
        (b"\0\0\0\x18ftypheic\0\0\0\0", "image/heic"),
        (b"\0\0\0\x18ftypmif1\0\0\0\0", "image/heif"),
        (b"\0\0\0\x18ftypavif\0\0\0\0", "image/avif"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "image/svg+xml"),
        (b"\xef\xbb\xbf<?xml version='1.0'?>\n<!-- c -->\n<svg/>", "image/svg+xml"),
        (b"%PDF-1.7\n", "application/pdf"),
        (b"ID3\x04\0\0\0", "audio/mpeg"),
        (b"\xff\xfb\x90\x44", "audio/mpeg"),
        (b"\xff\xf1\x50\x80", "audio/aac"),
        (b"RIFF\x10\0\0\0WAVEfmt ", "audio/wav"),
        (b"fLaC\0\0\0\x22", "audio/flac"),
        (b"OggS\0\x02", "audio/ogg"),
        (b"FORM\0\0\0\x10AIFF", "audio/aiff"),
        (b"\0\0\0\x18ftypM4A \0\0\0\0", "audio/mp4"),
        (b"\0\0\0\x18ftypisom\0\0\0\0", "video/mp4"),
        (b"\0\0\0\x18ftypqt  \0\0\0\0", "video/quicktime"),
        (b"\x1aE\xdf\xa3\x01\0\0\0", "video/webm"),
        (b"RIFF\x10\0\0\0AVI LIST", "video/x-msvideo"),
        (b"", None),
        (b"RIFF", None),
        (b"\xff\xff\xff\xff", None),
        (b"hello, world", None),
        (b"<html><body>no image</body></html>", None),
        (b"PK\x03\x04", None),
    ],
    ids=lambda value: str(value)[:24],
)
def test_the_type_is_that_of_the_bytes(data: bytes, mime_type: str | None):
    assert media.sniff(data) == mime_type


def test_the_bytes_win_over_the_stated_type(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.WARNING, "octo.llm")
    (message,) = media.with_true_types([user("look", File("image/jpeg", PNG, "shot.jpg"))], IMAGES)

    assert message == user("look", File("image/png", PNG, "shot.jpg"))
    assert caplog.messages == ["file `shot.jpg` is stated to be `image/jpeg`, but its bytes are `image/png`"]


def test_unrecognised_bytes_go_by_the_stated_type_in_lower_case_without_parameters():
    (message,) = media.with_true_types([user("", File("Image/PNG; q=1", b"??"))], IMAGES)

    assert message.files == (File("image/png", b"??"),)


@pytest.mark.parametrize(
    ("file", "accepted", "text"),
    [
        (
            File("image/png", b"<svg/>", "logo.png"),
            IMAGES,
            "file `logo.png` is of type `image/svg+xml`, accepted are `image/jpeg`, `image/png`",
        ),
        (
            File("text/plain", b"hello"),
            IMAGES,
            "file at index 1 is of type `text/plain`, accepted are `image/jpeg`, `image/png`",
        ),
        (
            File("image/png", PNG, "a.png"),
            frozenset(),
            "file `a.png` is of type `image/png`, accepted is text only",
        ),
        (
            File("", b"hello", " "),
            IMAGES,
            "file at index 1 is of an unknown type, accepted are `image/jpeg`, `image/png`",
        ),
        (File("image/png", b"", "a.png"), IMAGES, "file `a.png` is empty"),
        (
            File("image/png", PNG + bytes(30 * 2**20), "big.png"),
            None,
            "file `big.png` has 30.0 MiB, at most 30 MiB can be sent",
        ),
    ],
    ids=["by its bytes", "unnamed", "untyped", "text only", "empty", "too large"],
)
def test_a_file_that_the_model_does_not_take_is_refused(file: File, accepted: frozenset[str] | None, text: str):
    first = File("image/png", PNG, "ok.png") if accepted else File("image/png", PNG, file.name)
    with pytest.raises(BadRequest) as caught:
        media.with_true_types([user("look", first, file)], accepted)

    assert str(caught.value) == text


def test_files_of_other_turns_are_not_looked_at():
    message = ChatMessage("assistant", (File("video/mp4", b"??"), Text("there")))

    assert media.with_true_types([message], IMAGES) == (message,)


def test_a_model_may_take_every_type():
    message = user("", File("application/x-anything", b"??"))

    assert media.with_true_types([message], None) == (message,)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("offer.pdf", "offer.pdf"),
        (" Offer.PDF ", "Offer.PDF"),
        ("offer.txt", "offer.pdf"),
        ("offer", "offer.pdf"),
        ("offer of 1. May", "offer of 1. May.pdf"),
        (".txt", "document.pdf"),
        (" ", "document.pdf"),
    ],
)
def test_a_pdf_file_is_named_as_one(name: str, expected: str):
    assert media.pdf_name(name) == expected
