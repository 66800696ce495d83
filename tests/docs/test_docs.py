"""README.md and docs/: configs load, commands print what is shown, links lead somewhere, tables are complete."""

from __future__ import annotations

import io
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

import octo
from octo import registry
from octo.agent import events
from octo.agent.nested import Entry
from octo.blocks.ai_agent import AiAgent
from octo.config.model import Config
from octo.connectors import llm_scripted
from octo.connectors.llm import LlmAnthropic, LlmCustom, LlmOpenRouter
from octo.connectors.llm_bedrock import LlmBedrock
from octo.connectors.llm_gemini import LlmGemini
from octo.connectors.llm_openai import LlmOpenAi
from octo.connectors.llm_scripted import LlmScripted
from octo.fields import Model
from octo.llm.providers import PROVIDERS
from octo.runlog import record
from octo_cli.main import main

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
AGENTS, COMMAND_LINE, RUNS = (ROOT / "docs" / name for name in ("agents.md", "command-line.md", "runs.md"))
HELP_OPTIONS = {"-h", "--help"}
SURROUNDINGS = {"PATH": os.environ["PATH"]}
"""What a command line sees of the environment."""


# ---------------------------------------------------------------- reading documents


class Fence(NamedTuple):
    """A fenced block."""

    document: Path
    line: int
    language: str
    text: str

    @property
    def id(self) -> str:
        return f"{self.document.name}:{self.line}"

    @property
    def is_config(self) -> bool:
        """Whether it is a whole config, and not a part of one."""
        if self.language != "yaml":
            return False
        data = yaml.safe_load(self.text)
        return isinstance(data, dict) and data.keys() <= Config.yaml_keys().keys()

    @property
    def file(self) -> str | None:
        """The name of the file that it is, which its first line says in a comment: `# tools.py`."""
        named = re.match(r"(?:#|\{#) (\w+\.\w+)(?: #\})?\n", self.text)
        return named[1] if named and self.language else None


class Example(NamedTuple):
    """A command that a fenced block shows, and what it is said to print.

    It refers to a sample, or to the nearest config above it, whatever the file is called there. What is shown of a
    command that fails begins with `error:`, as on a terminal, or is a record of level ERROR, as in a pipe.
    """

    document: Path
    id: str
    words: list[str]
    stdin: str
    shown: str
    config: str

    @property
    def on_a_terminal(self) -> bool:
        return self.shown.startswith("error: ")

    @property
    def fails(self) -> bool:
        return self.on_a_terminal or "level=ERROR" in self.shown


class Table(NamedTuple):
    """A table, and the heading that it stands under."""

    heading: str
    header: list[str]
    rows: list[list[str]]


def text_of(document: Path) -> str:
    return document.read_text(encoding="utf-8")


def prose_of(document: Path) -> str:
    """The text without its fenced blocks."""
    return re.sub(r"(?ms)^```.*?^```$", "", text_of(document))


def fences(document: Path) -> Iterator[Fence]:
    text = text_of(document)
    for match in re.finditer(r"(?ms)^```(\w*)\n(.*?)^```$", text):
        yield Fence(document, text.count("\n", 0, match.start()) + 1, match[1], match[2])


def examples(document: Path) -> Iterator[Example]:
    config = ""
    for fence in fences(document):
        if fence.is_config:
            config = fence.text
        if fence.language:
            continue
        command = (
            r"(?m)^(?:\$ )?(?:echo '(?P<stdin>.*?)' \| )?(?:\.venv/bin/)?(?P<octo>octo .*)\n"
            r"(?P<shown>(?:(?!.*\bocto \w).*\n)*)"
        )
        for number, match in enumerate(re.finditer(command, fence.text), start=1):
            words = shlex.split(match["octo"])[1:]
            yield Example(document, f"{fence.id}-{number}", words, match["stdin"] or "", match["shown"], config)


def put_files(document: Path, folder: Path) -> None:
    """Write the files that a document shows beside its configs."""
    for fence in fences(document):
        if fence.file:
            (folder / fence.file).write_text(fence.text, encoding="utf-8")


def tables(document: Path) -> Iterator[Table]:
    heading, lines = "", []
    for line in [*prose_of(document).splitlines(), ""]:
        if line.startswith("|"):
            lines.append([cell.strip() for cell in line.strip("|").split(" | ")])
        elif lines:
            yield Table(heading, lines[0], lines[2:])
            lines = []
        if line.startswith("#"):
            heading = line.lstrip("# ").replace("`", "")


def coded(text: str) -> list[str]:
    """What stands in backticks."""
    return re.findall(r"`([^`]+)`", text)


def first_column(table: Table) -> list[str]:
    return [word for row in table.rows for word in coded(row[0])]


def required_variables(config: str) -> dict[str, str]:
    """The variables that a config cannot do without, with a value."""
    declared = yaml.safe_load(config).get("env") or []
    return {entry["name"]: "sk-ant-none" for entry in declared if entry.get("required")}


CONFIGS = [fence for document in DOCUMENTS for fence in fences(document) if fence.is_config]
EXAMPLES = [example for document in DOCUMENTS for example in examples(document)]


# ---------------------------------------------------------------- running commands


class Screen(io.StringIO):
    """A stream that says whether it is a terminal."""

    terminal = False

    def isatty(self) -> bool:
        return self.terminal


class Ran(NamedTuple):
    stdout: str
    stderr: str
    status: int


def run(*words: str, stdin: str = "", environ: dict[str, str] | None = None, terminal: bool = False) -> Ran:
    """Run a command line in the working directory."""
    out, err = Screen(), Screen()
    err.terminal = terminal
    fed = Path(".stdin")
    fed.write_text(stdin, encoding="utf-8")
    before = sys.stdin
    with fed.open(encoding="utf-8") as sys.stdin, redirect_stdout(out), redirect_stderr(err):
        try:
            status = main(words, environ={"NO_COLOR": "1"} | SURROUNDINGS | (environ or {}))
        finally:
            sys.stdin = before
    return Ran(out.getvalue(), err.getvalue(), status)


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with the samples in it."""
    shutil.copytree(ROOT / "samples", tmp_path / "samples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def options_of(*command: str) -> set[str]:
    """The options that the help of a command names, those of its verbs included."""
    text = run(*command, "--help").stdout
    columns = re.findall(r"(?m)^  (-.*?)(?:  |$)", text.partition("\nOptions:\n")[2])
    found = {name for column in columns for name in re.findall(r"(?<![\w-])--?[a-z][a-z-]*", column)} - HELP_OPTIONS
    return found.union(*(options_of(*command, verb) for verb in names(text.partition("\nCommands:\n")[2])))


def names(text: str) -> list[str]:
    """The names of commands in a part of a help text."""
    return re.findall(r"(?m)^  ([a-z][a-z-]*)  ", text)


def commands() -> list[str]:
    return names(run("--help").stdout.partition("\nOptions:\n")[2])


# ---------------------------------------------------------------- configs, commands, links


@pytest.mark.parametrize("fence", CONFIGS, ids=lambda fence: fence.id)
def test_every_config_loads_without_a_warning(fence, tmp_path):
    put_files(fence.document, tmp_path)
    (tmp_path / "config.yaml").write_text(fence.text, encoding="utf-8")

    environ = required_variables(fence.text) | SURROUNDINGS
    loaded = octo.load(tmp_path / "config.yaml", environ=environ, cwd=tmp_path)

    assert loaded.warnings == ()


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.id)
def test_every_command_does_what_is_shown(example, workplace):
    put_files(example.document, workplace)
    words, environ = example.words, {}
    if "--config" in words:
        config = words[words.index("--config") + 1]
        if not Path(config).exists():
            Path(config).write_text(example.config, encoding="utf-8")
        environ = required_variables(Path(config).read_text(encoding="utf-8"))
        if environ:  # it would call a real model, so its config is checked instead
            words = ["validate", "--config", config]

    ran = run(*words, stdin=example.stdin, environ=environ, terminal=example.on_a_terminal)

    assert (ran.status != 0) == example.fails, ran.stderr
    if example.shown and not environ:
        shown = ".*".join(map(re.escape, example.shown.split("…")))
        assert re.fullmatch(shown, ran.stderr if example.fails else ran.stdout), ran


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_link_leads_to_a_file_and_a_heading_in_it(document):
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", prose_of(document)):
        name, _, anchor = target.partition("#")
        file = document.parent / name if name else document
        if not name.startswith(("http:", "https:")) and not (file.exists() and (not anchor or anchor in anchors(file))):
            broken.append(target)

    assert broken == []


def anchors(document: Path) -> set[str]:
    headings = re.findall(r"(?m)^#+ (.*)$", prose_of(document))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


# ---------------------------------------------------------------- options and variables


def test_every_command_has_a_section_with_exactly_its_options(workplace):
    documented: dict[str, set[str]] = {
        heading: set() for heading in re.findall(r"(?m)^## `octo (.*)`$", text_of(COMMAND_LINE))
    }
    for table in tables(COMMAND_LINE):
        if table.header[0] == "option" and table.heading.startswith("octo "):
            columns = {name for cell in first_column(table) for name in re.findall(r"^--?[a-z][a-z-]*", cell)}
            documented[table.heading.removeprefix("octo ")] |= columns

    assert documented == {command: options_of(command) for command in commands()}


def test_the_options_of_octo_itself_are_documented(workplace):
    spans = " ".join(coded(prose_of(COMMAND_LINE)))
    own = re.findall(r"(?m)^  (--[a-z-]+)", run("--help").stdout)

    assert [name for name in own if f"octo {name}" not in spans] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_option_that_is_named_exists(document, workplace):
    known = {command: options_of(command) for command in commands()}
    known[""] = set(re.findall(r"--[a-z-]+", run("--help").stdout)).union(*known.values())
    shown = [" ".join(["octo", *(word for word in example.words if " " not in word)]) for example in examples(document)]
    unknown = []
    for span in (span for span in [*coded(prose_of(document)), *shown] if span.startswith(("-", "octo "))):
        command = span.split()[1] if span.startswith("octo ") else ""
        options = known.get(command, known[""]) | HELP_OPTIONS
        named = re.findall(r"(?<!\S)--?[a-z][a-z-]*", span)
        unknown += [f"`{name}` in `{span}`" for name in named if name not in options]

    assert unknown == []


def test_the_environment_variables_of_octo_are_documented_and_no_others():
    sources = [file.read_text(encoding="utf-8") for area in ("engine", "cli") for file in (ROOT / area).rglob("*.py")]
    read = set(re.findall(r"\bOCTO_[A-Z_]+\b", "".join(sources)))

    assert set(re.findall(r"\bOCTO_[A-Z_]+\b", "".join(map(text_of, DOCUMENTS)))) == read


# ---------------------------------------------------------------- tables of blocks and keys


def test_the_table_of_blocks_names_every_block_once_and_no_others():
    table = next(table for table in tables(ROOT / "docs" / "flows.md") if table.heading == "Blocks")

    assert sorted(word for row in table.rows for word in coded(row[0])) == sorted(registry.known("blocks"))


MODELS: dict[str, type[Model]] = {
    "Keys of the block": AiAgent,
    "Tools": Entry,
    "llm-anthropic": LlmAnthropic,
    "llm-bedrock": LlmBedrock,
    "llm-custom": LlmCustom,
    "llm-gemini": LlmGemini,
    "llm-openai": LlmOpenAi,
    "llm-openrouter": LlmOpenRouter,
    "llm-scripted": LlmScripted,
    "A reply": llm_scripted.Rule,
}
PARTS: dict[str, type[Model]] = {
    "calls": llm_scripted.Call,
    "files": llm_scripted.File,
    "usage": llm_scripted.Usage,
    "error": llm_scripted.Error,
}


def test_the_table_of_events_names_every_event_once_and_no_others():
    (table,) = (table for table in tables(AGENTS) if table.header[0] == "event")
    never = {"signal", "tool_authorization"}

    assert sorted(word for row in table.rows for word in coded(row[0])) == sorted(set(events.TYPES) - never)


def test_the_tables_of_agents_name_every_key_once_and_no_others():
    found = {table.heading: sorted(first_column(table)) for table in tables(AGENTS) if table.header[0] == "key"}

    assert found == {heading: sorted(model.yaml_keys()) for heading, model in MODELS.items()}


def test_the_table_of_the_parts_of_a_reply_is_complete():
    rows = next(table.rows for table in tables(AGENTS) if table.header == ["in", "keys"])

    assert {coded(part)[0]: sorted(coded(keys)) for part, keys in rows} == {
        part: sorted(model.yaml_keys()) for part, model in PARTS.items()
    }


def test_the_table_of_accepted_files_says_what_the_providers_take():
    rows: list[Any] = next(table.rows for table in tables(AGENTS) if table.header == ["connector", "accepted types"])
    taken = {
        coded(connector)[0]: None if types == "every type" else frozenset(coded(types)) for connector, types in rows
    }

    assert taken == {provider.connector: provider.media_types for provider in PROVIDERS.values()} | {
        "llm-scripted": None
    }


def test_the_tables_of_the_run_log_name_every_field_and_kind_in_their_order():
    rows = {table.header[0]: first_column(table) for table in tables(RUNS)}

    assert rows == {"field": list(record.FIELDS), "kind": list(record.KINDS)}
