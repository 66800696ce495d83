"""Declared variables, env files, and `${NAME}` in a config.

The environment of a run is a value that the caller hands over; nothing is read from the process.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from octo import dotenv, encoding, masking, values
from octo.config import resources
from octo.config.document import Document
from octo.config.document import Path as Place
from octo.config.parser import MAX_PROBLEMS
from octo.config.scalars import natural as natural
from octo.errors import Excerpt, Location, OctoError, Problem, did_you_mean
from octo.fields import EnvText as EnvText
from octo.values import Json

_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_SECRET_NAME = re.compile("KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL", re.IGNORECASE)
_UNTOUCHED = frozenset({"env", "resources", "agents"})


@dataclass(frozen=True)
class Environment:
    """The declared variables of a run that have a value."""

    values: Mapping[str, str] = field(default_factory=dict, repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """What is masked: secret values in all forms in which a text may hold them; longest first."""

    declared: frozenset[str] = frozenset()
    """All declared names, with a value or without."""

    missing: frozenset[str] = frozenset()
    """Names without a value that are not reported at each reference: what they lack was told before."""

    def mask(self, text: str) -> str:
        """The text with `***` in the place of every secret value."""
        return masking.hidden(text, self.secrets)


def resolve(
    documents: Sequence[Document], *, root: Path, environ: Mapping[str, str], cwd: Path
) -> tuple[Environment, list[Problem]]:
    """The values of all declared variables, and what is wrong with the declarations and env files."""
    supplied, problems = _env_files(documents, root=root, environ=environ, cwd=cwd)
    supplied |= environ
    is_whole = not any(problem.severity == "error" for problem in problems)
    found: dict[str, str] = {}
    declared: set[str] = set()
    missing: set[str] = set()
    secrets: set[str] = set()
    for declaration in _declarations(documents):
        name = declaration.name
        if not name:
            hint = "`name` is the name of the environment variable"
            problems.append(declaration.problem("an `env` entry requires a `name`, found empty text", hint))
        if not name or name in declared:
            continue
        declared.add(name)
        if name in supplied:
            found[name] = values.clean_text(supplied[name])
        elif not is_whole and (declaration.required or declaration.default is None):
            missing.add(name)  # perhaps it stands in the env file that is wrong
        elif declaration.required:
            missing.add(name)
            message = f'required environment variable "{name}" is not set'
            problems.append(declaration.problem(message, _how_to_set(name)))
        elif declaration.default is not None:
            found[name] = declaration.default
        if name in found and (declaration.secret or _SECRET_NAME.search(name)):
            secrets.add(found[name])
            if 0 < len(found[name]) < masking.SHORTEST:
                short = declaration.problem(
                    f"the value of `{name}` is too short to be masked", "give it 6 characters or more"
                )
                problems.append(replace(short, severity="warning"))
    environment = Environment(found, masking.forms(secrets), frozenset(declared), frozenset(missing))
    return environment, problems


def substitute(document: Document, environment: Environment) -> tuple[Document, list[Problem]]:
    """The document with `${NAME}` replaced in its values; names, `env`, `resources`, `agents` stay as written."""
    if not isinstance(document.data, dict):
        return document, []
    substitution = _Substitution(document, environment)
    data = {
        key: value if key in _UNTOUCHED or key.startswith("x-") else substitution.apply(value, (key,))
        for key, value in document.data.items()
    }
    document = replace(document, data=data, unresolved=frozenset(substitution.unresolved))
    return document, substitution.problems


class NoValue(OctoError):
    """A reference to a variable that has no value."""


def filled_in(value: Json, environment: Environment) -> Json:
    """A value that the load left as written, with `${NAME}` replaced. Raises NoValue."""
    match value:
        case {"resource": str(), "text": str()}:  # the text of a file, which is not the config's own
            return value
        case dict():
            return {key: filled_in(item, environment) for key, item in value.items()}
        case list():
            return [filled_in(item, environment) for item in value]
        case str() if "${" in value:
            for name in _REFERENCE.findall(value):
                if name not in environment.values:
                    message, hint = _lacking(name, environment)
                    raise NoValue(message, hint=hint)
            return _replaced(value, environment.values)
    return value


def filled_in_part(
    value: Json, document: Document, place: Place, environment: Environment
) -> tuple[Json, frozenset[Place], list[Problem]]:
    """A value that the load left as written, with `${NAME}` replaced where it has a value.

    With it the places of texts with a name that has none, and a warning for each: nobody may ever need them.
    """
    substitution = _Substitution(document, environment)
    result = substitution.apply(value, place)
    problems = [replace(problem, severity="warning") for problem in substitution.problems]
    return result, frozenset(substitution.unresolved), problems


def _replaced(text: str, known: Mapping[str, str]) -> str:
    sole = _REFERENCE.fullmatch(text)
    if sole:
        return EnvText(known.get(sole[1], text), sole[1])
    return _REFERENCE.sub(lambda match: known.get(match[1], match[0]), text)


class _Substitution:
    def __init__(self, document: Document, environment: Environment) -> None:
        self.document = document
        self.environment = environment
        self.problems: list[Problem] = []
        self.unresolved: list[Place] = []

    def apply(self, value: Json, path: Place) -> Json:
        if isinstance(value, dict):
            return {key: self.apply(item, (*path, key)) for key, item in value.items()}
        if isinstance(value, list):
            return [self.apply(item, (*path, index)) for index, item in enumerate(value)]
        if isinstance(value, str) and "${" in value:
            return self.replaced(value, path)
        return value

    def replaced(self, text: str, path: Place) -> str:
        known = self.environment.values
        for name in dict.fromkeys(_REFERENCE.findall(text)):
            if name not in known:
                self.unresolved.append(path)
                if name not in self.environment.missing and len(self.problems) <= MAX_PROBLEMS:
                    self.problems.append(_unresolved(name, path, self.document, self.environment, text))
        return _replaced(text, known)


def _unresolved(name: str, path: Place, document: Document, environment: Environment, text: str) -> Problem:
    part = "" if text == f"${{{name}}}" else f"${{{name}}}"
    message, hint = _lacking(name, environment)
    return document.problem(message, path, hint=hint, part=part)


def _lacking(name: str, environment: Environment) -> tuple[str, str]:
    """What is wrong with a reference to a variable without a value, and what to do."""
    if name in environment.declared:
        return f'environment variable "{name}" is referenced but not set and has no default', _how_to_set(name)
    hint = did_you_mean(name, sorted(environment.declared)) or ""
    if not hint.startswith("did you mean"):
        hint = f"declare it under `env:` as `- name: {name}`"
    return f'config references undeclared environment variable "{name}"', hint


def _how_to_set(name: str) -> str:
    return f"run `export {name}=…`, or put `{name}=…` into `.env` in the directory where you run octo"


# Declarations


@dataclass(frozen=True)
class _Declaration:
    name: str
    default: str | None
    required: bool
    secret: bool
    document: Document
    path: Place

    def problem(self, message: str, hint: str) -> Problem:
        return self.document.problem(message, self.path, hint=hint)


def _declarations(documents: Sequence[Document]) -> Iterator[_Declaration]:
    """Every entry under `env` that has a name. What else is wrong with an entry is the config model's to say."""
    for document in documents:
        for index, entry in enumerate(_list(document, "env")):
            path: Place = ("env", index)
            if isinstance(entry, str):
                # A bare name is no declaration, but taking it for one spares an error at each reference to it.
                yield _Declaration(entry, None, False, False, document, path)
            elif isinstance(entry, dict) and isinstance(entry.get("name"), str):
                yield _Declaration(
                    entry["name"],
                    _default(document, (*path, "default"), entry.get("default")),
                    entry.get("required") is True,
                    entry.get("secret") is True,
                    document,
                    (*path, "name"),
                )


def _default(document: Document, path: Place, value: Json) -> str | None:
    """A default as text: `0123` and `1e3` as they are spelt."""
    if value is None or isinstance(value, dict | list):
        return None
    return value if isinstance(value, str) else document.written(path)


def _list(document: Document, *path: str) -> list[Json]:
    value = document.data
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, list) else []


# Env files


def _env_files(
    documents: Sequence[Document], *, root: Path, environ: Mapping[str, str], cwd: Path
) -> tuple[dict[str, str], list[Problem]]:
    """What the env files supply. A file that does not exist supplies nothing."""
    supplied: dict[str, str] = {}
    problems: list[Problem] = []
    for name in (".env", environ.get("OCTO_ENV_FILE", "")):
        if not name:
            continue
        try:
            supplied |= _read_env_file(cwd / name)
        except dotenv.Fault as fault:
            place = Location(name, fault.line, 1)
            not_shown = Excerpt("", 1)  # it may hold a secret
            problems.append(Problem(f"the line {fault.what}", place, fault.hint, excerpt=not_shown))
        except OctoError as error:
            problems.append(Problem(f"env file `{name}`: {error.message}", hint=error.hint))
    seen: set[str] = set()
    for document in documents:
        for index, resource in enumerate(_list(document, "resources", "env")):
            if not isinstance(resource, str) or not resource or resource in seen:
                continue
            seen.add(resource)
            try:
                path = resources.locate(root, resource)
                supplied |= _read_env_file(path)
            except (dotenv.Fault, OctoError) as error:
                message = f"env file `{resource}` is skipped: {error}"
                place = document.location(("resources", "env", index))
                problems.append(Problem(message, place, error.hint, severity="warning"))
    return supplied, problems


def files(documents: Sequence[Document], root: Path) -> Iterator[Path]:
    """The env files that the documents name."""
    for document in documents:
        for resource in _list(document, "resources", "env"):
            if isinstance(resource, str) and resource:
                yield root / resource


def _read_env_file(path: Path) -> dict[str, str]:
    """The variables of an env file. Raises OctoError when it cannot be read, and dotenv.Fault."""
    try:
        data = resources.content(path)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise OctoError(f"cannot be read: {reason}") from None
    wrong = encoding.misfit(data)
    if wrong is not None and wrong.encoding:
        raise OctoError(f"cannot be read: it is {wrong.encoding}", hint=encoding.HINT)
    if wrong is not None:
        raise dotenv.Fault(wrong.before.count("\n") + 1, "is not UTF-8", encoding.HINT)
    return dotenv.parse(data.decode("utf-8-sig"))
