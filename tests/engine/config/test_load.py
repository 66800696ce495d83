"""From text to a config, with every problem in one report.

Covers octo/config/load.py, octo/config/context.py, octo/config/problems.py, octo/config/check.py,
octo/config/model.py and octo/config/resources.py.
"""

import os

import pytest

from octo import load
from octo.config.resources import read_text
from octo.errors import ConfigError, OctoError
from octo.testing.harness import config


def problems(text, **options):
    with pytest.raises(ConfigError) as caught:
        config(text, **options)
    return [
        (f"{problem.location.line}:{problem.location.column}", problem.message, problem.hint)
        for problem in caught.value.problems
    ]


def test_all_problems_of_a_file_are_in_one_report_in_the_order_of_the_file():
    assert problems(
        """\
        service: {nam: x}
        connectors:
          - name: m
            type: llm-antropic
        flows:
          - name: main
            process:
              - type: set-paylod
              - type: if
                condition: bdy.size
                then:
                  condition: 'true'
                  process: []
              - type: set-variable
                name: a
                settings: { value: '1' }
              - type: foreach
                items: body
                body: []
        """
    ) == [
        ("1:11", 'unknown field "nam" in `service`', "did you mean `name`?"),
        ("4:11", 'connector "llm-antropic" not registered', "did you mean `llm-anthropic`?"),
        ("8:15", 'block "set-paylod" not registered', "did you mean `set-payload`?"),
        ("10:20", "compile expression \"bdy.size\": undeclared reference to 'bdy'", "did you mean `body`?"),
        ("12:11", 'unknown field "condition" in `then`', "`condition` belongs further up, beside `type: if`"),
        (
            "14:9",
            "set-variable requires `name`",
            "`name` beside `type` is the block's label; put this one under `settings:`",
        ),
        ("19:15", "`body`: expected a mapping, found a list", "write `{process: [...]}`"),
    ]


@pytest.mark.parametrize(
    ("block", "found"),
    [
        ("- { name: x }", ("4:11", "block requires a type or a ref", "for example `type: set-payload`")),
        ("- { typ: log }", ("4:13", 'unknown field "typ"', "did you mean `type`?")),
        (
            f"- {{ type: log, {'k' * 900}: 1 }}",
            (
                "4:24",
                f'unknown field "{"k" * 80}…" in block `log`',
                "known names: `message`, `level`, `logger`, `full`, `name`, `ref`, `settings`, `type`",
            ),
        ),
        ("- log", ("4:11", "expected a block, found text", "a block is a mapping with a `type`")),
        ("- { ref: stmp }", ("4:18", 'block ref "stmp" is not a defined processor', "define it under `processors`")),
        ("- { type: spy }", ("4:19", 'block "spy" not registered', "did you mean `split`?")),
        (
            "- { type: log, level: info, settings: { level: warn } }",
            ("4:24", "`level` is given both at the top level and under settings", "keep one of them"),
        ),
    ],
    ids=["no-type", "misspelt-type", "misspelt-type-and-a-long-key", "text", "unknown-ref", "internal", "twice"],
)
def test_a_block_that_is_none_is_refused(block, found):
    (line, message, hint) = problems("flows:\n  - name: main\n    process:\n        " + block)[0]

    assert (line, message) == found[:2]
    assert hint == found[2] or found[1].startswith('block "spy"')


def test_a_key_of_any_length_is_shown_short():
    ((place, message, _),) = problems(f"flows: [ {{ name: main, process: [ {{ type: log, {'k' * 900}: 1 }} ] }} ]")

    assert (place, len(message) < 200, message.startswith('unknown field "kkkk')) == ("1:48", True, True)


def test_a_processor_gives_type_and_settings_and_the_block_overrides_key_by_key():
    loaded = config(
        """
        processors:
          - name: stamp
            type: set-variable
            settings: { name: stage, value: '"start"' }
        flows:
          - name: relay
            process:
              - ref: stamp
              - { ref: stamp, name: last, settings: { value: '"end"' } }
        """
    )

    first, second = loaded.flows[0].process
    assert (first.name, first.value.source, first.label, first.address) == (
        "stage",
        '"start"',
        "set-variable",
        "relay.stamp",
    )
    assert (second.name, second.value.source, second.label, second.address) == ("stage", '"end"', "last", "relay.last")


def test_lists_and_chains_of_a_processor_are_judged_where_they_are_written():
    found = problems(
        """
        processors:
          - { name: way, type: switch, settings: { cases: [], default: 5 } }
        flows: [{ name: f, process: [{ ref: way }] }]
        """
    )

    assert found == [
        ("3:51", "`cases` needs at least one entry", None),
        ("3:64", "`default`: expected a mapping, found a number", "write `{process: [...]}`"),
    ]


def test_a_fault_in_a_processor_is_reported_where_it_is_written():
    assert problems(
        """\
        processors:
          - name: stamp
            type: set-variable
            settings: { name: stage, value: bdy }
        flows:
          - { name: main, process: [ { ref: stamp } ] }
        """
    ) == [("4:37", "compile expression \"bdy\": undeclared reference to 'bdy'", "did you mean `body`?")]


def test_a_ref_with_another_type_is_refused():
    assert problems(
        """\
        processors: [ { name: stamp, type: log } ]
        flows: [ { name: main, process: [ { ref: stamp, type: set-payload } ] } ]
        """
    ) == [("2:55", "`stamp` is a `log`, not a `set-payload`", "leave `type` out")]


def test_keys_that_start_with_x_are_free_everywhere_and_null_counts_as_not_given():
    loaded = config(
        """
        x-anchors: { anything: &level warn }
        service: { name: null, x-note: 1 }
        flows:
          - name: main
            x-owner: me
            error: null
            process:
              - { type: log, x-why: because, level: *level, message: null }
        """
    )

    (block,) = loaded.flows[0].process
    assert (block.level, block.message, loaded.flows[0].error) == ("warn", None, None)


def test_a_flow_needs_a_name():
    assert problems("flows: [ { process: [] } ]") == [
        ("1:10", "a flow without a source requires a name", "add `name:`")
    ]


def test_a_sub_flow_takes_no_keys_of_a_flow():
    assert problems(
        """\
        flows:
          - name: main
            process:
              - type: if
                condition: 'true'
                then: { workers: 3, process: [] }
        """
    ) == [("6:17", 'unknown field "workers" in `then`', "`workers` belongs further up, in an entry of `flows`")]


def test_an_undeclared_variable_and_a_broken_block_are_reported_together():
    assert problems(
        """\
        flows:
          - name: ${NAME}
            process: [ { type: lgo } ]
        """,
        environ={"NAME": "main"},
    ) == [
        (
            "2:11",
            'config references undeclared environment variable "NAME"',
            "declare it under `env:` as `- name: NAME`",
        ),
        ("3:24", 'block "lgo" not registered', "did you mean `log`?"),
    ]


def test_a_fault_inside_folded_text_has_its_line_and_column():
    with pytest.raises(ConfigError) as caught:
        config(
            """\
            flows:
              - name: main
                process:
                  - type: set-payload
                    value: >
                      body.a +
                      bdy.b
            """
        )

    (problem,) = caught.value.problems
    assert problem.location is not None
    assert (problem.location[1:], problem.length, problem.excerpt) == ((7, 11), 3, None)


@pytest.mark.parametrize(
    ("value", "text", "column"),
    [('"\\x6eull == bdy.b"', "null == bdy.b", 9), ("'${KEY} + bdy.b + ${KEY}'", "*** + bdy.b + ***", 7)],
    ids=["escaped", "with a secret"],
)
def test_a_fault_whose_column_is_not_certain_shows_the_expression_with_its_own_caret(value, text, column):
    with pytest.raises(ConfigError) as caught:
        config(
            f"""\
            env: [ {{ name: KEY, secret: true }} ]
            flows: [ {{ name: main, process: [ {{ type: set-payload, value: {value} }} ] }} ]
            """,
            environ={"KEY": "body.s3cret"},
        )

    problem = caught.value.problems[-1]
    assert problem.excerpt is not None
    assert (problem.excerpt.text, problem.excerpt.column) == (text, column)


def test_a_directory_is_one_config_and_positions_stay_in_their_files(tmp_path):
    (tmp_path / "a.yaml").write_text("flows: [ { name: one, process: [] } ]\n", encoding="utf-8")
    (tmp_path / "b.yml").write_text("flows:\n  - { name: two, process: [ { type: lgo } ] }\n", encoding="utf-8")
    (tmp_path / "b_test.yml").write_text("not: a config\n", encoding="utf-8")

    with pytest.raises(ConfigError) as caught:
        load(tmp_path, environ={}, cwd=tmp_path)

    (problem,) = caught.value.problems
    assert str(problem) == f'{tmp_path / "b.yml"}:2:37: block "lgo" not registered'


@pytest.mark.parametrize(
    ("resource", "message"),
    [
        ("../secret.md", 'resource id "../secret.md" escapes the resource root'),
        ("missing.md", "resource `missing.md` does not exist"),
        ("''", "a resource id is a path below the config directory, found blank text"),
    ],
)
def test_a_prompt_is_read_from_a_file_below_the_config(resource, message):
    found = problems(
        f"""\
        connectors: [ {{ name: m, type: llm-scripted, settings: {{ turns: [ {{ text: x }} ] }} }} ]
        flows:
          - name: main
            process:
              - type: ai-agent
                connector: m
                prompt: {{ resource: {resource} }}
                tools: [ {{ name: t, description: d, process: [] }} ]
        """
    )

    assert [(line, text) for line, text, _ in found] == [("7:17", message)]


def test_a_link_may_not_lead_out_of_the_root(tmp_path):
    (tmp_path / "outside.md").write_text("secret", encoding="utf-8")
    root = tmp_path / "config"
    root.mkdir()
    (root / "link.md").symlink_to(tmp_path / "outside.md")

    with pytest.raises(OctoError, match=r'resource id "link\.md" escapes the resource root'):
        read_text(root, "link.md")


def test_a_pipe_is_no_resource(tmp_path):
    os.mkfifo(tmp_path / "prompt.md")

    with pytest.raises(OctoError, match=r"^cannot read resource `prompt\.md`: it is no regular file$"):
        read_text(tmp_path, "prompt.md")


def test_a_connector_of_the_wrong_name_is_reported_with_the_near_miss():
    assert problems(
        """\
        connectors: [ { name: claude, type: llm-scripted, settings: { turns: [ { text: x } ] } } ]
        flows:
          - name: main
            process:
              - type: ai-agent
                connector: cloude
                prompt: p
                tools: [ { name: t, description: d, process: [] } ]
        """
    ) == [("6:20", 'ai-agent: connector "cloude" is not configured', "did you mean `claude`?")]


def test_a_secret_never_stands_in_an_error():
    with pytest.raises(ConfigError) as caught:
        config(
            """\
            env: [ { name: API_KEY } ]
            flows:
              - name: main
                process: [ { type: set-payload, value: '"${API_KEY}" + ' } ]
            """,
            environ={"API_KEY": "sk-hunter2-secret"},
        )

    (problem,) = caught.value.problems
    assert problem.message.startswith('compile expression ""***" +": ')
    assert "hunter2" not in repr(problem)


def test_a_missing_variable_is_reported_once_and_not_again_where_it_is_used():
    assert problems(
        """\
        env: [ { name: LIMIT, required: true } ]
        flows: [ { name: main, workers: "${LIMIT}", process: [ { type: log, message: "${LIMIT}" } ] } ]
        """
    ) == [
        (
            "1:16",
            'required environment variable "LIMIT" is not set',
            "run `export LIMIT=…`, or put `LIMIT=…` into `.env` in the directory where you run octo",
        )
    ]


def test_a_name_that_an_undeclared_variable_was_to_give_is_reported_once():
    assert [
        message
        for _, message, _ in problems(
            """\
            connectors: [ { name: m, type: llm-scripted, settings: { turns: [ { text: x } ] } } ]
            flows:
              - name: main
                process:
                  - { type: flow-ref, flow: '${F}' }
                  - { type: template-resource, id: '${T}' }
                  - type: ai-agent
                    connector: m
                    prompt: p
                    tools: [ { name: t, flow: '${G}' } ]
                    skills: [ { name: s, description: d, resource: '${S}' } ]
            """
        )
    ] == [f'config references undeclared environment variable "{name}"' for name in "FTGS"]


def test_a_secret_that_is_too_short_to_be_masked_is_a_warning():
    loaded = config("env: [ { name: API_KEY } ]", environ={"API_KEY": "abc"})

    (warning,) = loaded.warnings
    assert (warning.severity, warning.message, warning.hint) == (
        "warning",
        "the value of `API_KEY` is too short to be masked",
        "give it 6 characters or more",
    )


def test_an_unknown_key_without_a_value_is_still_unknown():
    assert problems(
        """\
        flow:
        flows:
          - name: main
            proces:
            process: [ { type: log, levl: , settings: { mesage: } } ]
        """
    ) == [
        ("1:1", 'unknown field "flow" in the config', "did you mean `flows`?"),
        ("4:5", 'unknown field "proces" in an entry of `flows`', "did you mean `process`?"),
        ("5:29", 'unknown field "levl" in block `log`', "did you mean `level`?"),
        ("5:49", 'unknown field "mesage" in block `log`', "did you mean `message`?"),
    ]


def test_a_type_without_a_value_is_missing():
    assert problems("flows: [ { name: main, process: [ { type: , name: x } ] } ]") == [
        ("1:35", "block requires a type or a ref", "for example `type: set-payload`")
    ]


def test_a_misspelt_settings_key_is_one_problem():
    assert problems("flows: [ { name: main, process: [ { type: set-payload, setings: { value: '1' } } ] } ]") == [
        ("1:56", 'unknown field "setings" in block `set-payload`', "did you mean `settings`?")
    ]


def test_an_unknown_connector_and_a_broken_expression_are_reported_together():
    assert problems(
        """\
        connectors: [ { name: claude, type: llm-scripted, settings: { turns: [ { text: x } ] } } ]
        flows:
          - name: main
            process:
              - type: ai-agent
                connector: cloude
                prompt: p
                input: bdy
                tools: [ { name: t, description: d, process: [] } ]
        """
    ) == [
        ("6:20", 'ai-agent: connector "cloude" is not configured', "did you mean `claude`?"),
        ("8:16", "compile expression \"bdy\": undeclared reference to 'bdy'", "did you mean `body`?"),
    ]


def test_a_thousand_misspelt_types_are_reported_soon():
    blocks = "\n".join("      - { type: set-paylod, value: '1' }" for _ in range(1_000))

    assert len(problems(f"flows:\n  - name: main\n    process:\n{blocks}")) == 1_000


VERY_MANY = {
    "unknown keys at the top": "".join(f"key{index}: {index}\n" for index in range(20_000)),
    "unknown settings": "flows:\n  - name: main\n    process:\n      - type: set-payload\n        settings:\n"
    + "".join(f"          key{index}: 1\n" for index in range(20_000)),
    "the same key again and again": "flows: []\n" * 20_000,
    "the same slip again and again": "flows:\n  - name: main\n    process:\n" + "      - tpye: log\n" * 20_000,
    "variables that nobody declares": "flows:\n  - name: main\n    process: []\n    description: x\nservice:\n"
    + "".join(f"  x-{index}: ${{V{index}}}\n" for index in range(20_000)),
}


@pytest.mark.parametrize("text", VERY_MANY.values(), ids=VERY_MANY)
def test_of_very_many_problems_the_first_are_shown(text):
    found = problems(text)

    _, message, hint = found[-1]
    assert len(found) == 1_001
    assert message.removeprefix("parse config: ") == (
        "there are more than 1000 problems; those from here on are not shown"
    )
    assert hint == "mend the others first"


def test_equal_expressions_are_compiled_once():
    loaded = config(
        """
        flows:
          - name: main
            process:
              - { type: set-payload, value: body.a }
              - { type: set-payload, value: body.a }
              - { type: if, condition: body.a, then: { process: [] } }
        """
    )
    first, second, third = loaded.flows[0].process

    assert first.value is second.value
    assert third.condition is not first.value


def test_a_processor_that_nobody_uses_must_be_right_too_but_may_lack_what_a_block_will_give():
    assert problems(
        """\
        processors:
          - { name: misspelt, type: set-payload, settings: { valu: '1' } }
          - { name: broken, type: set-payload, settings: { value: bodyy } }
          - { name: itself, type: if, settings: { condition: 'true', then: { process: [ { ref: itself } ] } } }
          - { name: lacking, type: set-variable, settings: { name: a } }
          - { name: kind, type: log, settings: { full: 5 } }
        flows: [ { name: main, process: [ { ref: broken } ] } ]
        """
    ) == [
        ("2:54", 'unknown field "valu" in block `set-payload`', "did you mean `value`?"),
        ("3:59", "compile expression \"bodyy\": undeclared reference to 'bodyy'", "did you mean `body`?"),
        ("4:88", "processor `itself` contains itself: itself → itself", "a processor cannot refer to itself"),
        ("6:48", "`full`: expected `true` or `false`, found the number 5", None),
    ]


def test_sections_of_the_wrong_kind_are_problems_of_their_own():
    assert problems("connectors: 3\nprocessors: x\nflows: {}\n") == [
        ("1:13", "`connectors`: expected a list, found a number", "in a list, each entry stands after `- `"),
        ("2:13", "`processors`: expected a list, found text", "in a list, each entry stands after `- `"),
        ("3:8", "`flows`: expected a list, found a mapping", "in a list, each entry stands after `- `"),
    ]
