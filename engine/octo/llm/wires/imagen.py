"""The wire of Imagen models, `predict`: text in, images out, nothing streamed."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Sequence
from typing import Final

from octo.errors import BadRequest, Truncated
from octo.llm import conversation, media
from octo.llm.chat import ChatMessage, ChatRequest, ChatResponse, Delta, File, Usage
from octo.llm.wire import BROKE_OFF, Endpoint, HttpCall, Unreadable, shown, to_bytes
from octo.llm.wires.gemini import address
from octo.values import Json

_KEYS: Final = frozenset({"predictions", "deployedModelId", "metadata"})


def encode(request: ChatRequest, endpoint: Endpoint, *, stream: bool) -> HttpCall:
    """The call that asks for one image of what the user last said, with the system text before it."""
    if any(turn.role == "user" and turn.files for turn in request.messages):
        raise BadRequest("Imagen models take no attachments", hint="a Gemini model draws from images, too")
    said = next((turn.text for turn in reversed(request.messages) if turn.role == "user"), "")
    prompt = "\n\n".join(text for text in (request.system, said) if not conversation.is_blank(text))
    if not prompt:
        raise BadRequest("there is nothing to draw: the prompt is empty")
    body = {"instances": [{"prompt": prompt}], "parameters": {"sampleCount": 1}}
    url = address(endpoint.credentials, request.model or endpoint.model, "predict")
    return HttpCall(url, endpoint.credentials.headers({}), to_bytes(body))


def decoder(request: ChatRequest) -> Decoder:
    return Decoder(request.model or "")


class Decoder:
    """Reads the one body that an answer is. One without an image was filtered."""

    def __init__(self, model: str) -> None:
        self.complete = False
        self.model = model
        self._files: list[File] = []

    @property
    def ended(self) -> bool:
        return self.complete

    @property
    def usage(self) -> Usage | None:
        return None

    def feed(self, event: Json) -> Sequence[Delta]:
        # An answer whose images were all filtered is an empty mapping.
        if not isinstance(event, dict) or (event and not event.keys() & _KEYS):
            raise Unreadable(f"expected an answer with `predictions`, found {shown(event)}")
        for prediction in event.get("predictions") or ():
            data = prediction.get("bytesBase64Encoded") if isinstance(prediction, dict) else None
            if isinstance(data, str):
                self._add(data, prediction.get("mimeType"))
        self.complete = True
        return ()

    def _add(self, data: str, stated: Json) -> None:
        try:
            content = b64decode(data, validate=True)
        except ValueError:
            raise Unreadable(f"expected an image in base64, found {shown(data)}") from None
        known = media.plain_type(stated) if isinstance(stated, str) else "image/png"
        self._files.append(File(media.sniff(content) or known, content))

    def finish(self) -> ChatResponse:
        if not self.complete:
            raise Truncated(BROKE_OFF, retryable=True)
        message = ChatMessage("assistant", tuple(self._files))
        return ChatResponse(message, "end_turn" if self._files else "refusal", self.model)
