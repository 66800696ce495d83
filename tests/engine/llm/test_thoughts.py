"""octo/llm/thoughts.py: reasoning at the beginning of a text, however it is cut."""

import pytest

from octo.llm.thoughts import Thoughts


def told(text: str, size: int) -> tuple[str, str]:
    thoughts = Thoughts()
    pairs = [thoughts.feed(text[at : at + size]) for at in range(0, len(text), size)]
    pairs.append(thoughts.finish())
    return "".join(thought for thought, _ in pairs), "".join(text for _, text in pairs)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<think>hm</think>yes", ("hm", "yes")),
        ("\n<think>\n a < b </ c\n</think>\n\n yes\n", ("a < b </ c\n", "yes\n")),
        ("<think>\n\n</think>\n\nyes", ("", "yes")),
        ("<think>a</think><think>b</think>", ("a", "<think>b</think>")),
        ("<think>cut off</thi", ("cut off</thi", "")),
        ("<think>", ("", "")),
        ("<thi", ("", "<thi")),
        ("<thin air>", ("", "<thin air>")),
        ("see <think>hm</think>", ("", "see <think>hm</think>")),
        (" yes", ("", " yes")),
        (" ", ("", " ")),
        ("", ("", "")),
    ],
)
def test_what_stands_between_the_marks_is_reasoning(text: str, expected: tuple[str, str], size: int):
    assert told(text, size) == expected
