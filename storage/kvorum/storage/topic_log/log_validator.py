"""The leader's work on a batch before it is appended: checks, offsets, times (LogValidator).

A batch of the current format is patched where it lies: its base offset, leader epoch, and, where
they differ from the topic's, timestamp type and highest timestamp. Its records are written again
only where the topic asks for another compression, or packed records are not numbered from 0.

A few hundred bytes may unpack to a million records, or to gigabytes. So records are looked at one
by one, in pieces of what they unpack to, and that (`inspect_batch`) is apart from what depends on
the end of the log: it may happen in a thread.

Texts and codes are those of Kafka's LogValidator, which Produce answers with (KIP-467).
"""

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from types import MappingProxyType
from typing import Annotated, Final, NamedTuple

from kvorum.storage.cleaner.cleanup_config import names_compaction
from kvorum.storage.log.append_origin import AppendOrigin
from kvorum.storage.topic_partition import TopicPartition
from kvorum.wire.checksums import crc32c
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.errors import CorruptBatchError, DecompressionError, InvalidRecordError
from kvorum.wire.records import BatchOptions, Compression, RecordBatch, RecordData, build_batch
from kvorum.wire.records.batch import (
    COMPRESSION_MASK,
    CONTROL,
    CRC_START,
    DELETE_HORIZON,
    HEADER_BYTES,
    INT32_MAX,
    LOG_APPEND_TIME,
    NO_PRODUCER,
    NO_TIMESTAMP,
    TRANSACTIONAL,
    BatchContent,
)
from kvorum.wire.records.decompression import RECORD_BYTES_MAX
from kvorum.wire.records.lz4_frames import unreadable_by_kafka
from kvorum.wire.records.record import INT64_MAX, within_64_bits
from kvorum.wire.records.record_runs import RecordOutline, Run
from kvorum.wire.records.record_summary import RecordSummary, summarize_all, summary_of
from kvorum.wire.records.size_check import SizeCheck, any_size

SHOWN_ERRORS_MAX: Final = 3
"""The number of records that the text of a refused batch names."""
PACKED_RECORDS_MAX: Final = 2**24
"""The number of records of a packed batch. Kafka has an object for each: they fill a heap of 1 GiB,
as its script sets it. A few hundred kilobytes may be two thousand million records."""
REWRITTEN_RECORD_BYTES_MAX: Final = 64 * 1024 * 1024
"""The largest packed record that is packed again, unless the topic takes larger batches."""
RECORD_ERRORS_MAX: Final = 10_000
"""The number of wrong records of a refusal that are listed; Kafka lists all of them."""
_KEPT_ATTRIBUTES: Final = COMPRESSION_MASK | TRANSACTIONAL | CONTROL | DELETE_HORIZON
_BASE_OFFSET: Final = struct.Struct(">q")
_LEADER_EPOCH: Final = struct.Struct(">i")
_LEADER_EPOCH_START: Final = 12
_CRC: Final = struct.Struct(">I")
_CRC_FIELD_START: Final = 17
_ATTRIBUTES: Final = struct.Struct(">h")
_MAX_TIMESTAMP: Final = struct.Struct(">q")
_MAX_TIMESTAMP_START: Final = 35

_COMPRESSIONS: Final[Mapping[str, Compression | None]] = MappingProxyType(
    {
        "producer": None,
        "uncompressed": Compression.NONE,
        "gzip": Compression.GZIP,
        "snappy": Compression.SNAPPY,
        "lz4": Compression.LZ4,
        "zstd": Compression.ZSTD,
    }
)


class TimestampType(IntEnum):
    """Whose time records carry: ``message.timestamp.type``."""

    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


_TIMESTAMP_TYPES: Final[Mapping[str, TimestampType]] = MappingProxyType(
    {"CreateTime": TimestampType.CREATE_TIME, "LogAppendTime": TimestampType.LOG_APPEND_TIME}
)


class RecordRules(NamedTuple):
    """The rules for records in a topic's configuration.

    `compression` is None for the producer's own; times are milliseconds. A batch that is written
    again may take `batch_bytes_max`; a packed record may unpack to `record_bytes_max`.
    """

    timestamp_before_max_ms: Annotated[int, "message.timestamp.before.max.ms"]
    timestamp_after_max_ms: Annotated[int, "message.timestamp.after.max.ms"]
    timestamp_type: Annotated[
        TimestampType, "message.timestamp.type", _TIMESTAMP_TYPES.__getitem__
    ] = TimestampType.CREATE_TIME
    compression: Annotated[Compression | None, "compression.type", _COMPRESSIONS.__getitem__] = None
    is_compacted: Annotated[bool, "cleanup.policy", names_compaction] = False
    batch_bytes_max: Annotated[int, "max.message.bytes"] = INT32_MAX
    record_bytes_max: Annotated[int, "max.decompressed.message.bytes"] = RECORD_BYTES_MAX


class Target(NamedTuple):
    """The place of a new batch: the partition, its next offset, and its leader's epoch."""

    topic_partition: TopicPartition
    first_offset: int
    leader_epoch: int


class ValidatedBatch(NamedTuple):
    """A batch as it is appended.

    `max_timestamp` is that of its records in milliseconds, -1 for none. `is_rewritten` says that
    it may have another size than the one that was sent.
    """

    data: bytes | bytearray
    max_timestamp: int
    is_rewritten: bool


class InspectedBatch(NamedTuple):
    """A batch whose records are right, as it is appended but for its offset and leader epoch.

    `shift` is added to the offset at which the log ends: a batch that another broker has written
    may have fewer records than offsets.
    """

    data: bytearray
    max_timestamp: int
    is_rewritten: bool
    shift: int = 0

    def placed(self, target: Target) -> ValidatedBatch:
        """Return it with its base offset and epoch, which are outside of the checksum."""
        _BASE_OFFSET.pack_into(self.data, 0, target.first_offset + self.shift)
        _LEADER_EPOCH.pack_into(self.data, _LEADER_EPOCH_START, target.leader_epoch)
        return ValidatedBatch(self.data, self.max_timestamp, self.is_rewritten)


class RecordError(NamedTuple):
    """Why a record is refused; `batch_index` counts the records of the batch."""

    batch_index: int
    message: str

    def __str__(self) -> str:
        """Return the text that Kafka shows of it."""
        return f"RecordError(batchIndex={self.batch_index}, message='{self.message}')"


class RecordValidationError(Exception):
    """A batch that is refused whole: the code, its text, and what is wrong with single records."""

    def __init__(
        self, code: ErrorCode, message: str, record_errors: Sequence[RecordError] = ()
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.record_errors = tuple(record_errors)


def validate_batch(
    batch: RecordBatch, target: Target, rules: RecordRules, *, now_ms: int, origin: AppendOrigin
) -> ValidatedBatch:
    """Return a batch with the offsets and times that it has in the log.

    The checksum is not verified. Raises `RecordValidationError`, with UNKNOWN_SERVER_ERROR for
    records that cannot be unpacked.
    """
    inspected = inspect_batch(batch, target.topic_partition, rules, now_ms=now_ms, origin=origin)
    return inspected.placed(target)


def inspect_batch(
    batch: RecordBatch,
    topic_partition: TopicPartition,
    rules: RecordRules,
    *,
    now_ms: int,
    origin: AppendOrigin,
    content: BatchContent | None = None,
    check_size: SizeCheck = any_size,
) -> InspectedBatch:
    """Do all of `validate_batch` that needs no knowledge of the log; raises as that does.

    `content` has the records, if they are unpacked already. Else `check_size` is called with the
    size of what is unpacked so far, and may end the work with an error of its own.
    """
    if origin is AppendOrigin.CLIENT:
        _check_batch(batch, topic_partition)
    _check_framing(batch)
    try:
        if content is None:
            content = batch.content(check_size)
        summary = _checked_summary(content, batch, topic_partition, rules, now_ms)
    except DecompressionError as error:
        raise RecordValidationError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from error
    except CorruptBatchError as error:
        raise RecordValidationError(ErrorCode.INVALID_RECORD, str(error)) from error
    if _may_stay(batch, summary, rules):
        return _patched(batch, summary, rules, now_ms)
    problem = _rewriting_problem(batch, summary, rules)
    if problem is not None:
        raise RecordValidationError(ErrorCode.UNKNOWN_SERVER_ERROR, problem)
    return _rewritten(batch, content, summary, rules, now_ms)


def _checked_summary(
    content: BatchContent,
    batch: RecordBatch,
    topic_partition: TopicPartition,
    rules: RecordRules,
    now_ms: int,
) -> RecordSummary:
    """Return the summary of records that are right; refuse others."""
    parts = content.runs_and_outlines(rules.record_bytes_max)
    if batch.is_packed and batch.record_count > PACKED_RECORDS_MAX:
        parts = _limited(parts)
    summary = summarize_all(
        parts, base_offset=batch.base_offset, base_timestamp=batch.base_timestamp
    )
    if summary is not None and _is_right(summary, batch, rules, now_ms):
        return summary
    records = content.outlines(rules.record_bytes_max)
    checked = _checked_records(records, batch, topic_partition, rules, now_ms)
    return summary_of(checked, batch.base_offset)


def _limited(parts: Iterable[Run | RecordOutline]) -> Iterator[Run | RecordOutline]:
    """Yield the parts of a packed batch; refuse it once too many of its records are read."""
    for part in parts:
        if isinstance(part, Run):
            # The number of a run that is all of a batch is its header's, which may be wrong.
            count = min(part.record_count, len(part.data))
            if part.first_index + count > PACKED_RECORDS_MAX:
                problem = f"more than {PACKED_RECORDS_MAX} packed records"
                raise RecordValidationError(ErrorCode.UNKNOWN_SERVER_ERROR, problem)
        yield part


def small_content(
    batch: RecordBatch, *, record_count_max: int, unpacked_bytes_max: int
) -> BatchContent | None:
    """Return a batch's records, unpacked; None where they are too many or too long.

    None is also for what cannot be unpacked. Records that are not packed are never too long.
    """
    if batch.record_count > record_count_max or (
        batch.is_packed and batch.size > unpacked_bytes_max
    ):
        return None
    try:
        return batch.small_content(unpacked_bytes_max)
    except DecompressionError:
        return None


def _check_batch(batch: RecordBatch, topic_partition: TopicPartition) -> None:
    """Refuse what no producer may send."""
    first, last, count = batch.base_offset, batch.last_offset, batch.record_count
    if batch.last_offset_delta < 0:
        problem = f"Batch has an invalid offset range: [{first}, {last}]"
    elif count <= 0:
        problem = f"Invalid reported count for record batch: {count}"
    elif batch.last_offset_delta + 1 != count:
        problem = f"Inconsistent batch offset range [{first}, {last}] and count of records {count}"
    elif batch.is_control:
        problem = "Clients are not allowed to write control records"
    elif batch.has_producer_id and batch.base_sequence < 0:
        problem = (
            f"Invalid sequence number {batch.base_sequence} in record batch with "
            f"producerId {batch.producer_id}"
        )
    else:
        return
    raise RecordValidationError(
        ErrorCode.INVALID_RECORD, f"{problem} in topic partition {topic_partition}"
    )


def _check_framing(batch: RecordBatch) -> None:
    """Refuse packed records that ours could read, and that Kafka's consumers could not."""
    if batch.attributes & COMPRESSION_MASK != Compression.LZ4:
        return
    problem = unreadable_by_kafka(batch.data[HEADER_BYTES:])
    if problem is not None:
        raise RecordValidationError(ErrorCode.UNKNOWN_SERVER_ERROR, f"lz4: {problem}")


def _is_right(summary: RecordSummary, batch: RecordBatch, rules: RecordRules, now_ms: int) -> bool:
    """Return whether no record can be wrong; False means that each has to be looked at."""
    if batch.is_log_append_time or (rules.is_compacted and not summary.has_all_keys):
        return False
    if rules.timestamp_type is TimestampType.LOG_APPEND_TIME:
        return True
    # Negative times have rules of their own, and times near the limits of 64 bits overflow.
    return (
        summary.earliest >= 0
        and now_ms - summary.earliest <= rules.timestamp_before_max_ms
        and summary.latest - now_ms <= rules.timestamp_after_max_ms
        and summary.latest <= INT64_MAX
    )


def _checked_records(
    records: Iterable[RecordOutline],
    batch: RecordBatch,
    topic_partition: TopicPartition,
    rules: RecordRules,
    now_ms: int,
) -> Iterator[RecordOutline]:
    """Yield the records; then refuse those that lack a key, or have a wrong time."""
    errors: list[RecordError] = []
    error_count = 0
    code = ErrorCode.INVALID_RECORD
    earliest = within_64_bits(now_ms - rules.timestamp_before_max_ms)
    latest = within_64_bits(now_ms + rules.timestamp_after_max_ms)
    is_create_time = rules.timestamp_type is TimestampType.CREATE_TIME
    for index, record in enumerate(records):
        yield record
        if rules.is_compacted and record.key_size is None:
            problem = (
                "Compacted topic cannot accept message without key in topic partition "
                f"{topic_partition}"
            )
        elif is_create_time and record.timestamp != NO_TIMESTAMP:
            age = within_64_bits(now_ms - record.timestamp)
            lead = within_64_bits(-age)
            if age <= rules.timestamp_before_max_ms and lead <= rules.timestamp_after_max_ms:
                continue
            code = ErrorCode.INVALID_TIMESTAMP
            problem = (
                f"Timestamp {record.timestamp} of message with offset {record.offset} is out of "
                f"range. The timestamp should be within [{earliest}, {latest}]"
            )
        elif batch.is_log_append_time:
            code = ErrorCode.INVALID_TIMESTAMP
            problem = (
                f"Invalid timestamp type in message {_described(record, batch, rules)}. Producer "
                "should not set timestamp type to LogAppendTime."
            )
        else:
            continue
        error_count += 1
        if error_count <= RECORD_ERRORS_MAX:
            errors.append(RecordError(index, problem))
    if errors:
        raise RecordValidationError(code, _summary(code, errors, error_count), errors)


def _described(record: RecordOutline, batch: RecordBatch, rules: RecordRules) -> str:
    """Return a record as Kafka's text names it, which depends on how it had to read the batch."""
    is_packed = batch.compression is not Compression.NONE
    is_partial = is_packed and _has_wanted_compression(batch, rules)
    absent = -1 if is_partial else 0
    sizes = (record.key_size, record.value_size)
    key, value = (absent if size is None else size for size in sizes)
    return (
        f"{'Partial' if is_partial else ''}DefaultRecord(offset={record.offset}, "
        f"timestamp={record.timestamp}, key={key} bytes, value={value} bytes)"
    )


def _summary(code: ErrorCode, errors: Sequence[RecordError], error_count: int) -> str:
    if code is ErrorCode.INVALID_TIMESTAMP:
        return "One or more records have been rejected due to invalid timestamp"
    shown = ", ".join(str(error) for error in errors[:SHOWN_ERRORS_MAX])
    return (
        f"One or more records have been rejected due to {error_count} record errors in total, "
        f"and only showing the first three errors at most: [{shown}]"
    )


def _has_wanted_compression(batch: RecordBatch, rules: RecordRules) -> bool:
    return rules.compression is None or rules.compression is batch.compression


def _may_stay(batch: RecordBatch, summary: RecordSummary, rules: RecordRules) -> bool:
    """Return whether the records may stay as they are written."""
    is_wanted = _has_wanted_compression(batch, rules)
    if batch.compression is Compression.NONE:
        # Control records in packed bytes are not looked for.
        return is_wanted or batch.is_control
    return is_wanted and summary.is_numbered


def _patched(
    batch: RecordBatch, summary: RecordSummary, rules: RecordRules, now_ms: int
) -> InspectedBatch:
    """Return the batch with another header."""
    data = bytearray(batch.data)
    highest = _max_timestamp(summary.latest, rules, now_ms)
    is_log_append_time = rules.timestamp_type is TimestampType.LOG_APPEND_TIME
    if batch.is_log_append_time != is_log_append_time or batch.max_timestamp != highest:
        _set_max_timestamp(data, batch.attributes, highest, rules.timestamp_type)
    shift = summary.record_count - 1 - batch.last_offset_delta
    return InspectedBatch(data, highest, is_rewritten=False, shift=shift)


def _max_timestamp(latest: int, rules: RecordRules, now_ms: int) -> int:
    if rules.timestamp_type is TimestampType.LOG_APPEND_TIME:
        return now_ms
    return max(NO_TIMESTAMP, latest)


def _set_max_timestamp(
    data: bytearray, attributes: int, highest: int, timestamp_type: TimestampType
) -> None:
    """Set timestamp type and highest timestamp; attributes that have no meaning are lost."""
    attributes &= _KEPT_ATTRIBUTES
    if timestamp_type is TimestampType.LOG_APPEND_TIME:
        attributes |= LOG_APPEND_TIME
    _ATTRIBUTES.pack_into(data, CRC_START, attributes)
    _MAX_TIMESTAMP.pack_into(data, _MAX_TIMESTAMP_START, highest)
    _CRC.pack_into(data, _CRC_FIELD_START, crc32c(memoryview(data)[CRC_START:]))


def _rewritten(
    batch: RecordBatch,
    content: BatchContent,
    summary: RecordSummary,
    rules: RecordRules,
    now_ms: int,
) -> InspectedBatch:
    """Return a batch of the same records in the topic's compression."""
    data = _built_again(batch, content, rules)
    highest = _max_timestamp(summary.latest, rules, now_ms)
    if rules.timestamp_type is TimestampType.LOG_APPEND_TIME:
        (attributes,) = _ATTRIBUTES.unpack_from(data, CRC_START)
        _set_max_timestamp(data, attributes, highest, rules.timestamp_type)
    return InspectedBatch(data, highest, is_rewritten=True)


def _built_again(batch: RecordBatch, content: BatchContent, rules: RecordRules) -> bytearray:
    """Build a batch, and refuse it as soon as it, or one of its records, is too large."""
    options = BatchOptions(
        compression=batch.compression if rules.compression is None else rules.compression,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        is_transactional=batch.is_transactional,
    )
    size_max = rules.batch_bytes_max

    def check_size(size: int) -> None:
        if size > size_max:
            problem = f"written again, it takes more than {size_max} bytes"
            raise RecordValidationError(ErrorCode.MESSAGE_TOO_LARGE, problem)

    is_packed = options.compression is not Compression.NONE
    record_bytes_max = max(size_max, REWRITTEN_RECORD_BYTES_MAX) if is_packed else size_max
    records = (
        RecordData(record.value, record.key, record.timestamp, record.headers)
        for record in content.records(record_bytes_max)
    )
    try:
        return bytearray(build_batch(records, options, check_size))
    except InvalidRecordError as error:
        # Packed again, the batch may be small; but Kafka's memory may be too small for the record.
        code = ErrorCode.UNKNOWN_SERVER_ERROR if is_packed else ErrorCode.MESSAGE_TOO_LARGE
        raise RecordValidationError(code, str(error)) from error


def _rewriting_problem(
    batch: RecordBatch, summary: RecordSummary, rules: RecordRules
) -> str | None:
    """Return why Kafka cannot write a batch again that it might leave as it is; None if it can."""
    if batch.compression is not Compression.NONE and _has_wanted_compression(batch, rules):
        return "packed records that are not numbered from 0"
    if batch.producer_id == NO_PRODUCER and batch.is_transactional:
        return "a transaction without a producer id"
    if batch.has_producer_id and batch.producer_epoch < 0:
        return f"producer epoch {batch.producer_epoch} of a producer with an id"
    return f"timestamp {summary.earliest}" if summary.earliest < NO_TIMESTAMP else None
