"""octo/agent/memory/per_turn.py: work that is done once for each turn."""

from octo.agent.memory.per_turn import PerTurn
from octo.llm.chat import user


def test_only_turns_that_are_new_are_worked_on():
    worked_on = []

    def length(turn):
        worked_on.append(turn.text)
        return len(turn.text)

    lengths = PerTurn(length)
    first, second = user("one"), user("three")

    assert lengths.of([first]) == [3]
    assert lengths.of((first, second)) == [3, 5]
    assert lengths.of([second]) == [5]
    assert worked_on == ["one", "three"]


def test_a_turn_that_is_gone_gives_its_place_to_none_that_is_like_it():
    texts = PerTurn(lambda turn: turn.text)

    for number in range(100):
        assert texts.of([user(str(number))]) == [str(number)]
