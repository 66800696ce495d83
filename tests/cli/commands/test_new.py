"""octo_cli/commands/new.py: a project to start from."""

from __future__ import annotations

import json
import shlex


def test_what_is_made_runs_with_the_command_that_is_shown(octo, tmp_path):
    made = octo("new", "my shop", terminal="out err")

    assert made.stdout == (
        "made my shop/.env.example\nmade my shop/flow.yaml\nmade my shop/flow_test.yaml\n"
        "made my shop/.schemas/config.schema.json\nmade my shop/.schemas/suite.schema.json\n\ntry it:\n\n"
        "  octo invoke --config 'my shop/flow.yaml' --flow greet --data '{\"name\": \"Ada\"}'\n"
    )
    ran = octo(*shlex.split(made.stdout.splitlines()[-1])[1:])
    assert (json.loads(ran.stdout)["body"], ran.status) == ({"text": "Hello, Ada!"}, 0)


def test_a_pipe_is_told_the_files(octo):
    assert json.loads(octo("new", "shop", "--agent").stdout) == {
        "files": [
            "shop/.env.example",
            "shop/agent.yaml",
            "shop/agent_test.yaml",
            "shop/.schemas/config.schema.json",
            "shop/.schemas/suite.schema.json",
        ]
    }


def test_both_projects_fit_into_one_directory_but_for_the_example(octo, tmp_path):
    octo("new", "shop")
    (tmp_path / "shop" / ".env.example").unlink()

    assert octo("new", "shop", "--agent").status == 0


def test_nothing_is_overwritten(octo, tmp_path):
    (tmp_path / "flow.yaml").write_text("mine", encoding="utf-8")

    ran = octo("new", ".", terminal="err")

    assert (ran.stdout, ran.stderr, ran.status) == (
        "",
        "error: `flow.yaml` is there already\nhint: name another directory\n",
        2,
    )
    assert [path.name for path in tmp_path.iterdir()] == ["flow.yaml"]


def test_it_needs_a_directory(octo):
    assert octo("new", terminal="err").stderr == "error: `octo new` needs `DIR`\nhint: see `octo new --help`\n"
