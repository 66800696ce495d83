"""The first and the last moments of the process: what holds only while it starts, and how it ends."""

import codecs
import gc
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from io import TextIOWrapper, UnsupportedOperation
from typing import Final, NoReturn, TextIO

INTERRUPTED: Final = 130
"""The exit status after Ctrl-C or SIGTERM."""

_PLUGIN_SCAN: Final = "PYDANTIC_DISABLE_PLUGINS"


class NotWritten(OSError):
    """Standard output does not take what is written to it."""


class ReaderGone(NotWritten):
    """Who read standard output has gone away."""


@contextmanager
def writing() -> Iterator[None]:
    """Tells the faults of standard output from those of other files."""
    try:
        yield
    except NotWritten:
        raise
    except BrokenPipeError as error:
        raise ReaderGone("the reader of standard output has gone away") from error
    except UnsupportedOperation as error:
        raise NotWritten("cannot write standard output: it is closed") from error
    except OSError as error:
        raise NotWritten(f"cannot write standard output: {(error.strerror or str(error)).lower()}") from error


class StandardOutput(TextIOWrapper):
    """Standard output, whoever writes to it: the faults are NotWritten."""

    def write(self, text: str) -> int:
        with writing():
            return super().write(text)

    def flush(self) -> None:
        with writing():
            super().flush()


class StandardError(TextIOWrapper):
    """Standard error. That nobody can read it is no reason to fail."""

    def write(self, text: str) -> int:
        with suppress(OSError):
            return super().write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            super().flush()


def run(args: Sequence[str]) -> int:
    """Run one command line as a process does; the exit status.

    Until a command begins to work, garbage is not collected (imports make none) and pydantic does not search
    the installed packages for plug-ins. Streams speak UTF-8 whatever the locale says.
    """
    environ = {_utf8(name): _utf8(value) for name, value in os.environ.items()}
    sys.stdout = _speaking_utf8(sys.stdout, StandardOutput)
    sys.stderr = _speaking_utf8(sys.stderr, StandardError)
    if args in (["version"], ["--version"]):
        import octo

        with suppress(NotWritten):  # told when it fails again
            sys.stdout.write(f"octo {octo.__version__}\n")
            sys.stdout.flush()
            return 0
    gc.disable()
    os.environ.setdefault(_PLUGIN_SCAN, "__all__")
    from octo_cli.main import main

    return main([_utf8(arg) for arg in args], environ=environ)


def _speaking_utf8(stream: TextIO | None, kind: type[TextIOWrapper]) -> TextIO:
    codecs.register_error("octo", _legible)
    if stream is None:  # closed by whoever started the process: what can only be read refuses what is written
        return kind(open(os.devnull, "rb"), encoding="utf-8")  # noqa: PTH123  (open until the end)
    if not isinstance(stream, TextIOWrapper):
        return stream
    return kind(
        stream.buffer,
        encoding="utf-8",
        errors="octo",
        newline="\n",
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


def _legible(error: UnicodeError) -> tuple[bytes, int]:
    """What to write for half a character: the file name that it is a byte of, else U+FFFD."""
    assert isinstance(error, UnicodeEncodeError)
    half = error.object[error.start : error.end]
    try:
        text = half.encode("utf-8", errors="surrogateescape").decode("utf-8", errors="replace")
    except UnicodeEncodeError:
        text = "\ufffd" * len(half)
    return text.encode("utf-8"), error.end


def over(environ: Mapping[str, str]) -> None:
    """End what `run` began: a command starts to work, `environ` is the environment the process came with."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()
    if _PLUGIN_SCAN not in environ:
        os.environ.pop(_PLUGIN_SCAN, None)  # child processes shall not inherit it


def leave(status: int) -> NoReturn:
    """End the process without taking the interpreter apart, which would take as long as a small flow."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # closed or full: reported before
            stream.flush()
    os._exit(status)


def _utf8(text: str) -> str:
    """The text as UTF-8 gives it, when the locale made something else of the bytes."""
    return text if text.isascii() else os.fsencode(text).decode("utf-8", errors="surrogateescape")
