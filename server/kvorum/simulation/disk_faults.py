"""What a simulated disk may do to a node: lose, tear, reorder, refuse, fail and rot.

The kinds carry the numbers of the catalogue of faults. A `PowerCut` says how much of what was not
synced arrives; everything random comes from the generator that is handed in.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from random import Random
from typing import NamedTuple

SECTOR_BYTES = 512
PAGE_BYTES = 4096


class DiskFault(Enum):
    """The kinds of faults of a disk."""

    LOST_TAIL = "F12"
    TORN_WRITE = "F13"
    LOST_NAME = "F14"
    FAILED_SYNC = "F15"
    REFUSED_WRITE = "F16"
    BIT_FLIP = "F17"
    WIPE = "F18"


class FileKind(Enum):
    """What a file of a metadata log directory is to a fault."""

    LOG = "log"
    SNAPSHOT = "snapshot"
    QUORUM_STATE = "quorum-state"
    OTHER = "other"


def kind_of(name: str) -> FileKind:
    """Return the kind of a file by its name."""
    if name.endswith(".log"):
        return FileKind.LOG
    if name.endswith((".checkpoint", ".checkpoint.part")):
        return FileKind.SNAPSHOT
    if name.startswith("quorum-state"):
        return FileKind.QUORUM_STATE
    return FileKind.OTHER


class CrashedError(BaseException):
    """The process that called the disk does not exist any more.

    No Exception, so that no handler of the crashed code takes it for an error and goes on.
    """


class Arrival(Enum):
    """Which of the blocks that were not synced reach the disk when the power goes."""

    ALL = "all"
    NONE = "none"
    FIRST = "first"
    """Those up to some place, as file systems do that write a file's end in order."""
    ANY = "any"
    """Any of them; what a log refuses to start from, because it looks like damage."""


@dataclass(frozen=True, slots=True)
class PowerCut:
    """How a power cut treats one file: which blocks arrive, and how big a block is."""

    arrival: Arrival
    block_bytes: int
    keeps_size: bool
    """Whether the file keeps its full length, with zeros where blocks are missing."""

    @classmethod
    def draw(cls, random: Random, *, is_scattering: bool) -> PowerCut:
        """Draw the treatment of one file."""
        arrivals = [Arrival.ALL, Arrival.NONE, Arrival.FIRST, Arrival.FIRST]
        if is_scattering:
            arrivals += [Arrival.ANY] * 2
        return cls(
            arrival=random.choice(arrivals),
            block_bytes=random.choice([SECTOR_BYTES, PAGE_BYTES]),
            keeps_size=random.random() < 0.2,
        )


class Loss(NamedTuple):
    """What a power cut took from one file: bytes, and whether one write arrived in part."""

    lost_bytes: int
    is_torn: bool


@dataclass(slots=True)
class Refusal:
    """Writes to files of some kinds fail with an error of the system, for `calls` calls.

    `calls` of None means until the refusal is lifted. Some first part of the data is written.
    """

    kinds: frozenset[FileKind]
    error: int = errno.ENOSPC
    calls: int | None = None

    def strikes(self, kind: FileKind) -> bool:
        """Tell whether a write to a file of that kind is refused, and count it."""
        if kind not in self.kinds or self.calls == 0:
            return False
        if self.calls is not None:
            self.calls -= 1
        return True


class FlippedBit(NamedTuple):
    """Where a bit changed."""

    path: Path
    position: int
    bit: int
