"""The metadata records in golden segments and snapshots."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kvorum.metadata.record_frame import decode_record
from kvorum.wire.primitives import Message
from kvorum.wire.records import read_batches

Offset = int
Version = int


def raw_records(file: Path) -> Iterator[tuple[Offset, bytes]]:
    """Yield offset and value of each data record of a segment or snapshot."""
    for batch in read_batches(file.read_bytes()):
        if batch.is_control:
            continue
        for record in batch.records():
            assert record.value is not None
            yield record.offset, bytes(record.value)


def log_records(directory: Path, first: Offset = 0) -> Iterator[tuple[Message, Version, Offset]]:
    """Yield the records of a metadata log from offset `first` on."""
    for segment in sorted(directory.glob("*.log")):
        for offset, value in raw_records(segment):
            if offset >= first:
                message, version = decode_record(value)
                yield message, version, offset


def snapshots(directory: Path) -> dict[Offset, Path]:
    """The snapshots of a metadata log by the offset they end at, without the bootstrap one."""
    found = {int(file.name.split("-")[0]): file for file in directory.glob("*.checkpoint")}
    return {offset: file for offset, file in sorted(found.items()) if offset > 0}


def snapshot_records(file: Path, end: Offset) -> list[tuple[Message, Version, Offset]]:
    """The records of a snapshot, all at the last offset it contains."""
    return [(*decode_record(value), end - 1) for _, value in raw_records(file)]


def first_offset(directory: Path) -> Offset:
    """The offset at which the oldest segment begins."""
    return min(int(segment.stem) for segment in directory.glob("*.log"))
