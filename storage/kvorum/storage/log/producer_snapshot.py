"""The producer-state files that Kafka keeps beside segments, named after the log's end at the time.

They have what is known of producers with an id, so that a start reads only the log after the
latest one. Of each producer the last batch alone is stored: a start forgets the four before it.
The metadata log has no producers, yet Kafka writes its files too: ten bytes without an entry.

Layout, big endian: version (int16, 1), CRC-32C of what follows it, number of entries (int32), and
46 bytes for each (ProducerSnapshot.json).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from kvorum.storage.errors import CorruptFileError
from kvorum.storage.files import (
    FileSystem,
    disk_errors,
    list_if_there,
    read_if_there,
    replace_durably,
    write_anew,
)
from kvorum.storage.log.producer_state import BatchMetadata, ProducerEntry
from kvorum.storage.names import PRODUCER_SNAPSHOT_SUFFIX, offset_name, parse_offset_name
from kvorum.wire.checksums import crc32c

_VERSION: Final = 1
_HEADER: Final = struct.Struct(">hIi")
_CRC_END: Final = 6
_COUNT: Final = struct.Struct(">i")
_ENTRY: Final = struct.Struct(">qhiqiqiq")
_NONE: Final = -1
_ADVICE: Final = "Remove the file; the state is then made from the log itself"


def encode_producer_snapshot(entries: Mapping[int, ProducerEntry]) -> bytes:
    """Return a file's content: `entries` by producer id."""
    content = _COUNT.pack(len(entries)) + b"".join(
        _encode_entry(producer_id, entry) for producer_id, entry in entries.items()
    )
    return _HEADER.pack(_VERSION, crc32c(content), 0)[:_CRC_END] + content


def _encode_entry(producer_id: int, entry: ProducerEntry) -> bytes:
    last = entry.batches[-1] if entry.batches else None
    return _ENTRY.pack(
        producer_id,
        entry.epoch,
        entry.last_sequence,
        _NONE if last is None else last.last_offset,
        0 if last is None else last.offset_delta,
        entry.last_timestamp,
        entry.coordinator_epoch,
        _NONE if entry.transaction_start is None else entry.transaction_start,
    )


def decode_producer_snapshot(data: bytes, file: Path) -> dict[int, ProducerEntry]:
    """Return the producers by id; raises CorruptFileError, with `file`, for damage."""
    if len(data) < _HEADER.size:
        raise CorruptFileError(f"{len(data)} bytes are no header", file=file, advice=_ADVICE)
    version, crc, count = _HEADER.unpack_from(data)
    if version != _VERSION:
        problem = f"unrecognised version {version} of a producer snapshot"
        raise CorruptFileError(problem, file=file, advice=_ADVICE)
    if crc32c(data[_CRC_END:]) != crc:
        raise CorruptFileError("the checksum does not match", file=file, advice=_ADVICE)
    if len(data) != _HEADER.size + count * _ENTRY.size:
        problem = f"{count} producers do not take {len(data)} bytes"
        raise CorruptFileError(problem, file=file, advice=_ADVICE)
    return dict(map(_decoded_entry, _ENTRY.iter_unpack(data[_HEADER.size :])))


def _decoded_entry(fields: tuple[int, ...]) -> tuple[int, ProducerEntry]:
    producer_id, epoch, sequence, offset, delta, timestamp, coordinator_epoch, start = fields
    batch = BatchMetadata(sequence, offset, delta, timestamp)
    return producer_id, ProducerEntry(
        epoch,
        coordinator_epoch,
        timestamp,
        None if start == _NONE else start,
        (batch,) if offset != _NONE else (),
    )


class TakenProducerSnapshot:
    """The content of one file as of a moment; `is_needed` returns whether it is to be written."""

    def __init__(
        self, files: FileSystem, path: Path, content: bytes, *, is_needed: Callable[[], bool]
    ) -> None:
        self._files = files
        self._path = path
        self._content = content
        self._is_needed = is_needed

    def write(self, *, durably: bool) -> None:
        """Write the file unless it exists.

        One that is not durable may be torn by a power cut; its checksum tells.
        """
        with disk_errors(self._path, "looking"):
            is_there = self._files.exists(self._path)
        if is_there or not self._is_needed():
            return
        if durably:
            replace_durably(self._files, self._path, self._content)
            return
        with disk_errors(self._path, "writing"):
            write_anew(self._files, self._path, self._content, durably=False)


class ProducerSnapshotFiles:
    """The producer-state files of one log; `content` returns that of a file as of now.

    The log of a topic gets no first file while it has no records: `log_start_offset` returns where
    it starts. The metadata log gets one.
    """

    def __init__(
        self,
        directory: Path,
        files: FileSystem,
        content: Callable[[], bytes],
        log_start_offset: Callable[[], int] | None = None,
    ) -> None:
        self._directory = directory
        self._files = files
        self._content = content
        self._log_start_offset = log_start_offset

    def take(self, end_offset: int) -> TakenProducerSnapshot:
        """Return the state of a log that ends at `end_offset`, to be written now or later."""
        is_empty_log = self._log_start_offset is not None and self._log_start_offset() >= end_offset
        return TakenProducerSnapshot(
            self._files,
            self._path(end_offset),
            self._content(),
            is_needed=lambda: not is_empty_log or bool(self._offsets()),
        )

    def remove(self, offset: int) -> None:
        """Remove the state of a segment that is being removed."""
        path = self._path(offset)
        with disk_errors(path, "removing"):
            self._files.remove(path)

    def tidy(self, *, keep: frozenset[int], end_offset: int) -> None:
        """Remove files without a segment: all but `keep` and the latest.

        Files above `end_offset` are removed in any case.
        """
        offsets = self._offsets()
        latest = max((offset for offset in offsets if offset <= end_offset), default=None)
        for offset in offsets:
            if offset > end_offset or (offset not in keep and offset != latest):
                self.remove(offset)

    def latest(self, *, start_offset: int, end_offset: int) -> ProducerSnapshot | None:
        """Return the newest sound state between the offsets; unsound ones are removed, as in Kafka.

        A state at the log's start has nothing that the log does not have.
        """
        for offset in sorted(self._offsets(), reverse=True):
            if start_offset < offset <= end_offset:
                data = read_if_there(self._files, self._path(offset)) or b""
                try:
                    return ProducerSnapshot(
                        offset, decode_producer_snapshot(data, self._path(offset))
                    )
                except CorruptFileError:
                    self.remove(offset)
        return None

    def _offsets(self) -> list[int]:
        parsed = [parse_offset_name(name) for name in list_if_there(self._files, self._directory)]
        return [found[0] for found in parsed if found and found[1] == PRODUCER_SNAPSHOT_SUFFIX]

    def _path(self, offset: int) -> Path:
        return self._directory / offset_name(offset, PRODUCER_SNAPSHOT_SUFFIX)


class ProducerSnapshot(NamedTuple):
    """The producers by id, as of the log's end at `offset`."""

    offset: int
    entries: dict[int, ProducerEntry]
