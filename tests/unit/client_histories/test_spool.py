"""A history whose columns go to a file is judged as one that stays in memory."""

from array import array
from io import BytesIO

import pytest
from tests.unit.client_histories.history_lines import SAFE_SETTINGS, Lines
from tests.unit.client_histories.played_kafka import sound_lines

from kvorum.client_histories import dependency_parts, operation_pairs, reader
from kvorum.client_histories.check import Report, check_history
from kvorum.client_histories.history import Operation
from kvorum.client_histories.key_entries import POLLED, SENT, Entry, KeyEntries
from kvorum.client_histories.reader import read_history
from kvorum.client_histories.spool import Spool

LARGE = 1 << 40


@pytest.fixture
def small_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "ENTRIES_IN_MEMORY_MAX", 10)
    monkeypatch.setattr(operation_pairs, "PAIRS_IN_MEMORY_MAX", 7)
    monkeypatch.setattr(dependency_parts, "PAIRS_IN_MEMORY_MAX", 7)
    monkeypatch.setattr(dependency_parts, "OPERATIONS_AT_ONCE", 5)


def with_an_anomaly(seed: int) -> Lines:
    """Return a sound history, and an operation that reads what was aborted."""
    lines = Lines(sound_lines(seed, operations=200))
    lines.add(1_000_000, ["send", 1, [None, LARGE]], outcome="fail")
    lines.add(1_000_001, ["poll", {"1": [[LARGE, LARGE]]}], function="poll")
    return lines


def report_of(lines: Lines, spool: Spool | None) -> Report:
    return check_history(read_history(lines.texts(), spool), SAFE_SETTINGS)


def operations_of(report: Report) -> list[Operation]:
    return [report.history.operation(number) for number in range(len(report.history))]


@pytest.mark.usefixtures("small_memory")
@pytest.mark.parametrize("seed", range(5))
def test_the_report_is_the_same_with_a_file(seed: int) -> None:
    lines = with_an_anomaly(seed)
    file = BytesIO()
    stored, kept = report_of(lines, Spool(file)), report_of(lines, None)
    assert file.getvalue()
    assert not kept.is_sound
    assert stored.counts == kept.counts
    assert stored.kept == kept.kept
    assert operations_of(stored) == operations_of(kept)


def test_columns_of_all_widths_come_back() -> None:
    spool = Spool(BytesIO())
    columns = [array("B", [1, 2]), array("i", [-1, 5]), array("q", [LARGE]), array("I")]
    stored = [spool.store(column) for column in columns]
    assert [spool.load(one) for one in reversed(stored)] == columns[::-1]


def test_the_entries_of_a_key_come_from_the_file_and_from_memory() -> None:
    entries = KeyEntries("5", Spool(BytesIO()))
    added = [
        Entry(1, SENT, 0, 7, 100),
        Entry(2, POLLED, 0, 7, 200),
        # An operation may be in two pieces, and a piece have larger numbers than another one.
        Entry(2, POLLED, LARGE, LARGE, 200),
        Entry(3, SENT, 2, 9, 300),
    ]
    for place, entry in enumerate(added):
        entries.latest.append(entry)
        if place in {1, 2}:
            entries.store()
    gathered = entries.all()
    found = zip(gathered, gathered.times, strict=True)
    assert [Entry(*columns, time) for columns, time in found] == added
    assert list(entries.of_operation(2)) == [(POLLED, 0, 7), (POLLED, LARGE, LARGE)]
