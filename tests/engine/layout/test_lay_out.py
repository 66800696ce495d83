"""octo/layout/lay_out.py, octo/layout/nodes.py, octo/layout/order.py, octo/layout/printer.py: nothing is lost."""

from __future__ import annotations

import os
import re
from collections import Counter
from textwrap import dedent

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from mutants import SOURCES, mutants
from octo.config.document import parse
from octo.errors import ConfigError, Location, Problem
from octo.layout.lay_out import lay_out

EXAMPLES = 4000 if os.environ.get("OCTO_SOAK") else 150


def laid_out(text: str) -> str:
    return lay_out(dedent(text).encode(), "app.yaml").decode()


# ---------------------------------------------------------------- the layout


def test_blocks_begin_with_type_name_and_settings():
    assert laid_out("""\
        flows:
        - process:
          - settings: {value: '1'}
            name: one   # the first
            type: set-payload
          # by a condition
          - condition: body.vip
            type: if
            then: {process: [{name: x, ref: stamp}]}
          name: main
        connectors:
        - settings: {turns: []}
          type: llm-scripted
          name: model
        """) == dedent("""\
        flows:
          - name: main
            process:
              - type: set-payload
                name: one   # the first
                settings:
                  value: '1'
              # by a condition
              - type: if
                condition: body.vip
                then:
                  process:
                    - ref: stamp
                      name: x
        connectors:
          - name: model
            type: llm-scripted
            settings:
              turns: []
        """)


def test_comments_move_with_what_they_are_about():
    assert laid_out("""\
        # what this is


        flows:
            # the main flow
            - name: main # called by users
              # its chain
              process: # in order
                  # first
                  -   type: log
                      # what is logged
                      message: body
                  # last of the chain
              # end of main
        # end of all
        """) == dedent("""\
        # what this is

        flows:
          # the main flow
          - name: main # called by users
            # its chain
            process: # in order
              # first
              - type: log
                # what is logged
                message: body
              # last of the chain
            # end of main
        # end of all
        """)


def test_comments_in_brackets_are_kept():
    assert laid_out("""\
        a: { # about b
          b: 1, # one
          # about c
          c: [ 2, # two
            3 ], # both
          d: [ ] # none
          # end of a
        } # a is done
        """) == dedent("""\
        a: # a is done
          # about b
          b: 1 # one
          # about c
          c: # both
            - 2 # two
            - 3
          d: [] # none
          # end of a
        """)


def test_texts_stay_as_they_are_written():
    assert laid_out("""\
        a:
            literal: |-   # why
                    one
                      two

                    three

            folded: >2
               indented
              text

            kept: |+
                    x

            plain: some words
                that go on
            single: 'it''s
                so'
            double: "a \\
                b\\tc"
            date: 2024-01-01
            octal: 0o17
            mode: 0755
            nothing:
            tilde: ~
        """) == dedent("""\
        a:
          literal: |-   # why
            one
              two

            three

          folded: >2
             indented
            text

          kept: |+
            x

          plain: some words
            that go on
          single: 'it''s
            so'
          double: "a \\
            b\\tc"
          date: 2024-01-01
          octal: 0o17
          mode: 0755
          nothing:
          tilde: ~
        """)


def test_anchors_aliases_merges_and_tags_stay():
    assert laid_out("""\
        base: &base   # shared
            x: &x 1
            y: !!str 2
        list: &l
        - &item
          z: *x
        - *item
        - &text word
        - &both !!map
          &key k: 1
        other: {<<: *base, y: *x, *x : 3}
        """) == dedent("""\
        base: &base   # shared
          x: &x 1
          y: !!str 2
        list: &l
          - &item
            z: *x
          - *item
          - &text word
          - &both !!map
            &key k: 1
        other:
          <<: *base
          y: *x
          *x : 3
        """)


def test_an_alias_never_comes_to_stand_before_its_anchor():
    text = """\
        flows:
          - process:
              - settings:
                  value: &v 'body'
                type: *v
            name: *v
        """

    assert laid_out(text) == dedent(text)


def test_short_lists_of_scalars_stay_on_one_line():
    words = ", ".join(f"word{number}" for number in range(20))

    assert laid_out("a: [x,  'y', 2]\nb: [[1], {}]\n") == "a: [x, 'y', 2]\nb:\n  - [1]\n  - {}\n"
    assert laid_out(f"a: [{words}]\n") == "a:\n" + "".join(f"  - word{number}\n" for number in range(20))


def test_lists_in_lists_stand_behind_one_dash():
    assert laid_out("""\
        a:
        -
          - x: 1
            y: 2
          -   # two
            - 3
        """) == dedent("""\
        a:
          - - x: 1
              y: 2
            # two
            - - 3
        """)


def test_what_stands_around_the_document_is_kept():
    assert laid_out("""\
        # before
        --- # here
        a:   {b: 1}
        # behind
        """) == dedent("""\
        # before
        ---
        # here
        a:
          b: 1
        # behind
        """)


def test_a_file_of_several_documents_is_refused():
    with pytest.raises(ConfigError) as caught:
        laid_out("a:   1\n---\nb:   2\n")

    assert caught.value.problems == (
        Problem(
            "a second document begins here, and only files of one are laid out",
            Location("app.yaml", 2, 1),
            "octo reads the first one only; put each into a file of its own",
        ),
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a:\n- b: |\n    x\n# end\n", "a:\n  - b: |\n      x\n# end\n"),
        ("a:\n- 1\n# end\n", "a:\n  - 1\n# end\n"),
        ("a:\n- |\n  x\n  # end\n# after\n", "a:\n  - |\n    x\n    # end\n# after\n"),
        ("a:\n- b: |\n    x\n# next\n- 2\n", "a:\n  - b: |\n      x\n  # next\n  - 2\n"),
    ],
    ids=["text", "list", "text with a sign", "before an item"],
)
def test_a_comment_at_the_end_stays_in_the_first_column(before, after):
    assert laid_out(before) == after


@pytest.mark.parametrize(
    "text",
    ["", "# only a comment\n", "a\n", "[]\n", "- 1 # one\n", "a: 1\n", "'a': 1 # x\n"],
    ids=repr,
)
def test_small_files_stay_as_they_are(text):
    assert laid_out(text) == text


@pytest.mark.parametrize("name", sorted(SOURCES.keys() - {"structures"}))
def test_samples_are_laid_out(name):
    assert lay_out(SOURCES[name].encode(), name).decode() == SOURCES[name], f"run `octo fmt samples/{name}`"


# ---------------------------------------------------------------- bytes


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"a:   {b: 1}\r\n", b"a:\r\n  b: 1\r\n"),
        (b"a: |\r\n    x\r\n    y\r\nb:    1", b"a: |\r\n  x\r\n  y\r\nb: 1\r\n"),
        (b"a:   1\rb:   2", b"a: 1\nb: 2\n"),
        (b"a:   1\r\nb:   2\nc:   3\r", b"a: 1\r\nb: 2\r\nc: 3\r\n"),
        (b"\xef\xbb\xbfa:   1", b"\xef\xbb\xbfa: 1\n"),
        (b"a: |\n   x", b"a: |-\n  x\n"),
    ],
    ids=["windows", "text on windows", "old mac", "mixed", "byte order mark", "no line break at the end"],
)
def test_line_breaks_and_a_byte_order_mark_stay(before, after):
    assert lay_out(before, "app.yaml") == after


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a: \xff\n", "parse file: byte 0xff is not UTF-8"),
        ("a: 1\n".encode("utf-16"), "parse file: the file is UTF-16"),
        (b"a: [1\n", "parse file: expected `,` or `]`"),
        (b"a: 1\na: 2\n", "parse file: duplicate key `a`"),
    ],
    ids=["latin", "utf-16", "syntax", "duplicate"],
)
def test_what_is_no_yaml_in_utf_8_is_refused_with_its_place(content, message):
    with pytest.raises(ConfigError) as caught:
        lay_out(content, "app.yaml")

    assert caught.value.problems[0].message.startswith(message)
    assert caught.value.location is not None


def test_what_cannot_be_kept_is_refused():
    with pytest.raises(ConfigError) as caught:
        lay_out(b'? "a key\n  over lines"\n: 1\n', "app.yaml")

    assert str(caught.value) == "app.yaml:1:1: cannot be laid out without a change of what it says"


# ---------------------------------------------------------------- whatever the file


def check(text: str) -> None:
    """Layout keeps the data, as another reader of YAML sees it too, and each comment; and it is final."""
    result = lay_out(text.encode(), "app.yaml").decode()

    assert _kinds(parse(result, "app.yaml").data) == _kinds(parse(text, "app.yaml").data)
    assert _kinds(yaml.safe_load(result)) == _kinds(yaml.safe_load(text))
    assert marks(result) == marks(text)
    assert lay_out(result.encode(), "app.yaml").decode() == result


def marks(text: str) -> Counter[str]:
    return Counter(re.findall(r"#c\d+#", text))


def _kinds(value: object) -> object:
    """The value with its kinds, without the order of its keys."""
    if isinstance(value, dict):
        return {str(key): _kinds(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_kinds(item) for item in value]
    return type(value).__name__, repr(value)


@pytest.mark.parametrize("name", SOURCES)
def test_samples_and_their_mutants_keep_what_they_say(name):
    check(SOURCES[name])
    for index, mutant in enumerate(mutants(parse(SOURCES[name], name).data)):
        if index % 7 == 0:
            check(
                yaml.safe_dump(mutant.data, sort_keys=True, default_flow_style=(None, True, False)[index % 3], width=40)
            )


@st.composite
def commented(draw):
    """A sample with comments put in wherever one may stand."""
    lines = SOURCES[draw(st.sampled_from(sorted(SOURCES)))].split("\n")
    for number in range(draw(st.integers(1, 12))):
        index = draw(st.integers(0, len(lines) - 1))
        if draw(st.booleans()):
            lines[index] += f"{' ' * draw(st.integers(1, 3))}#c{number}#"
        else:
            lines.insert(index, f"{' ' * draw(st.integers(0, 14))}#c{number}#")
        if draw(st.integers(0, 4)) == 0:
            lines.insert(index, "")
    return "\n".join(lines)


@settings(max_examples=EXAMPLES, deadline=None)
@given(commented())
def test_comments_are_kept_wherever_they_stand(text):
    try:
        parse(text, "app.yaml")
    except ConfigError:  # the comment has come into a text and broken it
        return
    check(text)


SCALARS = st.sampled_from(
    [
        "a",
        "1",
        "1.0",
        "0o7",
        "~",
        "",
        "true",
        "'it''s'",
        '"x\\n#y"',
        "'# no'",
        "a#b",
        "x: y".replace(": ", ":"),
        "-1",
        "2024-01-01",
    ]
)
ANCHORS = st.sampled_from(["", "", "", "&x ", "!!str ", "&y !!str "])
NAMES = st.sampled_from(
    ["a", "b", "c", "d", "type", "name", "ref", "settings", "process", "flows", "error", "'q'", '"r"']
)


@st.composite
def written(draw, depth=3, indent=0):
    """Lines of a value in block or flow style with comments, anchors and blank lines, and whether it goes below."""
    kind = draw(st.sampled_from(["scalar", "scalar", "text", "flow", "map", "list"] if depth else ["scalar", "text"]))
    pad = " " * indent
    if kind == "scalar":
        return [draw(ANCHORS) + draw(SCALARS)], False
    if kind == "text":
        head = draw(st.sampled_from(["|", ">", "|-", ">+", "|+", "|2", ">2-"]))
        body = draw(st.lists(st.sampled_from(["x", "  y", "", "     ", "#c0", "z  "]), min_size=1, max_size=4))
        extra = "" if "2" in head else draw(st.sampled_from(["", "   "]))
        lead = [] if "2" in head else [f"{pad}{extra}w"]
        return [head, *lead, *(f"{pad}{extra}{line}" if line else "" for line in body)], False
    if kind == "flow":
        return [draw(flow(depth))], False
    rows: list[str] = []
    keys = draw(st.lists(NAMES, unique_by=lambda name: name.strip("'\""), min_size=1, max_size=3))
    for key in keys if kind == "map" else range(draw(st.integers(1, 3))):
        rows += draw(st.sampled_from([[], [], [""], [f"{pad}#c{{}}#"], ["", "  #c{}#", ""]]))
        lines, below = draw(written(depth=depth - 1, indent=indent + draw(st.sampled_from([2, 3, 4]))))
        beside = draw(st.sampled_from(["", "", " #c{}#"]))
        head = f"{pad}{key}:" if kind == "map" else f"{pad}-"
        if below:
            rows += [head + draw(st.sampled_from(["", "", " &z"])) + beside, *lines]
        else:
            literal = lines[0][:1] in ("|", ">")
            first = f"{head} {lines[0]}"
            rows += [first + ("" if literal or not beside else beside), *lines[1:]]
    rows += draw(st.sampled_from([[], [], [f"{pad}#c{{}}#"], ["#c{}#"]]))
    return rows, True


@st.composite
def flow(draw, depth=2):
    gap = draw(st.sampled_from([" ", "", " #c{}#\n     "]))
    if depth and draw(st.booleans()):
        items = draw(st.lists(flow(depth=depth - 1), max_size=3))
        if draw(st.booleans()):
            return f"[{gap}{f',{gap or chr(32)}'.join(items)}]"
        return "{" + gap + f",{gap or ' '}".join(f"k{number}: {item}" for number, item in enumerate(items)) + "}"
    return draw(SCALARS.filter(lambda text: text not in ("", "a#b")))


@settings(max_examples=EXAMPLES * 3, deadline=None)
@given(written())
def test_any_file_keeps_what_it_says(given_):
    text = "\n".join(given_[0])
    for number in range(text.count("#c{}#")):
        text = text.replace("#c{}#", f"#c{number}#", 1)
    try:
        parse(text, "app.yaml")
        yaml.safe_load(text)
    except (ConfigError, yaml.YAMLError):
        return
    check(text)
