"""The next files of a stream over directories, and the units of work between two places.

A log whose last batch is not the one that was read was truncated, as a node does with records that
were never committed: its last segment is read again. Where segments were deleted before they were
read, the log goes on after them, and with the snapshot that stands in for them. Both are reported
as damage is.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from kvorum.log_files.batch_places import (
    Bounds,
    end_looks_torn,
    header_at,
    header_problem,
    is_sound,
    next_sound_batch,
    opened_window,
)
from kvorum.log_files.damage import Damage, DamageKind
from kvorum.log_files.errors import LogFilesError
from kvorum.log_files.file_systems import FileWindow
from kvorum.log_files.find import FileKind, LogFile, find_files
from kvorum.log_files.ranges import NO_EPOCH, FileRange, Place, split_range
from kvorum.spark.source_options import FileOptions
from kvorum.storage.log.batch_header import BatchHeader

NO_BATCH: Final = -1
"""The position of the last batch where none of the segment was read."""
_NAMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "segment": "segment",
        "position": "position",
        "offset": "offset",
        "epoch": "epoch",
        "last_position": "lastPosition",
        "last_crc": "lastCrc",
        "again_from": "againFrom",
    }
)

LOOK_BYTES: Final = 64 * 1024
"""The bytes that are read to see whether a batch is still the one that was read."""

UNNAMED: Final = "is not named by its first offset, as the segments of a stream must be"
"""The problem of a file whose place in the log is unknown."""


class LogPlace(NamedTuple):
    """A place in a log: byte `position` of the segment that begins at offset `segment`.

    `offset` is the next one, `epoch` the leader epoch of the record before it, -1 where it is not
    known. `last_position` and `last_crc` are those of the batch before the place, by which a log
    that was truncated meanwhile is known. Where that was the case, the records from the segment
    of offset `again_from` on are read again.
    """

    segment: int
    position: int
    offset: int
    epoch: int
    last_position: int = NO_BATCH
    last_crc: int = 0
    again_from: int | None = None


Places = Mapping[str, LogPlace]
"""The place in each log, by its directory."""


def segment_start(base_offset: int) -> LogPlace:
    """Return the place before the first batch of a segment."""
    return LogPlace(base_offset, 0, base_offset, NO_BATCH)


def to_checkpoint(places: Places) -> dict[str, Any]:
    """Return the places as the checkpoint has them; equal ones make equal text.

    {"logs": {"/data/__cluster_metadata-0": {"segment": 0, "position": 812, "offset": 9, "epoch": 2,
    "lastPosition": 700, "lastCrc": 1203445}}}
    """
    return {"logs": {directory: _log(places[directory]) for directory in sorted(places)}}


def from_checkpoint(found: Mapping[str, Any]) -> dict[str, LogPlace]:
    """Return the places; `LogFilesError` for a checkpoint of anything else."""
    try:
        return {str(directory): _place(log) for directory, log in found["logs"].items()}
    except (KeyError, TypeError, ValueError, AttributeError):
        raise LogFilesError(
            f"the checkpoint's offset {dict(found)} is not one of directories: was the stream "
            "started with other options?"
        ) from None


def _log(place: LogPlace) -> dict[str, int]:
    values = place._asdict()
    return {name: values[field] for field, name in _NAMES.items() if values[field] is not None}


def _place(log: Mapping[str, Any]) -> LogPlace:
    return LogPlace(**{field: int(log[name]) for field, name in _NAMES.items() if name in log})


class LogTail:
    """The segments of one log in their order, and how far they can be read.

    Its methods raise OSError.

    Only headers are read on the way, and of all segments but the last none where no bound asks for
    it. Damage does not end the reading, and is not judged here: the reader of the range reports it.
    """

    def __init__(self, segments: Sequence[LogFile], options: Mapping[str, Any]) -> None:
        self._segments = {file.offset or 0: file for file in segments}
        self._options = options

    def is_continued(self, place: LogPlace) -> bool:
        """Return whether the log still has the batch before `place`, or only lost its beginning."""
        file = self._segments.get(place.segment)
        if file is None:
            return not self._segments or max(self._segments) > place.segment
        if file.size < place.position:
            return False
        if place.last_position == NO_BATCH:
            return True
        with opened_window(file, self._options, block_bytes=LOOK_BYTES) as window:
            header = header_at(window, place.last_position)
        return (
            header is not None
            and header_problem(header) is None
            and (header.crc, header.next_offset) == (place.last_crc, place.offset)
            and header.leader_epoch == place.epoch
        )

    def segment_at_or_before(self, base_offset: int) -> int:
        """Return where the segment begins that holds `base_offset`, or the first one."""
        return max((base for base in self._segments if base <= base_offset), default=self.first)

    @property
    def first(self) -> int:
        """The offset that the first segment begins at."""
        return min(self._segments)

    def end(self, place: LogPlace, offsets_max: int | None) -> LogPlace:
        """Return how far the log can be read from `place`, by about `offsets_max` offsets."""
        begun = place.offset
        for base in sorted(base for base in self._segments if base >= place.segment):
            if base > place.segment:
                if offsets_max is not None and place.offset - begun >= offsets_max:
                    return place
                place = segment_start(base)._replace(again_from=place.again_from)
            is_last = base == max(self._segments)
            if offsets_max is None and not is_last:
                continue
            limit = None if offsets_max is None else begun + offsets_max
            place = self._walked(self._segments[base], place, limit, is_last=is_last)
        return place

    def _walked(
        self, file: LogFile, place: LogPlace, limit: int | None, *, is_last: bool
    ) -> LogPlace:
        """Return how far a segment can be read: up to offset `limit`, or to its end."""
        with opened_window(file, self._options) as window:
            while place.position < window.end and (limit is None or place.offset < limit):
                header = _whole_batch(window, place.position)
                if header is None:
                    found = _after_damage(window, place)
                    if found is None:
                        is_torn = is_last and end_looks_torn(
                            window, place.position, window.end, with_legacy=False
                        )
                        return place if is_torn else place._replace(position=window.end)
                    place = place._replace(position=found)
                    continue
                place = _after_batch(header, place)
            return place


def _whole_batch(window: FileWindow, position: int) -> BatchHeader | None:
    """Return the header of a batch that ends within the file; None without one.

    Where no header follows, the checksum is verified too: the bytes after the header may be those
    of an unfinished write.
    """
    header = header_at(window, position)
    if header is None or header_problem(header) is not None:
        return None
    end = position + header.size
    if end > window.end:
        return None
    following = header_at(window, end)
    is_followed = following is not None and header_problem(following) is None
    return header if is_followed or is_sound(window, position, header) else None


def _after_damage(window: FileWindow, place: LogPlace) -> int | None:
    """Return where the next sound batch begins after bytes without one."""
    return next_sound_batch(
        window,
        place.position,
        header=header_at(window, place.position),
        bounds=Bounds(place.offset),
        end=window.end,
    )


def _after_batch(header: BatchHeader, place: LogPlace) -> LogPlace:
    return LogPlace(
        segment=place.segment,
        position=place.position + header.size,
        offset=header.next_offset,
        epoch=header.leader_epoch,
        last_position=place.position,
        last_crc=header.crc,
        again_from=place.again_from,
    )


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
        first = next(
            (file for file in log.segments if start is None or _offset(file) >= start.segment), None
        )
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
