"""The place to look for a timestamp: never after the first record that has it or a later one."""

from random import Random

import pytest
from tests.support.batch_maker import make_batch
from tests.support.faulty_files import FaultyFiles
from tests.unit.storage.local_logs import loaded

from kvorum.storage.log.local_log import LocalLog
from kvorum.storage.topic_log import timestamp_and_offset
from kvorum.storage.topic_log.timestamp_and_offset import first_record_since
from kvorum.wire.errors import BatchTooLargeError, InvalidRecordError
from kvorum.wire.records import BatchOptions, Compression, RecordData, build_batch, read_batches


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
