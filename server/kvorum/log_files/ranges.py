"""Units of work: a file, or a range of a large one that begins and ends between two batches."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from itertools import groupby, pairwise
from typing import Any, Final, NamedTuple

from kvorum.log_files.batch_places import (
    header_at,
    header_problem,
    is_of_other_kind,
    is_sound,
    opened_window,
)
from kvorum.log_files.file_systems import Files, FileWindow, LocalFiles, files_at
from kvorum.log_files.find import FileKind, FoundFiles, LogFile
from kvorum.storage.log.batch_header import HEADER_SIZE, BatchHeader
from kvorum.storage.log.indexes import OffsetIndex
from kvorum.storage.names import LOG_SUFFIX, OFFSET_INDEX_SUFFIX, SWAP_SUFFIX

MAX_PARTITION_BYTES: Final = 64 * 1024 * 1024
INDEX_BYTES_MAX: Final = 64 * 1024 * 1024
"""The largest index that is read: six times what Kafka writes by default."""

UNKNOWN_OFFSET: Final = -1
"""The first offset of a segment whose name does not contain it: that of its first batch."""
NO_EPOCH: Final = -1
"""Lower than every epoch, and the epoch of batches that have none."""


class Place(NamedTuple):
    """The start of a batch, as its header was when the work was planned."""

    position: int
    offset: int
    epoch: int


class FileRange(NamedTuple):
    """Batches of one file, with what is known of the batches around them.

    The range begins at `start`, whose offset is `UNKNOWN_OFFSET` in a renamed segment, and
    reaches up to byte `end`, where the batch of `end_offset` and `end_epoch` begins; these are
    None where nothing follows. `next_path` is the segment that follows the whole file and begins
    at `end_offset`. `missing_from` is the first offset before the range that no file covers.
    """

    file: LogFile
    start: Place
    end: int
    end_offset: int | None = None
    end_epoch: int | None = None
    next_path: str | None = None
    missing_from: int | None = None

    @property
    def is_last(self) -> bool:
        """Whether the range ends with the file."""
        return self.end == self.file.size

    @property
    def is_tail(self) -> bool:
        """Whether a node may be writing at the end of the range: the end of a log."""
        return self.file.kind is FileKind.SEGMENT and self.is_last and self.end_offset is None

    @property
    def lowest_offset(self) -> int:
        """The lowest offset of a row of this range."""
        return self.start.offset if self.missing_from is None else self.missing_from


def plan_ranges(
    found: FoundFiles,
    *,
    range_bytes: int = MAX_PARTITION_BYTES,
    has_gaps: bool = False,
    file_system_options: Mapping[str, Any] | None = None,
) -> list[FileRange]:
    """Return the ranges to read, in the order of the files.

    A segment of more than `range_bytes` is split at batches that its index names, a local
    snapshot at batches that a walk over its headers finds. Every such batch is verified; without
    one, the file is one range. A log that `has_gaps` may begin at any offset. In another log that
    is there whole, offsets before the first segment are missing unless a snapshot covers them.
    """
    options = file_system_options or {}
    ranges: list[FileRange] = []
    must_be_whole = frozenset[str]() if has_gaps else found.whole_directories
    for _, log in groupby(found.files, key=lambda file: file.log_directory):
        for whole in _whole_files(list(log), must_be_whole):
            ranges += split_range(whole, range_bytes, options)
    return ranges


def _whole_files(log: list[LogFile], must_be_whole: frozenset[str]) -> Iterator[FileRange]:
    """Yield each file of one log directory as one range, with what its neighbours say of it."""
    yield from (_whole_file(file) for file in log if file.kind is not FileKind.SEGMENT)
    covered = max((file.offset or 0 for file in log if file.kind is FileKind.SNAPSHOT), default=0)
    segments = [file for file in log if file.kind is FileKind.SEGMENT]
    for _, partition in groupby(segments, key=lambda file: file.directory):
        yield from _segments(list(partition), must_be_whole, covered)


def _segments(
    segments: list[LogFile], must_be_whole: frozenset[str], covered: int
) -> Iterator[FileRange]:
    named = [file for file in segments if file.offset is not None]
    yield from (_whole_file(file) for file in segments if file.offset is None)
    for index, file in enumerate(named):
        following = named[index + 1] if index + 1 < len(named) else None
        is_gap = index == 0 and (file.offset or 0) > covered and file.log_directory in must_be_whole
        yield _whole_file(file)._replace(
            end_offset=None if following is None else following.offset,
            next_path=None if following is None else following.path,
            missing_from=covered if is_gap else None,
        )


def _whole_file(file: LogFile) -> FileRange:
    """Return a file as one range, without anything that its neighbours could say."""
    offset = 0
    if file.kind is FileKind.SEGMENT:
        offset = UNKNOWN_OFFSET if file.offset is None else file.offset
    return FileRange(file, Place(0, offset, NO_EPOCH), file.size)


def split_range(whole: FileRange, range_bytes: int, options: Mapping[str, Any]) -> list[FileRange]:
    """Return the ranges of a whole file, each of about `range_bytes`, as `plan_ranges` has them."""
    if whole.file.size <= range_bytes:
        return [whole]
    files = files_at(whole.file.path, options)
    try:
        with opened_window(whole.file, options, block_bytes=HEADER_SIZE) as window:
            return _cut(whole, list(_places(files, window, whole, range_bytes)))
    except OSError:
        # The reader of the range names the problem.
        return [whole]


def _cut(whole: FileRange, places: list[Place]) -> list[FileRange]:
    starts = [whole.start, *places]
    parts = [
        whole._replace(
            start=here, end=there.position, end_offset=there.offset, end_epoch=there.epoch,
            next_path=None,
        )
        for here, there in pairwise(starts)
    ]  # fmt: skip
    parts.append(whole._replace(start=starts[-1]))
    return [parts[0], *(part._replace(missing_from=None) for part in parts[1:])]


def _places(
    files: Files, window: FileWindow, whole: FileRange, range_bytes: int
) -> Iterator[Place]:
    """Yield verified starts of batches, about `range_bytes` apart."""
    log_file, end_offset = whole.file, whole.end_offset
    if not _begins_as_named(window, whole):
        return
    last_position, last_offset = 0, log_file.offset or 0
    candidates: Iterable[tuple[int, int]] = ()
    if log_file.kind is FileKind.SEGMENT:
        candidates = _index_entries(files, log_file)
    elif isinstance(files, LocalFiles):
        candidates = _walked(window)
    for last_in_batch, position in candidates:
        if position - last_position < range_bytes:
            continue
        header = header_at(window, position)
        if header is None or header.base_offset <= last_offset:
            continue
        if end_offset is not None and header.next_offset > end_offset:
            return
        if _is_as_named(window, position, header, last_in_batch):
            yield Place(position, header.base_offset, header.leader_epoch)
            last_position, last_offset = position, header.base_offset


def _begins_as_named(window: FileWindow, whole: FileRange) -> bool:
    """Return whether a file is what its name says; where it is not, its reader finds out more."""
    header = header_at(window, 0)
    if header is None or header_problem(header) is not None or not is_sound(window, 0, header):
        return False
    if whole.start.offset not in {header.base_offset, UNKNOWN_OFFSET}:
        return False
    return not is_of_other_kind(whole.file.kind, header, window.at(0, header.size))


def _is_as_named(window: FileWindow, position: int, header: BatchHeader, last_offset: int) -> bool:
    """Return whether a sound batch is at `position`, whose offsets and epoch can be believed.

    No checksum covers these, so the next batch must agree with them.
    """
    if (
        header_problem(header) is not None
        or header.last_offset != last_offset
        or not is_sound(window, position, header)
    ):
        return False
    following = header_at(window, position + header.size)
    return (
        following is not None
        and following.base_offset >= header.next_offset
        and following.leader_epoch == header.leader_epoch
    )


def _index_entries(files: Files, log_file: LogFile) -> Iterable[tuple[int, int]]:
    """Return last offset and position of the batches in a segment's index.

    None where the index is missing or damaged.
    """
    if log_file.offset is None:
        return ()
    swap = SWAP_SUFFIX if log_file.path.endswith(SWAP_SUFFIX) else ""
    path = log_file.path.removesuffix(LOG_SUFFIX + swap) + OFFSET_INDEX_SUFFIX + swap
    try:
        with closing(files.open(path)) as file:
            data = file.read_at(0, min(file.size, INDEX_BYTES_MAX))
    except OSError:
        return ()
    # The index of the segment that a Kafka writes to is as long as it may become: zeros follow.
    entries = data.rstrip(b"\0")
    index = OffsetIndex(log_file.offset, size_bytes_max=INDEX_BYTES_MAX)
    index.load(data[: -(-len(entries) // OffsetIndex.entry.size) * OffsetIndex.entry.size])
    return index.entries()


def _walked(window: FileWindow) -> Iterator[tuple[int, int]]:
    """Yield what `_index_entries` does, from header to header, as long as offsets have no gap."""
    position = offset = 0
    while (header := header_at(window, position)) is not None:
        if header_problem(header) is not None or header.base_offset != offset:
            return
        yield header.last_offset, position
        position, offset = position + header.size, header.next_offset
