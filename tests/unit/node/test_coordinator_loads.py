"""The loads of coordinators: in which parts, what of it counts, and what ends or holds one up."""

import logging
from errno import EMFILE
from typing import Any

import pytest
from tests.unit.node.counters import (
    COUNTERS,
    LOAD_MS,
    PRODUCER,
    Counters,
    batch,
    counted,
    tombstone,
)
from tests.unit.storage.topic_logs import batch_of, marker

from kvorum.metadata.api import RequestError
from kvorum.node.broker.coordinator.context import CoordinatorState
from kvorum.node.broker.coordinator.latest_records import PART_RECORDS
from kvorum.node.broker.coordinator.loader import DESCRIPTOR_WAIT_MS, LOAD_BYTES
from kvorum.storage.errors import DiskError, TooManyOpenFilesError
from kvorum.storage.log.append_origin import AppendOrigin
from kvorum.storage.log.local_log import LocalLog
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.records import ControlRecordType, RecordData


@pytest.fixture
def idle() -> Counters:
    """A broker that leads no partition yet."""
    return Counters()


def test_a_log_is_loaded_in_parts_before_anything_is_answered(
    idle: Counters, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[int] = []
    read = LocalLog.read

    def noted(log: LocalLog, offset: int, max_bytes: int, **options: Any) -> memoryview:
        reads.append(offset)
        return read(log, offset, max_bytes, **options)

    monkeypatch.setattr(LocalLog, "read", noted)
    total = 0
    while idle.log.local_log.size_bytes < 2 * LOAD_BYTES:
        total += 1
        idle.write(batch(*(counted(f"{number}-{'n' * 80}", total) for number in range(3))))
    idle.register(leader_epoch=0)
    while idle.context.active_shard is None:
        assert idle.refusal() is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        with pytest.raises(RequestError, match="loading"):
            idle.count("0")
        turn = idle.events.take_next(idle.events.now_ms + LOAD_MS)
        assert turn is not None
        turn()
    assert len(set(reads)) > 2
    assert dict(idle.shard.counts.items()) == {f"{number}-{'n' * 80}": total for number in range(3)}
    offsets = (idle.shard.timeline.written_offset, idle.shard.timeline.committed_offset)
    assert offsets == (3 * total, 3 * total)


def test_a_load_skips_what_is_unknown_and_ends_what_has_a_tombstone(idle: Counters) -> None:
    idle.write(batch(counted("a", 3), counted("b", 4)), batch(tombstone("a")))
    idle.write(batch_of(RecordData(b"x", b"\x00\x63of a type to come", 5)))
    idle.lead()
    assert (idle.count("a"), idle.count("b")) == (None, 4)
    assert idle.shard.timeline.written_offset == 4


def test_a_load_takes_what_is_not_committed_and_shows_what_is(idle: Counters) -> None:
    idle.write(batch(counted("a", 1)), batch(counted("a", 2)))
    idle.log.update_high_watermark(1)
    idle.register(leader_epoch=0, isr=(1, 2))
    idle.run()
    assert idle.count("a") == 1
    newest = idle.asked(lambda shard, _: shard.newest_count("a"))
    assert newest == []
    idle.release()
    assert (newest, idle.count("a")) == ([2], 2)


def test_a_load_replays_the_latest_committed_record_of_a_key_where_no_other_counts() -> None:
    node = Counters(needs_latest_records_alone=True)
    node.write(batch(counted("a", 1), counted("gone", 1)), batch(counted("b", 2), counted("a", 3)))
    node.write(batch(tombstone("gone")), batch(counted("a", 4)), batch(counted("a", 5)))
    node.log.update_high_watermark(5)
    node.register(leader_epoch=0, isr=(1, 2))
    node.run()
    assert node.shard.replayed_offsets == [3, 4, 2, 5, 6]
    assert [node.count(name) for name in ("a", "b", "gone")] == [3, 2, None]
    node.release()
    assert node.count("a") == 5


def test_a_load_of_latest_records_gives_others_their_turn() -> None:
    node = Counters(needs_latest_records_alone=True)
    names = [str(number) for number in range(2 * PART_RECORDS + 1)]
    for name in names:
        node.write(batch(counted(name, 1)))
    node.register(leader_epoch=0)
    replayed = set[int]()
    while node.context.active_shard is None:
        replayed.add(len(node.shards[-1].replayed_offsets))
        turn = node.events.take_next(node.events.now_ms + LOAD_MS)
        assert turn is not None
        turn()
    assert {PART_RECORDS, 2 * PART_RECORDS} <= replayed
    assert len(dict(node.shard.counts.items())) == len(names)


@pytest.mark.parametrize(
    ("kind", "expected"), [(ControlRecordType.COMMIT, 8), (ControlRecordType.ABORT, 3)]
)
def test_a_load_ends_transactions_by_their_markers(
    idle: Counters, kind: ControlRecordType, expected: int
) -> None:
    producer = {"producer_id": PRODUCER, "producer_epoch": 0}
    idle.write(batch(counted("a", 3)))
    idle.write(batch(counted("a", 8), base_sequence=0, is_transactional=True, **producer))
    idle.write(marker(kind, coordinator_epoch=0, **producer))
    idle.lead()
    assert idle.count("a") == expected


@pytest.mark.parametrize(
    "damaged",
    [RecordData(b"\x00\x63", counted("a", 1).key_bytes(), 5), RecordData(b"", None, 5)],
    ids=["a later version", "no key"],
)
def test_a_damaged_log_is_refused_until_the_next_epoch(
    idle: Counters, damaged: RecordData, caplog: pytest.LogCaptureFixture
) -> None:
    idle.write(batch(counted("b", 1)), batch_of(damaged))
    with caplog.at_level(logging.ERROR):
        idle.lead()
    assert "A coordinator could not be loaded" in caplog.text
    assert f"{COUNTERS}-0" in caplog.text
    assert idle.refusal() is ErrorCode.NOT_COORDINATOR
    assert idle.context.state is CoordinatorState.FAILED
    idle.log.truncate_to(1, now_ms=0)
    idle.register(leader_epoch=1)
    idle.run()
    assert idle.count("b") == 1


def lack_descriptors(monkeypatch: pytest.MonkeyPatch, count: int) -> list[int]:
    """Have so many reads of logs get no descriptor; return the offsets of all reads."""
    reads: list[int] = []
    read = LocalLog.read

    def read_or_lack(log: LocalLog, offset: int, max_bytes: int, **options: Any) -> memoryview:
        reads.append(offset)
        if len(reads) <= count:
            raise TooManyOpenFilesError("no descriptor", errno=EMFILE, file=log.directory)
        return read(log, offset, max_bytes, **options)

    monkeypatch.setattr(LocalLog, "read", read_or_lack)
    return reads


def test_a_load_waits_for_file_descriptors(
    idle: Counters, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    idle.write(batch(counted("a", 1)))
    reads = lack_descriptors(monkeypatch, 2)
    with caplog.at_level(logging.WARNING):
        idle.lead()
        assert idle.refusal() is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        idle.run(DESCRIPTOR_WAIT_MS)
    (line,) = caplog.messages
    assert (reads, f"{COUNTERS}-0" in line) == ([0, 0], True)
    idle.run(DESCRIPTOR_WAIT_MS)
    assert idle.count("a") == 1


def test_a_load_that_waits_for_file_descriptors_ends_with_the_leadership(
    idle: Counters, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = lack_descriptors(monkeypatch, 9)
    idle.write(batch(counted("a", 1)))
    idle.lead()
    idle.lose()
    idle.run(2 * DESCRIPTOR_WAIT_MS)
    assert reads == [0]


def test_a_load_ends_where_the_partition_is_led_elsewhere_meanwhile(idle: Counters) -> None:
    idle.write(batch(counted("a", 1)))
    idle.register(leader_epoch=0)
    idle.partitions[0].make_follower(idle.registration._replace(leader=2, leader_epoch=1))
    idle.run()
    assert idle.context.state is CoordinatorState.FAILED


def test_a_load_goes_on_in_the_log_that_takes_the_place_of_a_closed_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The replica moves to another log directory while a thread reads."""
    node = Counters(partition_count=2)
    partition, moved = node.partitions[0], node.partitions[1].log
    for log in (partition.log, moved):
        log.append_as_leader(
            batch(counted("a", 1)), leader_epoch=0, now_ms=0, origin=AppendOrigin.COORDINATOR
        )
    read = LocalLog.read

    def replaced(log: LocalLog, offset: int, max_bytes: int, **options: Any) -> memoryview:
        if log is not moved.local_log:
            log.close()
            partition.replace_log(moved)
        return read(log, offset, max_bytes, **options)

    monkeypatch.setattr(LocalLog, "read", replaced)
    node.register(leader_epoch=0)
    node.run()
    assert node.context.state is CoordinatorState.ACTIVE
    assert dict(node.shard.counts.items()) == {"a": 1}


def test_a_load_reads_again_where_compaction_has_closed_a_segment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    node = Counters(partition_count=1)
    log = node.partitions[0].log
    log.append_as_leader(
        batch(counted("a", 1)), leader_epoch=0, now_ms=0, origin=AppendOrigin.COORDINATOR
    )
    read = LocalLog.read
    is_compacted = False

    def compacted(local: LocalLog, offset: int, max_bytes: int, **options: Any) -> memoryview:
        nonlocal is_compacted
        if not is_compacted:
            is_compacted = True
            local.removal_count += 2
            raise DiskError("the file was closed meanwhile", errno=None, file=local.directory)
        return read(local, offset, max_bytes, **options)

    monkeypatch.setattr(LocalLog, "read", compacted)
    node.register(leader_epoch=0)
    node.run()
    assert node.context.state is CoordinatorState.ACTIVE
    assert dict(node.shard.counts.items()) == {"a": 1}


def test_a_load_that_is_given_up_reads_no_further(idle: Counters) -> None:
    idle.write(batch(counted("a", 1)))
    idle.register(leader_epoch=0)
    context = idle.context
    idle.lose()
    idle.run()
    assert context.state is CoordinatorState.CLOSED
    assert context.active_shard is None
