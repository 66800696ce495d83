"""octo/config/templates.py, octo/config/jinja.py, octo/config/jinja_limits.py: text templates, their faults, their
limits and what they become.
"""

from __future__ import annotations

import pytest

from octo import load
from octo.cel import Timestamp
from octo.config.templates import Templates
from octo.errors import ConfigError, OctoError
from octo.testing.harness import config

SCOPE = {
    "body": {"n": 30.0, "text": "<a>", "list": [1.0, None], "items": ["x"], "half": 0.5},
    "vars": {"who": "Ada"},
    "eventID": "e1",
    "correlationID": "",
    "env": {"CITY": "Oslo"},
    "now": Timestamp(1_700_000_000_000_000_000),
}


@pytest.fixture
def render(tmp_path):
    """Render a template of this text, as the file of this name; further files may lie beside it."""

    def call(text, name="t.txt", **files):
        for file, content in {name: text, **{key.replace("_", "."): value for key, value in files.items()}}.items():
            (tmp_path / file).write_bytes(content.encode())
        return Templates(tmp_path).render(name, SCOPE)

    return call


def problems(text, **files):
    with pytest.raises(ConfigError) as caught:
        config(text, files=files["files"])
    return [
        (
            f"{problem.location.file.rpartition('/')[2]}:{problem.location.line}:{problem.location.column}",
            problem.message,
            problem.hint,
        )
        for problem in caught.value.problems
    ]


# ---------------------------------------------------------------- spans


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", ""),
        ("no span }} here {", "no span }} here {"),
        ("{{body.n}}|{{ body.text }}|{{\n body.list\n}}", "30|<a>|[1,null]"),
        ("{{ null }}{{ true }}{{ body.half }}", "nulltrue0.5"),
        ("{{ vars.who }} in {{ env.CITY }}, {{ eventID }}{{ correlationID }}", "Ada in Oslo, e1"),
        ("{{ settings }}", "null"),
        ("{{ string(now) }}", "2023-11-14T22:13:20Z"),
        ('{{ {"a": {"b": 1} } }}', '{"a":{"b":1}}'),
        ("{{ body.n }}}}", "30}}"),
        ("é😀 {{ vars.who }}\r\nlast\r\n", "é😀 Ada\r\nlast\r\n"),
    ],
    ids=["empty", "plain", "kinds", "constants", "names", "absent", "time", "mapping", "first end", "line ends"],
)
def test_spans_are_replaced_by_what_they_yield(render, text, shown):
    assert render(text) == shown


def test_a_failing_span_is_named_with_its_place(render, tmp_path):
    with pytest.raises(OctoError) as caught:
        render("one\ntwo {{ body.n }} {{ body.missing.x }}")

    assert str(caught.value) == (
        'template-resource "t.txt": line 2, column 26: evaluate expression: no such key: missing'
    )
    assert caught.value.location == (str(tmp_path / "t.txt"), 2, 26)


def test_a_file_is_read_once(tmp_path):
    (tmp_path / "t.txt").write_text("first", encoding="utf-8")
    templates = Templates(tmp_path)

    assert templates.render("t.txt", SCOPE) == "first"
    (tmp_path / "t.txt").write_text("second", encoding="utf-8")
    assert templates.render("t.txt", SCOPE) == "first"
    assert Templates(tmp_path).render("t.txt", SCOPE) == "second"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("none.txt", 'load template "none.txt": resource: not found'),
        ("../up.txt", 'load template "../up.txt": resource id "../up.txt" escapes the resource root'),
        ("", 'load template "": a resource id is a path below the config directory, found blank text'),
        ("broken.txt", 'load template "broken.txt": {root}/broken.txt:2:1: `{{` is not closed: `}}` is missing'),
        ("latin.txt", 'load template "latin.txt": resource `latin.txt` is not UTF-8 text (line 1)'),
    ],
    ids=["missing", "escaping", "blank", "broken", "not UTF-8"],
)
def test_a_file_that_is_no_template_is_reported_when_it_is_rendered(tmp_path, name, message):
    (tmp_path / "broken.txt").write_text("\n{{ body", encoding="utf-8")
    (tmp_path / "latin.txt").write_bytes(b"\xe9")

    with pytest.raises(OctoError) as caught:
        Templates(tmp_path).render(name, SCOPE)

    assert str(caught.value) == message.replace("{root}", str(tmp_path))


# ---------------------------------------------------------------- declared templates


def test_declared_templates_are_read_with_the_config_and_answer_to_both_names():
    loaded = config(
        "resources: { templates: [ { resource: mail/hello.txt, as: hello }, { resource: plain.txt } ] }",
        files={"mail/hello.txt": "Hello {{ vars.who }}", "plain.txt": "plain"},
    )

    names = ("hello", "mail/hello.txt", "plain.txt")
    assert [loaded.templates.render(name, SCOPE) for name in names] == ["Hello Ada", "Hello Ada", "plain"]


def test_every_fault_of_every_declared_template_is_in_the_report():
    found = problems(
        """\
        resources:
          templates:
            - { resource: none.txt }
            - { resource: a.txt }
            - { resource: b.j2 }
            - { resource: ../c.txt }
            - { resource: '' }
            - { resource: d.txt }
        flows: [ { name: main, process: [ { type: lgo } ] } ]
        """,
        files={
            "a.txt": "{{ bdy.x }}\n{{ }} {{ body.a + }} {{ body",
            "b.j2": "one\n  {% for x in %}",
            "d.txt": '{{ {"a": {"b": 1}} }}',
        },
    )

    assert [(place, message) for place, message, _ in found] == [
        ("a.txt:1:4", "compile expression \"bdy.x\": undeclared reference to 'bdy'"),
        ("a.txt:2:1", "expected an expression between `{{` and `}}`, found nothing"),
        ("a.txt:2:18", 'compile expression "body.a +": unexpected end of expression'),
        ("a.txt:2:22", "`{{` is not closed: `}}` is missing"),
        ("b.j2:2:1", "expected an expression, got 'end of statement block'"),
        ("config.yaml:3:19", "resource `none.txt` does not exist"),
        ("config.yaml:6:19", 'resource id "../c.txt" escapes the resource root'),
        ("config.yaml:7:19", "a resource id is a path below the config directory, found blank text"),
        ("config.yaml:9:43", 'block "lgo" not registered'),
        ("d.txt:1:17", 'compile expression "{"a": {"b": 1": expected `,` or `}`, found end of expression'),
    ]
    assert (found[0][2], found[-1][2]) == (
        "did you mean `body`?",
        "the first `}}` ends the span: put a blank between two braces",
    )


def test_templates_of_several_files_are_one_list_in_which_the_first_of_a_name_counts(tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.txt").write_text(f"from {name}", encoding="utf-8")
        text = f"resources: {{ templates: [ {{ resource: {name}.txt, as: mine }} ] }}"
        (tmp_path / f"{name}.yaml").write_text(text, encoding="utf-8")

    assert load(tmp_path, environ={}, cwd=tmp_path).templates.render("mine", SCOPE) == "from a"


# ---------------------------------------------------------------- Jinja2


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("{% for item in body.items %}{{ loop.index }}:{{ item }}{% endfor %}\n", "1:x\n"),
        ("{{ body.n }} {{ body.half }} {{ none }} {{ true }} {{ body.list }}", "30 0.5 null true [1,null]"),
        ("{% for i in range(body.n) if i > 27 %}{{ i }},{% endfor %}", "28,29,"),
        ("{{ now.year }} {{ vars.who | upper }} {{ env.CITY }} {{ settings }}", "2023 ADA Oslo null"),
        ("{{ body.text }}", "<a>"),
        ("{{ body.missing | default('none') }}", "none"),
    ],
    ids=["loop", "kinds", "whole numbers", "names", "no escaping", "default"],
)
def test_a_template_whose_name_ends_in_j2_is_jinja2(render, text, shown):
    assert render(text, "t.md.j2") == shown


@pytest.mark.parametrize("name", ["t.html.j2", "t.htm.j2"])
def test_html_is_escaped(render, name):
    assert render("{{ body.text }}|{{ body.text | safe }}|{{ body.list }}", name) == "&lt;a&gt;|<a>|[1,null]"


def test_includes_are_read_from_below_the_root(render):
    assert render("{% include 'foot.txt' %}!", "t.j2", foot_txt="by {{ vars.who }}") == "by Ada!"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n{{ nobody }}", "line 2: 'nobody' is undefined"),
        ("{{ body.missing }}", "line 1: 'dict object' has no attribute 'missing'"),
        ("{{ 1 / 0 }}", "line 1: ZeroDivisionError: division by zero"),
        ("{% include 'none.txt' %}", "line 1: resource `none.txt` does not exist"),
        ("{% include '../up.txt' %}", 'line 1: resource id "../up.txt" escapes the resource root'),
        ("{% include 'foot.txt' %}", "line 3: 'nobody' is undefined"),
        (
            "{{ ''.__class__.__mro__ }}",
            "line 1: access to attribute '__class__' of 'str' object is unsafe.",
        ),
        ("{{ body.list.append(1) }}", "line 1: access to attribute 'append' of 'list' object is unsafe."),
    ],
    ids=["undefined", "no such key", "arithmetic", "missing file", "escape", "inside an include", "sandbox", "frozen"],
)
def test_a_failing_jinja2_template_is_named_with_its_line(render, text, message):
    with pytest.raises(OctoError) as caught:
        render(text, "t.j2", foot_txt="one\ntwo\n{{ nobody }}")

    assert str(caught.value) == f'template-resource "t.j2": {message}'
    assert caught.value.location is not None


STEPS = "evaluation exceeds its budget of 1000000 steps"
SIZE = "evaluation exceeds its budget of 64 MB"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n{% for i in range(99999) %}{% for j in range(99999) %}x{% endfor %}{% endfor %}", f"line 2: {STEPS}"),
        ("{% for i in range(99999) if i in range(99999)|list %}{% endfor %}", f"line 1: {STEPS}"),
        (
            "{% macro m(n) %}{% if n %}{{ m(n - 1) ~ m(n - 1) }}{% endif %}{% endmacro %}\n{{ m(40) }}",
            f"line 1: {STEPS}",
        ),
        ("{% set a = [1] * 999 %}{% set b = [a] * 999 %}{{ [b] * 999 }}", f"line 1: {STEPS}"),
        ("{% set a = [1] * 999 %}{% set b = [a] * 999 %}{{ ([b] * 999)|string }}", f"line 1: {STEPS}"),
        ("{% for i in range(99) %}{% for j in range(99999)|map('abs') %}{% endfor %}{% endfor %}", f"line 1: {STEPS}"),
        ("{% for i in range(99) %}{{ body.list * 99999 }}{% endfor %}", f"line 1: {STEPS}"),
        ("one\n{{ 'x' * 4000000000 }}", f"line 2: {SIZE}"),
        ("{{ [1] * 4000000000 }}", f"line 1: {SIZE}"),
        ("{{ ('x' * 1500000000)|length }}", f"line 1: {SIZE}"),
        ("{{ 'x'|center(5000000000) }}", f"line 1: {SIZE}"),
        ("{{ 'x'.ljust(5000000000) }}", f"line 1: {SIZE}"),
        ("{{ ('x' * 9999999)|replace('x', 'xxxxxxxx') }}", f"line 1: {SIZE}"),
        ("{{ ['x' * 999999] * 999 }}", f"line 1: {SIZE}"),
        ("{{ (['x' * 999999] * 999)|join }}", f"line 1: {SIZE}"),
        ("{{ ','.join(['x' * 999999] * 999) }}", f"line 1: {SIZE}"),
        ("{{ '%5000000000d' % 1 }}", f"line 1: {SIZE}"),
        ("{{ '%*d'|format(5000000000, 1) }}", f"line 1: {SIZE}"),
        ("{{ '{:{}}'.format(1, 5000000000) }}", f"line 1: {SIZE}"),
        ("{{ now.strftime('%4000000000Y') }}", f"line 1: {SIZE}"),
        ("{{ 'x\\n'|indent(5000000000) }}", f"line 1: {SIZE}"),
        (
            "{% set n = namespace(t='x') %}{% for i in range(40) %}{% set n.t = n.t ~ n.t %}{% endfor %}",
            f"line 1: {SIZE}",
        ),
        (
            "{% macro m() %}{% for i in range(99999) %}" + "x" * 999 + "{% endfor %}{% endmacro %}{{ m() }}",
            f"line 1: {SIZE}",
        ),
        ("{{ 9 ** 999999999 }}", "line 1: OverflowError: a number of more than 100000 bits"),
        ("{{ 5|round(999999999, 'ceil') }}", "line 1: OverflowError: a number of more than 100000 bits"),
        ("{{ lipsum(99999) }}", "line 1: 'lipsum' is undefined"),
        ("one\n{% include 't.j2' %}", "line 2: `t.j2` includes itself"),
        ("{% include 'foot.txt' %}", "line 1: `t.j2` includes itself"),
        ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "line 1: it calls itself without end"),
    ],
)
def test_a_jinja2_template_may_not_spend_more_than_an_expression(render, text, message):
    with pytest.raises(OctoError) as caught:
        render(text, "t.j2", foot_txt="{% include 't.j2' %}")

    assert str(caught.value) == f'template-resource "t.j2": {message}'


def test_a_jinja2_template_does_what_it_does_within_its_budget(render):
    text = """{% macro cell(value, width=4) %}[{{ value|string|center(width) -}}
{% if caller is defined %}{{ caller() }}{% endif %}]{% endmacro %}
{%- for n in range(4) if n in [1, 2, 3] %}{{ cell(n) }}{{ loop.index }}{% endfor %}
{% call cell("a" ~ "b") %}!{% endcall %}
{{ "%.2f %s"|format(3, "x") }} {{ "%s: %s" % ("a", 5000000000) }} {{ "{:,}".format(5000000000) }} {{ "{}".format([1]) }}
{{ body.missing|default(5000000000) }} {{ 2.567|round(1) }} {{ "abc"[1:] }} {{ 2 ** 10 }} {{ [1] + [2] }}
{{ [3, 1]|sort|map("string")|join(", ") }} {{ {"a": 1}.get("b", 7000000000) }}
{{ "a\\nb"|indent(2) }} {{ [1, [2]]|tojson }}
{{ "a-b".replace("-", "+") }} {{ "-".join(["x", "y"]) }} {{ 2 is in [1, 2] }} {{ {"q": "x y"}|urlencode }}"""

    assert render(text, "t.j2") == (
        "[ 1  ]1[ 2  ]2[ 3  ]3\n[ ab !]\n3.00 x a: 5000000000 5,000,000,000 [1]\n"
        "5000000000 2.6 bc 1024 [1,2]\n1, 3 7000000000\na\n  b [1, [2]]\na+b x-y true q=x+y"
    )


def test_a_template_that_cannot_be_looked_for_is_told_of(tmp_path):
    name = "a" * 300

    assert Templates(tmp_path).fault(name) == f"cannot read resource `{name}`: file name too long"
    with pytest.raises(OctoError) as caught:
        Templates(tmp_path).render(name, SCOPE)
    assert caught.value.message == f'load template "{name}": cannot read resource `{name}`: file name too long'
