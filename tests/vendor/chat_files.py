"""What servers ask of the files of a chat request. One function per rule; each yields refusals."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator

from vendor.chat_request import Audio, ChatRequest, DocumentUrl, File, Image, Sound, Text

_HEADS = {
    b"\xff\xd8\xff": "image/jpeg",
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"GIF8": "image/gif",
    b"%PDF-": "application/pdf",
    b"ID3": "audio/mpeg",
    b"\xff\xfb": "audio/mpeg",
}


def images_are_what_they_claim(request: ChatRequest) -> Iterator[str]:
    """Error texts: `Invalid base64 image_url.`, `You uploaded an unsupported image. Please make sure your image has
    of one the following formats: ['png', 'jpeg', 'gif', 'webp'].` (the vendor's order of words).
    """
    for part in request.parts:
        if isinstance(part, Image) and part.image_url.url.startswith("data:"):
            kind, data = _data_url(part.image_url.url)
            if data is None:
                yield "Invalid base64 image_url."
            elif kind != _kind(data) or not kind.startswith("image/"):
                yield (
                    "You uploaded an unsupported image. Please make sure your image has of one the following formats: "
                    "['png', 'jpeg', 'gif', 'webp']."
                )


def content_is_text_and_images(request: ChatRequest) -> Iterator[str]:
    """Groq, Together AI: content is of the types `text` and `image_url`."""
    for part in request.parts:
        if not isinstance(part, Text | Image):
            yield f"unknown type of content `{part.type}`, expected `text` or `image_url`"


def documents_are_pdf(request: ChatRequest) -> Iterator[str]:
    """PDF files. Error texts: `Missing required parameter: 'file.filename'.`, `Expected context stuffing file type to
    be a supported format: .pdf but got .txt.`, `Invalid file data. Expected a base64-
    encoded data URL with an application/pdf MIME type.`
    """
    for part in request.parts:
        match part:
            case File(file=file) if file.file_id is None:
                if not file.filename:
                    yield "Missing required parameter: 'file.filename'."
                elif not file.filename.lower().endswith(".pdf"):
                    yield "Expected context stuffing file type to be a supported format: .pdf"
                url = file.file_data or ""
            case DocumentUrl(document_url=url):
                pass
            case _:
                continue
        kind, data = _data_url(url)
        if data is None or not (kind == _kind(data) == "application/pdf"):
            yield "Invalid file data. Expected a base64-encoded data URL with an application/pdf MIME type."


def sounds_are_what_they_claim(request: ChatRequest) -> Iterator[str]:
    """Error text: `The data provided for 'input_audio' is not of valid wav format.`"""
    for part in request.parts:
        if isinstance(part, Audio):
            sound = part.input_audio
            data = _decoded(sound.data if isinstance(sound, Sound) else sound)
            kind = {"audio/mpeg": "mp3", "audio/wav": "wav"}.get(_kind(data or b""))
            if kind is None or (isinstance(sound, Sound) and sound.format != kind):
                claimed = sound.format if isinstance(sound, Sound) else "audio"
                yield f"The data provided for 'input_audio' is not of valid {claimed} format."


def _data_url(url: str) -> tuple[str, bytes | None]:
    kind, _, text = url.removeprefix("data:").partition(";base64,")
    return kind, _decoded(text)


def _decoded(text: str) -> bytes | None:
    """The bytes of padded base64 in the standard alphabet, and of nothing else; None when there are none."""
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return data if data and base64.b64encode(data).decode() == text else None


def _kind(data: bytes) -> str:
    if data[:4] == b"RIFF":
        return {b"WEBP": "image/webp", b"WAVE": "audio/wav"}.get(data[8:12], "")
    return next((kind for head, kind in _HEADS.items() if data.startswith(head)), "")
