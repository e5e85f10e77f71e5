"""Logs for the tests of compaction and retention: made up, and driven as Kafka's are."""

import importlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, Final

from tests.support.kafka.java import Java

from kvorum.storage.cleaner.batch_filter import last_records
from kvorum.storage.cleaner.cleaner import Cleaner, Pass
from kvorum.storage.cleaner.cleanup_config import CleanupConfig
from kvorum.storage.cleaner.log_cleaner_manager import CleanablePart, cleanable_part
from kvorum.storage.cleaner.offset_map import OffsetMap
from kvorum.storage.cleaner.shared_log import SharedLog
from kvorum.storage.files import RealFileSystem
from kvorum.storage.log.append_origin import AppendOrigin
from kvorum.storage.log.local_log import LocalLog
from kvorum.storage.log.log_config import LogConfig
from kvorum.storage.log.log_loader import LogCheckpoint, load_local_log
from kvorum.storage.log.producer_snapshot import ProducerSnapshotFiles, encode_producer_snapshot
from kvorum.storage.log.producer_state import ProducerState
from kvorum.storage.log.transaction_index import AbortedTransaction
from kvorum.storage.names import parse_offset_name
from kvorum.storage.topic_log.segment_retention import delete_old_segments
from kvorum.wire.messages.end_txn_marker import EndTxnMarker
from kvorum.wire.records import (
    BatchOptions,
    Compression,
    ControlRecord,
    ControlRecordType,
    Header,
    RecordBatch,
    RecordData,
    build_batch,
    decode_control_record,
    encode_control_record,
)
from kvorum.wire.records.batch import NO_PRODUCER
from kvorum.wire.records.legacy import Entry, LegacyMessage, read_entries

START_MS: Final = 1_700_000_000_000
STEPS: Final = 45
SETTINGS: Final = {
    "internal.segment.bytes": 900,
    "segment.index.bytes": 120,
    "index.interval.bytes": 200,
    "delete.retention.ms": 1000,
    "min.compaction.lag.ms": 0,
    "max.compaction.lag.ms": 5000,
    "cleanup.policy": "compact",
    "segment.ms": 5000,
    "retention.ms": -1,
    "retention.bytes": -1,
}


class Script:
    """Makes up a log: producers with and without transactions, tombstones, gaps, passes.

    The first `old_steps` write messages of formats 0 and 1.
    """

    def __init__(
        self, random: Random, *, compressions: tuple[Compression, ...], old_steps: int = 0
    ) -> None:
        self._old_steps = old_steps
        self._random = random
        self._compressions = compressions
        self._offset = 0
        self._now = START_MS
        self._sequences: Counter[tuple[int, int]] = Counter()
        self._epochs: Counter[int] = Counter()
        self._open: set[int] = set()
        self._keys = random.choice((4, 12, 60))

    def steps(self) -> Iterator[str]:
        random = self._random
        settings = {
            **SETTINGS,
            "internal.segment.bytes": random.choice((600, 900, 3000)),
            "delete.retention.ms": random.choice((0, 500, 5000)),
            "min.compaction.lag.ms": random.choice((0, 0, 400)),
        }
        if len(self._compressions) > 1:
            # Two packers write packed batches of different sizes, and so would roll differently.
            settings |= {"internal.segment.bytes": 10**6, "segment.index.bytes": 10**5}
        if self._old_steps:
            settings |= {"segment.ms": 10**9}
        yield f"time {self._now}"
        yield "new " + " ".join(f"{name}={value}" for name, value in settings.items())
        for _ in range(STEPS):
            yield from self._step()
        # The log after everything has been stable and old for long.
        for _ in range(3):
            self._now += 10_000
            yield f"time {self._now}"
            yield from self._pass()

    def _step(self) -> Iterator[str]:
        random = self._random
        self._now += random.randrange(200)
        self._old_steps -= 1
        yield f"time {self._now}"
        kind = random.random()
        if kind < (0.06 if len(self._compressions) == 1 else 0.2):
            if self._old_steps >= 0:
                # Kafka's cleaner fails where nothing is left of an old message at a segment's end.
                yield f"append {self._data().hex()}"
            yield "roll"
        elif kind < 0.28 and self._offset > 30:
            yield from self._pass()
        elif self._old_steps >= 0:
            for message in self._old():
                yield f"append {message.hex()}"
        elif kind < 0.38 and self._open:
            yield f"append {self._marker(random.choice(sorted(self._open))).hex()}"
        else:
            yield f"append {self._data().hex()}"
        if random.random() < 0.7:
            yield f"watermark {max(0, self._offset - random.choice((0, 0, 0, 3, 20)))}"

    def _pass(self) -> Iterator[str]:
        yield "choose"
        yield f"clean {self._random.choice((10, 1000, 1000, 1000)) * 24}"
        yield "dump"

    def _record(self) -> RecordData:
        random = self._random
        key = None if random.random() < 0.05 else b"key %d" % random.randrange(self._keys)
        if random.random() < 0.02:
            key = b"\x00\x00\x00\x00"  # the key of an abort marker
        value = None if random.random() < 0.25 else bytes(random.randrange(60))
        headers: tuple[Header, ...] = (("h", b"1"), ("h", None)) if random.random() < 0.1 else ()
        return RecordData(value, key, self._now - random.choice((0, 0, 50, 2000)), headers)

    def _data(self) -> bytes:
        random = self._random
        records = [self._record() for _ in range(random.choice((1, 1, 2, 5)))]
        self._offset += random.choice((0, 0, 0, 0, 2))
        options = BatchOptions(
            base_offset=self._offset,
            partition_leader_epoch=0,
            compression=random.choice(self._compressions),
        )
        producer = random.choice((NO_PRODUCER, 1, 2, 3, 4))
        if producer != NO_PRODUCER:
            if producer not in self._open and random.random() < 0.1:
                self._epochs[producer] += 1
            # Producers 3 and 4 write in transactions only.
            if producer > 2:
                self._open.add(producer)
            epoch = self._epochs[producer]
            options = options._replace(
                producer_id=producer,
                producer_epoch=epoch,
                base_sequence=self._sequences[producer, epoch],
                is_transactional=producer > 2,
            )
            self._sequences[producer, epoch] += len(records)
        self._offset += len(records)
        data = build_batch(records, options)
        return data if random.random() < 0.8 else with_log_append_time(data, self._now)

    def _old(self) -> Iterator[bytes]:
        """Yield messages, or one that wraps others."""
        random = self._random
        magic = random.choice((0, 1))
        codecs = (Compression.NONE, Compression.GZIP, Compression.SNAPPY, Compression.LZ4)
        # No client writes lz4 in format 0 any more.
        codec = random.choice(codecs[: 3 + magic])
        records = [self._record() for _ in range(random.choice((1, 1, 2, 5)))]
        self._offset += random.choice((0, 0, 0, 0, 2))
        first, self._offset = self._offset, self._offset + len(records)
        module: Any = importlib.import_module("aiokafka.record.legacy_records")
        builder = module.LegacyRecordBatchBuilder(magic, int(codec), 1 << 30)
        is_counted_from_0 = magic == 1 and codec is not Compression.NONE
        for place, one in enumerate(records):
            offset = place if is_counted_from_0 else first + place
            builder.append(offset, timestamp=one.timestamp, key=one.key, value=one.value)
        data = bytes(builder.build())
        if codec is not Compression.NONE:
            # The checksum covers neither the offset of a wrapper nor its length.
            data = (self._offset - 1).to_bytes(8, "big") + data[8:]
        for message in read_entries(data):
            yield bytes(message.data)

    def _marker(self, producer: int) -> bytes:
        self._open.discard(producer)
        kind = self._random.choice((ControlRecordType.ABORT, ControlRecordType.COMMIT))
        options = BatchOptions(
            base_offset=self._offset,
            partition_leader_epoch=0,
            producer_id=producer,
            producer_epoch=self._epochs[producer],
            is_transactional=True,
            is_control=True,
        )
        self._offset += 1
        marker = ControlRecord(kind, EndTxnMarker(coordinator_epoch=1))
        return build_batch([encode_control_record(marker, self._now)], options)


def with_log_append_time(data: bytes, now_ms: int) -> bytes:
    from crc32c import crc32c  # noqa: PLC0415 - checked by Kafka

    raw = bytearray(data)
    raw[22] |= 0x08
    raw[35:43] = now_ms.to_bytes(8, "big")
    raw[17:21] = crc32c(bytes(raw[21:])).to_bytes(4, "big")
    return bytes(raw)


class Keeper:
    def write(self, offset: int, *, durably: bool) -> None:
        pass

    def close(self) -> None:
        pass


class OurLog:
    """Our log, driven as the Java program drives Kafka's."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._count = 0
        self._files = RealFileSystem()
        self._now = 0
        self._state = ProducerState()
        self._high_watermark = 0
        self._deleted = 0
        self._checkpoint: int | None = None
        self._config = CleanupConfig()
        self._log: LocalLog | None = None

    @property
    def log(self) -> LocalLog:
        assert self._log is not None
        return self._log

    @property
    def checkpoint(self) -> int:
        return -1 if self._checkpoint is None else self._checkpoint

    def note_checkpoint(self, answer: str) -> None:
        self._checkpoint = int(answer.split(" ")[1])

    def answer(self, line: str) -> str:
        kind, *parts = line.split(" ")
        if kind == "new":
            self._new(dict(part.split("=") for part in parts))
        elif kind == "append":
            self._append(bytes.fromhex(parts[0]))
        elif kind == "roll":
            self.log.roll(now_ms=self._now)
        elif parts and kind != "clean":
            return self._note(kind, int(parts[0]))
        else:
            return self._ask(kind, parts)
        return "ok"

    def _note(self, kind: str, number: int) -> str:
        if kind == "time":
            self._now = number
        elif kind == "modified":
            self.log.segments[-1].set_modified_ms(number)
        elif kind == "start":
            if number > self.log.log_start_offset:
                self._deleted += self.log.increment_log_start_offset(number, now_ms=self._now)
                self.log.update_files(now_ms=self._now)
        else:
            offset = min(number, self.log.log_end_offset)
            self._high_watermark = max(offset, self.log.log_start_offset)
            self._state.on_high_watermark(self._high_watermark)
            return f"ok {self._last_stable_offset()}"
        return "ok"

    def _ask(self, kind: str, parts: list[str]) -> str:
        if kind == "clean":
            return self._clean(int(parts[0]))
        if kind == "retain":
            return self._retain()
        return self._choice() if kind == "choose" else self._dump()

    def _choice(self) -> str:
        part = self._part()
        facts = (
            part.first_dirty_offset,
            str(part.is_checkpoint_wrong).lower(),
            part.first_uncleanable_offset,
            part.clean_bytes,
            part.cleanable_bytes,
            part.overdue_ms,
        )
        return " ".join(map(str, facts))

    def _new(self, settings: dict[str, str]) -> None:
        if self._log is not None:
            self._log.close()
        self._count += 1
        directory = self._root / f"topic-{self._count}"
        self._state = ProducerState()
        self._high_watermark, self._deleted, self._checkpoint = 0, 0, None
        self._config = CleanupConfig(
            is_compacted="compact" in settings["cleanup.policy"],
            is_deleted="delete" in settings["cleanup.policy"],
            retention_ms=int(settings["retention.ms"]),
            retention_bytes=int(settings["retention.bytes"]),
            delete_retention_ms=int(settings["delete.retention.ms"]),
            min_compaction_lag_ms=int(settings["min.compaction.lag.ms"]),
            max_compaction_lag_ms=int(settings["max.compaction.lag.ms"]),
        )
        self._log = load_local_log(
            directory,
            files=self._files,
            config=LogConfig(
                segment_bytes=int(settings["internal.segment.bytes"]),
                segment_ms=int(settings["segment.ms"]),
                index_interval_bytes=int(settings["index.interval.bytes"]),
                index_size_bytes_max=int(settings["segment.index.bytes"]),
                may_have_gaps=True,
            ),
            checkpoint=LogCheckpoint(),
            recovery_point_keeper=Keeper(),
            producer_snapshots=ProducerSnapshotFiles(
                directory, self._files, lambda: encode_producer_snapshot({})
            ),
            now_ms=self._now,
        ).log
        self._log.time_rolls(lambda: 0, now_ms=self._now)

    def _append(self, data: bytes) -> None:
        self.log.append(data, now_ms=self._now)
        (batch,) = read_entries(data)
        if isinstance(batch, LegacyMessage) or batch.producer_id == NO_PRODUCER:
            return
        ended = self._state.append(batch, AppendOrigin.REPLICATION)
        if ended is None:
            return
        if ended.is_aborted:
            stable = self._state.last_stable_offset(ended)
            self.log.segments[-1].transaction_index.append(
                AbortedTransaction(ended.producer_id, ended.first_offset, ended.last_offset, stable)
            )
        self._state.complete(ended)
        self._state.on_high_watermark(self._high_watermark)

    def _last_stable_offset(self) -> int:
        unstable = self._state.first_unstable_offset
        return min(self._high_watermark, unstable if unstable is not None else 2**63)

    def _part(self) -> CleanablePart:
        return cleanable_part(
            SharedLog(self.log),
            self._config,
            checkpoint=self._checkpoint,
            last_stable_offset=self._last_stable_offset(),
            now_ms=self._now,
        )

    def _retain(self) -> str:
        # Kafka removes what lies below the start of the log with the rest, and not before.
        count, self._deleted = self._deleted, 0
        count += delete_old_segments(
            self.log, self._config, high_watermark=self._high_watermark, now_ms=self._now
        )
        self.log.update_files(now_ms=self._now)
        return f"deleted {count} {self.log.log_start_offset} {self.log.log_end_offset}"

    def _clean(self, memory: int) -> str:
        part = self._part()
        if part.cleanable_bytes == 0:
            return "nothing"
        work = Pass(
            first_dirty_offset=part.first_dirty_offset,
            first_uncleanable_offset=part.first_uncleanable_offset,
            high_watermark=self._high_watermark,
            last_records=last_records(self._state.entries),
            delete_retention_ms=self._config.delete_retention_ms,
            now_ms=self._now,
        )
        cleaner = Cleaner(OffsetMap(size_bytes=memory, load_factor=0.9), files=self._files)
        return f"cleaned {cleaner.clean(SharedLog(self.log), work)}"

    def _dump(self) -> str:
        active = self.log.segments[-1].base_offset
        parts: list[str] = []
        for path in sorted(self.log.directory.iterdir()):
            found = parse_offset_name(path.name)
            if found is None or found[1] == ".snapshot":
                continue
            if found[1] in {".log", ".txnindex"} or found[0] != active:
                parts.append(f"{path.name}={path.read_bytes().hex()}")
        return " ".join(parts)


def comparable(dump: str, *, is_packed: bool) -> list[object]:
    """Return what is comparable of files: their bytes, or of packed batches the content."""
    if not is_packed:
        return list(dump.split(" "))
    found: list[object] = []
    for file in dump.split(" "):
        name, _, data = file.partition("=")
        if name.endswith(".log"):
            found.append((name, [unpacked(batch) for batch in read_entries(bytes.fromhex(data))]))
        elif name.endswith(".txnindex"):
            found.append(file)
        else:
            found.append(name)
    return found


def unpacked(batch: Entry) -> tuple[object, ...]:
    assert batch.is_valid
    if isinstance(batch, LegacyMessage):
        return (bytes(batch.data),)
    return batch._replace(data=memoryview(b""), length=0, crc=0, position=0), tuple(batch.records())


def latest(dump: str) -> dict[bytes, bytes | None]:
    """Return the value of each key that a reader of committed records finds in the end."""
    open_batches: dict[int, list[RecordBatch]] = {}
    committed: list[tuple[int, bytes, bytes | None]] = []
    for file in dump.split(" "):
        name, _, data = file.partition("=")
        if not name.endswith(".log"):
            continue
        for batch in read_entries(bytes.fromhex(data)):
            if isinstance(batch, LegacyMessage):
                committed += [
                    (one.offset, one.key, one.value)
                    for one in batch.records()
                    if one.key is not None
                ]
                continue
            if batch.is_control:
                batches = open_batches.pop(batch.producer_id, [])
                markers = [decode_control_record(record).type for record in batch.records()]
                if markers != [ControlRecordType.COMMIT]:
                    continue
            elif batch.is_transactional:
                open_batches.setdefault(batch.producer_id, []).append(batch)
                continue
            else:
                batches = [batch]
            committed += [
                (record.offset, record.key, record.value)
                for one in batches
                for record in one.records()
                if record.key is not None
            ]
    values = {key: value for _, key, value in sorted(committed, key=lambda one: one[0])}
    return {key: value for key, value in values.items() if value is not None}


def asked(java: Java, root: Path, lines: list[str]) -> list[str]:
    """Return Kafka's answers to lines; its logs go to a folder below `root`."""
    folder = root / "kafka"
    folder.mkdir()
    return java.answers("CleanerOracle", str(folder), asked=lines)
