"""Call a Python function that stands in a file beside the config."""

from __future__ import annotations

import asyncio
import inspect
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import copy_context
from pathlib import Path
from threading import Thread
from types import ModuleType
from typing import Any, ClassVar, Final, Self
from zlib import crc32

from pydantic import ValidationInfo, model_validator

from octo.block import Block
from octo.config.resources import locate
from octo.errors import ConfigError, Location, OctoError, Problem, did_you_mean
from octo.fields import Name
from octo.message import Dropped, Message
from octo.refusals import LoadContext, Refusals
from octo.run import Run, RunError
from octo.values import Json, clean_text, native, number_text

_EXACT: Final = 2**53
"""Below this every integer is a double."""


class Python(Block, type="python", group="integration"):
    """Call a Python function of a file beside the config; what it returns becomes the body.

    The function is called with the body, and with the variables if it has a parameter called `vars`. Both are
    copies, in which whole numbers are ints. An `async` function is awaited, any other runs in a thread.
    """

    file: Name
    """Path of the Python file, relative to the config directory. It is imported when the config is loaded."""

    function: Name
    """The function to call."""

    target: ClassVar[Target]

    @model_validator(mode="after")
    def _find(self, info: ValidationInfo) -> Self:
        if info.context is None:
            return self
        refusals = Refusals()
        try:
            module = _module(self.file, info.context)
            function = getattr(module, self.function, None)
            if callable(function):
                self.__dict__["target"] = Target(function, str(module.__file__))
            else:
                names = [name for name, value in vars(module).items() if callable(value) and not name.startswith("_")]
                hint = did_you_mean(self.function, names) or f"write `def {self.function}(body):` into the file"
                text = f"python: `{self.file}` has no function `{self.function}`"
                refusals.add(text, "function", hint=hint, refers=True)
        except ConfigError as error:
            refusals.relay(error.problems)
        except OctoError as error:
            refusals.add(error.message, "file", hint=error.hint, refers=True)
        refusals.raise_if_any()
        return self

    async def execute(self, message: Message, run: Run) -> Message:
        try:
            message.body = _returned(await self.target.call(message))
        except Dropped:
            raise
        except OctoError as error:
            raise RunError(f"python `{self.function}`: {error.message}", hint=error.hint) from error
        except (Exception, SystemExit) as error:  # the function may raise whatever it likes
            place = _place(error, self.target.file)
            hint = "let the function end before it calls itself again" if isinstance(error, RecursionError) else None
            raise RunError(f"python `{self.function}`: {_told(error)}", hint=hint, location=place) from error
        return message


class Target:
    """A function and how it is called."""

    def __init__(self, function: Callable[..., Any], file: str) -> None:
        """Raises ConfigError when the function has parameters that nobody fills."""
        self.function = function
        self.file = file
        self._body: str | None = None
        """The parameter that takes the body; empty when it takes it by position only."""
        self._vars = False
        unfilled = [parameter.name for parameter in _parameters(function) if not self._fills(parameter)]
        if unfilled:
            names = ", ".join(f"`{name}`" for name in unfilled)
            line = getattr(getattr(function, "__code__", None), "co_firstlineno", 1)
            name = getattr(function, "__name__", "the function")
            message = f"python: `{name}` has parameters that nobody fills: {names}"
            hint = "a function takes the body, and the variables as `vars`; give other parameters a default"
            raise ConfigError([Problem(message, Location(file, line, 1), hint)])

    def _fills(self, parameter: inspect.Parameter) -> bool:
        by_name = parameter.kind in (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        if parameter.name == "vars" and by_name:
            self._vars = True
        elif self._body is None and parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD:
            self._body = parameter.name
        elif self._body is None and parameter.kind in (
            inspect.Parameter.POSITIONAL_ONLY,
            inspect.Parameter.VAR_POSITIONAL,
        ):
            self._body = ""
        else:
            optional = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
            return parameter.kind in optional or parameter.default is not parameter.empty
        return True

    async def call(self, message: Message) -> Any:
        """What the function returns for a message."""
        body = [native(message.body)] if self._body == "" else []
        named = {self._body: native(message.body)} if self._body else {}
        if self._vars:
            named["vars"] = native(message.vars)
        if inspect.iscoroutinefunction(self.function):
            return await self.function(*body, **named)
        result = await _in_thread(lambda: self.function(*body, **named))
        return await result if inspect.isawaitable(result) else result


async def _in_thread(work: Callable[[], Any]) -> Any:
    """What a function returns or raises, while the event loop goes on.

    A thread of its own: those of a pool are waited for when the program ends, and a function that was given up
    on may never come to an end.
    """
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()

    def settle(result: Any, error: BaseException | None) -> None:
        if not outcome.done():
            outcome.set_result((result, error))

    def run() -> None:
        result, failure = None, None
        try:
            result = work()
        except BaseException as error:  # whatever it is, the caller deals with it
            failure = error
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle, result, failure)

    Thread(target=copy_context().run, args=(run,), daemon=True).start()
    result, failure = await outcome
    if failure is not None:
        raise failure
    return result


def _returned(value: Any) -> Json:
    try:
        return _json(value)
    except RecursionError:
        raise OctoError(
            "returned a value that is nested too deeply", hint="no list or mapping may hold itself"
        ) from None


def _json(value: Any, path: str = "") -> Json:
    """The JSON value of what a function returned. Raises OctoError with the place of what has none."""
    match value:
        case None | bool():
            return value
        case str():
            return clean_text(str.__str__(value))
        case int():
            return float(value) if -_EXACT < value < _EXACT else str(int(value))
        case float():
            number = float(value)
            return number if number - number == 0 else number_text(number)
        case list() | tuple():
            return [_json(item, f"{path}[{index}]") for index, item in enumerate(value)]
        case Mapping():
            for key in value:
                if not isinstance(key, str):
                    raise OctoError(f"returned a mapping with a key that is no text: `{key!r}`{_at(path)}")
            return {clean_text(str(key)): _json(item, f"{path}.{key}") for key, item in value.items()}
    raise OctoError(
        f"returned a `{type(value).__name__}`, which has no JSON form{_at(path)}",
        hint="return mappings, lists, text, numbers, booleans and None",
    )


def _at(path: str) -> str:
    return f", at `{path.lstrip('.')}`" if path else ""


# ---------------------------------------------------------------- from a file to a module


def _module(file: str, context: LoadContext) -> ModuleType:
    """The module of a file; blocks that name the same file share it. Raises OctoError and ConfigError."""
    path = locate(context.root, file)
    key = ("python", path)
    if key not in context.shared:
        try:
            context.shared[key] = _imported(path, str(context.root / file), context.read(file))
        except ConfigError as error:
            context.shared[key] = error
    found = context.shared[key]
    if isinstance(found, ConfigError):
        raise found
    assert isinstance(found, ModuleType)
    return found


def _imported(path: Path, shown: str, source: str) -> ModuleType:
    """Run the text of a module. At its top it can import the files beside it, as a script can."""
    module = ModuleType(f"octo_python_{path.stem}_{crc32(str(path).encode()):08x}")
    module.__file__ = shown
    folder = str(path.parent)
    before = set(sys.modules)
    sys.modules[module.__name__] = module  # where dataclasses look the names of annotations up
    sys.path.insert(0, folder)
    try:
        exec(compile(source, shown, "exec", dont_inherit=True), module.__dict__)
    except SyntaxError as error:
        place = Location(error.filename or shown, error.lineno or 1, max(1, error.offset or 1))
        raise ConfigError([Problem(f"python: {error.msg}", place)]) from error
    except (Exception, SystemExit) as error:  # a module may raise whatever it likes
        place = _place(error, shown) or Location(shown, 1, 1)
        hint = "install it where octo is installed" if isinstance(error, ModuleNotFoundError) else None
        raise ConfigError([Problem(f"python: the import fails: {_told(error)}", place, hint)]) from error
    finally:
        with suppress(ValueError):
            sys.path.remove(folder)
        fresh = set(sys.modules) - before - {module.__name__}
        for name in [name for name in fresh if _lies_in(folder, sys.modules.get(name.partition(".")[0]))]:
            del sys.modules[name]
    return module


def _lies_in(folder: str, module: ModuleType | None) -> bool:
    """Whether a module or package lies right in a folder; another config may have one of the same name."""
    if module is None or not module.__file__:
        return False
    file = Path(module.__file__)
    return str((file.parent if file.stem == "__init__" else file).parent) == folder


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # some functions written in C do not tell
        return [inspect.Parameter("body", inspect.Parameter.POSITIONAL_ONLY)]


def _place(error: BaseException, file: str) -> Location | None:
    """The innermost line of a file that an error passed."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename == file and frame.lineno:
            return Location(file, frame.lineno, (frame.colno or 0) + 1)
    return None


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".rstrip(": ")
