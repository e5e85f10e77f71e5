"""What the node built around a replica of the metadata log hears from it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedBatch:
    """One batch of the log below the high watermark.

    `values` are the framed metadata records at `base_offset`, `base_offset` + 1, …; a control batch
    has none, and is told about only so that the listener knows how far the log has come.
    """

    base_offset: int
    last_offset: int
    epoch: int
    append_timestamp_ms: int
    values: tuple[bytes, ...]
    is_control: bool
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedSnapshot:
    """A snapshot that takes the place of every record below `end_offset`.

    `values` yields the framed metadata records, batch by batch, and can be gone through once, in
    the call that hands the snapshot over or in the pieces that it returns.
    """

    end_offset: int
    epoch: int
    last_contained_log_timestamp_ms: int
    values: Iterator[tuple[bytes, ...]]


InPieces: TypeAlias = Iterator[None]
"""Work that is done by going on to the next item, until there is none."""


class RaftListener(Protocol):
    """Hears, in this order and on the event loop, what happens to the log; must not block long.

    The calls come one at a time. `propose` may be called from within them. Whatever one of them
    raises stops the replica: a node that cannot follow its own log must not go on. What takes long
    may be returned in pieces instead of being done at once; the next call comes after the last one.
    """

    def on_snapshot(self, snapshot: LoadedSnapshot) -> InPieces | None:
        """Replace everything known by a snapshot."""
        ...

    def on_commit(self, batches: Sequence[CommittedBatch]) -> InPieces | None:
        """Apply committed batches, which follow what was told before."""
        ...

    def on_leadership_gained(self, epoch: int) -> None:
        """Begin to lead: everything before this epoch was told, and its first batch committed."""
        ...

    def on_leadership_lost(self, epoch: int) -> None:
        """Stop leading; comes once for each `on_leadership_gained`."""
        ...

    def on_leader_change(self, leader_id: int | None, epoch: int) -> None:
        """Note who leads the quorum as far as this replica knows, itself included."""
        ...

    def on_failure(self, error: Exception) -> None:
        """Note that the replica has stopped for good: a disk failed, or an invariant broke."""
        ...
