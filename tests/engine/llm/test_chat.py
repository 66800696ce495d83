"""octo/llm/chat.py: the neutral conversation."""

from octo.llm.chat import (
    ChatMessage,
    ChatResponse,
    Citation,
    File,
    Reasoning,
    Search,
    Text,
    ToolCall,
    Usage,
    user,
)

PICTURE = File("image/png", b"...")


def test_the_text_of_a_turn_leaves_out_reasoning_and_calls():
    turn = ChatMessage("assistant", (Reasoning("hm"), Text("a"), ToolCall("1", "t", "{}"), Text("b"), PICTURE))

    assert (turn.text, turn.calls, turn.files) == ("ab", (ToolCall("1", "t", "{}"),), (PICTURE,))


def test_files_can_be_taken_out_of_a_turn():
    assert user("look", PICTURE).without_files() == user("look")
    assert user("look").without_files() == user("look")


def test_a_user_turn_has_its_files_first_and_no_empty_text():
    assert user("look", PICTURE).parts == (PICTURE, Text("look"))
    assert user("", PICTURE).parts == (PICTURE,)


def test_citations_have_their_places_in_the_whole_text():
    first = Text("It is dry. ", citations=(Citation("https://a", "A", 0, 10),))
    second = Text("It is hot.", citations=(Citation("https://b", "B", 6, 9), Citation("https://c")))
    turn = ChatMessage("assistant", (Search("weather"), first, second))

    assert turn.citations == (
        Citation("https://a", "A", 0, 10),
        Citation("https://b", "B", 17, 20),
        Citation("https://c"),
    )
    answer = ChatResponse(turn, "end_turn")
    assert (answer.citations, answer.searched) == (turn.citations, True)


def test_unknown_plus_a_number_is_that_number():
    total = Usage(input_tokens=1, cached_tokens=0) + Usage(input_tokens=2, output_tokens=3)

    assert total == Usage(input_tokens=3, output_tokens=3, cached_tokens=0)


def test_usage_is_shown_in_camel_case_and_a_cost_only_when_reported():
    assert Usage(input_tokens=1).shown() == {
        "inputTokens": 1,
        "outputTokens": None,
        "thinkingTokens": None,
        "cachedTokens": None,
        "cacheWriteTokens": None,
        "promptTokens": None,
    }
    assert Usage(reported_cost_usd=0.5).shown()["reportedCostUSD"] == 0.5
