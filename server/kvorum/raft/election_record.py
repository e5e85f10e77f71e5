"""The record of a replica's epoch that must survive a restart, and the highest such epoch."""

from typing import Final, NamedTuple

from kvorum.raft.replica_key import ReplicaKey

EPOCH_MAX: Final = 2**31 - 2
"""The highest epoch that a replica enters because a peer names it: an election needs one more."""


class ElectionRecord(NamedTuple):
    """The state that must survive a restart: the epoch, and the leader and the vote in it."""

    epoch: int
    leader_id: int | None = None
    voted: ReplicaKey | None = None
