"""Logs of topics as a crash leaves them: made up, damaged, and opened by us."""

import re
import shutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Final, NamedTuple, Self

from kvorum.storage.cleaner.cleanup_config import CleanupConfig
from kvorum.storage.files import RealFileSystem
from kvorum.storage.log.log_loader import LogCheckpoint
from kvorum.storage.names import (
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    PRODUCER_SNAPSHOT_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
)
from kvorum.storage.topic_log.log_validator import RecordRules
from kvorum.storage.topic_log.topic_log_config import TopicLogConfig, TopicSegmentConfig
from kvorum.storage.topic_log.unified_log import LogPlace, UnifiedLog, load_unified_log
from kvorum.storage.topic_partition import TopicPartition
from kvorum.wire.messages.end_txn_marker import EndTxnMarker
from kvorum.wire.records import (
    BatchOptions,
    ControlRecord,
    ControlRecordType,
    RecordData,
    build_batch,
    encode_control_record,
    read_batches,
)
from kvorum.wire.records.batch import NO_PRODUCER
from kvorum.wire.valid_offset_and_epoch import EpochStart

TOPIC_ID: Final = bytes(range(16))
PARTITION: Final = TopicPartition("topic", 0)
NOW_MS: Final = 1_700_000_000_000
STEPS_MAX: Final = 40
IN_TRANSACTIONS: Final = frozenset({3, 4})
"""The producers that write in transactions only."""
READ_BYTES: Final = 1 << 20
CHECKED_FROM: Final = 21
"""The place in a batch from which its checksum covers every byte."""
FILES: Final = RealFileSystem()
DERIVED: Final = frozenset(
    {
        OFFSET_INDEX_SUFFIX,
        TIME_INDEX_SUFFIX,
        TRANSACTION_INDEX_SUFFIX,
        PRODUCER_SNAPSHOT_SUFFIX,
    }
)


class Shape(NamedTuple):
    """The facts of a log that a broker has stored elsewhere, and its configuration."""

    segment_bytes: int
    is_compacted: bool
    log_start_offset: int = 0
    recovery_point: int = 0
    had_clean_shutdown: bool = False


class _Keeper:
    """The stored recovery point of a log."""

    def __init__(self) -> None:
        self.offset = 0

    def write(self, offset: int, *, durably: bool) -> None:  # noqa: ARG002 - of a protocol
        self.offset = offset

    def close(self) -> None:
        pass


def config_of(shape: Shape) -> TopicLogConfig:
    return TopicLogConfig(
        segments=TopicSegmentConfig(
            segment_bytes=shape.segment_bytes, index_interval_bytes=100, delete_delay_ms=0
        ),
        rules=RecordRules(timestamp_before_max_ms=2**62, timestamp_after_max_ms=2**62),
        max_message_bytes=10_000,
        cleanup=CleanupConfig(is_compacted=shape.is_compacted),
    )


def opened(directory: Path, shape: Shape, keeper: _Keeper | None = None) -> UnifiedLog:
    """Open a log; raises CorruptFileError."""
    checkpoint = LogCheckpoint(
        recovery_point=shape.recovery_point,
        log_start_offset=shape.log_start_offset,
        had_clean_shutdown=shape.had_clean_shutdown,
    )
    place = LogPlace(
        directory=directory,
        topic_partition=PARTITION,
        topic_id=TOPIC_ID,
        checkpoint=checkpoint,
        recovery_point_keeper=keeper or _Keeper(),
    )
    return load_unified_log(
        place,
        files=FILES,
        config=config_of(shape),
        producer_expiration_ms=lambda: 2**31 - 1,
        random=Random(0),
        now_ms=NOW_MS,
    )


class LogMaker:
    """Writes a log of several segments, as a follower of a leader with all kinds of batches."""

    def __init__(self, random: Random, directory: Path) -> None:
        self._random = random
        self._directory = directory
        self._leader_epoch = random.choice((0, 0, 3))
        self._sequences: Counter[tuple[int, int]] = Counter()
        self._epochs: Counter[int] = Counter()
        self._open: set[int] = set()
        self._offset = 0

    def make(self) -> Shape:
        """Leave a log as a crash does, or an end in good order."""
        random = self._random
        keeper = _Keeper()
        shape = Shape(random.choice((400, 700, 2000)), is_compacted=random.random() < 0.3)
        log = opened(self._directory, shape, keeper)
        for _ in range(random.randrange(STEPS_MAX)):
            self._step(log)
        had_clean_shutdown = random.random() < 0.2
        start_offset = log.log_start_offset
        if had_clean_shutdown:
            recovery_point = log.log_end_offset
            log.local_log.close()
        else:
            recovery_point = keeper.offset
            log.local_log.abandon()
        return shape._replace(
            log_start_offset=start_offset,
            recovery_point=recovery_point,
            had_clean_shutdown=had_clean_shutdown,
        )

    def _step(self, log: UnifiedLog) -> None:
        random = self._random
        kind = random.random()
        if kind < 0.08:
            log.local_log.flush()
        elif kind < 0.12:
            self._leader_epoch += random.choice((1, 1, 5))
        elif kind < 0.15:
            log.update_high_watermark(log.log_end_offset)
            log.delete_records(random.randint(log.log_start_offset, log.log_end_offset), now_ms=0)
        elif kind < 0.25 and self._open:
            self._append(log, self._marker(random.choice(sorted(self._open))))
        else:
            self._append(log, self._data())

    def _append(self, log: UnifiedLog, data: bytes) -> None:
        log.append_as_follower(data, leader_epoch=self._leader_epoch, now_ms=NOW_MS)
        self._offset = log.log_end_offset

    def _data(self) -> bytes:
        random = self._random
        records = [
            RecordData(random.randbytes(random.randrange(80)), b"key", NOW_MS)
            for _ in range(random.choice((1, 1, 2, 5)))
        ]
        options = BatchOptions(base_offset=self._offset, partition_leader_epoch=self._leader_epoch)
        producer = random.choice((NO_PRODUCER, 1, 2, *IN_TRANSACTIONS))
        if producer != NO_PRODUCER:
            if producer not in self._open and random.random() < 0.1:
                self._epochs[producer] += 1
            is_transactional = producer in IN_TRANSACTIONS
            if is_transactional:
                self._open.add(producer)
            epoch = self._epochs[producer]
            options = options._replace(
                producer_id=producer,
                producer_epoch=epoch,
                base_sequence=self._sequences[producer, epoch],
                is_transactional=is_transactional,
            )
            self._sequences[producer, epoch] += len(records)
        return build_batch(records, options)

    def _marker(self, producer: int) -> bytes:
        self._open.discard(producer)
        kind = self._random.choice((ControlRecordType.ABORT, ControlRecordType.COMMIT))
        options = BatchOptions(
            base_offset=self._offset,
            partition_leader_epoch=self._leader_epoch,
            producer_id=producer,
            producer_epoch=self._epochs[producer],
            is_transactional=True,
            is_control=True,
        )
        marker = ControlRecord(kind, EndTxnMarker(coordinator_epoch=1))
        return build_batch([encode_control_record(marker, NOW_MS)], options)


def _cut(path: Path, random: Random) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: random.randint(0, len(content))])


def _flip(path: Path, random: Random) -> None:
    """Flip a bit, in a log one that a checksum covers."""
    content = bytearray(path.read_bytes())
    places: Sequence[int] = range(len(content))
    if path.suffix == LOG_SUFFIX:
        places = [
            batch.position + place
            for batch in read_batches(content)
            for place in range(CHECKED_FROM, batch.size)
        ]
    if places:
        content[random.choice(places)] ^= 1 << random.randrange(8)
    path.write_bytes(content)


def _lengthen(path: Path, random: Random) -> None:
    with path.open("ab") as file:
        file.write(random.choice((bytes(random.randrange(1, 200)), random.randbytes(70))))


def _lose(path: Path, _: Random) -> None:
    path.unlink()


def damage(directory: Path, random: Random, *, had_clean_shutdown: bool) -> str:
    """Damage what a crash may, which after an end in good order is only what is derived.

    Returns what was done.
    """
    logs = sorted(directory.glob(f"*{LOG_SUFFIX}"))
    derived = sorted(path for path in directory.iterdir() if path.suffix in DERIVED)
    done: list[str] = []

    def strike(path: Path, *ways: Callable[[Path, Random], None]) -> None:
        way = random.choice(ways)
        way(path, random)
        done.append(f"{way.__name__} {path.name}")

    if not had_clean_shutdown and random.random() < 0.7:
        strike(logs[-1], _cut, _cut, _flip, _lengthen)
    if not had_clean_shutdown and logs[:-1] and random.random() < 0.15:
        # Kafka mends a segment without an index before it looks for where the log is damaged.
        strike(random.choice(logs[:-1]), _cut, _flip)
        return ", ".join(done)
    for _ in range(random.choice((0, 0, 1, 3))):
        path = random.choice(derived)
        if path.exists():
            # Neither side misses aborted transactions that are lost or changed.
            losses = () if path.suffix == TRANSACTION_INDEX_SUFFIX else (_cut, _flip, _lose)
            strike(path, *losses, _lengthen)
    return ", ".join(done)


def copied(directory: Path, target: Path) -> Path:
    shutil.copytree(directory, target)
    return target


def found_in(log: UnifiedLog) -> str:
    """Return what is in an open log, as the Java program writes it."""
    parts: list[object] = [log.log_start_offset, log.log_end_offset]
    for segment in log.local_log.segments:
        parts += ["segment", segment.base_offset, segment.size]
        for aborted in segment.transaction_index.entries:
            parts += ["aborted", *aborted]
    for epoch, start_offset in log.local_log.epoch_starts:
        parts += ["epoch", epoch, start_offset]
    for producer_id, producer in sorted(log.producers.entries.items()):
        last_offset = producer.batches[-1].last_offset if producer.batches else -1
        parts += ["producer", producer_id, producer.epoch, producer.last_sequence, last_offset]
        start = producer.transaction_start
        parts += [producer.coordinator_epoch, -1 if start is None else start]
    return " ".join(map(str, parts))


def epochs_of_batches(log: UnifiedLog) -> list[EpochStart]:
    """Return the leader epochs of a log's batches, each with the offset where it begins."""
    if log.log_start_offset == log.log_end_offset:
        return list(log.local_log.epoch_starts)
    found: dict[int, int] = {}
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        data = log.local_log.read(offset, READ_BYTES, end_offset=log.log_end_offset)
        for batch in read_batches(data):
            found.setdefault(batch.partition_leader_epoch, max(batch.base_offset, offset))
            offset = batch.next_offset
    return [EpochStart(epoch, start) for epoch, start in found.items()]


class Found(NamedTuple):
    """The facts of an open log, without those that concern records below its start."""

    log_start_offset: int
    log_end_offset: int
    segments: tuple[str, ...]
    aborted: Mapping[tuple[int, int], tuple[int, int]]
    """First offset and last stable offset of aborted transactions, by producer and last offset."""
    producers: Mapping[int, tuple[int, ...]]
    """Epoch, last sequence and offset, coordinator's epoch and transaction's start, by producer."""

    @classmethod
    def parse(cls, answer: str) -> Self:
        whole, *parts = re.split(" (?=segment|aborted|epoch|producer)", answer)
        start, end = map(int, whole.split(" "))
        aborted: dict[tuple[int, int], tuple[int, int]] = {}
        producers: dict[int, tuple[int, ...]] = {}
        for part in parts:
            kind, *texts = part.split(" ")
            numbers = tuple(map(int, texts))
            if kind == "aborted":
                producer, first, last, stable = numbers
                aborted[producer, last] = first, stable
            elif kind == "producer" and numbers[3] >= start:
                producers[numbers[0]] = numbers[1:]
        segments = tuple(part for part in parts if part.startswith("segment"))
        return cls(start, end, segments, aborted, producers)

    def is_like(self, other: Self, *, may_know_more: bool) -> bool:
        """Return whether two brokers would serve the same.

        With `may_know_more` this one may know producers that the other does not. A transaction that
        began below the start of the log may begin with its first record that is left, and the
        coordinator of a producer's last marker may be forgotten.
        """
        is_known = other.producers.keys() <= self.producers.keys()
        is_empty = self.log_start_offset == self.log_end_offset
        return (
            self[:2] == other[:2]
            and (is_empty or self.segments == other.segments)
            and self._aborted_like(other)
            and (is_known if may_know_more else other.producers.keys() == self.producers.keys())
            and all(
                self._is_like(self.producers[producer], known)
                for producer, known in other.producers.items()
            )
        )

    def _aborted_like(self, other: Self) -> bool:
        mine, others = (
            {key for key, (first, _) in found.aborted.items() if first >= self.log_start_offset}
            for found in (self, other)
        )
        known = self.aborted.keys() & other.aborted.keys()
        return mine ^ others <= known and all(
            self._is_same_place(one, another)
            for key in mine & others
            for one, another in zip(self.aborted[key], other.aborted[key], strict=True)
        )

    def _is_like(self, one: tuple[int, ...], other: tuple[int, ...]) -> bool:
        *facts, coordinator, start = one
        *other_facts, other_coordinator, other_start = other
        return (
            facts == other_facts
            and (-1 in {coordinator, other_coordinator} or coordinator == other_coordinator)
            and self._is_same_place(start, other_start)
        )

    def _is_same_place(self, one: int, other: int) -> bool:
        """Return whether two offsets are equal, or one lies below the start of the log."""
        return one == other or -1 < min(one, other) < self.log_start_offset
