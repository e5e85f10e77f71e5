"""The place in a log that a fold has come to, and whether it is still there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from kvorum.spark.files.file_systems import files_at
from kvorum.storage.log.batch_header import HEADER_SIZE, read_header


class Tail(NamedTuple):
    """The end of what was folded: the next offset, and the batch that holds the one before it.

    Two logs that have a batch of the same offset, epoch and checksum have all before it in common.
    """

    next_offset: int
    epoch: int
    crc: int


class TailPlace(NamedTuple):
    """The place of the batch of a tail: a file, and the byte at which the batch begins."""

    path: str
    position: int


def is_in_place(tail: Tail, place: TailPlace, options: Mapping[str, Any]) -> bool:
    """Return whether the batch of a tail is still where it was found."""
    try:
        file = files_at(place.path, options).open(place.path)
    except OSError:
        return False
    try:
        data = file.read_at(place.position, HEADER_SIZE)
    except OSError:
        return False
    finally:
        file.close()
    if len(data) < HEADER_SIZE:
        return False
    header = read_header(data)
    is_there = header.base_offset < tail.next_offset <= header.next_offset
    return is_there and (header.leader_epoch, header.crc) == (tail.epoch, tail.crc)
