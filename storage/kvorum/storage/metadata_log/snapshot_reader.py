"""The reader of a snapshot, which checks it: header first, footer last, every batch sound."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

from kvorum.storage.errors import CorruptSnapshotError
from kvorum.storage.log.batch_header import (
    HEADER_SIZE,
    LENGTH_FIELD_END,
    BatchHeader,
    batch_problem,
    read_header,
)
from kvorum.storage.metadata_log.control_batch import (
    SNAPSHOT_FOOTER,
    SNAPSHOT_HEADER,
    first_control_record,
    last_contained_log_timestamp,
)
from kvorum.storage.metadata_log.snapshots import SnapshotStore
from kvorum.wire.offset_and_epoch import OffsetAndEpoch

_ADVICE = "Restore the file, or empty the directory and let the node fetch log and snapshot anew"


class SnapshotBytes(Protocol):
    """The bytes of a snapshot, finished or being written."""

    @property
    def path(self) -> Path:
        """The file, for messages."""
        ...

    @property
    def size(self) -> int:
        """The size in bytes."""
        ...

    def read_at(self, position: int, size: int) -> bytes:
        """Return up to `size` bytes from `position`; fewer only at the end."""
        ...


class SnapshotInMemory(NamedTuple):
    """The bytes of a snapshot that was read whole."""

    path: Path
    content: bytes

    @property
    def size(self) -> int:
        """The size in bytes."""
        return len(self.content)

    def read_at(self, position: int, size: int) -> bytes:
        """Return up to `size` bytes from `position`; fewer only at the end."""
        return self.content[position : position + size]


def read_snapshot_batches(snapshot: SnapshotBytes) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Yield every batch of a snapshot, header and footer batches included, with its bytes.

    Raises CorruptSnapshotError at the first bytes that are no sound batch, where a batch does not
    begin at the offset after the one before it, where the first record is no SNAPSHOT_HEADER, and,
    after the last batch, where that is not a SNAPSHOT_FOOTER. A reader may trust the content
    only after it has reached the end.
    """
    position = 0
    next_offset = 0
    is_complete = False
    while position < snapshot.size:
        header, batch = _batch_at(snapshot, position)
        control = first_control_record(batch, header)
        if position == 0 and (control is None or control[0] != SNAPSHOT_HEADER):
            raise _corrupt("it does not begin with a snapshot header", snapshot, position)
        if is_complete:
            raise _corrupt("there is something behind the snapshot footer", snapshot, position)
        if header.base_offset != next_offset:
            problem = f"a batch begins at offset {header.base_offset} instead of {next_offset}"
            raise _corrupt(problem, snapshot, position)
        yield header, batch
        is_complete = control is not None and control[0] == SNAPSHOT_FOOTER
        next_offset = header.next_offset
        position += header.size
    if not is_complete:
        raise _corrupt("it does not end with a snapshot footer", snapshot, position)


def check_snapshot(snapshot: SnapshotBytes) -> None:
    """Read all of a snapshot; raise CorruptSnapshotError unless it is complete and sound."""
    for _ in read_snapshot_batches(snapshot):
        pass


def read_last_contained_log_timestamp(
    snapshots: SnapshotStore, snapshot_id: OffsetAndEpoch
) -> int | None:
    """Return the timestamp of the last record in a snapshot, or None if the snapshot is gone."""
    reader = snapshots.open(snapshot_id)
    if reader is None:
        return None
    try:
        header, batch = _batch_at(reader, 0)
        control = first_control_record(batch, header)
        timestamp = None
        if control is not None and control[0] == SNAPSHOT_HEADER:
            timestamp = last_contained_log_timestamp(control[1])
        if timestamp is None:
            raise _corrupt("it does not begin with a snapshot header", reader, 0)
        return timestamp
    finally:
        reader.close()


def _batch_at(snapshot: SnapshotBytes, position: int) -> tuple[BatchHeader, memoryview]:
    """Return the sound batch at `position`, or raise."""
    start = snapshot.read_at(position, HEADER_SIZE)
    if len(start) < HEADER_SIZE:
        raise _corrupt("it ends within a batch header", snapshot, position)
    header = read_header(start)
    problem = header.problem()
    if problem is None and header.size > snapshot.size - position:
        problem = "it ends within a batch"
    if problem is not None:
        raise _corrupt(problem, snapshot, position)
    batch = memoryview(snapshot.read_at(position, header.length + LENGTH_FIELD_END))
    problem = "it ends within a batch" if len(batch) < header.size else batch_problem(batch, header)
    if problem is not None:
        raise _corrupt(problem, snapshot, position)
    return header, batch


def _corrupt(problem: str, snapshot: SnapshotBytes, position: int) -> CorruptSnapshotError:
    return CorruptSnapshotError(
        f"no sound snapshot: {problem}", file=snapshot.path, offset=position, advice=_ADVICE
    )
