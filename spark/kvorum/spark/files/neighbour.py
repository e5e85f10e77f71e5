"""The batch after one that is judged, as far as it is known."""

from __future__ import annotations

from typing import Final, NamedTuple

from kvorum.spark.files.batch_places import EntryHeader, header_at, header_problem
from kvorum.spark.files.file_systems import Files
from kvorum.spark.files.file_window import FileWindow
from kvorum.spark.files.ranges import FileRange
from kvorum.storage.log.batch_header import BatchHeader


class Neighbour(NamedTuple):
    """Offset and epoch of the batch behind one that is judged; None where it is not known."""

    offset: int | None
    epoch: int | None


NO_NEIGHBOUR: Final = Neighbour(None, None)


def neighbour_of(following: EntryHeader | None) -> Neighbour:
    """Return what the header behind says; nothing where it is none, or impossible."""
    if following is None or header_problem(following) is not None:
        return NO_NEIGHBOUR
    is_batch = isinstance(following, BatchHeader)
    return Neighbour(following.base_offset, following.leader_epoch if is_batch else None)


def neighbour_behind(unit: FileRange, files: Files) -> Neighbour:
    """Return what is known of the batch after the range, in this file or in the next segment."""
    return Neighbour(unit.end_offset, _epoch_behind(unit, files))


def _epoch_behind(unit: FileRange, files: Files) -> int | None:
    if unit.next_path is None:
        return unit.end_epoch
    try:
        file = files.open(unit.next_path)
    except OSError:
        return None
    try:
        header = header_at(FileWindow(file, end=file.size, block_bytes=1), 0)
    except OSError:
        return None
    finally:
        file.close()
    if header is None or header_problem(header) or header.base_offset != unit.end_offset:
        return None
    return header.leader_epoch
