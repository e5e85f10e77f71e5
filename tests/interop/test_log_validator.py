"""Batches before they are appended: Kafka's own LogValidator and ours agree on each."""

import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import islice
from random import Random
from typing import Final, NamedTuple

import pytest
from tests.support.kafka.java import Java
from tests.support.packed_variants import packed_variants

from kvorum.storage.log.append_origin import AppendOrigin
from kvorum.storage.topic_log.log_validator import (
    RecordRules,
    RecordValidationError,
    Target,
    TimestampType,
    validate_batch,
)
from kvorum.storage.topic_partition import TopicPartition
from kvorum.wire.checksums import crc32c
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.records import BatchOptions, Compression, RecordBatch, RecordData, build_batch
from kvorum.wire.records.batch import COMPRESSION_MASK, CRC_START, HEADER_BYTES, LENGTH_FIELD_END
from kvorum.wire.records.compression import compress
from kvorum.wire.records.decompression import RECORD_BYTES_MAX, UNLIMITED_BYTES, decompress

NOW_MS: Final = 1_700_000_000_000
HOUR_MS: Final = 3_600_000
BATCHES: Final = 6_000
LARGE_BATCHES: Final = 80
LARGE_VALUES: Final = ((1, 6_000_000), (600, 10_000), (20, 400_000), (1, 40_000_000))
"""The number of values of a batch, and the bytes of each."""
PACKED: Final = tuple(Compression)[1:]
TIMES: Final = (NOW_MS, NOW_MS - 5, NOW_MS - HOUR_MS, NOW_MS + HOUR_MS, NOW_MS + 7 * HOUR_MS, -1, 0)
CRC_FIELD_START: Final = 17
HEADER: Final = struct.Struct(">qiibIhiqqqhii")
ONLY_KAFKA_ACCEPTS: Final = frozenset(
    {"lz4: wrong content size", "lz4: wrong content checksum", "lz4: empty block behind"}
    | {"lz4: empty block instead of an end", "gzip: reserved flags", "gzip: a byte behind"}
    | {"gzip: zeros behind", "gzip: other bytes behind", "gzip: half a header behind"}
    | {"zstd: skippable frame is cut"}
)
"""Batches that no library writes: damage that only Java's decoders overlook."""
TYPE_NAMES: Final = {
    TimestampType.CREATE_TIME: "CreateTime",
    TimestampType.LOG_APPEND_TIME: "LogAppendTime",
}


class Question(NamedTuple):
    """A batch, and how it is to be validated."""

    data: bytes
    rules: RecordRules
    target: Target
    origin: AppendOrigin
    is_damaged_inside: bool
    """Whether bytes of packed records are wrong, which Kafka need not notice."""

    @property
    def line(self) -> str:
        rules = self.rules
        parts = (
            -1 if rules.compression is None else int(rules.compression),
            int(rules.is_compacted),
            TYPE_NAMES[rules.timestamp_type],
            rules.timestamp_before_max_ms,
            rules.timestamp_after_max_ms,
            NOW_MS,
            self.target.first_offset,
            self.target.leader_epoch,
            self.origin.name,
            rules.record_bytes_max,
            self.data.hex(),
        )
        return " ".join(map(str, parts))


def some_records(random: Random) -> list[RecordData]:
    return [
        RecordData(
            value=random.choice((None, b"", b"value", bytes(300))),
            key=random.choice((b"", b"key", b"key", None)),
            timestamp=random.choice(TIMES[: random.choice((2, 3, 7))]),
            headers=random.choice(((), (("h", b"x"),), (("h", None), ("", b"")))),
        )
        for _ in range(random.randrange(1, 6))
    ]


def some_batch(random: Random, *, is_control: bool) -> bytes:
    """Return what a producer may send, or a coordinator."""
    producer = random.choice((-1, 1000))
    options = BatchOptions(
        compression=random.choice(list(Compression)),
        producer_id=producer,
        producer_epoch=-1 if producer < 0 else 2,
        base_sequence=-1 if producer < 0 else 5,
        is_transactional=producer >= 0 and random.random() < 0.3,
        is_control=is_control,
    )
    return build_batch(some_records(random), options)


def changed(random: Random, data: bytes) -> bytes:
    """Return a batch with another header field that no producer sends, and its checksum."""
    header = list(HEADER.unpack_from(data))
    change = random.randrange(7)
    if change == 0:
        header[5] ^= random.choice((0x08, 0x20, 0x40, 0x0F00, 0x08))
    elif change == 1:
        header[6] = random.choice((-1, header[6] + 1, 2**31 - 1))
    elif change == 2:
        header[12] = random.choice((-1, 0, header[12] + 1, max(0, header[12] - 1)))
    elif change == 3:
        header[8] = random.choice((-1, NOW_MS, NOW_MS - 1))
    elif change == 4:
        header[9], header[11] = random.choice(((5, -1), (-1, 5), (7, 0)))
    elif change == 5:
        header[2] = random.choice((-1, 0, 99))
    else:
        header[7] = random.choice((-1, 0, NOW_MS, 2**63 - 1, -(2**63)))
    return with_checksum(HEADER.pack(*header) + data[HEADER_BYTES:])


def with_equal_offsets(data: bytes) -> bytes:
    """Return a batch of one record as one of two that have the same offset."""
    header = list(HEADER.unpack_from(data))
    compression = Compression(header[5] & COMPRESSION_MASK)
    body = compress(2 * decompress(data[HEADER_BYTES:], compression), compression)
    header[1] = len(body) + HEADER_BYTES - LENGTH_FIELD_END
    header[6], header[12] = 1, 2
    return with_checksum(HEADER.pack(*header) + body)


def damaged(random: Random, data: bytes) -> bytes:
    """Return a batch with other bytes of records, and the checksum of those."""
    header = list(HEADER.unpack_from(data))
    body = bytearray(data[HEADER_BYTES:])
    change = random.randrange(3)
    if change == 0:
        body[random.randrange(len(body))] ^= 1 << random.randrange(8)
    elif change == 1:
        body = body[:-1]
    else:
        body += b"\x00"
    header[1] = len(body) + HEADER_BYTES - LENGTH_FIELD_END
    return with_checksum(HEADER.pack(*header) + body)


def with_checksum(data: bytes) -> bytes:
    raw = bytearray(data)
    struct.pack_into(">I", raw, CRC_FIELD_START, crc32c(data[CRC_START:]))
    return bytes(raw)


def questions() -> Iterator[Question]:
    random = Random(431)
    for _ in range(BATCHES):
        # Coordinators write what they built themselves.
        origin = AppendOrigin.CLIENT if random.random() < 0.8 else AppendOrigin.COORDINATOR
        is_control = origin is AppendOrigin.COORDINATOR and random.random() < 0.5
        data = some_batch(random, is_control=is_control)
        kind = random.random() if origin is AppendOrigin.CLIENT else 0
        if kind > 0.8:
            data = damaged(random, data)
        elif kind > 0.4 and batch_of(data).record_count == 1 and random.random() < 0.5:
            data = with_equal_offsets(data)
        elif kind > 0.4:
            data = changed(random, data)
        yield Question(
            data,
            RecordRules(
                timestamp_before_max_ms=random.choice((2**63 - 1, 2 * HOUR_MS, 0)),
                timestamp_after_max_ms=random.choice((2 * HOUR_MS, 0, 2**63 - 1)),
                timestamp_type=random.choice(list(TimestampType)),
                compression=random.choice((None, None, *Compression)),
                is_compacted=random.random() < 0.3,
            ),
            Target(TopicPartition("topic", 0), random.choice((0, 7, 2**40)), random.choice((0, 3))),
            origin,
            is_damaged_inside=kind > 0.8 and bool(batch_of(data).attributes & COMPRESSION_MASK),
        )


def large_questions() -> Iterator[Question]:
    """Yield packed batches that unpack to far more than a topic takes unpacked, right and wrong."""
    random = Random(432)
    for index in range(LARGE_BATCHES):
        count, size = LARGE_VALUES[index % len(LARGE_VALUES)]
        value = random.choice((bytes(size), b"some words " * (size // 11)))
        records = [RecordData(value, b"k", NOW_MS + number % 7) for number in range(count)]
        wrong = random.randrange(count)
        kind = random.random()
        if kind < 0.2:
            records[wrong] = records[wrong]._replace(key=None)
        elif kind < 0.4:
            records[wrong] = records[wrong]._replace(timestamp=NOW_MS + 7 * HOUR_MS)
        data = build_batch(records, BatchOptions(compression=random.choice(PACKED)))
        if kind > 0.9:
            data = changed(random, data)
        elif kind > 0.75:
            data = damaged(random, data)
        rules = RecordRules(
            timestamp_before_max_ms=2**63 - 1,
            timestamp_after_max_ms=2 * HOUR_MS,
            timestamp_type=random.choice(list(TimestampType)),
            compression=random.choice((None, None, *PACKED)),
            is_compacted=random.random() < 0.5,
            record_bytes_max=random.choice((RECORD_BYTES_MAX, RECORD_BYTES_MAX, size)),
        )
        target = Target(TopicPartition("topic", 0), 7, 3)
        is_damaged = 0.75 < kind <= 0.9
        yield Question(data, rules, target, AppendOrigin.CLIENT, is_damaged_inside=is_damaged)


def batch_of(data: bytes) -> RecordBatch:
    return RecordBatch._make((*HEADER.unpack_from(data), 0, memoryview(data)))


class Verdict(NamedTuple):
    """The fate of a batch: the comparable part of it, or of the refusal."""

    kind: str
    facts: tuple[object, ...]


def ours(question: Question) -> Verdict:
    try:
        found = validate_batch(
            batch_of(question.data),
            question.target,
            question.rules,
            now_ms=NOW_MS,
            origin=question.origin,
        )
    except RecordValidationError as error:
        return refused(int(error.code), error.message, [tuple(one) for one in error.record_errors])
    return accepted(found.max_timestamp, bytes(found.data), is_rewritten=found.is_rewritten)


def accepted(max_timestamp: int, data: bytes, *, is_rewritten: bool) -> Verdict:
    batch = batch_of(data)
    if not is_rewritten or batch.compression is Compression.NONE:
        return Verdict("ok", (max_timestamp, is_rewritten, data.hex()))
    # Two packers write the same records in other bytes.
    header = batch._replace(data=memoryview(b""), length=0, crc=0)
    assert batch.is_valid
    records = sha256()
    for record in batch.records(UNLIMITED_BYTES):
        records.update(repr(record).encode())
    return Verdict("ok", (max_timestamp, is_rewritten, header, records.digest()))


def refused(code: int, message: str, records: list[tuple[object, ...]]) -> Verdict:
    """Return the verdict; what is wrong with bytes is said in words of one's own."""
    is_known = records or "topic partition" in message
    return Verdict("error", (code, message if is_known else "", tuple(records)))


def text(raw: str) -> str:
    return bytes.fromhex(raw.removesuffix(".")).decode()


def kafkas(line: str) -> Verdict:
    kind, *parts = line.split(" ")
    if kind == "ok":
        _, max_timestamp, is_rewritten, data = parts
        return accepted(int(max_timestamp), bytes.fromhex(data), is_rewritten=is_rewritten == "1")
    records: list[tuple[object, ...]] = [
        (int(index), text(message)) for index, message in zip(parts[2::2], parts[3::2], strict=True)
    ]
    return refused(int(parts[0]), text(parts[1]), records)


def agree(found: Verdict, theirs: Verdict, question: Question) -> bool:
    """Return whether two verdicts are equal, or ours is the stricter one on packed bytes.

    Kafka unpacks no further than the records that it expects, so that it misses a wrong end.
    """
    return found == theirs or (question.is_damaged_inside and found.kind == "error")


def limited(question: Question, random: Random) -> Question:
    """Return the question for a topic that takes records of a few bytes or a few hundred."""
    limit = random.choice((5, 15, 25, 100, 305, 320))
    return question._replace(rules=question.rules._replace(record_bytes_max=limit))


def judged(java: Java, questions: Sequence[Question]) -> list[Verdict]:
    answers = java.answers("LogValidatorOracle", asked=(one.line for one in questions))
    return [kafkas(line) for line in answers]


def packed_as(compression: Compression, body: bytes, plain: bytes) -> bytes:
    """Return the batch `plain` with other bytes of records."""
    header = list(HEADER.unpack_from(plain))
    header[1], header[5] = len(body) + HEADER_BYTES - LENGTH_FIELD_END, int(compression)
    return with_checksum(HEADER.pack(*header) + body)


@pytest.mark.parametrize("wanted", [None, Compression.NONE])
def test_no_form_of_packed_records_is_stored_that_kafka_cannot_read(
    java: Java, wanted: Compression | None
) -> None:
    plain = build_batch([RecordData(b"abc", timestamp=NOW_MS)])
    variants = packed_variants(plain[HEADER_BYTES:])
    rules = RecordRules(2**63 - 1, 2**63 - 1, compression=wanted)
    target, origin = Target(TopicPartition("topic", 0), 7, 3), AppendOrigin.CLIENT
    questions = [
        Question(packed_as(*packed, plain), rules, target, origin, is_damaged_inside=True)
        for packed in variants.values()
    ]
    verdicts = dict(zip(variants, judged(java, questions), strict=True))
    found = dict(zip(variants, map(ours, questions), strict=True))
    # Damage of two kinds at once may be answered as either.
    differing = {
        name: (verdict, found[name])
        for name, verdict in verdicts.items()
        if verdict != found[name] and "ok" in {verdict.kind, found[name].kind}
    }
    assert set(differing) == ONLY_KAFKA_ACCEPTS, differing
    assert all(found[name].kind == "error" for name in ONLY_KAFKA_ACCEPTS)
    linked = {name: found[name].facts[0] for name in found if "linked" in name}
    assert set(linked.values()) == {ErrorCode.UNKNOWN_SERVER_ERROR}
    assert all(found[name] == verdicts[name] for name in linked)


@pytest.mark.slow
def test_each_batch_is_appended_or_refused_as_by_kafka(java: Java) -> None:
    verdicts = compared(java, list(questions()))
    kinds = Counter((one.kind, one.facts[0] if one.kind == "error" else "") for one in verdicts)
    codes = (ErrorCode.INVALID_RECORD, ErrorCode.INVALID_TIMESTAMP, ErrorCode.UNKNOWN_SERVER_ERROR)
    assert min(kinds["ok", ""], *(kinds["error", int(code)] for code in codes)) > BATCHES // 100


@pytest.mark.slow
def test_batches_that_unpack_to_much_are_appended_or_refused_as_by_kafka(java: Java) -> None:
    asked = list(large_questions())
    kinds = Counter(verdict.kind for verdict in compared(java, asked))
    assert min(kinds["ok"], kinds["error"]) > len(asked) // 5, kinds


@pytest.mark.slow
def test_a_packed_record_is_held_to_the_topics_limit_as_by_kafka(java: Java) -> None:
    random = Random(440)
    free = list(islice(questions(), BATCHES // 3))
    verdicts = compared(java, [limited(question, random) for question in free])
    kinds = Counter(
        verdict.kind
        for question, verdict in zip(free, verdicts, strict=True)
        if batch_of(question.data).is_packed and ours(question).kind == "ok"
    )
    assert min(kinds["ok"], kinds["error"]) > len(free) // 20, kinds


def compared(java: Java, asked: Sequence[Question]) -> list[Verdict]:
    """Return Kafka's verdicts, which ours agree with."""
    verdicts = judged(java, asked)
    differing = [
        (question.line, theirs, found)
        for question, theirs in zip(asked, verdicts, strict=True)
        if not agree(found := ours(question), theirs, question)
    ]
    assert not differing, (len(differing), differing[:3])
    return verdicts
