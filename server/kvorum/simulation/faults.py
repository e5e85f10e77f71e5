"""The faults of a run: their kinds, and each one as plain data."""

from dataclasses import dataclass
from enum import Enum


class FaultKind(Enum):
    """One kind of fault; its value is its name in traces, plans and reports."""

    LOST_MESSAGES = "messages lost"
    DOUBLED_MESSAGES = "messages doubled"
    LATE_MESSAGES = "messages late"
    """Messages take long, and overtake each other."""
    CLOGGED_PATH = "path clogged"
    """Nothing arrives on a path for a while, then everything at once."""
    PARTITION = "network cut in two"
    CUT_PATHS = "paths cut"
    """One direction is cut, one node is cut off, or one after the other is."""
    BROKEN_CONNECTION = "connection reset"
    """A connection breaks at once, or after it was half open."""
    CRASH_POINT = "crash between two steps"
    """A process ends before a call to its disk, or before a request."""
    RESTART = "process restarted"
    """A process is killed or stopped, and started again."""
    PAUSE = "process paused"
    CHANGED_CLOCK = "clock drifts or is set"
    LOST_TAIL = "unsynced bytes lost"
    """The power is cut; unsynced bytes are lost, wholly or in part."""
    TORN_WRITE = "write torn"
    """Some blocks of one unsynced write survive a power cut, and others do not."""
    LOST_NAME = "name lost"
    """A new name, or a renaming, that was not synced is lost with the power."""
    FAILED_SYNC = "sync failed"
    REFUSED_WRITE = "writes refused"
    """A disk is full, or a write fails."""
    BIT_FLIP = "bit flipped"
    WIPE = "disk replaced"
    WIPE_AFTER_UPGRADE = "disk replaced after upgrade"
    """A voter's disk is replaced as soon as an upgrade of kraft.version has recorded it."""
    UPGRADE = "mixed releases, upgrade"
    """Nodes speak several releases, or kraft.version is upgraded."""
    CHANGED_VOTERS = "voters changed"
    """Voters are added and removed, or a leader is asked to resign."""
    CHANGED_TARGET_VOTERS = "target voters changed"
    """The target voters (KIP-642) are stated, replaced or cancelled."""
    CRASH_AT_STEP = "crash at a step"
    """A leader crashes at a step that it takes towards the target voters."""
    HIDDEN_VOTER = "voter hidden"
    """A voter moves to a port at which everything vanishes; its own requests are answered."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: its kind, time, duration, targets and amount.

    The targets are numbers, taken modulo the number of candidates when the fault strikes; `amount`
    is between 0 and 1. All further random choices of the fault come from `seed`.
    """

    kind: FaultKind
    at_ms: int
    duration_ms: int
    first: int
    second: int
    amount: float
    seed: int

    def describe(self) -> str:
        """Return the fault as one line of text."""
        return f"{self.kind.value} at {self.at_ms / 1000:.3f} s"
