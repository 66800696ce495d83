"""Who may import whom: the layers of octo, read from every import with `ast`."""

import ast
from collections.abc import Iterator
from pathlib import Path

import octo
import octo_cli

ENGINE = Path(octo.__file__).parent
CLI = Path(octo_cli.__file__).parent

LAYERS = [
    ["testing", "evals", "debug", "models", "schema", "reference", "catalogue", "starter"],
    ["blocks", "connectors"],
    ["agent"],
    [
        "budget",
        "run",
        "runtime",
        "intake",
        "server",
        "admin",
        "doubles",
        "invocation",
        "runlog",
        "record",
        "graph",
        "layout",
        "edit",
        "metrics",
        "pool",
        "proxy",
    ],
    ["config"],
    [
        "block",
        "chat_connector",
        "connector",
        "fields",
        "message",
        "observe",
        "refusals",
        "registry",
        "schedule",
        "services",
    ],
    ["cel", "http", "llm", "sql", "store"],
    ["dotenv", "encoding", "errors", "frozen", "logline", "masking", "multipart", "process", "values"],
]
"""From top to bottom: a module imports from its own folder, its own line and lower lines."""

APART = {"cel", "llm", "sql", "store"}
"""Each complete in itself: they do not import one another."""

LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


def modules(root: Path, package: str) -> Iterator[tuple[str, Path]]:
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        yield ".".join((package, *(part for part in parts if part != "__init__"))), path


def imports(path: Path) -> Iterator[tuple[str, int]]:
    """The modules that a file imports at run time, with the line."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for_types_only = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for branch in node.body
        for inner in ast.walk(branch)
    }
    for node in ast.walk(tree):
        if id(node) in for_types_only:
            continue
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module, node.lineno
            if node.module == "octo":
                yield from ((f"octo.{alias.name}", node.lineno) for alias in node.names)


def test_every_module_imports_only_from_its_own_line_and_from_lower_lines():
    wrong = []
    for module, path in modules(ENGINE, "octo"):
        owner = module.split(".")[1] if "." in module else None
        if owner is None:
            continue
        for target, line in imports(path):
            parts = target.split(".")
            if parts[0] != "octo" or len(parts) < 2 or parts[1] not in LEVEL or parts[1] == owner:
                continue
            if LEVEL[parts[1]] < LEVEL[owner] or {parts[1], owner} <= APART:
                wrong.append(f"{path.relative_to(ENGINE)}:{line} imports {target}")

    assert wrong == []


def test_every_module_has_a_line():
    names = {module.split(".")[1] for module, _ in modules(ENGINE, "octo") if "." in module}

    assert names - set(LEVEL) == set()


def test_the_engine_never_imports_the_command_line():
    found = [
        f"{path}:{line}"
        for _, path in modules(ENGINE, "octo")
        for target, line in imports(path)
        if target.startswith("octo_cli")
    ]

    assert found == []


def test_nothing_is_printed_or_read_from_the_process_below_the_command_line():
    """The environment, the clock and the streams are values that come in from outside."""
    forbidden = {("os", "environ"), ("os", "getenv"), ("sys", "stdout"), ("sys", "stderr"), ("sys", "exit")}
    found = []
    for _, path in modules(ENGINE, "octo"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                if (node.value.id, node.attr) in forbidden:
                    found.append(f"{path.relative_to(ENGINE)}:{node.lineno}")
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
                found.append(f"{path.relative_to(ENGINE)}:{node.lineno}")

    assert found == []


def test_package_files_are_empty_but_for_the_public_ones():
    written = [
        str(path.relative_to(root))
        for root in (ENGINE, CLI)
        for path in root.rglob("__init__.py")
        if path.read_text(encoding="utf-8").strip()
    ]

    assert sorted(written) == ["__init__.py", "cel/__init__.py", "cel/functions/__init__.py"]
