"""octo/runlog/background.py: writing records beside the run."""

import io
import os
import threading
from contextlib import suppress

from octo.runlog.background import BackgroundWriter
from octo.runlog.record import Record


def record(seq):
    return Record(seq, "flow.started", at=f"t{seq}")


def test_what_was_handed_over_is_written_when_it_closes():
    stream = io.StringIO()
    writer = BackgroundWriter(stream)
    for seq in range(1, 1001):
        writer(record(seq))
    writer.close()

    assert stream.getvalue() == "".join(record(seq).text + "\n" for seq in range(1, 1001))


class Slow(io.StringIO):
    """A stream that takes nothing until it is told to."""

    def __init__(self):
        super().__init__()
        self.asked, self.gate = threading.Event(), threading.Event()

    def writelines(self, lines):
        self.asked.set()
        self.gate.wait(10)
        super().writelines(lines)


def test_records_without_room_are_dropped_and_one_record_says_how_many():
    stream = Slow()
    writer = BackgroundWriter(stream, room=3)
    writer(record(1))
    stream.asked.wait(10)
    for seq in range(2, 10):
        writer(record(seq))
    stream.gate.set()
    writer.close()

    lines = [Record.parse(line) for line in stream.getvalue().splitlines()]
    assert [(line.seq, line.kind) for line in lines] == [
        (1, "flow.started"),
        (2, "flow.started"),
        (3, "flow.started"),
        (4, "flow.started"),
        (9, "trace.dropped"),
    ]
    assert lines[-1].attrs == {"count": 5.0}


def test_a_reader_that_went_away_ends_the_writing_and_nothing_else():
    reading, writing = os.pipe()
    os.close(reading)
    stream = os.fdopen(writing, "w", encoding="utf-8")
    writer = BackgroundWriter(stream)
    writer(record(1))
    writer.close()
    writer(record(2))
    with suppress(BrokenPipeError):
        stream.close()

    assert isinstance(writer.error, BrokenPipeError)
