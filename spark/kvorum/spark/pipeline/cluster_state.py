"""The state that a run leaves for the next one of a cluster, besides its saved history."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import Any, Final, NamedTuple

from kvorum.log_files.file_systems import files_at
from kvorum.spark.errors import DamagedOutputError
from kvorum.storage.log.batch_header import HEADER_SIZE, read_header

FORMAT: Final = 1
"""Another number stands for another meaning of what is stored."""


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
        with closing(files_at(place.path, options).open(place.path)) as file:
            data = file.read_at(place.position, HEADER_SIZE)
    except OSError:
        return False
    if len(data) < HEADER_SIZE:
        return False
    header = read_header(data)
    is_there = header.base_offset < tail.next_offset <= header.next_offset
    return is_there and (header.leader_epoch, header.crc) == (tail.epoch, tail.crc)


@dataclass(frozen=True, slots=True)
class ClusterState:
    """The end of a cluster's log in the tables, and the files that the next run replaces.

    `fingerprint` is that of the input's files then. `history` is the file of the saved history,
    None without one. `replaced` are the files with open rows and with the state. All paths
    are relative to the output.
    """

    tail: Tail | None
    tail_place: TailPlace | None
    next_offset: int
    fingerprint: list[list[str | int]]
    history: str | None
    replaced: list[str]
    with_json: bool

    def to_bytes(self) -> bytes:
        """Return the state as it is stored."""
        return json.dumps({"format": FORMAT, **asdict(self)}, separators=(",", ":")).encode()

    @classmethod
    def from_bytes(cls, path: str, data: bytes) -> ClusterState:
        """Return the state that `to_bytes` made; `DamagedOutputError` names `path`."""
        try:
            document: dict[str, Any] = json.loads(data)
            if document.pop("format") != FORMAT:
                raise ValueError("written by another release")
            tail, place = document.pop("tail"), document.pop("tail_place")
            return cls(
                tail=None if tail is None else Tail(*tail),
                tail_place=None if place is None else TailPlace(*place),
                **document,
            )
        except (ValueError, TypeError, KeyError) as error:
            raise DamagedOutputError(
                f"{path}: not what a run of this release left ({error}): use --rebuild"
            ) from error
