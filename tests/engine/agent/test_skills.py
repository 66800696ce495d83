"""octo/agent/skills.py: instructions that the model loads when it needs them."""

import os

import pytest

import octo
from fake_model import TOOL, call, config_text, problems, reply, run

KEYS = f"""{TOOL}
guardrail: Stop when it is late.
skills:
  - {{name: refunds, description: How money goes back., resource: refunds.md}}
  - {{name: tone, description: How we write., resource: tone.md}}
"""
TEMPLATES = {"refunds.md": "Refund {{ body.done.sum }} to {{ vars.who }}.", "tone.md": "Be brief."}


def load(name, id=None):
    return call("load_skill", {"name": name}, id)


async def loaded(arguments, **options):
    """What the model is told, and the message that came out."""
    ran = await run(KEYS, reply("", call("load_skill", arguments)), reply("done"), templates=TEMPLATES, **options)
    return ran.results[0], ran.message


async def test_the_prompt_tells_of_skills_between_the_task_and_the_guardrail():
    ran = await run(KEYS, reply("done"), templates=TEMPLATES)

    assert ran.requests[0].system.split("\n\n")[1:] == [
        "Do it.",
        "There are skills. Before you act on what one is about, load it with load_skill(name):\n"
        "- refunds: How money goes back.\n"
        "- tone: How we write.",
        "Guardrail: Stop when it is late.",
    ]


async def test_the_tool_that_loads_skills_stands_behind_the_tools_and_before_the_way_out():
    ran = await run(f"{KEYS}default: {{process: []}}", reply("done"), templates=TEMPLATES)

    assert [tool.name for tool in ran.requests[0].tools] == ["t", "load_skill", "take_default_path"]
    assert ran.requests[0].tools[1].input_schema == {
        "type": "object",
        "required": ["name"],
        "properties": {"name": {"type": "string", "enum": ["refunds", "tone"]}},
    }


async def test_without_skills_there_is_neither():
    ran = await run(TOOL, reply("done"))

    assert [tool.name for tool in ran.requests[0].tools] == ["t"]
    assert "skill" not in ran.requests[0].system


async def test_a_skill_is_rendered_on_the_message_of_the_moment_each_time():
    ran = await run(
        KEYS,
        reply("", call("t", {"sum": 5})),
        reply("", load("refunds", "a")),
        reply("", call("t", {"sum": 6})),
        reply("", load("refunds", "b")),
        reply("done"),
        vars={"who": "Ada"},
        templates=TEMPLATES,
    )

    assert [ran.results[1], ran.results[3]] == [("Refund 5 to Ada.", False), ("Refund 6 to Ada.", False)]


async def test_the_text_of_a_skill_is_not_quoted():
    assert (await loaded({"name": "tone"}))[0] == ("Be brief.", False)


async def test_loading_a_skill_leaves_nothing_on_the_message():
    _, message = await loaded({"name": "tone"}, vars={"old": 1})

    assert message.vars == {"old": 1}


async def test_loading_a_skill_beside_other_calls_leaves_their_effects():
    calls = [load("tone", "a"), call("t", {"sum": 5}), load("tone", "b")]
    ran = await run(KEYS, reply("", *calls), reply(""), templates=TEMPLATES)

    assert ran.message.body == {"done": {"sum": 5}}
    assert ran.results == [("Be brief.", False), ('{"done":{"sum":5}}', False), ("Be brief.", False)]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        pytest.param("", "invalid arguments: at `name`: is required, but missing", id="nothing"),
        pytest.param(
            "{",
            "invalid arguments: not JSON: expecting property name enclosed in double quotes at line 1, column 2",
            id="no JSON",
        ),
        pytest.param("[]", 'invalid arguments: [] is not of type "object"', id="a list"),
        pytest.param({"name": " "}, 'invalid arguments: at `name`: " " is not one of "refunds" or "tone"', id="blank"),
        pytest.param(
            {"name": "refund"}, 'invalid arguments: at `name`: "refund" is not one of "refunds" or "tone"', id="unknown"
        ),
        pytest.param(
            {"name": "refunds"},
            'skill "refunds": template-resource "refunds.md": line 1, column 16: '
            "evaluate expression: no such key: done",
            id="a template that fails",
        ),
    ],
)
async def test_a_skill_that_cannot_be_loaded_is_a_failed_result(arguments, text):
    assert (await loaded(arguments))[0] == (text, True)


async def test_a_skill_whose_file_is_not_there_fails_when_it_is_loaded():
    keys = f"{TOOL}skills: [{{name: s, description: d, resource: none.md}}]\n"
    ran = await run(keys, reply("", load("s")), reply("done"))

    assert ran.results == [('skill "s": load template "none.md": resource: not found', True)]


async def test_a_run_that_only_loaded_a_skill_has_not_acted_yet():
    replies = [reply("", load("tone")), reply(""), reply("done")]
    ran = await run(KEYS, *replies, templates=TEMPLATES)

    assert ran.message.body == "done"


def test_a_skill_without_a_template_is_warned_of():
    assert problems(f"{TOOL}skills: [{{name: s, description: d, resource: refund.md}}]\n") == [
        ("ai-agent skill `s`: there is no template `refund.md`", "write the file, below the config directory")
    ]


@pytest.fixture
def shelf(tmp_path):
    """A directory of a config with things in it that are no templates."""
    (tmp_path / "config" / "folder").mkdir(parents=True)
    (tmp_path / "outside.md").write_text("Be brief.", encoding="utf-8")
    (tmp_path / "config" / "link.md").symlink_to(tmp_path / "outside.md")
    os.mkfifo(tmp_path / "config" / "pipe.md")
    return tmp_path / "config"


@pytest.mark.parametrize(
    ("resource", "why"),
    [
        ("link.md", 'resource id "link.md" escapes the resource root'),
        ("../outside.md", 'resource id "../outside.md" escapes the resource root'),
        ("pipe.md", "it is no regular file"),
        ("folder", "it is no regular file"),
    ],
)
def test_a_template_that_cannot_be_read_is_warned_of(shelf, resource, why):
    file = shelf / "app.yaml"
    file.write_text(
        config_text(f"{TOOL}skills: [{{name: s, description: d, resource: {resource}}}]\n"), encoding="utf-8"
    )

    assert [(one.message, one.hint) for one in octo.load(file, environ={}).warnings] == [
        (
            f"ai-agent skill `s`: template `{resource}` cannot be read: {why}",
            "name a file, below the config directory",
        )
    ]


@pytest.mark.parametrize(
    ("skills", "texts"),
    [
        pytest.param(
            "{description: d}",
            ["ai-agent skill 0 requires `name`", "ai-agent skill 0 requires `resource`"],
            id="parts missing",
        ),
        pytest.param("{name: s, resource: r}", ["ai-agent skill `s` requires `description`"], id="no description"),
        pytest.param(
            "{name: s, description: ' ', resource: r}",
            ["ai-agent skill `s` requires `description`"],
            id="blank description",
        ),
        pytest.param(
            "{name: load_skill, description: d, resource: r}",
            ["ai-agent skill `load_skill`: the name is reserved"],
            id="name of the loader",
        ),
        pytest.param(
            "{name: s, description: d, resource: r}, {name: s, description: e, resource: r}",
            ["ai-agent skill `s` is declared twice"],
            id="twice",
        ),
        pytest.param(
            "{name: s, description: d, resource: r, text: x}",
            ['unknown field "text" in an entry of `skills`'],
            id="unknown key",
        ),
    ],
)
def test_skills_that_cannot_work_are_refused(skills, texts):
    assert [message for message, _ in problems(f"{TOOL}skills: [{skills}]")] == texts
