"""The faults of a simulated disk: it may lose, tear, reorder, refuse, fail and rot.

A `PowerCut` describes how many of the unsynced bytes reach the disk; all random choices come from
the generator that the caller passes.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

from kvorum.simulation.fault_ratios import RATIOS

SECTOR_BYTES = 512
PAGE_BYTES = 4096


class FileKind(Enum):
    """The kinds of files in a metadata log directory that faults distinguish."""

    LOG = "log"
    SNAPSHOT = "snapshot"
    QUORUM_STATE = "quorum-state"
    OTHER = "other"


METADATA_LOG_KINDS: Final = (FileKind.LOG, FileKind.SNAPSHOT, FileKind.QUORUM_STATE)
"""The kinds of which a refused write may have written a part; others are written in one sector."""


def kind_of(name: str) -> FileKind:
    """Return the kind of a file by its name."""
    if name.endswith(".log"):
        return FileKind.LOG
    if name.endswith((".checkpoint", ".checkpoint.part")):
        return FileKind.SNAPSHOT
    return FileKind.QUORUM_STATE if name.startswith("quorum-state") else FileKind.OTHER


class CrashedError(BaseException):
    """The process that called the disk does not exist any more.

    It is not an Exception, so that no handler of the crashed code catches it and continues.
    """


class Arrival(Enum):
    """The unsynced blocks that reach the disk when the power is cut."""

    ALL = "all"
    NONE = "none"
    FIRST = "first"
    """Those up to some place, as on a file system that writes a file's end in order."""
    ANY = "any"
    """Any of them: a log refuses to start from this, because it looks like damage."""


@dataclass(frozen=True, slots=True)
class PowerCut:
    """A power cut's treatment of one file: which blocks arrive, and how big a block is."""

    arrival: Arrival
    block_bytes: int
    keeps_size: bool
    """Whether the file keeps its full length, with zeros where blocks are missing."""
    block_arrives: float
    """The probability that a block arrives, where any of them may."""

    @classmethod
    def draw(cls, random: Random, *, is_scattering: bool) -> PowerCut:
        """Draw the treatment of one file."""
        arrivals = [Arrival.ALL, Arrival.NONE, Arrival.FIRST, Arrival.FIRST]
        if is_scattering:
            arrivals += [Arrival.ANY] * 2
        return cls(
            arrival=random.choice(arrivals),
            block_bytes=random.choice([SECTOR_BYTES, PAGE_BYTES]),
            keeps_size=random.random() < RATIOS.file_keeps_size,
            block_arrives=RATIOS.block_arrives,
        )


class Loss(NamedTuple):
    """The loss of one file in a power cut: bytes, and whether one write arrived in part."""

    lost_bytes: int
    is_torn: bool


@dataclass(slots=True)
class Refusal:
    """A disk fault: writes to files of some kinds fail with a system error, for `calls` calls.

    `calls` of None means until the refusal is ended. A first part of the data is written.
    """

    kinds: frozenset[FileKind]
    error: int = errno.ENOSPC
    calls: int | None = None

    def strikes(self, kind: FileKind) -> bool:
        """Return whether a write to a file of that kind is refused, and count it."""
        if kind not in self.kinds or self.calls == 0:
            return False
        if self.calls is not None:
            self.calls -= 1
        return True


class FlippedBit(NamedTuple):
    """The place of a changed bit."""

    path: Path
    position: int
    bit: int
