"""octo/layout/part.py: one mapping of a file is changed, and nothing else."""

import pytest

from octo.agent.shown import yaml_document
from octo.errors import ConfigError
from octo.layout import part
from octo.layout.part import REMOVED

FILE = """\
# head
flows:
  - name: f   # flow
    process:
      # the agent
      - type: ai-agent   # here
        name: ag

        # which one
        agent: triage  # link
        input: |
          body
            .x
      # next
      - {type: log, message: 'x'}   # odd   layout
  - name: g
"""
BLOCK = ("flows", 0, "process", 0)
ALONE = "this cannot be changed without changing something else"


def changed(keys, path=BLOCK, text=FILE):
    content, lines, lost = part.change(text.encode(), "a.yaml", path, keys, yaml_document)
    return content.decode(), lines, lost


def test_a_text_takes_the_place_of_another_with_its_comments():
    assert changed({"agent": "other"}) == (
        FILE.replace("agent: triage ", "agent: other "),
        "type: ai-agent   # here\nname: ag\n\n# which one\nagent: other  # link\ninput: |\n  body\n    .x\n",
        0,
    )


def test_keys_take_the_place_of_one_that_goes():
    after, _, lost = changed({"agent": REMOVED, "prompt": "a\nb\n", "tools": [{"process": [], "name": "t"}]})

    assert after == FILE.replace(
        "        agent: triage  # link\n",
        "        prompt: |\n          a\n          b\n        tools:\n          - name: t\n            process: []\n",
    )
    assert lost == 1


def test_new_keys_stand_at_the_end():
    after, _, _ = changed({"budget": {"maxTokens": 5}})

    assert after == FILE.replace("            .x\n", "            .x\n        budget:\n          maxTokens: 5\n")


def test_a_mapping_in_braces_is_written_on_lines_of_its_own():
    after, _, _ = changed({"message": "y"}, ("flows", 0, "process", 1))

    assert after == FILE.replace(
        "      - {type: log, message: 'x'}   # odd   layout\n",
        "      - type: log\n        message: y   # odd   layout\n",
    )


def test_line_breaks_and_the_byte_order_mark_stay():
    text = "\ufeff" + FILE.replace("\n", "\r\n")
    after, _, _ = changed({"agent": "other"}, text=text)

    assert after == text.replace("agent: triage ", "agent: other ")


def test_a_text_is_put_in_the_place_of_another():
    after = part.put(FILE.encode(), "a.yaml", (*BLOCK, "agent"), "triage@7")

    assert after.decode() == FILE.replace("agent: triage ", "agent: triage@7 ")


@pytest.mark.parametrize(
    ("text", "path", "place", "reason"),
    [
        pytest.param("a: &x {k: 1}\nb: *x\n", ("b",), "1:4", ALONE, id="shared with another place"),
        pytest.param("a: 5\n", ("a",), "1:4", ALONE, id="no mapping"),
        pytest.param("a: {}\n", ("b",), "1:1", ALONE, id="not there"),
        pytest.param("a: [1]\n", ("a", 3), "1:4", ALONE, id="not in the list"),
        pytest.param(
            "b: 1\na: [{k: 1}]\n",
            ("a", 0),
            "2:5",
            "this stands between brackets, where nothing of several lines can stand",
            id="between brackets",
        ),
    ],
)
def test_what_cannot_be_changed_alone_is_left_as_it_is(text, path, place, reason):
    with pytest.raises(ConfigError) as caught:
        changed({"k": "2\n3"}, path, text)

    assert [(str(problem), problem.hint) for problem in caught.value.problems] == [
        (f"a.yaml:{place}: {reason}", "it has been left as it is; change it by hand")
    ]


def test_a_comment_on_the_first_line_of_a_text_is_counted_when_it_goes():
    text = "a:\n  p: |  # why\n    one\n  q: |+  # kept\n    two\n"
    after, _, lost = changed({"p": "x"}, ("a",), text)

    assert lost == 1
    assert "  q: |+  # kept\n" in after


def test_a_text_is_not_put_in_the_place_of_a_mapping():
    with pytest.raises(ConfigError, match="cannot be changed without changing"):
        part.put(FILE.encode(), "a.yaml", BLOCK, "x")
