"""The listener of a replica: Kafka's RaftClient.Listener, and the values that it receives."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

InPieces: TypeAlias = Iterator[None]
"""Work in pieces: each `next` does one piece, until the iterator ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedBatch:
    """One batch of the log below the high watermark.

    `values` are the framed metadata records at `base_offset`, `base_offset` + 1, …; a control batch
    has none, and is passed on only so that the listener knows the committed offset.
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
    """A snapshot that replaces every record below `end_offset`.

    `values` yields the framed metadata records, batch by batch. It can be iterated once, in the
    call that receives the snapshot or in the pieces that this call returns.
    """

    end_offset: int
    epoch: int
    last_contained_log_timestamp_ms: int
    values: Iterator[tuple[bytes, ...]]


class RaftListener(Protocol):
    """Receives the events of the log in order, on the event loop; a call must not block long.

    The calls come one at a time, and may call `propose`. An error that a call raises stops the
    replica: a node that cannot follow its own log must not continue. A call may return long work in
    pieces instead of doing it at once; the next call comes after the last piece.
    """

    def on_snapshot(self, snapshot: LoadedSnapshot) -> InPieces | None:
        """Replace the whole state by a snapshot."""
        ...

    def on_commit(self, batches: Sequence[CommittedBatch]) -> InPieces | None:
        """Apply committed batches, which follow those of earlier calls."""
        ...

    def on_leadership_gained(self, epoch: int) -> None:
        """Begin to lead: all batches before this epoch were passed on, its first is committed."""
        ...

    def on_leadership_lost(self, epoch: int) -> None:
        """Stop leading; comes once for each `on_leadership_gained`."""
        ...

    def on_leader_change(self, leader_id: int | None, epoch: int) -> None:
        """Handle a new leader of the quorum, as far as this replica knows; may be itself."""
        ...

    def on_failure(self, error: Exception) -> None:
        """Handle that the replica has stopped finally: a disk or an invariant failed."""
        ...
