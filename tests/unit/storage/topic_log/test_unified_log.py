"""A topic's log: what a leader changes and refuses, lookups by time, power cuts in transactions.

In tests/interop Kafka's code judges what a leader takes.
"""

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from tests.support.batch_maker import make_batch
from tests.support.faulty_files import FaultyFiles
from tests.support.packed_variants import packed_variants
from tests.unit.peak_memory import peak_memory_below
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
from kvorum.storage.errors import CorruptFileError, DiskError, PoisonedError
from kvorum.storage.log.append_origin import AppendOrigin
from kvorum.storage.log.local_log import LocalLog
from kvorum.storage.names import (
    OFFSET_INDEX_SUFFIX,
    PRODUCER_SNAPSHOT_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    offset_name,
    parse_offset_name,
)
from kvorum.storage.topic_log import log_validator
from kvorum.storage.topic_log.log_validator import (
    RECORD_ERRORS_MAX,
    RecordRules,
    RecordValidationError,
    Target,
    TimestampType,
    ValidatedBatch,
    small_content,
    validate_batch,
)
from kvorum.storage.topic_log.timestamp_and_offset import first_record_since
from kvorum.storage.topic_log.unified_log import UnifiedLog
from kvorum.storage.topic_partition import TopicPartition
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.errors import InvalidRecordError
from kvorum.wire.records import (
    BatchOptions,
    Compression,
    Record,
    RecordBatch,
    RecordData,
    build_batch,
    read_batches,
)
from kvorum.wire.records.batch import HEADER_BYTES, LENGTH_FIELD_END

TIME_MS = 1_700_000_000_000
RULES = RecordRules(
    timestamp_before_max_ms=2**63 - 1, timestamp_after_max_ms=3_600_000, batch_bytes_max=1_048_588
)
PACKED = tuple(Compression)[1:]
STREAMED_BYTES_MAX = 15 * 2**20
"""Some pieces, and what is unpacked at once before a batch turns out to be larger."""
TARGET = Target(TopicPartition("t", 0), first_offset=7, leader_epoch=3)
RECORDS = (RecordData(b"v1", b"k1", TIME_MS), RecordData(None, b"k2", TIME_MS + 5))
ROOT = Path("/logs")
DIRECTORY_ID = bytes([1]) * 16
CONFIG = replace(
    topic_logs.CONFIG, segments=replace(topic_logs.CONFIG.segments, is_flushed_on_roll=False)
)


def batch(*records: RecordData, compression: Compression = Compression.NONE) -> RecordBatch:
    data = build_batch(records or RECORDS, BatchOptions(compression=compression))
    return next(iter(read_batches(data)))


def validated(sent: RecordBatch, rules: RecordRules = RULES) -> ValidatedBatch:
    return validate_batch(sent, TARGET, rules, now_ms=TIME_MS + 60_000, origin=AppendOrigin.CLIENT)


def read(found: ValidatedBatch) -> RecordBatch:
    batch = next(iter(read_batches(found.data)))
    batch.verify()
    return batch


def test_only_offset_and_epoch_of_a_usual_batch_change() -> None:
    sent = batch()
    found = validated(sent)
    raw = bytes(sent.data)
    offset, epoch = (7).to_bytes(8, "big"), (3).to_bytes(4, "big")
    assert bytes(found.data) == offset + raw[8:12] + epoch + raw[16:]
    assert (found.max_timestamp, found.is_rewritten) == (TIME_MS + 5, False)


def test_append_time_is_in_the_header_alone() -> None:
    sent = batch()
    found = validated(sent, RULES._replace(timestamp_type=TimestampType.LOG_APPEND_TIME))
    stored = read(found)
    # Computed by Kafka's own code for the same records.
    assert stored.crc == 0x627AB6C5
    assert stored.base_timestamp == TIME_MS
    assert {record.timestamp for record in stored.records()} == {TIME_MS + 60_000}
    assert bytes(found.data[61:]) == bytes(sent.data[61:])


@pytest.mark.parametrize("wanted", list(Compression))
@pytest.mark.parametrize("sent", list(Compression))
def test_records_get_the_topics_compression(sent: Compression, wanted: Compression) -> None:
    given = batch(compression=sent)
    found = validated(given, RULES._replace(compression=wanted))
    stored = read(found)
    assert found.is_rewritten == (sent is not wanted)
    assert (stored.compression, stored.base_offset, stored.partition_leader_epoch) == (wanted, 7, 3)
    expected = [record._replace(offset=record.offset + 7) for record in given.records()]
    assert list(stored.records()) == expected


def refusal(sent: RecordBatch, rules: RecordRules = RULES) -> RecordValidationError:
    with pytest.raises(RecordValidationError) as caught:
        validated(sent, rules)
    return caught.value


def test_every_record_that_is_wrong_is_named() -> None:
    keyless = [RecordData(b"v", None if number % 2 else b"k", TIME_MS) for number in range(8)]
    error = refusal(batch(*keyless), RULES._replace(is_compacted=True))
    assert error.code == ErrorCode.INVALID_RECORD
    assert [one.batch_index for one in error.record_errors] == [1, 3, 5, 7]
    assert "due to 4 record errors" in error.message
    assert error.message.count("RecordError(") == 3


def test_one_wrong_time_decides_about_the_code() -> None:
    sent = batch(RecordData(b"v", None, TIME_MS), RecordData(b"v", b"k", TIME_MS + 2**40))
    error = refusal(sent, RULES._replace(is_compacted=True))
    assert error.code == ErrorCode.INVALID_TIMESTAMP
    assert [one.batch_index for one in error.record_errors] == [0, 1]


def test_a_record_without_a_time_is_never_too_old() -> None:
    found = validated(
        batch(RecordData(b"v"), RecordData(b"v", None, TIME_MS + 60_000)),
        RULES._replace(timestamp_before_max_ms=0),
    )
    assert found.max_timestamp == TIME_MS + 60_000


@pytest.mark.parametrize("compression", PACKED)
@pytest.mark.parametrize(("count", "size"), [(1, 6_000_000), (600, 10_000), (20, 400_000)])
def test_packed_records_may_unpack_to_more_than_the_batch_may_take(
    compression: Compression, count: int, size: int
) -> None:
    """Kafka takes them too; what they unpack to is in memory in pieces."""
    sent = batch(*[RecordData(bytes(size), b"k", TIME_MS)] * count, compression=compression)
    assert sent.size < RULES.batch_bytes_max < count * size
    with peak_memory_below(4 * sent.size + STREAMED_BYTES_MAX):
        found = validated(sent)
    assert bytes(found.data[HEADER_BYTES:]) == bytes(sent.data[HEADER_BYTES:])
    assert (found.max_timestamp, found.is_rewritten) == (TIME_MS, False)


@pytest.mark.parametrize("compression", [Compression.GZIP, Compression.LZ4, Compression.ZSTD])
def test_a_record_larger_than_any_piece_is_passed_over(compression: Compression) -> None:
    sent = batch(RecordData(bytes(40_000_000), b"k", TIME_MS), compression=compression)
    for is_compacted in (False, True):
        with peak_memory_below(4 * sent.size + STREAMED_BYTES_MAX):
            assert not validated(sent, RULES._replace(is_compacted=is_compacted)).is_rewritten


@pytest.mark.parametrize("compression", PACKED)
def test_what_is_wrong_is_found_in_records_that_unpack_to_much(compression: Compression) -> None:
    """With Kafka's codes; the one that reads first decides."""
    large = RecordData(bytes(6_000_000), None, TIME_MS)
    sent = batch(large, RecordData(b"v", b"k", TIME_MS + 2**40), compression=compression)
    late = refusal(sent)
    assert (late.code, late.record_errors[0].batch_index) == (ErrorCode.INVALID_TIMESTAMP, 1)
    keyless = refusal(sent, RULES._replace(is_compacted=True))
    assert [one.batch_index for one in keyless.record_errors] == [0, 1]
    limited = refusal(sent, RULES._replace(is_compacted=True, record_bytes_max=5_999_999))
    assert (limited.code, limited.record_errors) == (ErrorCode.INVALID_RECORD, ())
    assert refusal(sent._replace(record_count=1)).code == ErrorCode.INVALID_RECORD
    assert refusal(sent._replace(record_count=3)).code == ErrorCode.INVALID_RECORD
    cut = sent._replace(data=sent.data[:-3])
    assert refusal(cut).code == ErrorCode.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize("wanted", list(Compression))
@pytest.mark.parametrize("sent_in", [Compression.LZ4, Compression.ZSTD])
def test_records_that_unpack_to_much_get_the_topics_compression(
    sent_in: Compression, wanted: Compression
) -> None:
    records = [RecordData(bytes(600_000), b"k", TIME_MS + number) for number in range(10)]
    sent = batch(*records, compression=sent_in)
    rules = RULES._replace(compression=wanted)
    if wanted is Compression.NONE:
        with peak_memory_below(4 * sent.size + STREAMED_BYTES_MAX):
            assert refusal(sent, rules).code == ErrorCode.MESSAGE_TOO_LARGE
        return
    with peak_memory_below(4 * sent.size + STREAMED_BYTES_MAX):
        found = validated(sent, rules)
    stored = read(found)
    assert (stored.compression, found.is_rewritten) == (wanted, wanted is not sent_in)
    assert [one.timestamp for one in stored.records(2**30)] == [one.timestamp for one in records]
    assert all(one.value == bytes(600_000) for one in stored.records(2**30))


@pytest.mark.parametrize("wanted", list(Compression)[:-1])
def test_a_record_that_would_fill_the_memory_is_not_packed_again(
    wanted: Compression, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kafka's answer is this one where its memory is too small."""
    monkeypatch.setattr(log_validator, "REWRITTEN_RECORD_BYTES_MAX", 7_000_000)
    error = refusal(
        batch(RecordData(bytes(8_000_000)), compression=Compression.ZSTD),
        RULES._replace(compression=wanted),
    )
    is_packed = wanted is not Compression.NONE
    assert error.code == (
        ErrorCode.UNKNOWN_SERVER_ERROR if is_packed else ErrorCode.MESSAGE_TOO_LARGE
    )


def test_a_packed_record_is_held_to_the_topics_limit_whatever_else_is_wrong() -> None:
    """Kafka ends at such a record, before it answers for those that lack a key."""
    records = RecordData(b"v", None, TIME_MS), RecordData(bytes(100), b"k", TIME_MS)
    packed = batch(*records, compression=Compression.GZIP)
    for is_compacted in (False, True):
        rules = RULES._replace(is_compacted=is_compacted, record_bytes_max=100)
        error = refusal(packed, rules)
        assert (error.code, error.record_errors) == (ErrorCode.INVALID_RECORD, ())
    assert len(refusal(batch(*records), rules).record_errors) == 1


def test_records_without_number_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kafka's memory would be full; records that are not packed it does not keep."""
    monkeypatch.setattr(log_validator, "PACKED_RECORDS_MAX", 10)
    for compression in Compression:
        taken, refused = (
            batch(*[RecordData(b"v", b"k", TIME_MS)] * count, compression=compression)
            for count in (10, 11)
        )
        assert read(validated(taken)).record_count == 10
        if compression is Compression.NONE:
            assert read(validated(refused)).record_count == 11
        else:
            assert refusal(refused).code == ErrorCode.UNKNOWN_SERVER_ERROR


def many_records(count: int) -> RecordBatch:
    return batch(*[RecordData(None, None, TIME_MS)] * count, compression=Compression.ZSTD)


@pytest.mark.slow
@pytest.mark.parametrize("wanted", [None, Compression.GZIP])
def test_the_records_of_a_large_batch_are_not_all_objects_at_once(
    wanted: Compression | None,
) -> None:
    """They would take 300 bytes each."""
    sent = many_records(100_000)
    with peak_memory_below(6_000_000):
        found = validated(sent, RULES._replace(compression=wanted))
    assert read(found).record_count == 100_000


@pytest.mark.slow
def test_the_times_of_a_large_batch_are_not_all_kept() -> None:
    """They would take 36 bytes each, and the records take 11."""
    records = [RecordData(None, b"", TIME_MS + number) for number in range(400_000)]
    sent = batch(*records, compression=Compression.ZSTD)
    with peak_memory_below(12_000_000):
        assert validated(sent, RULES).max_timestamp == records[-1].timestamp


@pytest.mark.slow
def test_very_many_wrong_records_are_not_all_named() -> None:
    sent = many_records(100_000)
    with peak_memory_below(8_000_000):
        error = refusal(sent, RULES._replace(is_compacted=True))
    assert "due to 100000 record errors in total" in error.message
    assert len(error.record_errors) == RECORD_ERRORS_MAX


def test_a_batch_is_large_by_its_records_or_what_they_unpack_to() -> None:
    def is_large_batch(sent: RecordBatch) -> bool:
        return small_content(sent, record_count_max=10, unpacked_bytes_max=1000) is None

    records = [RecordData(b"v")] * 11
    assert is_large_batch(batch(*records))
    assert not is_large_batch(batch(*records[:10], compression=Compression.GZIP))
    for compression in list(Compression)[1:]:
        assert is_large_batch(batch(RecordData(bytes(1001)), compression=compression))
    assert not is_large_batch(batch(RecordData(bytes(1001))))


def test_records_that_cannot_be_unpacked_or_read_are_distinguished() -> None:
    sent = batch(compression=Compression.ZSTD)
    broken = sent._replace(data=memoryview(bytes(sent.data[:61]) + bytes(len(sent.data) - 61)))
    assert refusal(broken).code == ErrorCode.UNKNOWN_SERVER_ERROR
    plain = batch()
    assert refusal(plain._replace(data=plain.data[:-1])).code == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("delta", [-1, 0, 2])
def test_the_last_offset_is_that_of_the_last_record(delta: int) -> None:
    """KAFKA-6554."""
    assert refusal(batch()._replace(last_offset_delta=delta)).code == ErrorCode.INVALID_RECORD


def batch_of_variant(name: str) -> RecordBatch:
    plain = batch(RecordData(b"abc", timestamp=TIME_MS))
    packed = packed_variants(bytes(plain.data[HEADER_BYTES:]))[name]
    return plain._replace(
        attributes=int(packed.compression),
        length=len(packed.data) + HEADER_BYTES - LENGTH_FIELD_END,
        data=memoryview(bytes(plain.data[:HEADER_BYTES]) + packed.data),
    )


@pytest.mark.parametrize(
    "name",
    [
        "linked blocks",
        "linked blocks, all other flags",
        "dictionary",
        "skippable frame before",
        "cut in the header",
        "nothing",
    ],
)
def test_lz4_that_kafkas_consumers_cannot_read_is_refused(name: str) -> None:
    assert refusal(batch_of_variant(f"lz4: {name}")).code is ErrorCode.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize("name", ["two frames", "empty frame before"])
def test_only_the_first_lz4_frame_counts(name: str) -> None:
    refusal(batch_of_variant(f"lz4: {name}"))


@pytest.mark.parametrize(
    "name",
    [
        *(f"lz4: {part}" for part in ("bytes behind", "four bytes behind", "same frame again")),
        *(f"snappy: {part}" for part in ("three streams", "empty stream before", "a byte behind")),
    ],
)
def test_what_kafka_reads_of_packed_records_is_taken(name: str) -> None:
    sent = batch_of_variant(name)
    validated(sent)
    assert list(sent.records()) == [Record(0, TIME_MS, None, b"abc", ())]


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


def test_a_search_keeps_nothing_of_the_records_that_it_passes() -> None:
    """Even if one of them would not fit into the memory."""
    zeros = bytes(64 * 2**20)
    records = (RecordData(zeros if time < 5 else b"", None, timestamp=time) for time in range(1, 6))
    (batch,) = read_batches(build_batch(records, BatchOptions(7, compression=Compression.ZSTD)))
    with peak_memory_below(4 * batch.size + STREAMED_BYTES_MAX):
        found = first_record_since(batch, 5, start_offset=0)
    assert found is not None
    assert (found.offset, found.timestamp) == (11, 5)


def opened(files: FaultyFiles, *, was_clean: bool = False) -> UnifiedLog:
    files.make_directory(ROOT)
    directory = LogDirectory(ROOT, DIRECTORY_ID, files, was_clean=was_clean)
    manager = managed([directory], {PARTITION: TOPIC_ID}.get, config=CONFIG)
    return manager.get_or_create_log(PARTITION, TOPIC_ID, directory_id=DIRECTORY_ID, now_ms=NOW_MS)


def abort(log: UnifiedLog) -> None:
    marker = abort_marker()
    log.append_as_leader(marker, leader_epoch=0, now_ms=NOW_MS, origin=AppendOrigin.COORDINATOR)


def test_a_stable_offset_is_not_below_the_start_of_the_log() -> None:
    """Records of an open transaction may be deleted, and the transaction stays open."""
    log = opened(FaultyFiles())
    for sequence in range(3):
        append(log, transactional(b"x", sequence=sequence))
    log.update_high_watermark(3)
    assert log.last_stable_offset == 0
    log.delete_records(2, now_ms=NOW_MS)
    assert (log.log_start_offset, log.last_stable_offset) == (2, 2)
    abort(log)
    log.update_high_watermark(4)
    assert log.last_stable_offset == 4


def test_an_abort_whose_index_is_damaged_is_not_in_the_log() -> None:
    files = FaultyFiles()
    log = opened(files)
    append(log, transactional(b"x", sequence=0))
    index = log.local_log.directory / offset_name(0, TRANSACTION_INDEX_SUFFIX)
    files.open(index, create=True).write_at(0, b"\xff" * 34)
    with pytest.raises(CorruptFileError, match="version"):
        abort(log)
    assert log.log_end_offset == 1


def test_a_log_whose_abort_cannot_be_indexed_is_not_used_any_more() -> None:
    """A second marker would find no open transaction, and make no entry."""
    files = FaultyFiles()
    log = opened(files)
    append(log, transactional(b"x", sequence=0))
    files.fail("write", 2)
    with pytest.raises(DiskError):
        abort(log)
    with pytest.raises(PoisonedError):
        abort(log)
    log.local_log.abandon()
    again = opened(files.after_process_crash())
    again.update_high_watermark(again.log_end_offset)
    assert again.last_stable_offset == again.log_end_offset == 2
    assert [one.first_offset for one in again.aborted_transactions(0, 2)] == [0]


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


def test_aborted_transactions_of_a_segment_without_index_are_found_again() -> None:
    """An operator who removes a damaged index removes the one beside it, as the error says."""
    files = FaultyFiles()
    log = opened(files)
    for sequence in range(20):
        append(log, transactional(b"x" * 40, sequence=sequence))
        abort(log)
    log.local_log.close()
    second = log.local_log.segments[1]
    for suffix in (OFFSET_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX):
        del files.names[second.path.with_suffix(suffix)]
    again = opened(files, was_clean=True)
    found = again.aborted_transactions(0, again.log_end_offset)
    assert [(one.first_offset, one.last_offset) for one in found] == aborted_in_records(again)
