"""Small metadata logs: on disk, made from a seed, and as the fold reads them or golden ones."""

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final

from kvorum.history import LogRecord, MetadataHistory
from kvorum.log_files.damage import Damage
from kvorum.log_files.find import METADATA_SEARCH, find_files
from kvorum.log_files.ranges import plan_ranges
from kvorum.metadata.record_frame import RecordAndVersion, decode_record, encode_record
from kvorum.spark.columnar.range_reader import read_range
from kvorum.wire.messages.config_record import ConfigRecord
from kvorum.wire.messages.fence_broker_record import FenceBrokerRecord
from kvorum.wire.messages.leader_change_message import LeaderChangeMessage
from kvorum.wire.messages.partition_change_record import PartitionChangeRecord
from kvorum.wire.messages.partition_record import PartitionRecord
from kvorum.wire.messages.snapshot_footer_record import SnapshotFooterRecord
from kvorum.wire.messages.snapshot_header_record import SnapshotHeaderRecord
from kvorum.wire.messages.topic_record import TopicRecord
from kvorum.wire.primitives import Message
from kvorum.wire.records import (
    ControlRecord,
    ControlRecordType,
    RecordBatch,
    build_control_batch,
    build_data_batch,
    decode_control_record,
    read_batches,
)

NODE = "version=1\ncluster.id={cluster}\nnode.id={node}\n"
INDEX_ENTRY = struct.Struct(">ii")
START_MS = 1_700_000_000_000
LOG_FOLDER = "__cluster_metadata-0"
SEGMENTS = 3
FIELDS_OF_OTHER_KAFKAS: Final = [(100, b"\1"), (101, b"abc")]
"""Tagged fields that some distributions of Kafka add to the records of partitions."""


@dataclass
class SmallLog:
    """A log directory, and its batches as they were written, by file name."""

    folder: Path
    batches: dict[str, list[RecordBatch]] = field(default_factory=dict[str, list[RecordBatch]])

    @property
    def inner(self) -> Path:
        return self.folder / LOG_FOLDER

    @property
    def segments(self) -> list[str]:
        return sorted(name for name in self.batches if name.endswith(".log"))

    @property
    def snapshots(self) -> list[str]:
        return sorted(name for name in self.batches if name.endswith(".checkpoint"))


@dataclass
class Reading:
    """The result of reading all ranges of a log; batches by the name of their file."""

    batches: list[tuple[str, RecordBatch]]
    damages: list[Damage]


def read_log(folder: Path, *, range_bytes: int = 2**30) -> Reading:
    """Read all files below a folder without decoding a record."""
    reading = Reading([], [])
    for unit in plan_ranges(find_files([str(folder)], METADATA_SEARCH), range_bytes=range_bytes):
        for item in read_range(unit):
            if isinstance(item, Damage):
                reading.damages.append(item)
            else:
                copy = item._replace(data=memoryview(bytes(item.data)))
                reading.batches.append((Path(unit.file.path).name, copy))
    return reading


def topic_id(number: int) -> bytes:
    return b"topic-id" + number.to_bytes(8, "big")


def random_message(random: Random) -> tuple[Message, int]:
    """Return a record of one of the frequent types, and its version."""
    topic = random.randrange(5)
    replicas = random.sample(range(6), 3)
    kind = random.randrange(10)
    if kind < 4:
        isr = random.choice([None, replicas[:2], []])
        return PartitionChangeRecord(
            partition_id=random.randrange(4), topic_id=topic_id(topic), isr=isr,
            leader=random.choice([-2, -1, *replicas]),
        ), 0  # fmt: skip
    if kind < 7:
        return PartitionRecord(
            partition_id=random.randrange(4), topic_id=topic_id(topic), replicas=replicas,
            isr=replicas, leader=replicas[0], leader_epoch=random.randrange(9),
            partition_epoch=random.randrange(300),
            unknown_tagged_fields=FIELDS_OF_OTHER_KAFKAS if topic % 2 else None,
        ), 0  # fmt: skip
    if kind < 8:
        return TopicRecord(name=f"topic-{topic}", topic_id=topic_id(topic)), 0
    if kind < 9:
        return FenceBrokerRecord(id=random.randrange(6), epoch=random.randrange(99)), 0
    return ConfigRecord(
        resource_type=2, resource_name=f"topic-{topic}", name="retention.ms", value="1"
    ), 0


def random_batch(random: Random, *, offset: int, epoch: int, time: int) -> bytes:
    values = [encode_record(*random_message(random)) for _ in range(random.choice([1, 1, 2, 5]))]
    return build_data_batch(values, base_offset=offset, epoch=epoch, timestamp_ms=time)


def control(kind: ControlRecordType, message: Message, *, offset: int, epoch: int) -> bytes:
    return build_control_batch(
        [ControlRecord(kind, message)], base_offset=offset, epoch=epoch, timestamp_ms=START_MS
    )


def write_log(folder: Path, random: Random, *, node: int = 1) -> SmallLog:
    """Write a node's directory: meta.properties, segments with their indexes, a snapshot."""
    log = SmallLog(folder)
    log.inner.mkdir(parents=True)
    (folder / "meta.properties").write_text(NODE.format(cluster="cluster-a", node=node))
    offset, epoch, time = 0, 1, START_MS
    for _ in range(SEGMENTS):
        base, parts = offset, list[bytes]()
        for _ in range(random.randrange(3, 9)):
            if random.random() < 0.3:
                epoch += random.randrange(1, 3)
                leader = LeaderChangeMessage(leader_id=random.randrange(3))
                kind = ControlRecordType.LEADER_CHANGE
                parts.append(control(kind, leader, offset=offset, epoch=epoch))
            else:
                parts.append(random_batch(random, offset=offset, epoch=epoch, time=time))
            offset = next(read_batches(parts[-1])).next_offset
            time += random.randrange(5000)
        _write(log, f"{base:020}.log", b"".join(parts))
        _write_index(log, f"{base:020}", base)
    _write_snapshot(log, random, end=int(log.segments[1][:20]), epoch=epoch)
    return log


def _write(log: SmallLog, name: str, data: bytes) -> None:
    (log.inner / name).write_bytes(data)
    log.batches[name] = list(read_batches(data))


def _write_index(log: SmallLog, name: str, base: int) -> None:
    batches = log.batches[f"{name}.log"][1:]
    entries = [INDEX_ENTRY.pack(batch.last_offset - base, batch.position) for batch in batches]
    (log.inner / f"{name}.index").write_bytes(b"".join(entries))


def _write_snapshot(log: SmallLog, random: Random, *, end: int, epoch: int) -> None:
    kind = ControlRecordType.SNAPSHOT_HEADER
    parts = [control(kind, SnapshotHeaderRecord(), offset=0, epoch=epoch)]
    offset = 1
    for _ in range(3):
        parts.append(random_batch(random, offset=offset, epoch=epoch, time=START_MS))
        offset = next(read_batches(parts[-1])).next_offset
    kind = ControlRecordType.SNAPSHOT_FOOTER
    parts.append(control(kind, SnapshotFooterRecord(), offset=offset, epoch=epoch))
    _write(log, f"{end:020}-{epoch:010}.checkpoint", b"".join(parts))


def file_records(file: Path) -> Iterator[LogRecord]:
    """Yield the records of a segment or a snapshot, control records too."""
    for batch in read_batches(file.read_bytes()):
        for record in batch.records():
            if batch.is_control:
                _, message, version = decode_control_record(record)
            else:
                assert record.value is not None
                message, version = decode_record(record.value)
            yield LogRecord(
                record.offset, batch.partition_leader_epoch, record.timestamp, message, version
            )


def directory_records(directory: Path) -> list[LogRecord]:
    """Return the records of all segments of a metadata log, in their order."""
    return [
        record for segment in sorted(directory.glob("*.log")) for record in file_records(segment)
    ]


def snapshot_files(directory: Path) -> list[tuple[int, int, Path]]:
    """Return end offset, epoch and file of each snapshot in a metadata log, by offset."""
    names = [(file.stem.split("-"), file) for file in directory.glob("*-*.checkpoint")]
    return sorted((int(offset), int(epoch), file) for (offset, epoch), file in names)


def begun_history(directory: Path, first_offset: int) -> MetadataHistory:
    """Return the history that a log with this first offset goes on with: of a snapshot, or new."""
    if first_offset == 0:
        return MetadataHistory()
    end, epoch, file = next(each for each in snapshot_files(directory) if each[0] >= first_offset)
    return MetadataHistory.from_snapshot(file_records(file), end_offset=end, epoch=epoch)


def written_records(records: Iterable[RecordAndVersion]) -> list[LogRecord]:
    """Return what a controller wrote as a log that begins with the leader's own record.

    A record a second, so that times are as different as offsets.
    """
    return [
        LogRecord(0, 1, 0, LeaderChangeMessage(leader_id=1), 0),
        *(
            LogRecord(offset, 1, offset * 1000, message, version)
            for offset, (message, version) in enumerate(records, start=1)
        ),
    ]
