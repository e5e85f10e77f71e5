"""Logs of a made-up cluster: its batches as bytes, put on any number of disks."""

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from benchmarks.fleet.cluster_log import write_cluster

from kvorum.metadata.image import MetadataImage
from kvorum.metadata.image_records import image_records
from kvorum.metadata.record_frame import decode_record, encode_record
from kvorum.wire.messages.snapshot_footer_record import SnapshotFooterRecord
from kvorum.wire.messages.snapshot_header_record import SnapshotHeaderRecord
from kvorum.wire.primitives import Message
from kvorum.wire.records import (
    ControlRecord,
    ControlRecordType,
    RecordBatch,
    build_control_batch,
    build_data_batch,
    read_batches,
)

META = "version=1\ncluster.id={cluster}\nnode.id={node}\n"
LOG = "__cluster_metadata-0"


@dataclass(frozen=True)
class Story:
    cluster_id: str
    batches: tuple[RecordBatch, ...]

    @property
    def record_count(self) -> int:
        return self.batches[-1].next_offset

    def bytes_of(self, first: int, end: int) -> bytes:
        """Return the bytes of the batches from number `first` up to `end`."""
        return b"".join(bytes(batch.data) for batch in self.batches[first:end])

    def write(
        self, folder: Path, *, node: int = 1, begin: int = 0, end: int | None = None,
        segments: int = 1,
    ) -> Path:  # fmt: skip
        """Write a node's disk with batches `begin` to `end` in some segments; replaces them."""
        inner = folder / LOG
        inner.mkdir(parents=True, exist_ok=True)
        (folder / "meta.properties").write_text(META.format(cluster=self.cluster_id, node=node))
        for old in inner.glob("*.log"):
            old.unlink()
        last = len(self.batches) if end is None else end
        bounds = [begin + (last - begin) * each // segments for each in range(segments + 1)]
        for first, limit in pairwise(bounds):
            name = f"{self.batches[first].base_offset:020}.log"
            (inner / name).write_bytes(self.bytes_of(first, limit))
        return folder


def segment_of(disk: Path) -> Path:
    (segment,) = (disk / LOG).glob("*.log")
    return segment


def append_record(disk: Path, last: RecordBatch, message: Message, *, timestamp_ms: int) -> None:
    """Append a batch with a record to the one segment of a disk, whose last batch is given."""
    batch = build_data_batch(
        [encode_record(message, 0)],
        base_offset=last.next_offset,
        epoch=last.partition_leader_epoch,
        timestamp_ms=timestamp_ms,
    )
    with segment_of(disk).open("ab") as file:
        file.write(batch)


def damage(disk: Path, story: Story, number: int, *, begin: int = 0) -> int:
    """Flip a bit of a batch on a disk whose one segment has the batches from `begin` on.

    Returns the first offset of the batch.
    """
    segment = segment_of(disk)
    data = bytearray(segment.read_bytes())
    batch = story.batches[number]
    data[batch.position - story.batches[begin].position + 70] ^= 1
    segment.write_bytes(data)
    return batch.base_offset


def write_snapshot(story: Story, folder: Path, number: int) -> int:
    """Write the snapshot that covers the batches before `number`; return its end offset."""
    image = MetadataImage()
    for batch in story.batches[:number]:
        if not batch.is_control:
            for record in batch.records():
                assert record.value is not None
                image = image.apply(*decode_record(record.value), record.offset)
    last = story.batches[number - 1]
    epoch, time = last.partition_leader_epoch, last.max_timestamp
    header = SnapshotHeaderRecord(last_contained_log_timestamp=time)
    values = [encode_record(message, version) for message, version in image_records(image)]

    def control(kind: ControlRecordType, message: Message, offset: int) -> bytes:
        record = ControlRecord(kind, message)
        return build_control_batch([record], base_offset=offset, epoch=epoch, timestamp_ms=time)

    parts = [
        control(ControlRecordType.SNAPSHOT_HEADER, header, 0),
        build_data_batch(values, base_offset=1, epoch=epoch, timestamp_ms=time),
        control(ControlRecordType.SNAPSHOT_FOOTER, SnapshotFooterRecord(), len(values) + 1),
    ]
    (folder / LOG / f"{last.next_offset:020}-{epoch:010}.checkpoint").write_bytes(b"".join(parts))
    return last.next_offset


def make_story(folder: Path, seed: int, *, records: int = 900, partitions: int = 120) -> Story:
    write_cluster(folder, seed, records=records, partitions=partitions)
    properties = (folder / "meta.properties").read_text()
    (line,) = [line for line in properties.splitlines() if line.startswith("cluster.id=")]
    batches = tuple(read_batches(segment_of(folder).read_bytes()))
    return Story(line.removeprefix("cluster.id="), batches)
