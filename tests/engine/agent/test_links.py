"""octo/agent/links.py: the links of a config followed, and what is wrong with them."""

import asyncio
from textwrap import dedent, indent

import pytest

from octo.agent import links, versions
from octo.agent.versions import Change
from octo.errors import ConfigError, OctoError
from octo.runtime import Runtime
from octo.store.store import Store
from octo.testing import harness

ME = Change("ann", 0)
SEARCH = {
    "name": "search",
    "inputSchema": {"type": "object", "properties": {"query": {"type": "string"}}},
    "process": [],
}
TRIAGE = {"connector": "m", "prompt": "Sort it out.", "tools": [SEARCH]}
CONFIG = """
connectors:
  - name: m
    type: llm-scripted
    settings: {turns: [{text: hi}]}
"""


def config_of(keys, more=""):
    block = indent(dedent(keys).strip("\n"), " " * 8)
    return harness.config(
        f"{CONFIG}{dedent(more)}flows:\n  - name: f\n    process:\n      - type: ai-agent\n        name: ag\n{block}\n"
    )


def followed(config, agents):
    async def work(store):
        for name, value in agents.items():
            await versions.deploy(store, name, value, ME)
        return await links.follow(config, store)

    with Store() as store:
        return asyncio.run(work(store))


def found(keys, agents, more=""):
    """What is wrong: severity, where below the block, text, hint."""
    return [
        (finding.warning, finding.path, finding.message, finding.hint)
        for one in followed(config_of(keys, more), agents)
        for finding in one.findings
    ]


def test_a_sound_link_has_nothing_wrong_with_it():
    assert found("agent: triage\ntoolInputs: {search: {query: x}}", {"triage": TRIAGE}) == []


@pytest.mark.parametrize(
    ("keys", "agents", "finding"),
    [
        pytest.param(
            "agent: triag",
            {"triage": TRIAGE},
            (False, ("agent",), 'agent "triag" not found', "did you mean `triage`?"),
            id="no agent",
        ),
        pytest.param(
            "agent: triage@3",
            {"triage": TRIAGE},
            (
                False,
                ("agent",),
                'agent "triage" has no version 3: version 1 is kept',
                "the store is in memory; `--store DIR` names one that keeps agents",
            ),
            id="no version",
        ),
        pytest.param(
            "agent: triage",
            {"triage": {**TRIAGE, "connector": "x"}},
            (False, ("agent",), 'agent "triage": `connector`: connector "x" is not configured', "known names: `m`"),
            id="no connector",
        ),
        pytest.param(
            "agent: triage",
            {"triage": {**TRIAGE, "tools": [{**SEARCH, "inputs": {"query": {"expr": "nobody"}}}]}},
            (
                True,
                ("agent",),
                'agent "triage": tool `search`: `inputs.query.expr`: compile expression "nobody": undeclared '
                "reference to 'nobody'",
                None,
            ),
            id="expression of a tool",
        ),
        pytest.param(
            "agent: triage",
            {"triage": {**TRIAGE, "tools": [{**SEARCH, "process": [{"type": "flow-ref", "flow": "gone"}]}]}},
            (
                True,
                ("agent",),
                'agent "triage": `f.ag[search].flow-ref`: flow "gone" is not registered',
                "known names: `f`",
            ),
            id="block of a tool",
        ),
        pytest.param(
            "agent: triage",
            {"triage": {**TRIAGE, "tools": [{"name": "ask", "flow": "gone"}]}},
            (
                True,
                ("agent",),
                'agent "triage": ai-agent tool `ask`: flow "gone" is not registered',
                "known names: `f`",
            ),
            id="flow of a tool",
        ),
        pytest.param(
            "agent: triage",
            {"triage": {**TRIAGE, "tools": [{**SEARCH, "process": [{"type": "ai-agent", "agent": "gone"}]}]}},
            (
                True,
                ("agent",),
                'agent "triage": `f.ag[search].ai-agent`: agent "gone" not found',
                "the store is in memory; `--store DIR` names one that keeps agents",
            ),
            id="link in a tool",
        ),
        pytest.param(
            "agent: triage",
            {"triage": {**TRIAGE, "prompt": "In ${WHERE}."}},
            (
                True,
                ("agent",),
                'agent "triage": `prompt`: config references undeclared environment variable "WHERE"',
                "declare it under `env:` as `- name: WHERE`",
            ),
            id="variable",
        ),
        pytest.param(
            "agent: triage\ntoolInputs: {serch: {query: x}}",
            {"triage": TRIAGE},
            (True, ("toolInputs", "serch"), "ai-agent: no tool `serch` is there to bind", "did you mean `search`?"),
            id="overlay of no tool",
        ),
        pytest.param(
            "agent: triage\ntoolInputs: {search: {index: x}}",
            {"triage": TRIAGE},
            (
                True,
                ("toolInputs", "search", "index"),
                "ai-agent tool `search` has no parameter `index`",
                "it is passed on all the same",
            ),
            id="overlay of no parameter",
        ),
        pytest.param(
            "agent: triage",
            {"triage": {**TRIAGE, "tools": [{"name": "helper", "agent": "gone"}]}},
            (
                True,
                ("agent",),
                'agent "triage": tool `helper`: agent "gone" not found',
                "the store is in memory; `--store DIR` names one that keeps agents",
            ),
            id="no nested agent",
        ),
        pytest.param(
            "agent: triage",
            {"triage": {**TRIAGE, "tools": [{"name": "me", "agent": "triage"}]}},
            (
                True,
                ("agent",),
                'agent "triage": tool `me`: tools of agent "triage" that are agents are not offered: `me`',
                "agents nest one level deep",
            ),
            id="nested too deep",
        ),
        pytest.param(
            "{connector: m, prompt: x, tools: [{name: helper, agent: gone}]}".strip("{}").replace(", ", "\n", 2),
            {},
            (
                True,
                (),
                'agent "gone" not found',
                "the store is in memory; `--store DIR` names one that keeps agents",
            ),
            id="tool of a block",
        ),
    ],
)
def test_what_is_wrong_with_a_link_is_found(keys, agents, finding):
    assert found(keys, agents) == [finding]


def test_memory_needs_a_flow_and_a_block_with_names_in_a_linking_block_too():
    agents = {"triage": {**TRIAGE, "memory": {"kind": "window", "contextLength": 4}}}
    config = harness.config(
        f"{CONFIG}flows:\n  - name: f\n    process:\n      - type: ai-agent\n        agent: triage\n"
    )

    assert [finding.message for one in followed(config, agents) for finding in one.findings] == [
        'agent "triage": ai-agent requires a `name` while memory is on'
    ]


def test_what_the_config_declares_counts_before_the_next_run_has_stored_it():
    more = """
    agents:
      - name: triage
        connector: m
        prompt: New.
        tools: [{name: search, process: []}]
    """
    (one,) = followed(config_of("agent: triage", more), {"triage": TRIAGE})

    assert (one.agent.prompt, one.title) == ("New.", "agent triage")


def test_problems_have_places_in_the_config():
    config = config_of("agent: triag")

    assert [(problem.severity, problem.location.line) for problem in links.problems(config, followed(config, {}))] == [
        ("error", 11)
    ]


@pytest.mark.parametrize(
    ("keys", "agent", "disabled"),
    [
        pytest.param("", {}, [], id="all are offered"),
        pytest.param("enabledTools: [search]", {}, [("triage", "other")], id="by the block"),
        pytest.param("", {"enabledTools": ["other"]}, [("triage", "search")], id="by the agent itself"),
        pytest.param("enabledTools: body.tools", {}, [], id="an expression may offer anything"),
        pytest.param("enabledTools: []", {}, [("triage", "search"), ("triage", "other")], id="all"),
    ],
)
def test_tools_that_no_block_offers_are_found(keys, agent, disabled):
    value = {**TRIAGE, "tools": [SEARCH, {"name": "other", "process": []}], **agent}
    config = config_of(f"agent: triage\n{keys}")

    assert list(links.disabled(followed(config, {"triage": value}))) == disabled


async def test_drafts_of_a_user_are_listed():
    with Store() as store:
        await versions.deploy(store, "triage", TRIAGE, ME)
        await versions.put_draft(store, "triage", {**TRIAGE, "prompt": "x"}, ME)
        await versions.put_draft(store, "new", TRIAGE, ME)

        assert await links.drafts(store, "ann") == [("new", None), ("triage", 1)]
        assert await links.drafts(store, "bob") == []


async def test_a_version_that_is_not_kept_is_refused_before_anything_runs(tmp_path):
    config = config_of("agent: triage@3")
    with Store(tmp_path) as store:
        await versions.deploy(store, "triage", TRIAGE, ME)
        with pytest.raises(ConfigError) as caught:
            async with Runtime(config, store=store):
                pass

    assert [(problem.message, problem.location.line) for problem in caught.value.problems] == [
        ('agent "triage" has no version 3: version 1 is kept', 11)
    ]


async def test_a_link_to_no_agent_fails_only_its_block():
    async with Runtime(config_of("agent: triage@3")) as octo:
        with pytest.raises(OctoError, match='agent "triage" not found'):
            await octo.invoke("f")


def test_what_is_wrong_with_an_agent_of_the_config_itself_is_told_where_it_stands():
    more = """
    agents:
      - name: triage
        connector: m
        prompt: In ${WHERE}.
        tools: [{name: search, inputs: {x: "${WHERE}"}, process: []}]
    """
    assert found("agent: triage", {}, more) == []
    assert found("agent: triage", {}, more.replace("In ${WHERE}.", "New.")) == []
