"""The state machine of a simulated node: it keeps every value, and answers the writers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from kvorum.node.raft.listener import CommittedBatch, LoadedSnapshot

Told: TypeAlias = Callable[[int | None], None]
"""Takes the offset of a value that was committed, or None where that cannot be known."""
_RECORDS_PER_BATCH = 64


class _Waiting(NamedTuple):
    epoch: int
    told: Told


class Application:
    """The state machine of one process. It calls `on_applied` after each new batch."""

    def __init__(self, on_applied: Callable[[], None]) -> None:
        self.values: dict[int, bytes] = {}
        self.next_offset = 0
        self.last_epoch = 0
        self.last_timestamp_ms = 0
        self.records_since_snapshot = 0
        self.failure: Exception | None = None
        self.leading_epoch: int | None = None
        self._on_applied = on_applied
        self._waiting: dict[int, _Waiting] = {}

    def wait_for(self, offset: int, *, epoch: int, told: Told) -> None:
        """Call `told` once the value proposed at an offset is committed, or cannot be known."""
        self._waiting[offset] = _Waiting(epoch, told)

    def on_snapshot(self, snapshot: LoadedSnapshot) -> None:
        """Begin anew with the values of a snapshot."""
        self.values = dict(read_value(value) for batch in snapshot.values for value in batch)
        self.next_offset, self.last_epoch = snapshot.end_offset, snapshot.epoch
        self.last_timestamp_ms = snapshot.last_contained_log_timestamp_ms
        self.records_since_snapshot = 0

    def on_commit(self, batches: Sequence[CommittedBatch]) -> None:
        """Keep the values, and answer their writers."""
        for batch in batches:
            for index, value in enumerate(batch.values):
                self.values[batch.base_offset + index] = value
            self.next_offset, self.last_epoch = batch.last_offset + 1, batch.epoch
            self.last_timestamp_ms = batch.append_timestamp_ms
            self.records_since_snapshot += batch.last_offset + 1 - batch.base_offset
            waiting = self._waiting.pop(batch.base_offset, None)
            if waiting is not None:
                is_mine = batch.epoch == waiting.epoch
                waiting.told(batch.base_offset if is_mine else None)
        self._on_applied()

    def on_leadership_gained(self, epoch: int) -> None:
        """Begin to take writes."""
        self.leading_epoch = epoch

    def on_leadership_lost(self, epoch: int) -> None:
        """Answer every waiting writer that the fate of its value cannot be known."""
        del epoch
        self.leading_epoch = None
        waiting, self._waiting = self._waiting, {}
        for one in waiting.values():
            one.told(None)

    def on_leader_change(self, leader_id: int | None, epoch: int) -> None:
        """Do nothing: clients read the leader from the core."""

    def on_failure(self, error: Exception) -> None:
        """Note that the replica has stopped itself."""
        self.failure = error

    def batches(self) -> Iterator[list[bytes]]:
        """Yield all current values for a snapshot, in batches."""
        values = [written_value(offset, value) for offset, value in self.values.items()]
        for start in range(0, len(values), _RECORDS_PER_BATCH):
            yield values[start : start + _RECORDS_PER_BATCH]


def written_value(offset: int, value: bytes) -> bytes:
    """Return the snapshot form of a value, with its offset, which snapshots do not keep."""
    return b"%d|%s" % (offset, value)


def read_value(data: bytes) -> tuple[int, bytes]:
    """Return offset and value from the snapshot form of a value."""
    offset, _, value = data.partition(b"|")
    return int(offset), value
