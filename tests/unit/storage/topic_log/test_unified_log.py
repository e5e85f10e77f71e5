"""A topic's log: looked up by time, and with its transactions after power cuts."""

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from tests.support.batch_maker import make_batch
from tests.support.faulty_files import FaultyFiles
from tests.unit.storage import topic_logs
from tests.unit.storage.local_logs import loaded
from tests.unit.storage.topic_logs import (
    NOW_MS,
    PARTITION,
    TOPIC_ID,
    abort_marker,
    append,
    managed,
    transactional,
)

from kvorum.storage.directory.log_directory import LogDirectory
from kvorum.storage.log.append_origin import AppendOrigin
from kvorum.storage.log.local_log import LocalLog
from kvorum.storage.names import PRODUCER_SNAPSHOT_SUFFIX, parse_offset_name
from kvorum.storage.topic_log import timestamp_and_offset
from kvorum.storage.topic_log.timestamp_and_offset import first_record_since
from kvorum.storage.topic_log.unified_log import UnifiedLog
from kvorum.wire.errors import BatchTooLargeError, InvalidRecordError
from kvorum.wire.records import BatchOptions, Compression, RecordData, build_batch, read_batches

ROOT = Path("/logs")
DIRECTORY_ID = bytes([1]) * 16
CONFIG = replace(
    topic_logs.CONFIG, segments=replace(topic_logs.CONFIG.segments, is_flushed_on_roll=False)
)


def log_of(timestamps: list[int]) -> LocalLog:
    """Return a log of several segments with one record for each timestamp."""
    log = loaded(FaultyFiles()).log
    for offset, timestamp in enumerate(timestamps):
        log.append(make_batch(offset, timestamp=timestamp))
    return log


@pytest.mark.parametrize("seed", range(20))
def test_no_earlier_record_is_as_late(seed: int) -> None:
    random = Random(seed)
    # Clocks go forward most of the time, and now and then back.
    timestamps, now = list[int](), 1_000
    for _ in range(60):
        now += random.choice([0, 1, 5, 5, 5, -4])
        timestamps.append(now)
    log = log_of(timestamps)
    assert log.max_timestamp == max(timestamps)
    found_later = 0
    for wanted in range(min(timestamps) - 1, max(timestamps) + 1):
        first = next(offset for offset, its in enumerate(timestamps) if its >= wanted)
        offset = log.offset_before(wanted)
        assert offset is not None
        assert offset <= first
        found_later += offset > 0
    assert found_later > 0, "nothing was spared by the index"
    assert log.offset_before(max(timestamps) + 1) is None


def test_the_place_is_one_that_can_be_read() -> None:
    log = log_of(list(range(1_000, 1_060)))
    log.increment_log_start_offset(30, now_ms=0)
    assert log.offset_before(1_000) == 30
    assert log_of([]).offset_before(0) is None
    assert log_of([]).max_timestamp == -1


@pytest.mark.parametrize("compression", list(Compression)[1:])
def test_a_stored_batch_is_looked_at_whatever_its_topic_takes_now(compression: Compression) -> None:
    records = [RecordData(bytes(2**23), None, 1_000), RecordData(b"", None, 2_000)]
    (batch,) = read_batches(build_batch(records, BatchOptions(7, compression=compression)))
    found = first_record_since(batch, 1_500, start_offset=0)
    assert found is not None
    assert (found.offset, found.timestamp) == (8, 2_000)


def test_a_record_above_the_topics_limit_hides_those_after_it() -> None:
    records = [RecordData(bytes(size), None, time) for size, time in ((10, 1), (100, 2), (10, 3))]
    (batch,) = read_batches(build_batch(records, BatchOptions(compression=Compression.ZSTD)))
    found = first_record_since(batch, 1, start_offset=0, record_bytes_max=100)
    assert found is not None
    assert found.offset == 0
    for timestamp in (2, 3):
        with pytest.raises(InvalidRecordError):
            first_record_since(batch, timestamp, start_offset=0, record_bytes_max=100)


def test_a_stored_batch_that_unpacks_to_far_more_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(timestamp_and_offset, "STORED_UNPACKED_BYTES_MAX", 1_000)
    options = BatchOptions(compression=Compression.ZSTD)
    (batch,) = read_batches(build_batch([RecordData(bytes(1_000), None, 5)], options))
    with pytest.raises(BatchTooLargeError):
        first_record_since(batch, 5, start_offset=0)


def opened(files: FaultyFiles) -> UnifiedLog:
    files.make_directory(ROOT)
    directory = LogDirectory(ROOT, DIRECTORY_ID, files, was_clean=False)
    manager = managed([directory], {PARTITION: TOPIC_ID}.get, config=CONFIG)
    return manager.get_or_create_log(PARTITION, TOPIC_ID, directory_id=DIRECTORY_ID, now_ms=NOW_MS)


def abort(log: UnifiedLog) -> None:
    marker = abort_marker()
    log.append_as_leader(marker, leader_epoch=0, now_ms=NOW_MS, origin=AppendOrigin.COORDINATOR)


def aborted_in_records(log: UnifiedLog) -> list[tuple[int, int]]:
    """Return the first offset and the marker's of each aborted transaction, from the records."""
    local = log.local_log
    found: list[tuple[int, int]] = []
    first: int | None = None
    offset = 0
    while offset < local.log_end_offset:
        for batch in read_batches(local.read(offset, 1 << 20, end_offset=local.log_end_offset)):
            offset = batch.next_offset
            if not batch.is_control:
                first = batch.base_offset if first is None else first
            elif first is not None:
                found.append((first, batch.base_offset))
                first = None
    return found


def snapshot_offsets(files: FaultyFiles) -> list[int]:
    parsed = [parse_offset_name(name) for name in files.list_names(ROOT / "topic-0")]
    return [found[0] for found in parsed if found and found[1] == PRODUCER_SNAPSHOT_SUFFIX]


@pytest.mark.parametrize("seed", range(40))
def test_a_log_has_the_aborted_transactions_and_producers_of_its_records(seed: int) -> None:
    random = Random(seed)
    files = FaultyFiles()
    log = opened(files)
    sequence = 0
    for _ in range(random.randint(2, 8)):
        for _ in range(random.randint(1, 3)):
            append(log, transactional(b"x" * 40, sequence=sequence))
            sequence += 1
        abort(log)
        if random.random() < 0.2:
            log.local_log.flush()
    left = files.after_power_cut(random)
    again = opened(left)
    local = again.local_log
    found = again.aborted_transactions(0, local.log_end_offset)
    assert [(one.first_offset, one.last_offset) for one in found] == aborted_in_records(again)
    assert [offset for offset in snapshot_offsets(left) if offset > local.log_end_offset] == []
    # The log goes on, where a marker was that is lost.
    entry = again.producers.entries.get(7)
    following = 0 if entry is None else entry.last_sequence + 1
    for number in range(3):
        append(again, transactional(b"y", sequence=following + number))
        abort(again)
    found = again.aborted_transactions(0, local.log_end_offset)
    assert [(one.first_offset, one.last_offset) for one in found] == aborted_in_records(again)
