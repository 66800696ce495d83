"""Whether a case came out as it was expected to: a judgement of its envelope, and of its run log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Final

from octo import cel
from octo.errors import ExpressionError, Location
from octo.fields import MESSAGE_NAMES
from octo.runlog.record import Record
from octo.testing.asking import ASKED_NAMES, askings
from octo.testing.calling import Called, tool_calls
from octo.testing.differ import Difference, Keys, differences, only_kinds, told
from octo.testing.suite import Crossing, Expectation, Logged, Sent, Snapshot, Spied, ToolCall
from octo.testing.trial import Trial
from octo.values import Json, dumps, kind_of, masked, parse

RECORD_NAMES: Final = frozenset(
    {"flow", "blockType", "eventID", "durationNs", "error", "dropped", "body", "vars", "attrs"}
)
"""What an expression on a record of the run log sees."""

_SHOWN: Final = 200
_LISTED: Final = 10
_LONG: Final = 100


@dataclass(frozen=True, slots=True)
class Failure:
    """An expectation that was not met: what was expected, how it differs, and where it stands."""

    summary: str
    detail: tuple[str, ...] = ()
    location: Location | None = None

    @property
    def lines(self) -> list[str]:
        """The failure as it is read."""
        return [self.summary, *(f"  {line}" for line in self.detail)]


@dataclass(frozen=True)
class Evidence:
    """What a call left behind."""

    envelope: Mapping[str, Json]
    records: Sequence[Record] = ()
    """The run log, if the case asks for it."""
    addresses: Mapping[str, str] = field(default_factory=dict)
    """The addresses that the case names, each as the run log writes it."""
    failed_at: tuple[str, Location] | None = None
    """The address and the place of the block with which the flow failed."""
    is_masked: bool = False
    """Whether secrets are hidden in it, so that they must be hidden as well in what they are compared with."""


def judge(trial: Trial, evidence: Evidence, *, now: int, mask: Callable[[str], str] = str) -> list[Failure]:
    """Every expectation of a case that was not met; nothing but the outcome if that is wrong.

    `now` is in nanoseconds since 1970. Secrets are compared as they are, and hidden in what is told.
    """
    found = _Judge(trial, evidence, now, mask).failures()
    return [replace(one, summary=mask(one.summary), detail=tuple(map(mask, one.detail))) for one in found]


class _Judge:
    def __init__(self, trial: Trial, evidence: Evidence, now: int, mask: Callable[[str], str]) -> None:
        self._trial = trial
        self._case = trial.case
        self._envelope = evidence.envelope
        self._records = evidence.records
        self._addresses = evidence.addresses
        self._now = cel.Timestamp(now)
        self._mask = mask
        self._is_masked = evidence.is_masked
        self._failed_at = evidence.failed_at

    def failures(self) -> Iterator[Failure]:
        expect = self._case.expect
        wrong = self._outcome(expect)
        if wrong is not None:
            yield wrong
            return
        if "result" in self._envelope:
            yield from self._snapshot(expect, self._envelope["result"], ("expect",), "expect")
        crossings = {entry["address"]: entry["records"] for entry in self._envelope.get("spies", ())}
        for address, spied in self._case.spies.items():
            yield from self._spied(address, spied, crossings.get(address, []))
        for index, tool in enumerate(self._case.tools):
            yield from self._tool(index, tool)
        yield from self._unknown_tools()
        for address, sent in self._case.sent.items():
            yield from self._sent(address, sent)
        for index, logged in enumerate(self._case.log):
            yield from self._logged(index, logged)

    # ------------------------------------------------------------ how it ended

    def _outcome(self, expect: Expectation) -> Failure | None:
        error = self._envelope.get("error")
        if expect.error is not None:
            return self._fails(expect.error, error, ("expect", "error"), "expect.error", "the flow")
        if error is not None:
            return self._failure(("expect",), f"expect: the flow failed: {error}", *self._where_it_failed())
        dropped = "dropped" in self._envelope
        if dropped == expect.dropped:
            return None
        if dropped:
            return self._failure(("expect",), "expect: the flow dropped the message")
        return self._failure(("expect", "dropped"), "expect.dropped: the flow completed")

    def _fails(self, part: str, error: Json, keys: Keys, label: str, who: str) -> Failure | None:
        """What is wrong with an error text, or with its absence."""
        part = self._mask(part) if self._is_masked else part
        if error is None:
            done = "dropped the message" if "dropped" in self._envelope and who == "the flow" else "did not fail"
            return self._failure(keys, f"{label}: want a failure with {dumps(part)}, but {who} {done}")
        if part in error:
            return None
        where = self._where_it_failed() if who == "the flow" else ()
        return self._failure(keys, f"{label}: want {dumps(part)}, got {dumps(error)}", *where)

    def _where_it_failed(self) -> tuple[str, ...]:
        if self._failed_at is None:
            return ()
        address, location = self._failed_at
        return (f"in {address} at {location}" if address else f"at {location}",)

    # ------------------------------------------------------------ messages

    def _snapshot(self, want: Snapshot, message: Mapping[str, Json], keys: Keys, label: str) -> Iterator[Failure]:
        body, variables = message.get("body"), message.get("variables", {})
        if want.body is not None:
            yield from self._body(self._wanted(want.body), body, (*keys, "body"), f"{label}.body")
        for name, value in want.vars.items():
            yield from self._variable(name, self._wanted(value), variables, (*keys, "vars", name), label)
        scope = {
            "body": body,
            "vars": variables,
            "eventID": message.get("event_id", ""),
            "correlationID": message.get("correlation_id", ""),
            "env": {},
            "now": self._now,
        }
        yield from self._conditions(want.that, MESSAGE_NAMES, scope, keys, label)

    def _body(self, want: Json, got: Json, keys: Keys, label: str) -> Iterator[Failure]:
        found = list(differences(want, got))
        if found:
            want, got = self._hidden(want), self._hidden(got)
            shown = (f"want: {dumps(want)}", f"got:  {dumps(got)}{only_kinds(want, got)}")
            yield self._failure((*keys, *found[0].keys), f"{label}:", *shown, *self._told(found, want, got))

    def _variable(
        self, name: str, want: Json, variables: Mapping[str, Json], keys: Keys, label: str
    ) -> Iterator[Failure]:
        label = f"{label}.vars.{name}"
        if name not in variables:
            there = ", ".join(sorted(variables)) or "none"
            yield self._failure(keys, f"{label}: not set (vars: {there})", key=True)
            return
        got = variables[name]
        found = list(differences(want, got))
        if found:
            want, got = self._hidden(want), self._hidden(got)
            shown = f"want {dumps(want)}, got {dumps(got)}"
            parts = self._told(found, want, got) if len(shown) > _LONG or want == got else []
            yield self._failure((*keys, *found[0].keys), f"{label}: {shown}{only_kinds(want, got)}", *parts)

    def _wanted(self, value: Json) -> Json:
        """A value of the suite, as an envelope would hold it."""
        return parse(dumps(self._hidden(value) if self._is_masked else value))

    def _hidden(self, value: Json) -> Json:
        """The value with the secrets in it hidden; whole ones, before anything is cut."""
        return masked(value, self._mask)

    def _told(self, found: list[Difference], want: Json, got: Json) -> list[str]:
        """Lines that tell the differences of two values in which secrets are hidden by now."""
        shown = list(differences(want, got))
        if len(shown) == len(found):
            return told(shown)
        return [*told(shown), "what differs is secret" if not shown else "what else differs is secret"]

    # ------------------------------------------------------------ expressions

    def _conditions(
        self, sources: Sequence[str], names: frozenset[str], scope: Mapping[str, object], keys: Keys, label: str
    ) -> Iterator[Failure]:
        for index, source in enumerate(sources):
            place: Keys = (*keys, "that", index)
            try:
                program = _compiled(source, names)
            except ExpressionError as error:
                yield self._faulty(error, f'{label}.that: compile expression "{source}": {error.message}', place)
                continue
            try:
                value = program(scope)
            except ExpressionError as error:
                yield self._faulty(error, f"{label}.that: {source}: evaluate expression: {error.message}", place)
                continue
            if value is False:
                read = sorted(program.names - {"now", "env"})
                shown = (f"{name}: {_short(self._hidden(scope[name]))}" for name in read)
                yield self._failure(place, f"{label}.that: {source} is false", *shown)
            elif value is not True:
                text = f"{source} must evaluate to a bool, got {kind_of(value)}"
                yield self._failure(place, f"{label}.that: {text}")

    def _faulty(self, error: ExpressionError, summary: str, keys: Keys) -> Failure:
        return Failure(summary, (error.hint,) if error.hint else (), self._trial.place_of_expression(error, *keys))

    # ------------------------------------------------------------ spies

    def _spied(self, address: str, want: Spied, crossings: Sequence[Json]) -> Iterator[Failure]:
        keys: Keys = ("spies", address)
        label = f"spy {address}"
        yield from self._times(want, len(crossings), keys, f"{label}: crossed")
        for index, (expected, crossing) in enumerate(zip(want.records, crossings, strict=False)):
            place: Keys = (*keys, "records", index)
            yield from self._crossing(expected, crossing, place, f"{label} record {index}")

    def _crossing(self, want: Crossing, crossing: Mapping[str, Json], keys: Keys, label: str) -> Iterator[Failure]:
        if want.input is not None:
            yield from self._snapshot(want.input, crossing["input"], (*keys, "input"), f"{label} input")
        error = crossing.get("error")
        if want.error is not None:
            wrong = self._fails(want.error, error, (*keys, "error"), f"{label} error", "the block")
            if wrong is not None:
                yield wrong
        elif want.dropped and "dropped" not in crossing:
            ended = f"failed: {error}" if error is not None else "did not drop the message"
            yield self._failure((*keys, "dropped"), f"{label} dropped: the block {ended}")
        elif want.output is not None and "output" not in crossing:
            ended = f"failed: {error}" if error is not None else "dropped the message"
            yield self._failure((*keys, "output"), f"{label} output: the block {ended}")
        elif want.output is not None:
            yield from self._snapshot(want.output, crossing["output"], (*keys, "output"), f"{label} output")

    # ------------------------------------------------------------ models and tools

    def _tool(self, index: int, want: ToolCall) -> Iterator[Failure]:
        block = self._addresses.get(want.block, want.block)
        calls = [call for call in self._calls if block in ("", call.path)]
        matching = [call for call in calls if self._matches(want, call)]
        if self._is_met(want, len(matching)):
            return
        words = ["tool", want.name, *([dumps(self._hidden(want.args))] if want.args else [])]
        if want.failed is not None:
            words.append("with an error" if want.failed else "without an error")
        made = [f"called: {call.tool} {_short(self._hidden(call.args))}{self._ending(call)}" for call in calls]
        text = f"{' '.join(words)}: called {_times(len(matching))}, want {_wanted_times(want)}"
        yield self._failure(("tools", index), text, *_listed(made, "no tool was called"))

    def _matches(self, want: ToolCall, call: Called) -> bool:
        if call.tool != want.name or not _holds({key: self._wanted(it) for key, it in want.args.items()}, call.args):
            return False
        return call.ran if want.failed is None else call.failed == want.failed

    def _ending(self, call: Called) -> str:
        if not call.failed:
            return ""
        text = _short(self._hidden(call.output))
        return f", which failed: {text}" if call.ran else f", which was refused: {text}"

    def _unknown_tools(self) -> Iterator[Failure]:
        """Calls of tools that no agent has, unless the case expects them."""
        expected = [(self._addresses.get(want.block, want.block), want) for want in self._case.tools if want.failed]
        told: set[str] = set()
        for call in self._calls:
            if not call.is_unknown or call.tool in told:
                continue
            if any(block in ("", call.path) and self._matches(want, call) for block, want in expected):
                continue
            told.add(call.tool)
            hint = f"a case in which that is right expects it: `tools: [{{name: {call.tool}, failed: true}}]`"
            text = f"tool {call.tool}: called, but {call.path} has no such tool"
            yield Failure(text, (hint,), self._trial.place_of_call(call.tool))

    @cached_property
    def _calls(self) -> list[Called]:
        return tool_calls(self._records)

    def _sent(self, address: str, want: Sent) -> Iterator[Failure]:
        keys: Keys = ("sent", address)
        asked = askings(self._records, self._addresses.get(address, address))
        yield from self._times(want, len(asked), keys, f"sent {address}: asked")
        for index, (expected, scope) in enumerate(zip(want.records, asked, strict=False)):
            place: Keys = (*keys, "records", index)
            yield from self._conditions(expected.that, ASKED_NAMES, scope, place, f"sent {address} record {index}")

    def _logged(self, index: int, want: Logged) -> Iterator[Failure]:
        keys: Keys = ("log", index)
        path = self._addresses.get(want.path, want.path)
        label = f"log {want.kind} {want.path}".rstrip()
        of_kind = [record for record in self._records if record.kind == want.kind and path in ("", record.path)]
        count = 0
        false: Counter[str] = Counter()
        for record in of_kind:
            wrong = list(self._conditions(want.that, RECORD_NAMES, _scope(record), keys, label))
            faulty = [failure for failure in wrong if not failure.summary.endswith(" is false")]
            if faulty:
                yield faulty[0]
                return
            count += not wrong
            false.update(failure.summary.removeprefix(f"{label}.that: ") for failure in wrong)
        if not self._is_met(want, count):
            more = [f"{len(of_kind)} of this kind"] if want.that else []
            more += [f"{text} for {times} of them" for text, times in false.items()]
            kinds = sorted({record.kind for record in self._records})
            if not of_kind:
                more = [f"kinds in the run log: {', '.join(kinds) or 'none'}"]
            records = f"{count} record{'' if count == 1 else 's'}"
            yield self._failure(keys, f"{label}: {records}, want {_wanted_times(want)}", *more)

    # ------------------------------------------------------------ counts and places

    def _times(self, want: Spied | Sent, times: int, keys: Keys, label: str) -> Iterator[Failure]:
        """A wrong number of crossings, or fewer than are described."""
        if want.count is not None and times != want.count:
            yield self._failure((*keys, "count"), f"{label} {_times(times)}, want {want.count}")
        elif want.count is None and times < len(want.records):
            text = f"{label} {_times(times)}, want at least {len(want.records)}"
            yield self._failure((*keys, "records", times), text)

    def _is_met(self, want: ToolCall | Logged, count: int) -> bool:
        return count > 0 if want.count is None else count == want.count

    def _failure(self, keys: Keys, summary: str, *detail: str, key: bool = False) -> Failure:
        return Failure(summary, detail, self._trial.place(*keys, key=key))


# ---------------------------------------------------------------- small things


@lru_cache(maxsize=4096)
def _compiled(source: str, names: frozenset[str]) -> cel.Program:
    """A compiled expression; it has no state, and cases often share one. Raises ExpressionError."""
    return cel.compile(source, names)


def _holds(args: Mapping[str, Json], given: Json) -> bool:
    """Whether a call has arguments of these values."""
    if not args:
        return True
    if not isinstance(given, dict):
        return False
    return all(name in given and not list(differences(value, given[name])) for name, value in args.items())


def _scope(record: Record) -> dict[str, object]:
    return {
        "flow": record.flow,
        "blockType": record.block_type,
        "eventID": record.event_id,
        "durationNs": float(record.duration_ns or 0),
        "error": record.error,
        "dropped": record.dropped,
        "body": record.body,
        "vars": dict(record.vars),
        "attrs": dict(record.attrs),
    }


def _times(count: int) -> str:
    return f"{count} time{'' if count == 1 else 's'}"


def _wanted_times(want: ToolCall | Logged) -> str:
    return "at least 1" if want.count is None else str(want.count)


def _listed(lines: list[str], nothing: str) -> list[str]:
    if not lines:
        return [nothing]
    return lines if len(lines) <= _LISTED else [*lines[:_LISTED], f"and {len(lines) - _LISTED} more"]


def _short(value: object) -> str:
    text = dumps(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
