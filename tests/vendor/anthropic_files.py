"""What the vendor asks of the files of a Messages request. One function per rule; each yields refusals."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator

from vendor.anthropic_request import Document, DocumentBytes, Image, ImageBytes, MessagesRequest

_MAGIC = {b"\xff\xd8\xff": "image/jpeg", b"\x89PNG\r\n\x1a\n": "image/png", b"GIF8": "image/gif"}


def images_are_what_they_claim(request: MessagesRequest) -> Iterator[str]:
    """Error texts: `invalid base64 data`, `image cannot be empty`, `Could not process image`, `The image was
    specified using the image/png media type, but the image appears to be a image/jpeg image`.
    """
    for block in request.blocks:
        if not isinstance(block, Image) or not isinstance(block.source, ImageBytes):
            continue
        data = _decoded(block.source.data)
        if data is None:
            yield "messages: image.source.base64.data: invalid base64 data"
        elif not data:
            yield "messages: image.source.base64.data: image cannot be empty"
        elif (kind := _image_kind(data)) is None:
            yield "messages: image.source.base64.data: Could not process image"
        elif kind != block.source.media_type:
            yield (
                f"messages: image.source.base64: The image was specified using the {block.source.media_type} "
                f"media type, but the image appears to be a {kind} image"
            )


def documents_are_pdf(request: MessagesRequest) -> Iterator[str]:
    """Error texts: `invalid base64 data`, `The PDF specified was not valid.`"""
    for block in request.blocks:
        if not isinstance(block, Document) or not isinstance(block.source, DocumentBytes):
            continue
        data = _decoded(block.source.data)
        if data is None:
            yield "messages: document.source.base64.data: invalid base64 data"
        elif not data.startswith(b"%PDF-"):
            yield "messages: document.source.base64.data: The PDF specified was not valid."


def _decoded(text: str) -> bytes | None:
    """The bytes of padded base64 in the standard alphabet, and of nothing else."""
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return data if base64.b64encode(data).decode() == text else None


def _image_kind(data: bytes) -> str | None:
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for magic, kind in _MAGIC.items() if data.startswith(magic)), None)
