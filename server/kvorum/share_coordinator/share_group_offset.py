"""The state of a share partition as its records give it (Kafka's ShareGroupOffset)."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final, Self

from kvorum.share_coordinator.persister_state_batch import PersisterStateBatch
from kvorum.share_coordinator.persister_state_batch_combiner import combined_state_batches

UNINITIALIZED_START_OFFSET: Final = -1
UNINITIALIZED_DELIVERY_COMPLETE_COUNT: Final = -1
UNCHANGED_LEADER_EPOCH: Final = -1
NO_TIMESTAMP: Final = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupOffset:
    """The records of a share partition in flight, its start offset, and the epochs of both.

    `delivery_complete_count` counts records from the start offset on whose delivery is complete;
    -1 is unknown. `create_timestamp_ms` is the time of the last snapshot that came of a change,
    `write_timestamp_ms` that of the last one. Batches that `are_combined` need not all be looked
    at again; those of a record are as it has them.
    """

    snapshot_epoch: int
    state_epoch: int = 0
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    state_batches: tuple[PersisterStateBatch, ...] = ()
    are_combined: bool = False
    create_timestamp_ms: int = NO_TIMESTAMP
    write_timestamp_ms: int = NO_TIMESTAMP

    def change(
        self,
        *,
        start_offset: int,
        delivery_complete_count: int,
        state_batches: Iterable[PersisterStateBatch],
    ) -> Self:
        """Return what a write changes; neither the start offset nor the count goes back."""
        if start_offset == self.start_offset:
            delivery_complete_count = max(delivery_complete_count, self.delivery_complete_count)
        elif start_offset < self.start_offset:
            delivery_complete_count = self.delivery_complete_count
        return replace(
            self,
            start_offset=max(start_offset, self.start_offset),
            delivery_complete_count=delivery_complete_count,
            state_batches=tuple(state_batches),
            are_combined=False,
        )

    def merged(self, change: "ShareGroupOffset") -> Self:
        """Return the state after a change; raises `DisorderedBatchError`."""
        start_offset = change.start_offset
        if start_offset == UNINITIALIZED_START_OFFSET:
            start_offset = self.start_offset
        leader_epoch = change.leader_epoch
        if leader_epoch == UNCHANGED_LEADER_EPOCH:
            leader_epoch = self.leader_epoch
        batches = combined_state_batches(
            self.state_batches, change.state_batches, start_offset, are_combined=self.are_combined
        )
        return replace(
            self,
            leader_epoch=leader_epoch,
            start_offset=start_offset,
            delivery_complete_count=change.delivery_complete_count,
            state_batches=batches,
            are_combined=len(batches) > 1,
        )
