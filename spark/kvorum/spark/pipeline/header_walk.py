"""The headers of the batches of one replica, in the order of the log; no record is read.

A checksum is taken from the header and not verified: where it is wrong, reading the records finds
out. A header that cannot be one ends the walk through its file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from kvorum.spark.files.batch_places import header_at, header_problem, opened_window
from kvorum.spark.files.find import LogFile
from kvorum.spark.pipeline.replicas import Replica


class BatchPlace(NamedTuple):
    """The batch of one replica at an offset: its end, and its identity."""

    base_offset: int
    next_offset: int
    epoch: int
    crc: int
    size: int


def batch_places(replica: Replica, options: Mapping[str, Any]) -> Iterator[BatchPlace]:
    """Yield the batches of a replica's segments, whose offsets ascend.

    A file that cannot be read ends in the same way as a damaged one.
    """
    offset = -1
    for file in replica.segments:
        for place in _places_in(file, options):
            if place.base_offset >= offset:
                yield place
                offset = place.next_offset


def _places_in(file: LogFile, options: Mapping[str, Any]) -> Iterator[BatchPlace]:
    position = 0
    try:
        with opened_window(file, options) as window:
            while (header := header_at(window, position)) is not None:
                end = position + header.size
                if header_problem(header) is not None or end > window.end:
                    return
                yield BatchPlace(
                    header.base_offset,
                    header.next_offset,
                    header.leader_epoch,
                    header.crc,
                    header.size,
                )
                position = end
    except OSError:
        return


def last_place(replica: Replica, options: Mapping[str, Any]) -> BatchPlace | None:
    """Return the last batch of a replica; None where no segment has one."""
    for file in reversed(replica.segments):
        last = None
        for place in _places_in(file, options):
            last = place
        if last is not None:
            return last
    return None
