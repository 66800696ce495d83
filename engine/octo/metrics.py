"""Counts what flows and blocks do, in the text form that Prometheus reads."""

from __future__ import annotations

import os
import time
from collections.abc import Container, Iterator, Sequence
from pathlib import Path
from typing import Final

from octo.config.model import Config
from octo.errors import BlockError
from octo.observe import BlockLeft, Event, FlowEnded, FlowStarted

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Upper bounds in seconds; agents take minutes."""

_OUTCOMES: Final = ("completed", "dropped", "failed")
_BLOCK_OUTCOMES: Final = {"completed": "ok", "dropped": "dropped", "failed": "error"}

Labels = tuple[tuple[str, str], ...]


class Counter:
    """Numbers by their labels."""

    def __init__(self) -> None:
        self.values: dict[Labels, float] = {}

    def add(self, amount: float = 1, /, **labels: str) -> None:
        key = tuple(labels.items())
        self.values[key] = self.values.get(key, 0) + amount

    def lines(self, name: str) -> Iterator[str]:
        yield from (_line(name, labels, value) for labels, value in self.values.items())


class Histogram:
    """How long things took, by their labels."""

    def __init__(self) -> None:
        self.values: dict[Labels, list[float]] = {}
        """For each: how many were within each bound, how many there were, and their sum."""

    def declare(self, **labels: str) -> list[float]:
        """What there is under these labels, which is nothing at first."""
        return self.values.setdefault(tuple(labels.items()), [0.0] * (len(BUCKETS) + 2))

    def add(self, seconds: float, /, **labels: str) -> None:
        counts = self.declare(**labels)
        for index, bound in enumerate(BUCKETS):
            counts[index] += seconds <= bound
        counts[-2] += 1
        counts[-1] += seconds

    def lines(self, name: str) -> Iterator[str]:
        for labels, (*buckets, count, total) in self.values.items():
            for bound, within in zip((*map(_number, BUCKETS), "+Inf"), (*buckets, count), strict=True):
                yield _line(f"{name}_bucket", (*labels, ("le", bound)), within)
            yield _line(f"{name}_sum", labels, total)
            yield _line(f"{name}_count", labels, count)


class Metrics:
    """Observer that counts. It may watch one runtime after another, and never counts backwards."""

    kinds: Sequence[type[Event]]

    def __init__(self, *, with_blocks: bool = False) -> None:
        self.kinds = (FlowStarted, FlowEnded, BlockLeft) if with_blocks else (FlowStarted, FlowEnded)
        self.blocks: Container[str] | None = None
        """Addresses of the blocks that are counted; None for all."""
        self._messages = Counter()
        self._errors = Counter()
        self._durations = Histogram()
        self._in_flight = Counter()
        self._invocations = Counter()
        self._block_durations = Histogram()
        self._sizes = {"flows": 0, "connectors": 0}

    def declare(self, config: Config, connectors: int) -> None:
        """Begin with the flows of a config, so that those without traffic are told as well."""
        self._sizes = {"flows": len(config.flows), "connectors": connectors}
        for flow in config.flows:
            self._in_flight.add(0, flow=flow.title)
            for outcome in _OUTCOMES:
                self._messages.add(0, flow=flow.title, outcome=outcome)
                self._durations.declare(flow=flow.title, outcome=outcome)

    def notify(self, event: Event) -> None:
        match event:
            case FlowStarted():
                self._in_flight.add(1, flow=event.address)
            case FlowEnded():
                self._in_flight.add(-1, flow=event.address)
                self._messages.add(flow=event.address, outcome=event.outcome)
                self._durations.add(event.seconds, flow=event.address, outcome=event.outcome)
                if event.outcome == "failed":
                    self._errors.add(flow=event.address, block=_failed_block(event.error))
            case BlockLeft() if self.blocks is None or event.address in self.blocks:
                place = {"flow": _flow_of(event.address), "path": event.address, "type": event.type}
                self._invocations.add(**place, outcome=_BLOCK_OUTCOMES[event.outcome])
                self._block_durations.add(event.seconds, **place)

    def text(self, *, version: str, ready: bool) -> str:
        """All that is known, in the text form."""
        build = {"version": version, "build_date": "", "services_module": "standalone"}
        lines = [
            *_family("octo_flow_messages_total", "counter", "Messages that flows are done with.", self._messages),
            *_family("octo_flow_errors_total", "counter", "Messages that failed and were not recovered.", self._errors),
            *_family("octo_flow_duration_seconds", "histogram", "How long messages took.", self._durations),
            *_family("octo_flow_in_flight", "gauge", "Messages that are being worked on.", self._in_flight),
            *_family("octo_block_invocations_total", "counter", "Runs of blocks.", self._invocations),
            *_family("octo_block_duration_seconds", "histogram", "How long blocks took.", self._block_durations),
            *_single("octo_ready", "gauge", "Whether flows take messages.", float(ready)),
            *_single("octo_flows", "gauge", "Flows of the config.", self._sizes["flows"]),
            *_single("octo_connectors", "gauge", "Connectors that are open.", self._sizes["connectors"]),
            *_single("octo_build_info", "gauge", "What runs.", 1, **build),
            *_process(),
        ]
        return "\n".join(lines) + "\n"


def _failed_block(error: BaseException | None) -> str:
    """The label of the block of the chain itself that failed; empty when it was none."""
    while error is not None and not isinstance(error, BlockError):
        error = error.__cause__
    return error.label if error is not None else ""


def _flow_of(address: str) -> str:
    return address.partition(".")[0].removesuffix("[error]")


# ---------------------------------------------------------------- the text form


def _family(name: str, kind: str, help: str, family: Counter | Histogram) -> Iterator[str]:
    yield f"# HELP {name} {help}"
    yield f"# TYPE {name} {kind}"
    yield from family.lines(name)


def _single(name: str, kind: str, help: str, value: float, **labels: str) -> Iterator[str]:
    counter = Counter()
    counter.add(value, **labels)
    return _family(name, kind, help, counter)


def _line(name: str, labels: Labels, value: float) -> str:
    shown = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels)
    return f"{name}{{{shown}}} {_number(value)}" if shown else f"{name} {_number(value)}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


_STARTED: Final = time.time()


def _process() -> Iterator[str]:
    """What is known of the process itself; less where there is no `/proc`."""
    yield from _single("process_cpu_seconds_total", "counter", "CPU time.", round(time.process_time(), 3))
    yield from _single("process_start_time_seconds", "gauge", "When the process began.", round(_STARTED, 3))
    for name, help, value in _of_linux():
        yield from _single(name, "gauge", help, value)


def _of_linux() -> Iterator[tuple[str, str, float]]:
    try:
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
        yield "process_resident_memory_bytes", "Memory in use.", int(pages) * os.sysconf("SC_PAGE_SIZE")
        yield "process_open_fds", "Open files.", len(os.listdir("/proc/self/fd"))  # noqa: PTH208 (only how many)
    except OSError:
        return
