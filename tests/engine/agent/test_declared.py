"""octo/agent/declared.py, octo/config/agents.py: agents in configs and in files of their own come into the store."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import octo
from octo.agent import declared, versions
from octo.agent.versions import Change
from octo.errors import ConfigError
from octo.observe import Event, LogLine
from octo.runtime import Runtime
from octo.store import agents
from octo.store.store import Store

LLM = "connectors: [{name: llm, type: llm-scripted, settings: {rules: [{when: 'true', text: hi}]}}]\n"
ANN = Change("ann", 1)


class Project:
    """A directory with a config, and a store."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.store = Store(root / ".octo")
        self.lines: list[str] = []

    def write(self, name: str, text: str) -> None:
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def load(self, name: str = "app.yaml") -> Any:
        return octo.load(self.root / name, environ={"OCTO_USER": "ann"}, cwd=self.root)

    async def run(self, name: str = "app.yaml", store: Store | None = None) -> None:
        """Open a runtime, as every command that runs a flow does."""
        async with Runtime(self.load(name), store=store or self.store, observers=[self], clock=lambda: 7):
            pass

    async def history(self, name: str = "a") -> list[tuple[int, str, str]]:
        rows = await self.store.read(lambda db: agents.versions(db, name), [])
        return [(row.version, row.origin.replace(str(self.root) + os.sep, ""), row.created_by) for row in rows]

    async def source(self, name: str = "a") -> str:
        row = await self.store.read(lambda db: agents.agent(db, name), None)
        assert row is not None
        return row.source.replace(str(self.root) + os.sep, "")

    async def prompt(self, name: str = "a") -> Any:
        return (await versions.resolve(self.store, name)).value["prompt"]

    kinds = (LogLine,)

    def notify(self, event: Event) -> None:
        assert isinstance(event, LogLine)
        self.lines.append(f"{event.level} {event.text}")


@pytest.fixture
def project(tmp_path: Path) -> Any:
    project = Project(tmp_path)
    with project.store:
        yield project


def agent(prompt: str, name: str = "a") -> str:
    return f"{LLM}agents:\n  - name: {name}\n    connector: llm\n    prompt: {prompt}\n"


# ---------------------------------------------------------------- where agents are declared


async def test_agents_stand_in_a_list_in_a_mapping_and_in_files(project: Project) -> None:
    project.write("conf/a.yaml", agent("of a list", "listed"))
    project.write("conf/b.yaml", "agents: {mapped: {connector: llm, prompt: of a mapping}}\n")
    project.write("conf/agents/support/triage.agent.yaml", "connector: llm\nprompt: of a file\n")
    project.write("conf/agents/x.agent.yaml", "name: team/named\nconnector: llm\nprompt: of its name\n")
    await project.run("conf")

    found = {name: await project.prompt(name) for name in await project.store.read(agents.names, [])}
    assert found == {
        "listed": "of a list",
        "mapped": "of a mapping",
        "support/triage": "of a file",
        "team/named": "of its name",
    }
    assert await project.history("support/triage") == [(1, "source conf/agents/support/triage.agent.yaml", "ann")]
    assert await project.history("mapped") == [(1, "source conf/b.yaml", "ann")]


async def test_directories_of_agent_files_are_listed_in_place_of_the_usual_one(project: Project) -> None:
    project.write("app.yaml", LLM + "agentDirs: [mine, '.']\n")
    project.write("mine/a.agent.yaml", "connector: llm\nprompt: mine\n")
    project.write("b.agent.yaml", "connector: llm\nprompt: here\n")
    await project.run()

    assert await project.store.read(agents.names, []) == ["a", "b"]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (
            {"app.yaml": LLM + "agentDirs: [agnets]\n", "agents/a.agent.yaml": "connector: llm\nprompt: x\n"},
            ["app.yaml:2:13: there is no directory `agnets` of agents (did you mean `agents`?)"],
        ),
        (
            {"app.yaml": agent("x"), "agents/a.agent.yaml": "connector: llm\nprompt: y\n"},
            [
                'agents/a.agent.yaml:1:1: agent "a" is defined more than once '
                "(the first one is at app.yaml:3:11; rename one of them)"
            ],
        ),
        (
            {"app.yaml": LLM, "agents/a.agent.yaml": "- 1\n"},
            ["agents/a.agent.yaml:1:1: parse agent file: expected an agent, found a list (-)"],
        ),
        (
            {"app.yaml": LLM, "agents/a.agent.yaml": "connector: [\n"},
            [
                "agents/a.agent.yaml:2:1: parse agent file: expected a value (close the list or mapping above with `]` "
                "or `}`, or quote the text)"
            ],
        ),
        (
            {"app.yaml": LLM + "agents: [{connector: llm, prompt: x}]\n"},
            ["app.yaml:2:10: an agent requires a `name` (add `name:`)"],
        ),
        (
            {"app.yaml": LLM + "agents: [one]\n"},
            ["app.yaml:2:10: expected an agent, found text (an agent is a mapping)"],
        ),
        (
            {"app.yaml": LLM + "agents: {a: {connector: llm, prompt: x, promt: y}}\n"},
            ['app.yaml:2:41: unknown field "promt" in agent `a` (did you mean `prompt`?)'],
        ),
        (
            {"app.yaml": LLM + "agents: {a: {connector: llm, prompt: x, system_prompt: y}}\n"},
            ["app.yaml:2:41: `prompt` and `system_prompt` are two spellings of one key (keep one of them)"],
        ),
        (
            {"app.yaml": LLM + "agents: {../a: {connector: llm, prompt: x}}\n"},
            [
                "app.yaml:2:16: `../a` is no name of an agent (a name is made of segments with `/` between them; a "
                "segment has letters, digits, `_`, `.` and `-`, and begins with a letter, a digit or `_`)"
            ],
        ),
        (
            {"app.yaml": LLM + "agents: {a@1: {connector: llm, prompt: x}}\n"},
            ["app.yaml:2:15: `a@1` is no name of an agent (`@` stands before the version of a pin)"],
        ),
        (
            {"app.yaml": LLM + "agents: {a: {connector: llm, prompt: x, outputType: json}}\n"},
            ["app.yaml:2:53: expected `text` or `image`, found `json` (-)"],
        ),
        (
            {"app.yaml": LLM + "agents: {a: {connector: llm, prompt: x, maxIterations: 1001}}\n"},
            ["app.yaml:2:56: ai-agent: `maxIterations` is at most 1000, found 1001 (-)"],
        ),
        (
            {"app.yaml": LLM + "agents: {a: {connector: llm, prompt: x, tools: [{name: a-b, process: []}]}}\n"},
            ["app.yaml:2:56: ai-agent tool `a-b`: a name has 1 to 64 letters, digits and `_` (-)"],
        ),
        (
            {"app.yaml": agent("x") + "    tools: [{name: t, process: [{type: set-payload, value: bdy}]}]\n"},
            ["app.yaml:6:60: compile expression \"bdy\": undeclared reference to 'bdy' (did you mean `body`?)"],
        ),
    ],
    ids=[
        *("no directory", "declared twice", "a list", "no YAML", "no name", "text", "unknown key", "two spellings"),
        *("leaves its place", "a pin", "output type", "too many turns", "name of a tool", "expression"),
    ],
)
def test_what_is_wrong_is_told_where_it_stands(
    project: Project, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], expected: list[str]
) -> None:
    monkeypatch.chdir(project.root)
    for name, text in files.items():
        project.write(name, text)
    with pytest.raises(ConfigError) as caught:
        octo.load("app.yaml", environ={})

    assert [f"{found.location}: {found.message} ({found.hint or '-'})" for found in caught.value.problems] == expected


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        *((key, "it names a conversation or a person, and stays on the block") for key in ("memoryId", "memory_id")),
        *(
            (key, "it names a conversation or a person, and stays on the block")
            for key in ("previousMessages", "memoryThreadId", "agentId", "userId", "forwardContext")
        ),
        *(
            (key, "credentials stand in connectors only, and an agent names its connector")
            for key in ("apiKey", "authorization", "headers", "awsSecretAccessKey", "baseURL")
        ),
        *(
            (key, "it is how a flow uses an agent, and stays on the block")
            for key in (
                *("default", "answer", "budget", "keepAttachments", "responseMedia", "events", "emit", "stream"),
                *("nameThread", "stopWhen", "authorizeId", "authorizeAllow", "authorizeTimeout", "toolInputs"),
            )
        ),
    ],
)
def test_what_belongs_elsewhere_is_refused_with_the_reason(project: Project, key: str, reason: str) -> None:
    project.write("app.yaml", agent("x") + f"    {key}: x\n")
    with pytest.raises(ConfigError) as caught:
        project.load()

    assert [problem.message for problem in caught.value.problems] == [f"`{key}` does not belong to an agent: {reason}"]


def test_an_id_inside_memory_is_refused_too(project: Project) -> None:
    project.write("app.yaml", agent("x") + "    memory: {kind: window, contextLength: 3, memoryId: abc}\n")
    with pytest.raises(ConfigError) as caught:
        project.load()

    assert caught.value.problems[0].message == "ai-agent memory: `memoryId` has no effect with `kind: window`"


def test_names_that_lead_nowhere_are_doubtful_until_the_agent_works(project: Project) -> None:
    """References to variables, connectors and flows are looked up at the run."""
    tools = "[{name: t, flow: gone}, {name: u, process: [{type: sql, connector: gone, query: x}]}]"
    text = "agents: {a: {connector: nope, prompt: 'of ${CITY}', tools: %s}}\n"
    project.write("app.yaml", LLM + text % tools)

    assert sorted(warning.message for warning in project.load().warnings) == [
        'config references undeclared environment variable "CITY"',
        'connector "gone" is not configured',
        'connector "nope" is not configured',
    ]


@pytest.mark.parametrize(
    ("tool", "told"),
    [
        pytest.param(
            "process: [{type: python, file: gone.py, function: f}]",
            ("resource `gone.py` does not exist", "app.yaml", 8),
            id="file",
        ),
        pytest.param(
            "process: [{type: python, settings: {file: code.py, function: g}}]",
            ("python: `code.py` has no function `g`", "app.yaml", 8),
            id="function",
        ),
        pytest.param(
            "process: [{type: python, file: broken.py, function: f}]",
            ("python: the import fails: ModuleNotFoundError: No module named 'nowhere_to_be_found'", "broken.py", 2),
            id="module",
        ),
        pytest.param(
            "agent: {connector: llm, prompt: {resource: ../gone.md}}",
            ('resource id "../gone.md" escapes the resource root', "app.yaml", 8),
            id="prompt of a nested agent",
        ),
        pytest.param(
            "process: [{ref: gone}]", ('block ref "gone" is not a defined processor', "app.yaml", 8), id="processor"
        ),
    ],
)
def test_what_a_tool_works_with_may_be_missing_until_it_is_called(
    project: Project, tool: str, told: tuple[str, str, int]
) -> None:
    project.write("code.py", "def f(body): return body\n")
    project.write("broken.py", "\nimport nowhere_to_be_found\n")
    text = f"agents:\n- name: a\n  connector: llm\n  prompt: x\n  tools:\n  - name: t\n    {tool}\n"
    project.write("app.yaml", LLM + text)
    (warning,) = project.load().warnings

    assert warning.location is not None
    place = warning.location
    assert (warning.message, Path(place.file).name, place.line) == told


def test_a_file_that_a_block_of_a_flow_or_the_prompt_of_an_agent_lacks_is_a_problem_at_once(project: Project) -> None:
    agents = "agents: {a: {connector: llm, prompt: {resource: gone.md}}}\n"
    flow = "flows: [{name: f, process: [{type: python, file: gone.py, function: f}]}]\n"
    project.write("app.yaml", LLM + agents + flow)
    with pytest.raises(ConfigError) as caught:
        project.load()

    assert [(one.severity, one.message) for one in caught.value.problems] == [
        ("error", "resource `gone.md` does not exist"),
        ("error", "resource `gone.py` does not exist"),
    ]


def test_a_literal_secret_is_a_warning_that_does_not_repeat_it(project: Project) -> None:
    project.write("app.yaml", agent("sk-abcdefghij0123456789"))
    (warning,) = project.load().warnings

    assert (warning.message, warning.hint) == (
        "this looks like a secret, and agents are kept with all their versions",
        "declare a variable under `env:` with `secret: true`, and write `${NAME}`",
    )


def test_an_agent_needs_no_tools(project: Project) -> None:
    project.write("app.yaml", agent("x"))

    assert [one.name for one in project.load().declared_agents] == ["a"]


async def test_references_are_stored_as_they_are_written(project: Project) -> None:
    project.write("app.yaml", "env: [{name: CITY, default: Oslo}]\n" + agent("of ${CITY}"))
    await project.run()

    assert await project.prompt() == "of ${CITY}"


# ---------------------------------------------------------------- push on load


async def test_a_change_of_the_file_is_a_new_version(project: Project) -> None:
    project.write("app.yaml", agent("one"))
    await project.run()
    await project.run()
    project.write("app.yaml", agent("two"))
    await project.run()

    assert await project.history() == [(2, "source app.yaml", "ann"), (1, "source app.yaml", "ann")]
    assert await project.prompt() == "two"


async def test_comments_and_the_order_of_keys_are_no_change(project: Project) -> None:
    project.write("app.yaml", agent("one"))
    await project.run()
    project.write("app.yaml", LLM + "agents:\n  # here\n  a: {prompt: one, connector: llm}\n")
    await project.run()

    assert len(await project.history()) == 1


async def test_a_change_of_the_file_of_a_prompt_is_one(project: Project) -> None:
    project.write("app.yaml", agent("{resource: p.md}"))
    project.write("p.md", "old ${HOME}")
    await project.run()
    project.write("p.md", "new ${HOME}")
    await project.run()

    assert await project.prompt() == {"resource": "p.md", "text": "new ${HOME}"}
    assert len(await project.history()) == 2


async def test_what_is_deployed_or_restored_stays_until_the_file_changes(project: Project) -> None:
    project.write("app.yaml", agent("one"))
    await project.run()
    await versions.deploy(project.store, "a", {"connector": "llm", "prompt": "deployed"}, ANN)
    await project.run()
    assert await project.prompt() == "deployed"

    await versions.restore(project.store, "a", 1, ANN)
    await project.run()
    assert [version for version, _, _ in await project.history()] == [3, 2, 1]

    project.write("app.yaml", agent("edited"))
    await project.run()
    assert await project.prompt() == "edited"


async def test_a_change_of_the_file_to_what_is_in_force_adds_no_version(project: Project) -> None:
    project.write("app.yaml", agent("one"))
    await project.run()
    await versions.deploy(project.store, "a", {"connector": "llm", "prompt": "two"}, ANN)
    project.write("app.yaml", agent("two"))
    await project.run()

    assert len(await project.history()) == 2


async def test_two_files_that_say_the_same_agree(project: Project) -> None:
    project.write("app.yaml", agent("one"))
    project.write("other.yaml", agent("one"))
    await project.run()
    await project.run("other.yaml")

    assert await project.history() == [(1, "source app.yaml", "ann")]


async def test_another_file_that_says_something_else_is_refused_until_it_adopts(project: Project) -> None:
    project.write("app.yaml", agent("one"))
    project.write("other.yaml", agent("two"))
    await project.run()
    with pytest.raises(ConfigError) as caught:
        await project.run("other.yaml")

    (problem,) = caught.value.problems
    assert problem.message == f'agent "a" is declared by `{project.root / "app.yaml"}`, in another way'
    assert problem.hint == "rename one of them, or take it over: `octo agents adopt a --config PATH`"
    assert await project.prompt() == "one"

    found = declared.read(project.load("other.yaml"))
    await declared.push(project.store, found, ANN, adopt=["a"])
    assert await project.prompt() == "two"
    await project.run("other.yaml")
    with pytest.raises(ConfigError):
        await project.run()


async def test_a_file_that_was_moved_keeps_its_agents(project: Project) -> None:
    project.write("app.yaml", agent("one"))
    await project.run()
    (project.root / "app.yaml").rename(project.root / "moved.yaml")
    await project.run("moved.yaml")
    project.write("moved.yaml", agent("two"))
    await project.run("moved.yaml")

    assert await project.history() == [(2, "source moved.yaml", "ann"), (1, "source app.yaml", "ann")]


async def test_what_was_deployed_stays_when_the_file_moves(project: Project) -> None:
    project.write("app.yaml", agent("one"))
    await project.run()
    await versions.deploy(project.store, "a", {"connector": "llm", "prompt": "deployed"}, ANN)
    (project.root / "app.yaml").rename(project.root / "moved.yaml")
    await project.run("moved.yaml")

    assert await project.prompt() == "deployed"
    assert await project.source() == "moved.yaml"


@pytest.mark.parametrize(
    "leave",
    [
        lambda file: file.unlink(),
        lambda file: file.write_text(LLM, encoding="utf-8"),
        lambda file: file.write_text(agent("one", "b"), encoding="utf-8"),
    ],
    ids=["the file is gone", "no agents any more", "other agents"],
)
async def test_what_a_file_does_not_declare_any_more_another_may_change(project: Project, leave: Any) -> None:
    project.write("app.yaml", agent("one"))
    await project.run()
    leave(project.root / "app.yaml")
    project.write("new/app.yaml", LLM)
    project.write("new/agents/a.agent.yaml", "connector: llm\nprompt: two\n")
    project.lines.clear()
    await project.run("new/app.yaml")

    assert await project.prompt() == "two"
    assert await project.source() == "new/agents/a.agent.yaml"
    assert project.lines == [
        f'info agent "a" is taken over from `{project.root / "app.yaml"}`, which does not declare it any more'
    ]


@pytest.mark.parametrize("text", ["agents: [\n", "name: other\nconnector: llm\nprompt: one\n"])
async def test_an_agent_file_declares_what_it_names_and_one_that_cannot_be_read_what_it_did(
    project: Project, text: str
) -> None:
    project.write("app.yaml", LLM)
    project.write("agents/a.agent.yaml", "connector: llm\nprompt: one\n")
    await project.run()
    project.write("agents/a.agent.yaml", text)
    project.write("new/app.yaml", agent("two"))
    if text.startswith("name"):
        await project.run("new/app.yaml")
    else:
        with pytest.raises(ConfigError):
            await project.run("new/app.yaml")

    assert await project.prompt() == ("two" if text.startswith("name") else "one")


async def test_all_paths_to_a_file_are_one_source(project: Project) -> None:
    project.write("conf/app.yaml", agent("one"))
    await project.run("conf/app.yaml")
    (project.root / "link.yaml").symlink_to(project.root / "conf" / "app.yaml")
    (project.root / "linked").symlink_to(project.root / "conf")
    for number, path in enumerate(["link.yaml", "linked/app.yaml", "conf/../conf/app.yaml"]):
        await project.run(path)
        project.write("conf/app.yaml", agent(f"changed {number}"))
        await project.run(path)

    assert [number for number, _, _ in await project.history()] == [4, 3, 2, 1]
    assert project.lines == []


async def test_an_agent_with_a_new_name_is_declared_by_no_file_and_the_old_one_comes_back(project: Project) -> None:
    project.write("app.yaml", agent("one"))
    await project.run()
    await versions.rename(project.store, "a", "b")
    await project.run()

    rows = await project.store.read(agents.agents, [])
    assert [(row.name, row.version, row.source, row.source_hash != "") for row in rows] == [
        ("a", 2, str(project.root / "app.yaml"), True),
        ("b", 1, "", False),
    ]


async def test_nothing_is_written_while_some_of_the_agents_belong_to_another_file(project: Project) -> None:
    project.write("app.yaml", agent("one"))
    project.write("other.yaml", agent("two") + "  - {name: b, connector: llm, prompt: b}\n")
    await project.run()
    with pytest.raises(ConfigError):
        await project.run("other.yaml")

    assert await project.store.read(agents.names, []) == ["a"]


# ---------------------------------------------------------------- stores that keep nothing


async def test_in_memory_the_agents_are_there_for_the_run_and_the_log_says_so(project: Project) -> None:
    project.write("app.yaml", agent("one"))
    with Store() as memory:
        await project.run(store=memory)
        assert (await versions.resolve(memory, "a")).value["prompt"] == "one"

    assert project.lines == ["info the store is in memory: versions, drafts and memory of agents end with the run"]


async def test_a_store_that_cannot_be_written_leaves_them_to_the_run(project: Project) -> None:
    project.write("app.yaml", agent("one"))
    project.write("file", "")
    store = Store(project.root / "file")
    async with Runtime(project.load(), store=store, observers=[project]) as runtime:
        kept = runtime.declared_agents
        found = await versions.resolve(store, "a", declared=kept)

    assert found.value == {"connector": "llm", "prompt": "one"}
    assert project.lines == [
        'warn agent "a" runs as declared, and no version is kept: cannot create the store '
        f"`{project.root / 'file'}`: a file of that name exists"
    ]


async def test_only_changes_that_a_store_cannot_take_run_as_they_are_declared(project: Project) -> None:
    """SQLite itself plays the disk that is read-only."""
    more = "  - {name: b, connector: llm, prompt: b}\n  - {name: c, connector: llm, prompt: c}\n"
    project.write("app.yaml", agent("one") + more)
    await project.run()
    await versions.deploy(project.store, "b", {"connector": "llm", "prompt": "deployed"}, ANN)
    project.write("app.yaml", agent("two") + more.replace("prompt: c", "prompt: C"))
    await project.store.read(lambda db: db.execute("PRAGMA query_only = ON").fetchone(), None)
    async with Runtime(project.load(), store=project.store, observers=[project]) as runtime:
        declared = runtime.declared_agents
        found = [(await versions.resolve(project.store, name, declared=declared)).value["prompt"] for name in "abc"]

    assert found == ["two", "deployed", "C"]
    assert await project.prompt() == "one"
    assert project.lines == [
        f'warn agents "a", "c" run as declared, and no version is kept: `{project.store}` cannot be written: '
        "attempt to write a readonly database"
    ]


def test_the_name_of_the_person_is_that_of_octo_user_else_of_the_login() -> None:
    assert declared.user({"OCTO_USER": "ann", "USER": "bob"}) == "ann"
    assert declared.user({"USER": "bob"}) == "bob"
    assert declared.user({}) != ""
