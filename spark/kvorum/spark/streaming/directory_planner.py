"""The next files of a stream over directories, and the units of work between two places.

A log whose last batch is not the one that was read was truncated, as a node does with records that
were never committed: its last segment is read again. Where segments were deleted before they were
read, the log goes on after them, and with the snapshot that stands in for them. Both are reported
as damage is.
"""

from collections.abc import Iterator, Mapping
from itertools import groupby, pairwise
from typing import Final, NamedTuple

from kvorum.spark.errors import LogFilesError
from kvorum.spark.files.damage import Damage, DamageKind
from kvorum.spark.files.find import FileKind, LogFile, find_files
from kvorum.spark.files.ranges import NO_EPOCH, FileRange, Place, split_range
from kvorum.spark.source_options import FileOptions
from kvorum.spark.streaming.directory_offset import LogPlace, Places, segment_start
from kvorum.spark.streaming.log_tail import LogTail

UNNAMED: Final = "is not named by its first offset, as the segments of a stream must be"


class Unit(NamedTuple):
    """Work of one task: a damage to report, or a range to read.

    Where `last_batch` is given, the range has a batch at this position with this checksum.
    """

    file: LogFile
    range: FileRange | None
    damage: Damage | None
    last_batch: tuple[int, int] | None


class FoundLog(NamedTuple):
    """The segments and snapshots of one directory, each by offset."""

    segments: tuple[LogFile, ...]
    snapshots: tuple[LogFile, ...]


class DirectoryPlanner:
    """Finds how far logs can be read, and what lies between two places.

    Its methods raise `LogFilesError` for paths that cannot be listed.
    """

    def __init__(self, options: FileOptions, *, offsets_max: int | None) -> None:
        self._options = options
        self._offsets_max = offsets_max

    def ends(self, begin: Places) -> dict[str, LogPlace]:
        """Return how far each log can be read, given how far it was."""
        logs = self._logs()
        share = None
        if self._offsets_max is not None and logs:
            share = max(self._offsets_max // len(logs), 1)
        found = dict(begin)
        for directory, log in logs.items():
            if not log.segments:
                continue
            try:
                found[directory] = self._end(log, begin.get(directory), share)
            except FileNotFoundError:
                # Deleted since the listing: the next one shows what is left.
                continue
            except OSError as error:
                reason = error.strerror or error
                raise LogFilesError(f"{directory}: cannot be read: {reason}") from error
        return found

    def units(self, begin: Places, end: Places) -> list[Unit]:
        """Return the work between two places, in the order of the logs."""
        logs = self._logs()
        nothing = FoundLog((), ())
        return [
            unit
            for directory, place in end.items()
            if begin.get(directory) != place
            for unit in self._units(directory, logs.get(directory, nothing), begin, place)
        ]

    def _logs(self) -> dict[str, FoundLog]:
        search = self._options.search._replace(may_be_empty=True)
        files = [
            file
            for file in find_files(self._options.paths, search).files
            if file.kind is not FileKind.BOOTSTRAP
        ]
        logs: dict[str, FoundLog] = {}
        for directory, group in groupby(
            sorted(files, key=lambda file: file.directory), key=lambda file: file.directory
        ):
            log = list(group)
            for file in log:
                if file.offset is None:
                    raise LogFilesError(f"{file.path}: {UNNAMED}")
            log.sort(key=_offset)
            logs[directory] = FoundLog(
                tuple(file for file in log if file.kind is FileKind.SEGMENT),
                tuple(file for file in log if file.kind is FileKind.SNAPSHOT),
            )
        return logs

    def _end(self, log: FoundLog, begin: LogPlace | None, share: int | None) -> LogPlace:
        tail = LogTail(log.segments, self._options.search.file_system_options)
        if begin is None:
            return tail.end(segment_start(tail.first), share)
        if not tail.is_continued(begin):
            again = tail.segment_at_or_before(begin.segment)
            return tail.end(segment_start(again)._replace(again_from=again), share)
        end = tail.end(begin._replace(again_from=None), share)
        # Without news the place stays word for word.
        return begin if end == begin._replace(again_from=None) else end

    def _units(self, directory: str, log: FoundLog, begin: Places, end: LogPlace) -> Iterator[Unit]:
        start = begin.get(directory)
        if end.again_from is not None and start is not None:
            yield _truncated(directory, log, start, end.again_from)
            start = segment_start(end.again_from)
        # The segment to go on with, or one after it.
        following = (
            file for file in log.segments if start is None or _offset(file) >= start.segment
        )
        first = next(following, None)
        base = end.offset if first is None else _offset(first)
        if start is None or (start.offset < base and start.segment != base):
            yield from self._beginning(directory, log, start, min(base, end.offset))
            start = segment_start(base)
        yield from self._ranges(log, start, end)

    def _beginning(
        self, directory: str, log: FoundLog, start: LogPlace | None, base: int
    ) -> Iterator[Unit]:
        """Yield what a log begins with that has no segment from `start` to before `base`."""
        if base == 0:
            return
        offset = 0 if start is None else start.offset
        snapshot = None
        if log.segments and base == _offset(log.segments[0]):
            snapshot = next((file for file in log.snapshots if _offset(file) >= base), None)
        if start is not None or snapshot is None:
            file = LogFile(directory, FileKind.SEGMENT, base, 0, 0)
            if log.segments:
                file = log.segments[0]
            reason = f"no segment has the records before offset {base}"
            if start is not None:
                reason += " any more"
            kind = DamageKind.DAMAGED if start is None else DamageKind.DELETED
            yield _told(file, Damage(kind, file.path, 0, offset, base - 1, reason))
        if snapshot is not None:
            whole = FileRange(snapshot, Place(0, 0, NO_EPOCH), snapshot.size)
            yield from (Unit(snapshot, part, None, None) for part in self._split(whole))

    def _ranges(self, log: FoundLog, start: LogPlace, end: LogPlace) -> Iterator[Unit]:
        """Yield the ranges of segments between two places."""
        chosen = [file for file in log.segments if start.segment <= _offset(file) <= end.segment]
        following: Mapping[int, LogFile] = {
            _offset(file): after for file, after in pairwise(chosen)
        }
        for file in chosen:
            base = _offset(file)
            place = Place(0, base, NO_EPOCH)
            if base == start.segment:
                place = Place(start.position, start.offset, start.epoch)
            last_batch: tuple[int, int] | None = None
            after = following.get(base)
            if after is not None:
                whole = FileRange(
                    file, place, file.size, end_offset=after.offset, next_path=after.path
                )
            else:
                cut = file._replace(size=end.position)
                whole = FileRange(cut, place, end.position, end_offset=end.offset)
                if end.last_position >= place.position:
                    last_batch = end.last_position, end.last_crc
            if place.position < whole.end:
                for part in self._split(whole):
                    is_last = last_batch is not None and part.end == whole.end
                    yield Unit(file, part, None, last_batch if is_last else None)
        if not chosen or _offset(chosen[-1]) != end.segment:
            yield from _lost(chosen, start, end)

    def _split(self, whole: FileRange) -> list[FileRange]:
        if whole.start.position:
            return [whole]
        options = self._options
        return split_range(whole, options.range_bytes, options.search.file_system_options)


def _offset(file: LogFile) -> int:
    return file.offset or 0


def _told(file: LogFile, damage: Damage) -> Unit:
    return Unit(file, None, damage, None)


def _truncated(directory: str, log: FoundLog, start: LogPlace, again_from: int) -> Unit:
    file = next((file for file in log.segments if _offset(file) == again_from), None)
    if file is None:
        file = LogFile(directory, FileKind.SEGMENT, again_from, 0, 0)
    reason = (
        f"the log was truncated below offset {start.offset}, up to which it was read: the rows of "
        f"the offsets from {again_from} on follow again as the log has them"
    )
    return _told(
        file, Damage(DamageKind.DAMAGED, file.path, 0, start.offset, start.offset - 1, reason)
    )


def _lost(chosen: list[LogFile], start: LogPlace, end: LogPlace) -> Iterator[Unit]:
    """Yield what became of a range whose last segment is gone since the work was planned."""
    if start.offset >= end.offset or not chosen:
        # The missing part is reported already.
        return
    file = chosen[-1]
    reason = f"the segment of offset {end.segment} was there when the work was planned, and is gone"
    yield _told(file, Damage(DamageKind.DELETED, file.path, 0, end.segment, end.offset - 1, reason))
