"""octo/blocks/ai_embed.py: what is embedded, where the vectors go, and what is no text."""

import math
from collections.abc import Sequence
from typing import Any

import pytest

from fake_model import FakeModel, FakeRuntime, Listener
from http_api import Api, as_json
from octo.budget import Limits, opened
from octo.errors import BlockError, ProviderError
from octo.llm.chat import Usage
from octo.llm.embedding import Embedded, EmbedRequest
from octo.observe import TextsEmbedded
from octo.testing import harness
from one_shot import config_text, problems

EMBED = """
type: ai-embed
name: vec
settings:
  connector: m
  text: body
  model: ' e-1 '
"""


class Embedder(FakeModel):
    """Gives vectors as they are written, or an error, and keeps what it was asked."""

    embeds = True

    def __init__(self, answer: Embedded | Exception) -> None:
        super().__init__([])
        self.answer = answer
        self.asked: list[EmbedRequest] = []

    async def embed(self, request: EmbedRequest) -> Embedded:
        self.asked.append(request)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


async def embed(
    block: str,
    body: Any,
    *vectors: Sequence[float],
    usage: Usage | None = None,
    error: Exception | None = None,
    limits: Any = None,
    observers: Any = (),
    head: str = "",
) -> tuple[Any, list[EmbedRequest]]:
    """Run the block on a model that gives these vectors; the message that came out, and what was asked."""
    config = harness.config(head + config_text(block))
    runtime = FakeRuntime(config, observers=observers)
    model = runtime.model = Embedder(error or Embedded(tuple(map(tuple, vectors)), usage))
    async with runtime:
        with opened(Limits.model_validate(limits) if limits else None):
            return await runtime.invoke("f", body, vars={"kept": 1}), model.asked


def on_openai(server: Api) -> str:
    """The config of the block on a connector that calls the server."""
    settings = f"{{apiKey: k, baseURL: '{server.url}/v1'}}"
    text = config_text(EMBED.replace("connector: m", "connector: wire"))
    return text.replace("flows:", f"  - {{name: wire, type: llm-openai, settings: {settings}}}\nflows:")


# ---------------------------------------------------------------- what is refused


def test_the_least_that_an_embedding_needs():
    assert problems(EMBED) == []


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(
            "connector: m",
            "connector: ' '",
            'ai-embed "vec": expected the name of a connector, found blank text',
            id="none",
        ),
        pytest.param("connector: m", "connector: n", 'ai-embed "vec": connector "n" is not configured', id="unknown"),
        pytest.param(
            "connector: m",
            "connector: llm-scripted",
            'ai-embed "vec": connector "llm-scripted" is not configured',
            id="a type",
        ),
        pytest.param(
            "connector: m",
            "connector: jobs",
            'ai-embed "vec": connector "jobs" is a `queue`, which is no llm connector',
            id="no model",
        ),
        pytest.param("' e-1 '", "' '", "`model`: expected a name, found blank text", id="blank model"),
        pytest.param("name: vec", "name: vec\nprompt: x", 'unknown field "prompt" in block `ai-embed`', id="key"),
    ],
)
def test_an_embedding_that_cannot_work_is_refused(old, new, expected):
    ((_, message, _),) = problems(EMBED.replace(old, new))

    assert message == expected


@pytest.mark.parametrize(("connector", "type"), [("claude", "llm-anthropic"), ("seek", "llm-deepseek")])
def test_a_connector_without_embeddings_is_refused_and_the_others_are_named(connector, type):
    ((line, message, hint),) = problems(EMBED.replace("connector: m", f"connector: {connector}"))

    assert (line, message) == (4, f'ai-embed: connector "{connector}" is a `{type}`, which has no embeddings')
    assert {"llm-openai", "llm-gemini", "llm-openrouter", "llm-scripted"} <= set(hint.split("`"))
    assert "llm-anthropic" not in hint


# ---------------------------------------------------------------- vectors


async def test_a_text_gives_one_vector():
    message, asked = await embed(EMBED, "red", [1.0, 0.5])

    assert (message.body, message.vars) == ("red", {"kept": 1.0, "embedding": [1.0, 0.5]})
    assert asked == [EmbedRequest(("red",), "e-1", 0)]


async def test_a_list_gives_the_vectors_of_its_texts_in_one_call():
    message, asked = await embed(EMBED, ["red", "blue"], [1.0], [2.0])

    assert message.vars["embedding"] == [[1.0], [2.0]]
    assert asked == [EmbedRequest(("red", "blue"), "e-1", 0)]


async def test_a_list_of_one_text_gives_a_list_of_one_vector():
    message, _ = await embed(EMBED, ["red"], [1.0])

    assert message.vars["embedding"] == [[1.0]]


async def test_empty_text_inside_a_list_is_passed_on():
    _, asked = await embed(EMBED, ["red", ""], [1.0], [2.0])

    assert asked[0].texts == ("red", "")


def test_a_length_below_zero_means_nothing():
    ((_, message, hint),) = problems(f"{EMBED}  dimensions: -1\n")

    assert (message, hint) == ("ai-embed: `dimensions` is at least 0, found -1", "0 leaves it to the model")


def test_more_dimensions_than_any_vector_has_are_refused():
    ((_, message, _),) = problems(f"{EMBED}  dimensions: 100001\n")

    assert message == "ai-embed: `dimensions` is at most 100000, found 100001"


@pytest.mark.parametrize(("given", "sent"), [(0, 0), (256, 256)], ids=["zero", "length"])
async def test_the_length_is_sent_when_there_is_one(given, sent):
    _, asked = await embed(f"{EMBED}  dimensions: {given}\n", "red", [1.0])

    assert asked[0].dimensions == sent


@pytest.mark.parametrize(
    ("key", "name"),
    [("resultVar: v", "v"), ("resultVar: ' '", "embedding"), ("resultVar:", "embedding")],
    ids=["name", "blank", "nothing"],
)
async def test_the_variable_may_be_named(key, name):
    message, _ = await embed(f"{EMBED}  {key}\n", "red", [1.0])

    assert message.vars == {"kept": 1.0, name: [1.0]}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param("", "`text` is empty", id="empty"),
        pytest.param([], "`text` is an empty list", id="empty list"),
        pytest.param(["a", 1], "entry 1 of `text` must be text, got a number", id="number inside"),
        pytest.param([None], "entry 0 of `text` must be text, got null", id="null inside"),
        pytest.param(7, "`text` must be text or a list of texts, got a number", id="number"),
        pytest.param(None, "`text` must be text or a list of texts, got null", id="null"),
        pytest.param({"a": 1}, "`text` must be text or a list of texts, got a mapping", id="mapping"),
    ],
)
async def test_what_is_no_text_fails_the_block_and_no_model_is_called(body, expected):
    with pytest.raises(BlockError) as error:
        await embed(EMBED, body, error=AssertionError("called"))

    assert error.value.message == f'block "vec": ai-embed: {expected}'


async def test_an_expression_that_fails_fails_the_block():
    with pytest.raises(BlockError) as error:
        await embed(EMBED.replace("text: body", "text: body.x"), {})

    assert error.value.message == 'block "vec": ai-embed: text: evaluate expression: no such key: x'


@pytest.mark.parametrize("vectors", [[], [[1.0]], [[1.0], [2.0], [3.0]]], ids=["none", "too few", "too many"])
async def test_there_is_a_vector_for_each_text(vectors):
    with pytest.raises(BlockError) as error:
        await embed(EMBED, ["a", "b"], *vectors)

    assert error.value.message == (f'block "vec": ai-embed: the provider returned {len(vectors)} vectors for 2 texts')


async def test_a_failed_call_fails_the_block():
    with pytest.raises(BlockError) as error:
        await embed(EMBED, "red", error=ProviderError("llm-x embed: status 500: down", hint="wait"))

    assert (error.value.message, error.value.hint) == ('block "vec": ai-embed: llm-x embed: status 500: down', "wait")


# ---------------------------------------------------------------- budgets, events, the scripted model


async def test_a_spent_budget_fails_the_block():
    with pytest.raises(BlockError) as error:
        await embed(EMBED, "red", [1.0], limits={"maxTokens": 0})

    assert error.value.message == 'block "vec": ai-embed: budget exceeded'
    assert error.value.hint == "`maxTokens` is 0, 0 are used up"


async def test_a_call_is_told_with_its_cost_by_the_rates_of_the_model():
    listener = Listener(TextsEmbedded)
    rates = "aiPricing: {'m:e-1': {input: 0.5, output: 9}}\n"

    await embed(
        EMBED, ["a", "b"], [1.0, 2.0], [3.0, 4.0], usage=Usage(prompt_tokens=40), observers=[listener], head=rates
    )

    (event,) = listener.events
    assert (event.address, event.connector, event.model, event.texts, event.dimensions) == ("f.vec", "m", "e-1", 2, 2)
    assert (event.usage.prompt_tokens, event.usage.cost_usd, event.error) == (40, 0.00002, None)


async def test_a_failed_call_is_told():
    listener = Listener(TextsEmbedded)

    with pytest.raises(BlockError):
        await embed(EMBED, "a", error=ProviderError("down"), observers=[listener])

    (event,) = listener.events
    assert (event.error.message, event.dimensions, event.usage) == ("down", 0, None)


async def test_what_was_read_is_charged():
    config = harness.config(config_text(EMBED) + "\n      - {type: ai-embed, connector: m, model: e, text: body}\n")
    runtime = FakeRuntime(config)
    runtime.model = Embedder(Embedded(((1.0,),), Usage(prompt_tokens=100)))
    async with runtime:
        with opened(Limits.model_validate({"maxTokens": 100})), pytest.raises(BlockError) as error:
            await runtime.invoke("f", "red")

    assert error.value.message == 'block "ai-embed": ai-embed: budget exceeded'


async def test_vectors_of_a_vendor_are_put_in_the_order_of_the_texts_and_narrowed_to_32_bits(run_flow):
    answer = {
        "data": [{"index": 1, "embedding": [0.2, 2]}, {"index": 0, "embedding": [0.1, 1]}],
        "usage": {"prompt_tokens": 4},
    }
    with Api(lambda _: as_json(answer)) as server:
        text = on_openai(server)
        message = await run_flow(text, ["red", "blue"], flow="f")

    assert message.vars["embedding"] == [[0.10000000149011612, 1.0], [0.20000000298023224, 2.0]]
    assert [(request.path, request.json["input"], request.json["model"]) for request in server.requests] == [
        ("/v1/embeddings", ["red", "blue"], "e-1")
    ]


async def test_a_vendor_that_answers_too_few_vectors_fails_the_block(run_flow):
    with Api(lambda _: as_json({"data": []})) as server:
        text = on_openai(server)
        with pytest.raises(BlockError) as error:
            await run_flow(text, "red", flow="f")

    assert error.value.message == (
        f'block "vec": ai-embed: llm-openai embed: connector "wire": POST {server.url}/v1/embeddings: '
        "the answer has 0 vectors for 1 texts"
    )


async def test_the_scripted_model_makes_unit_vectors_that_follow_from_the_texts(run_flow):
    text = config_text(EMBED)
    texts = ["red", "blue", "red"]
    again = (await run_flow(text, texts, flow="f")).vars["embedding"]
    more = (await run_flow(f"{text}\n          dimensions: 3", texts, flow="f")).vars["embedding"]

    assert [len(vector) for vector in again] == [8, 8, 8]
    assert again[0] == again[2] != again[1]
    assert all(math.isclose(math.hypot(*vector), 1, rel_tol=1e-6) for vector in [*again, *more])
    assert [len(vector) for vector in more] == [3, 3, 3]
