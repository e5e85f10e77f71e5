"""The choice of the replica that a consumer reads from (KIP-392): RackAwareReplicaSelector.

Pure. The leader asks for each fetch of a consumer; the consumer then reads from the replica that
the response names, until it looks for a better one.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

RACK_AWARE: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
"""The value of ``replica.selector.class`` for `RackAwareReplicaSelector`."""


class ReplicaView(NamedTuple):
    """A replica that has what is asked for: where it is, and how far behind the leader it may be.

    `rack` is None for a broker without a rack, and for one without the client's listener.
    """

    broker_id: int
    rack: str | None
    log_end_offset: int
    time_since_last_caught_up_ms: float


class PartitionView(NamedTuple):
    """The replicas of a partition that a consumer may read from, the leader among them."""

    replicas: Sequence[ReplicaView]
    leader: ReplicaView


class RackAwareReplicaSelector:
    """The leader if it is in the consumer's rack, or else the best follower there.

    Without a rack, and without a replica in it, the consumer reads from the leader.
    """

    def select(self, rack_id: str, view: PartitionView) -> ReplicaView:
        """Return the replica for a consumer in a rack; `rack_id` is empty without one."""
        in_rack = [one for one in view.replicas if rack_id and one.rack == rack_id]
        if not in_rack or view.leader in in_rack:
            return view.leader
        return max(
            in_rack,
            key=lambda one: (one.log_end_offset, -one.time_since_last_caught_up_ms, one.broker_id),
        )
