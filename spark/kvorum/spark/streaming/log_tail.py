"""The readable part of a log that grows: up to the end of its last whole batch.

Only headers are read on the way, and of all segments but the last none where no bound asks for it.
Damage does not end the reading, and is not judged here: the reader of the range reports it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kvorum.spark.files.batch_places import (
    Bounds,
    end_looks_torn,
    header_at,
    header_problem,
    is_sound,
    next_sound_batch,
    opened_window,
)
from kvorum.spark.files.file_systems import FileWindow
from kvorum.spark.files.find import LogFile
from kvorum.spark.streaming.directory_offset import NO_BATCH, LogPlace, segment_start
from kvorum.storage.log.batch_header import BatchHeader

LOOK_BYTES: Final = 64 * 1024
"""The bytes that are read to see whether a batch is still the one that was read."""


class LogTail:
    """The segments of one log in their order, and how far they can be read.

    Its methods raise OSError.
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
