"""octo/llm/wires/embeddings.py, octo/llm/embedding.py: vectors of texts, from the two kinds of APIs that give them."""

import json
import math

import pytest

from octo.errors import BadRequest, NotAnAnswer, ProviderError, RateLimited
from octo.llm.chat import Usage
from octo.llm.credentials import Credentials
from octo.llm.embedding import Embedded, EmbedRequest
from octo.llm.model import HttpModel
from octo.llm.transport import Transport
from octo.llm.wire import Endpoint, Unreadable
from octo.llm.wires.embeddings import GeminiEmbedder, OpenAiEmbedder
from octo.llm.wires.scripted import ScriptedModel
from vendor.server import Answer, Server

OPENAI = Credentials("openai", "https://api.openai.com/v1", "authorization", api_key="k")
GEMINI = Credentials("googleai", "https://google/v1beta", "x-goog-api-key", api_key="k")
VERTEX = Credentials("googleai", "https://google/publishers/google/models", "authorization", platform="vertex")
TWO = EmbedRequest(("a", "b"), "m-1")


class Vectors(Server):
    """Gives one answer to everything."""

    def __init__(self, body, status=200):
        super().__init__()
        self.body, self.status = body, status

    def answer(self, request):
        return Answer(self.status, (("content-type", "application/json"),), (json.dumps(self.body).encode(),))


def sent(embedder, request, credentials):
    call = embedder.encode(request, credentials)
    return call.url, json.loads(call.body)


def read(embedder, answer, request=TWO):
    decoder = embedder.decoder(request)
    decoder.feed(answer)
    return decoder.finish()


async def embed(server, provider="openai", request=TWO):
    with server:
        async with Transport({}) as transport:
            credentials = Credentials(provider, server.url, "authorization", api_key="k")
            return await HttpModel(Endpoint(credentials, "chat"), transport, "e").embed(request)


# ---------------------------------------------------------------- requests


def test_all_texts_go_out_in_one_request():
    assert sent(OpenAiEmbedder(), TWO, OPENAI) == (
        "https://api.openai.com/v1/embeddings",
        {"model": "m-1", "input": ["a", "b"], "encoding_format": "float"},
    )


def test_dimensions_are_sent_when_they_are_given():
    request = EmbedRequest(("a",), "m-1", 16)

    assert sent(OpenAiEmbedder(), request, OPENAI)[1]["dimensions"] == 16
    assert sent(GeminiEmbedder(), request, GEMINI)[1]["requests"][0]["outputDimensionality"] == 16
    assert sent(GeminiEmbedder(), request, VERTEX)[1]["parameters"] == {"outputDimensionality": 16}


def test_gemini_takes_a_request_for_each_text():
    assert sent(GeminiEmbedder(), TWO, GEMINI) == (
        "https://google/v1beta/models/m-1:batchEmbedContents",
        {"requests": [{"model": "models/m-1", "content": {"parts": [{"text": text}]}} for text in "ab"]},
    )


def test_vertex_ai_takes_instances():
    assert sent(GeminiEmbedder(), TWO, VERTEX) == (
        "https://google/publishers/google/models/m-1:predict",
        {"instances": [{"content": "a"}, {"content": "b"}]},
    )


# ---------------------------------------------------------------- answers


def test_vectors_come_in_the_order_of_the_texts():
    answer = {
        "data": [{"index": 1, "embedding": [0.5]}, {"index": 0, "embedding": [0.1]}],
        "usage": {"prompt_tokens": 4, "total_tokens": 4},
    }

    assert read(OpenAiEmbedder(), answer) == Embedded(
        ((0.10000000149011612,), (0.5,)), Usage(input_tokens=4, prompt_tokens=4)
    )


@pytest.mark.parametrize(
    "answer",
    [
        {"embeddings": [{"values": [1]}, {"values": [2]}]},
        {"predictions": [{"embeddings": {"values": [1]}}, {"embeddings": {"values": [2]}}]},
    ],
    ids=["gemini", "vertex"],
)
def test_gemini_keeps_the_order_and_tells_no_usage(answer):
    assert read(GeminiEmbedder(), answer) == Embedded(((1.0,), (2.0,)))


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ({"data": [{"index": 0, "embedding": [1]}]}, "the answer has 1 vectors for 2 texts"),
        ({"data": []}, "the answer has 0 vectors for 2 texts"),
        (
            {"data": [{"index": 2, "embedding": [1]}]},
            "the answer has a vector for text `2`, but 2 texts were sent",
        ),
        (
            {"data": [{"index": 0, "embedding": [1, 2]}, {"index": 1, "embedding": [1]}]},
            "the answer has vectors of 1 and of 2 numbers",
        ),
    ],
)
def test_an_answer_that_does_not_match_the_texts_is_none(answer, text):
    with pytest.raises(NotAnAnswer, match=text):
        read(OpenAiEmbedder(), answer)


@pytest.mark.parametrize(
    "answer",
    [
        [],
        {},
        {"data": [{"index": 0, "embedding": "AAA="}]},
        {"data": [{"index": 0, "embedding": [1]}, {"index": 1, "embedding": [1e300]}]},
        {"data": [{"index": 0, "embedding": [1]}, {"index": 1, "embedding": [10**400]}]},
        {"data": [{"index": 0, "embedding": [1]}, {"index": 1, "embedding": [math.nan]}]},
        {"data": [{"index": 0, "embedding": [1]}, {"index": 1, "embedding": [math.inf]}]},
    ],
    ids=["a list", "nothing", "base64", "too large", "far too large", "no number", "infinite"],
)
def test_what_is_no_vector_is_not_read(answer):
    with pytest.raises(Unreadable):
        read(OpenAiEmbedder(), answer)


# ---------------------------------------------------------------- models


async def test_a_model_gives_vectors():
    body = {"data": [{"index": 0, "embedding": [1]}, {"index": 1, "embedding": [2]}]}

    assert (await embed(Vectors(body))).vectors == ((1.0,), (2.0,))


async def test_a_call_that_fails_says_what_it_was_for():
    with pytest.raises(RateLimited) as caught:
        await embed(Vectors({"error": {"message": "slow down", "code": "insufficient_quota"}}, 429))

    assert str(caught.value) == 'llm-openai embed: connector "e": status 429: slow down'


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        (EmbedRequest((), "m"), "there is no text to embed"),
        (EmbedRequest(("a",), ""), "no model for embeddings is named"),
    ],
)
async def test_a_request_that_says_nothing_is_not_made(request_, text):
    with pytest.raises(BadRequest, match=text):
        await embed(Vectors({}), request=request_)


async def test_a_provider_without_embeddings_says_so():
    with pytest.raises(ProviderError, match='llm-anthropic embed: connector "e": its provider has no embeddings'):
        await embed(Vectors({}), "anthropic")


async def test_a_written_model_gives_unit_vectors_that_follow_from_the_text():
    model = ScriptedModel()
    first, again, other = (await model.embed(EmbedRequest(("a", "a", "b"), "x"))).vectors

    assert first == again != other
    assert (len(first), math.hypot(*first)) == (8, pytest.approx(1, abs=1e-6))
    (longer,) = (await model.embed(EmbedRequest(("a",), "x", 3))).vectors
    assert len(longer) == 3
