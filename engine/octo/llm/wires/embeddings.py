"""The two ways in which APIs are asked for vectors of texts: one request, one body for an answer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

from octo.errors import NotAnAnswer, Truncated
from octo.llm.chat import Delta, Usage
from octo.llm.credentials import Credentials, join_url
from octo.llm.embedding import Embedded, EmbedRequest, Vector, narrowed
from octo.llm.wire import BROKE_OFF, Decoder, HttpCall, Unreadable, shown, to_bytes
from octo.llm.wires.gemini import address
from octo.values import Json, kind_of


class Embedder(Protocol):
    """How one API is asked for vectors."""

    def encode(self, request: EmbedRequest, credentials: Credentials) -> HttpCall:
        """The HTTP call that asks for them."""

    def decoder(self, request: EmbedRequest) -> Decoder[Embedded]:
        """A decoder for the answer."""


class OpenAiEmbedder:
    """`embeddings`, as OpenAI has it and many servers have taken it over."""

    def encode(self, request: EmbedRequest, credentials: Credentials) -> HttpCall:
        body: dict[str, Json] = {"model": request.model, "input": list(request.texts), "encoding_format": "float"}
        if request.dimensions > 0:
            body["dimensions"] = request.dimensions
        if credentials.user:
            body["user"] = credentials.user
        return HttpCall(join_url(credentials.base_url, "embeddings"), credentials.headers({}), to_bytes(body))

    def decoder(self, request: EmbedRequest) -> Decoder[Embedded]:
        return _Decoder(request, self._read)

    @staticmethod
    def _read(answer: dict[str, Json], count: int) -> Embedded:
        """The vectors come in any order, each with its index."""
        vectors: list[Vector | None] = [None] * count
        for entry in _mappings(answer.get("data")):
            index = entry.get("index")
            if not isinstance(index, int | float) or not 0 <= index < count:
                raise NotAnAnswer(f"the answer has a vector for text {shown(index)}, but {count} texts were sent")
            vectors[int(index)] = _vector(entry.get("embedding"))
        usage = answer.get("usage")
        read = usage.get("prompt_tokens") if isinstance(usage, dict) else None
        used = None
        if isinstance(read, int | float) and 0 < read < math.inf:
            used = Usage(input_tokens=int(read), prompt_tokens=int(read))
        return Embedded(tuple(vector for vector in vectors if vector is not None), used)


class GeminiEmbedder:
    """`batchEmbedContents` of the Gemini API, `predict` on Vertex AI. Neither tells what was read."""

    def encode(self, request: EmbedRequest, credentials: Credentials) -> HttpCall:
        on_vertex = credentials.platform == "vertex"
        url = address(credentials, request.model, "predict" if on_vertex else "batchEmbedContents")
        length = {"outputDimensionality": request.dimensions} if request.dimensions > 0 else {}
        body: dict[str, Json]
        if on_vertex:
            body = {"instances": [{"content": text} for text in request.texts]}
            body |= {"parameters": length} if length else {}
        else:
            model = f"models/{request.model.removeprefix('models/')}"
            contents = ({"parts": [{"text": text}]} for text in request.texts)
            body = {"requests": [{"model": model, "content": content, **length} for content in contents]}
        return HttpCall(url, credentials.headers({}), to_bytes(body))

    def decoder(self, request: EmbedRequest) -> Decoder[Embedded]:
        return _Decoder(request, self._read)

    @staticmethod
    def _read(answer: dict[str, Json], _: int) -> Embedded:
        found = answer.get("embeddings")
        if found is None:
            found = [entry.get("embeddings") for entry in _mappings(answer.get("predictions"))]
        return Embedded(tuple(_vector(entry.get("values")) for entry in _mappings(found)))


class _Reader(Protocol):
    def __call__(self, answer: dict[str, Json], count: int, /) -> Embedded: ...


class _Decoder:
    """Reads the one body that an answer is."""

    def __init__(self, request: EmbedRequest, read: _Reader) -> None:
        self._count = len(request.texts)
        self._read = read
        self._found: Embedded | None = None

    @property
    def complete(self) -> bool:
        return self._found is not None

    @property
    def ended(self) -> bool:
        return self.complete

    def feed(self, event: Json) -> Sequence[Delta]:
        if not isinstance(event, dict):
            raise Unreadable(f"expected a mapping, found {kind_of(event)}")
        found = self._read(event, self._count)
        if len(found.vectors) != self._count:
            raise NotAnAnswer(f"the answer has {len(found.vectors)} vectors for {self._count} texts")
        lengths = sorted({len(vector) for vector in found.vectors})
        if len(lengths) > 1:
            raise NotAnAnswer(f"the answer has vectors of {lengths[0]} and of {lengths[-1]} numbers")
        self._found = found
        return ()

    def finish(self) -> Embedded:
        if self._found is None:
            raise Truncated(BROKE_OFF, retryable=True)
        return self._found


def _vector(value: Json) -> Vector:
    if not isinstance(value, list) or not value or not all(type(number) in (int, float) for number in value):
        raise Unreadable(f"expected a vector of numbers, found {shown(value)}")
    try:
        if all(map(math.isfinite, value)):
            return narrowed(value)
    except OverflowError:
        pass
    raise Unreadable(f"expected numbers of 32 bits, found {shown(value)}")


def _mappings(value: Json) -> list[dict[str, Json]]:
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise Unreadable(f"expected a list of vectors, found {shown(value)}")
    return value
