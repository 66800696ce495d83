"""The search of the web that providers make by themselves: asked for, cited and gone on with, on every wire."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from octo.errors import BadRequest
from octo.llm.chat import (
    ChatMessage,
    ChatRequest,
    ChatResponse,
    Citation,
    Reasoning,
    Search,
    Text,
    ToolDefinition,
    user,
)
from octo.llm.credentials import Credentials
from octo.llm.model import HttpModel
from octo.llm.providers import PROVIDERS
from octo.llm.wire import Endpoint
from vendor import anthropic, gemini, responses
from vendor.anthropic_rules import redact
from vendor.doubles import DOUBLES, PAGES, Double, Offline, Said
from vendor.gemini_rules import sign

SEARCHERS = [double for double in DOUBLES if PROVIDERS[double.provider].searches]
OTHERS = [double for double in DOUBLES if double not in SEARCHERS]
ASKED = ChatRequest((user("how is the weather?"),), web_search=True)
LOOKUP = ToolDefinition("lookup", "Find it")
FOUND = Said("It is dry.", searched="weather")


def named(name: str) -> Double:
    return next(double for double in DOUBLES if double.name == name)


async def talk(double: Double, *script: Any, stream: bool = False, request: ChatRequest = ASKED, **settings: Any):
    """Each request goes on with the answer to the one before; the answers, and the bodies of the requests."""
    server = double.serve(script)
    model = double.asked("http://double", Offline(server), **settings)
    answers: list[ChatResponse] = []

    async def listen(_: Any) -> None:
        pass

    for _ in script:
        answers.append(await model.complete(request, session={}, on_delta=listen if stream else None))
        turns = (*request.messages, answers[-1].message)
        turns = turns if answers[-1].stop_reason == "pause" else (*turns, user("and tomorrow?"))
        request = replace(request, messages=turns)
    return answers, [sent.json for sent in server.requests]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("double", SEARCHERS, ids=lambda double: double.name)
async def test_an_answer_tells_what_was_searched_for_and_cites_its_pages(double: Double, stream: bool):
    (answer,), _ = await talk(double, double.say(FOUND), stream=stream)

    assert (answer.text, answer.stop_reason, answer.searched) == ("It is dry.", "end_turn", True)
    assert [part.query for part in answer.message.parts if isinstance(part, Search) and part.query] == ["weather"]
    places = (0, 2) if double.name == "Responses" else (None, None)
    assert answer.citations == tuple(Citation(*page, *places) for page in PAGES)


@pytest.mark.parametrize("double", SEARCHERS, ids=lambda double: double.name)
async def test_a_streamed_answer_equals_a_whole_one(double: Double):
    (whole,), _ = await talk(double, double.say(FOUND))
    (streamed,), _ = await talk(double, double.say(FOUND), stream=True)

    assert (streamed.text, streamed.citations, streamed.searched) == (whole.text, whole.citations, whole.searched)


@pytest.mark.parametrize("double", SEARCHERS, ids=lambda double: double.name)
async def test_a_conversation_goes_on_after_a_search(double: Double):
    """With the search, and without it; each vendor takes the turn that searched in either case."""
    said = replace(FOUND, thinking="let me see")
    answers, _ = await talk(double, double.say(said), double.say(FOUND), double.say(Said("fine")), **double.settings)
    plain = ChatRequest((*ASKED.messages, answers[0].message, user("thanks")))
    (last,), _ = await talk(double, double.say(Said("bye")), request=plain)

    assert (answers[-1].text, last.text) == ("fine", "bye")


@pytest.mark.parametrize("stranger", DOUBLES, ids=lambda double: double.name)
@pytest.mark.parametrize("double", SEARCHERS, ids=lambda double: double.name)
async def test_searches_stay_with_the_vendor_that_made_them(double: Double, stranger: Double):
    (answer,), _ = await talk(double, double.say(FOUND))
    request = ChatRequest((*ASKED.messages, answer.message, user("and tomorrow?")))
    (later,), (body,) = await talk(stranger, stranger.say(Said("wet")), request=request)

    assert later.text == "wet"
    assert "weather\\" not in json.dumps(body)


@pytest.mark.parametrize("double", SEARCHERS, ids=lambda double: double.name)
async def test_the_search_stands_beside_tools(double: Double):
    _, (body,) = await talk(double, double.say(Said("hm")), request=replace(ASKED, tools=(LOOKUP,)))

    assert len(body["tools"]) == 2


@pytest.mark.parametrize("double", OTHERS, ids=lambda double: double.name)
async def test_a_provider_without_a_search_refuses(double: Double):
    with pytest.raises(BadRequest) as caught:
        await talk(double, double.say(FOUND))

    connector = PROVIDERS[double.provider].connector
    text = f'{connector} complete: connector "m": models of `{connector}` cannot search the web by themselves'
    assert caught.value.message == text


async def test_chat_completions_of_a_provider_with_two_apis_refuse_a_search():
    credentials = Credentials("openai", "http://double", "authorization", api_key="k", route="chat")
    model = HttpModel(Endpoint(credentials, "gpt-5.4"), Offline(named("Responses").serve([])))

    with pytest.raises(BadRequest) as caught:
        await model.complete(ASKED, session={})

    assert caught.value.message == "llm-openai complete: no search of the web can be asked for on Chat Completions"


async def test_pages_are_cited_that_chat_completions_tell_unasked():
    double = named("Chat Completions")
    (answer,), _ = await talk(double, double.say(FOUND), request=replace(ASKED, web_search=False))

    assert answer.citations == tuple(Citation(*page, 0, 2) for page in PAGES)


# ---------------------------------------------------------------- Anthropic

CLAUDE = named("Anthropic Messages")
USE, RESULT = anthropic.search("weather", *PAGES)


async def test_a_paused_turn_comes_back_as_it_was():
    paused = anthropic.reply("I look.", blocks=(USE,), thinking="hm", stop_reason="pause_turn")
    done = anthropic.reply(blocks=(RESULT, anthropic.cited("Dry.", *PAGES)))
    answers, bodies = await talk(CLAUDE, paused, done, CLAUDE.say(Said("wet")), **CLAUDE.settings)

    (_, turn) = bodies[1]["messages"]
    assert [block["type"] for block in turn["content"]] == ["thinking", "text", "server_tool_use"]
    assert turn["content"][-1] == USE
    assert [block["type"] for block in bodies[2]["messages"][1]["content"]] == [
        "thinking",
        "text",
        "server_tool_use",
        "web_search_tool_result",
        "text",
    ]
    assert [answer.stop_reason for answer in answers] == ["pause", "end_turn", "end_turn"]


async def test_thinking_between_searches_stays_in_its_place():
    again, found = anthropic.search("forecast", *PAGES, id="srvtoolu_2")
    parts = [
        Reasoning("a", {"wire": "anthropic", "data": redact(1)}),
        Search("weather", {"wire": "anthropic", "block": USE}),
        Search("", {"wire": "anthropic", "block": RESULT}),
        Reasoning("b", {"wire": "anthropic", "data": redact(2)}),
        Search("forecast", {"wire": "anthropic", "block": again}),
        Search("", {"wire": "anthropic", "block": found}),
        Text("Dry."),
    ]
    request = replace(ASKED, messages=(*ASKED.messages, ChatMessage("assistant", tuple(parts)), user("thanks")))
    _, (body,) = await talk(CLAUDE, CLAUDE.say(Said("fine")), request=request)

    assert [block["type"] for block in body["messages"][1]["content"]] == [
        *("redacted_thinking", "server_tool_use", "web_search_tool_result"),
        *("redacted_thinking", "server_tool_use", "web_search_tool_result", "text"),
    ]


async def test_a_search_that_was_never_answered_is_left_out_of_older_turns():
    turn = ChatMessage("assistant", (Text("I look."), Search("weather", {"wire": "anthropic", "block": USE})))
    request = replace(ASKED, messages=(*ASKED.messages, turn, user("well?")))
    _, (body,) = await talk(CLAUDE, CLAUDE.say(Said("fine")), request=request)

    assert body["messages"][1]["content"] == [{"type": "text", "text": "I look."}]


async def test_the_cache_mark_stands_at_the_last_tool_of_the_config():
    request = replace(ASKED, tools=(LOOKUP,), cache=True)
    _, (body,) = await talk(CLAUDE, CLAUDE.say(Said("fine")), request=request)

    assert ["cache_control" in tool for tool in body["tools"]] == [True, False]


async def test_a_tool_cannot_have_the_name_of_the_search():
    request = replace(ASKED, tools=(replace(LOOKUP, name="web_search"),))

    with pytest.raises(BadRequest) as caught:
        await talk(CLAUDE, CLAUDE.say(Said("fine")), request=request)

    assert "the tool `web_search` has the name of the vendor's own search of the web" in caught.value.message


# ---------------------------------------------------------------- Gemini

GEMINI = named("Gemini")


async def test_steps_of_a_search_go_back_to_gemini_with_their_signatures():
    call = {"toolCall": {"toolType": "GOOGLE_SEARCH", "args": {"queries": ["weather", "rain"]}, "id": "1"}}
    response = {"toolType": "GOOGLE_SEARCH", "response": {}, "id": "1"}
    signature = sign(json.dumps(response, sort_keys=True))
    found = {"toolResponse": response, "thoughtSignature": signature}
    request = replace(ASKED, tools=(LOOKUP,))
    script = (gemini.reply(parts=[call, found, {"text": "Dry."}]), GEMINI.say(Said("fine")))
    (answer, _), (_, body) = await talk(GEMINI, *script, request=request)

    assert [part.query for part in answer.message.parts if isinstance(part, Search)] == ["weather, rain", ""]
    assert body["contents"][1]["parts"] == [call, found, {"text": "Dry."}]
    assert body["toolConfig"] == {"includeServerSideToolInvocations": True}


async def test_models_before_gemini_3_search_or_call_tools():
    request = replace(ASKED, tools=(LOOKUP,), model="gemini-2.5-flash")

    with pytest.raises(BadRequest) as caught:
        await talk(GEMINI, GEMINI.say(FOUND), request=request)

    assert "`gemini-2.5-flash` cannot search the web and call tools in one request" in caught.value.message


async def test_models_before_gemini_3_search_without_a_schema_of_the_answer():
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    request = replace(ASKED, output_schema=schema, model="gemini-2.5-flash")
    _, (body,) = await talk(GEMINI, GEMINI.say(FOUND), request=request)

    assert "generationConfig" not in body


# ---------------------------------------------------------------- Responses


async def test_places_of_citations_count_over_all_parts_of_a_text():
    page = {"type": "url_citation", "url": "https://a", "title": "A", "start_index": 1, "end_index": 3}
    content = [
        {"type": "output_text", "text": "First. ", "annotations": [], "logprobs": []},
        {"type": "output_text", "text": "Second.", "annotations": [page], "logprobs": []},
    ]
    item = responses.cited("") | {"content": content}
    (answer,), _ = await talk(named("Responses"), responses.reply(item))

    assert answer.citations == (Citation("https://a", "A", 8, 10),)
