"""The history of a world's clients has their operations, in the lines of ``check-history``."""

import json
from dataclasses import replace
from typing import Any

import pytest

from kvorum.broker.fetch_isolation import IsolationLevel
from kvorum.client_histories.anomalies import Anomaly
from kvorum.simulation.partitions import history_check
from kvorum.simulation.partitions.client_history import FAIL, INFO, OK, SEND, TXN, ClientHistory
from kvorum.simulation.partitions.promises import HISTORY_IS_SOUND
from kvorum.simulation.partitions.settings import ClusterSettings
from kvorum.simulation.properties.catalogue import Checks, PropertyViolatedError
from kvorum.simulation.surroundings import random_for
from kvorum.wire.records import BatchOptions, RecordBatch, RecordData, build_batch, read_batches

COMMITTED = IsolationLevel.READ_COMMITTED
UNCOMMITTED = IsolationLevel.READ_UNCOMMITTED


def batch_of(*values: bytes | None, base_offset: int = 0) -> RecordBatch:
    records = [RecordData(value, None, 0) for value in values]
    (batch,) = read_batches(build_batch(records, BatchOptions(base_offset=base_offset)))
    return batch


def history_of(partitions: int = 2) -> ClientHistory:
    return ClientHistory(lambda: 1.5, partitions)


def lines_of(
    history: ClientHistory,
    isolation: IsolationLevel = COMMITTED,
    left_out: tuple[int, ...] = (),
) -> list[dict[str, Any]]:
    return [json.loads(line) for line in history.lines(isolation, left_out)]


def settings_of(
    *, deletes_records: bool = False, is_compacted: bool = False, delete_retention_ms: int = 0
) -> ClusterSettings:
    drawn = ClusterSettings.draw(
        random_for(1, "settings"),
        storm=random_for(1, "storm"),
        linger=random_for(1, "linger"),
        coordinated=random_for(1, "coordinated"),
        consumer_group=random_for(1, "consumer group"),
        share_group=random_for(1, "share group"),
    )
    return replace(
        drawn,
        deletes_records=deletes_records,
        is_compacted=is_compacted,
        delete_retention_ms=delete_retention_ms,
    )


def test_a_producer_has_one_operation_after_the_other_until_one_is_of_unknown_outcome() -> None:
    history = history_of()
    writer = history.writer(SEND)
    for outcome in (OK, INFO, OK):
        batch = batch_of(outcome.encode() + str(len(lines_of(history))).encode())
        writer.send(0, batch)
        writer.acknowledge(0, batch, 10)
        writer.end(outcome)
    found = [(line["p"], line["type"]) for line in lines_of(history) if line["type"] != "invoke"]
    assert found == [(0, "ok"), (0, "info"), (1, "ok")]


def test_values_are_numbered_by_key_and_offsets_follow_the_base_offset() -> None:
    history = history_of()
    writer = history.writer(TXN)
    batches = [batch_of(b"a", None, b"b"), batch_of(b"a")]
    for index, batch in enumerate(batches):
        writer.send(index, batch)
        writer.acknowledge(index, batch, 20)
    writer.end(OK)
    invoked, completed = lines_of(history)
    assert invoked["v"] == [["send", 0, 0], ["send", 0, 1], ["send", 1, 0]]
    assert completed["v"] == [["send", 0, [20, 0]], ["send", 0, [22, 1]], ["send", 1, [20, 0]]]
    assert completed["t"] == 1_500_000


def test_an_offset_that_an_answer_does_not_have_stays_unknown() -> None:
    history = history_of()
    writer = history.writer(SEND)
    batch = batch_of(b"a")
    writer.send(0, batch)
    writer.acknowledge(0, batch, -1)
    writer.end(OK)
    assert lines_of(history)[-1]["v"] == [["send", 0, [None, 0]]]


def test_a_producer_that_is_left_out_sends_no_values() -> None:
    history = history_of()
    writer = history.writer(SEND, is_left_out=True)
    writer.send(0, batch_of(b"a"))
    writer.end(OK)
    reader = history.reader(0, COMMITTED)
    reader.invoke()
    reader.poll(0, [batch_of(b"a")])
    assert [line["f"] for line in lines_of(history)] == ["assign", "assign"]


def test_a_poll_begins_at_the_offset_that_was_asked_for() -> None:
    history = history_of()
    writer = history.writer(SEND)
    writer.send(0, batch_of(b"a", b"b"))
    reader = history.reader(0, COMMITTED)
    reader.invoke()
    reader.poll(6, [batch_of(b"a", b"b", base_offset=5)])
    assert lines_of(history)[-1]["v"] == [["poll", {"0": [[6, 1]]}]]


def test_a_consumer_is_in_the_history_of_its_isolation_level_alone() -> None:
    history = history_of()
    history.reader(0, UNCOMMITTED)
    assert lines_of(history, COMMITTED) == []
    assert [line["f"] for line in lines_of(history, UNCOMMITTED)] == ["assign", "assign"]


def test_a_consumer_that_reads_on_elsewhere_has_crashed() -> None:
    history = history_of()
    history.reader(0, COMMITTED).seek()
    assert [line["f"] for line in lines_of(history)] == ["assign", "assign", "crash", "crash"]


def test_the_history_has_no_key_that_is_left_out() -> None:
    history = history_of()
    writer = history.writer(TXN)
    for index in range(2):
        writer.send(index, batch_of(b"a"))
    writer.end(FAIL)
    invoked, completed = lines_of(history, left_out=(0,))
    assert invoked["v"] == [["send", 1, 0]]
    assert completed["v"] == [["send", 1, [None, 0]]]


def lost_write() -> ClientHistory:
    """Return a history in which the first of two acknowledged values is never polled."""
    history = history_of()
    writer = history.writer(SEND)
    for offset, value in enumerate((b"a", b"b")):
        batch = batch_of(value)
        writer.send(0, batch)
        writer.acknowledge(0, batch, offset)
        writer.end(OK)
    for isolation in IsolationLevel:
        reader = history.reader(0, isolation)
        reader.invoke()
        reader.poll(1, [batch_of(b"b", base_offset=1)])
    return history


def check(history: ClientHistory, settings: ClusterSettings) -> Checks:
    checks = Checks()
    checks.include([HISTORY_IS_SOUND])
    history_check.check(history_check.written(history, settings, (), transactions_end=True), checks)
    return checks


def test_an_anomaly_breaks_the_property_and_is_named() -> None:
    with pytest.raises(PropertyViolatedError, match="lost-write: value 0 at offset 0") as error:
        check(lost_write(), settings_of())
    assert error.value.broken == HISTORY_IS_SOUND


def test_what_deletion_makes_legal_is_excluded() -> None:
    checks = check(lost_write(), settings_of(deletes_records=True))
    assert checks.counts[HISTORY_IS_SOUND.id] == len(IsolationLevel)


def test_the_deletion_of_a_producers_records_excludes_duplicates() -> None:
    """After a start its broker does not know it, and appends what it sends again."""
    for is_compacted in (False, True):
        settings = settings_of(deletes_records=True, is_compacted=is_compacted)
        assert Anomaly.DUPLICATE in excluded(settings)


def test_compaction_and_the_loss_of_markers_exclude_more() -> None:
    gone = excluded(settings_of(is_compacted=True))
    kept = excluded(settings_of(is_compacted=True, delete_retention_ms=86_400_000))
    assert Anomaly.POLL_SKIP in kept
    assert Anomaly.DUPLICATE not in gone
    assert gone - kept == {Anomaly.G1A}


def test_records_behind_a_transaction_without_a_coordinator_may_stay_unseen() -> None:
    """Only consumers of committed records wait for its end."""
    committed, all_records = IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED
    assert excluded(settings_of(), committed, transactions_end=False) == {Anomaly.UNSEEN}
    assert not excluded(settings_of(), all_records, transactions_end=False)
    assert not excluded(settings_of(), committed)


def excluded(
    settings: ClusterSettings,
    isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    *,
    transactions_end: bool = True,
) -> frozenset[Anomaly]:
    """Return the anomalies that are legal in a world."""
    return history_check.excluded_anomalies(settings, isolation, transactions_end=transactions_end)
