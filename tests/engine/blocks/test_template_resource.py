"""octo/blocks/template_resource.py: the text of a template as body, variable or raw content."""

from __future__ import annotations

import pytest

from octo.errors import BlockError, ConfigError
from octo.testing.harness import config, runtime

FILES = {"slip.txt": "{{ vars.who }} owes {{ body.sum }}", "card.html.j2": "<b>{{ body.sum }}</b>{{ vars.who }}"}


def flow(settings):
    return f"""
      resources: {{ templates: [ {{ resource: slip.txt, as: slip }}, {{ resource: card.html.j2 }} ] }}
      flows: [ {{ name: main, process: [ {{ type: template-resource, settings: {settings} }} ] }} ]
    """


async def run(settings, body=None):
    async with runtime(flow(settings), files=FILES) as octo:
        return await octo.invoke("main", {"sum": 30.0} if body is None else body, vars={"who": "<Ada>"})


@pytest.mark.parametrize(
    ("settings", "shown"),
    [
        ("{ id: slip }", {"variables": {"who": "<Ada>"}, "body": "<Ada> owes 30"}),
        ("{ id: card.html.j2 }", {"variables": {"who": "<Ada>"}, "body": "<b>30</b>&lt;Ada&gt;"}),
        ("{ id: slip, target: text }", {"variables": {"who": "<Ada>", "text": "<Ada> owes 30"}, "body": {"sum": 30.0}}),
        (
            "{ id: slip.txt, rawBody: true, contentType: text/plain }",
            {
                "variables": {"who": "<Ada>"},
                "body": {"contentType": "text/plain", "rawData": "<Ada> owes 30"},
                "raw_content": True,
            },
        ),
    ],
    ids=["body", "jinja2", "variable", "raw content"],
)
async def test_the_text_goes_where_it_is_wanted(settings, shown):
    message = await run(settings)

    assert message.shown() == {"event_id": message.event_id, **shown}


async def test_a_failing_span_fails_the_block_at_its_place():
    with pytest.raises(BlockError) as caught:
        await run("{ id: slip }", {"none": 1.0})

    assert str(caught.value) == (
        'block "template-resource": template-resource "slip": line 1, column 29: evaluate expression: no such key: sum'
    )
    assert caught.value.location[1:] == (1, 29)


async def test_an_unknown_template_fails_the_block():
    with pytest.raises(BlockError) as caught:
        await run("{ id: none.txt }")

    assert str(caught.value) == ('block "template-resource": load template "none.txt": resource: not found')


@pytest.mark.parametrize(
    ("settings", "message", "hint"),
    [
        ("{ target: x }", "template-resource requires `id`", "add `id:`"),
        (
            "{ id: slip, rawBody: true }",
            "template-resource requires `contentType` with `rawBody`",
            "add `contentType:`",
        ),
        (
            "{ id: slip, rawBody: true, contentType: text/plain, target: x }",
            "template-resource: `rawBody` makes the text the body, so it takes no `target`",
            "remove one of them",
        ),
        ("{ id: ../slip }", 'resource id "../slip" escapes the resource root', None),
    ],
    ids=["no id", "raw without a type", "raw variable", "outside"],
)
def test_a_block_that_cannot_work_is_refused_when_it_is_loaded(settings, message, hint):
    with pytest.raises(ConfigError) as caught:
        config(flow(settings), files=FILES)

    assert [(problem.message, problem.hint) for problem in caught.value.problems] == [(message, hint)]


@pytest.mark.parametrize(
    ("settings", "message", "hint"),
    [
        ("{ id: slp }", "there is no template `slp`", "did you mean `slip`?"),
        (
            "{ id: slip, contentType: text/plain }",
            "`contentType` has no effect without `rawBody`",
            "add `rawBody: true`",
        ),
    ],
    ids=["unknown", "no effect"],
)
def test_what_will_hardly_work_is_a_warning(settings, message, hint):
    warnings = config(flow(settings), files=FILES).warnings

    assert [(warning.message, warning.hint) for warning in warnings] == [(message, hint)]


# ---------------------------------------------------------------- inside expressions


async def test_an_expression_renders_a_template_with_its_variables_in_scope():
    templates = "resources: { templates: [ { resource: a.txt, as: a }, { resource: b.txt }, { resource: c.j2 } ] }\n"
    files = {
        "a.txt": '{{ body.n }} {{ templateResource("b.txt") }} {{ templateResource("c.j2") }}',
        "b.txt": "for {{ vars.who }} {{ now.getFullYear() > 2000 }}",
        "c.j2": "{{ vars.who }} {{ now.year > 2000 }}",
    }
    flow = 'flows: [ { name: main, process: [ { type: set-payload, value: \'"<" + templateResource("a") + ">"\' } ] } ]'

    async with runtime(templates + flow, files=files) as octo:
        message = await octo.invoke("main", {"n": 30.0}, vars={"who": "Ada"})

    assert message.body == "<30 for Ada true Ada true>"


async def test_a_template_that_renders_itself_ends_at_a_depth_of_8():
    text = """
      resources: { templates: [ { resource: t.txt } ] }
      flows: [ { name: main, process: [ { type: template-resource, id: t.txt } ] } ]
    """
    template = 'depth {{ body.n }}{{ templateResource("t.txt") }}'

    with pytest.raises(BlockError) as caught:
        async with runtime(text, files={"t.txt": template}) as octo:
            await octo.invoke("main", {"n": 1.0})

    inner = 'template-resource "t.txt": line 1, column 22: evaluate expression: '
    assert str(caught.value) == (
        'block "template-resource": '
        + inner * 8
        + 'template-resource "t.txt": templates render each other more than 8 deep'
    )
