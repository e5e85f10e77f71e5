"""All that a shard keeps of a share partition."""

from dataclasses import dataclass, replace
from typing import Self

from kvorum.share_coordinator.share_group_offset import ShareGroupOffset


@dataclass(frozen=True, slots=True)
class KeptState:
    """The state, the greatest epochs there have been, and the updates since the last snapshot."""

    state: ShareGroupOffset
    leader_epoch_max: int
    state_epoch_max: int
    update_count: int = 0

    @classmethod
    def first(cls, state: ShareGroupOffset, update_count: int = 0) -> Self:
        """Return what is kept of a share partition after its first record."""
        return cls(state, state.leader_epoch, state.state_epoch, update_count)

    def after_snapshot(self, state: ShareGroupOffset, updates_per_snapshot: int) -> Self:
        """Return what is kept after a snapshot; one that came early counts no update as its own."""
        is_due = self.update_count >= updates_per_snapshot
        return replace(
            self,
            state=state,
            leader_epoch_max=max(self.leader_epoch_max, state.leader_epoch),
            state_epoch_max=max(self.state_epoch_max, state.state_epoch),
            update_count=0 if is_due else self.update_count,
        )

    def after_update(self, change: ShareGroupOffset) -> Self:
        """Return what is kept after an update; raises `DisorderedBatchError`."""
        return replace(
            self,
            state=self.state.merged(change),
            leader_epoch_max=max(self.leader_epoch_max, change.leader_epoch),
            update_count=self.update_count + 1,
        )
