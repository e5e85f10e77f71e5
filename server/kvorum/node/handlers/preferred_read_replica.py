"""The replica that the leader sends a consumer to (KIP-392): Kafka's findPreferredReadReplica."""

from kvorum.broker.partition import Partition
from kvorum.broker.replica_selector import PartitionView, ReplicaView
from kvorum.node.broker.delayed_fetch import PreferredReadReplica, ReadablePartition
from kvorum.node.services import BrokerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.messages.fetch import FetchRequest


def preferred_read_replica(
    request: IncomingRequest[FetchRequest], broker: BrokerServices
) -> PreferredReadReplica | None:
    """Return what finds the follower for the consumer that a request is from; None without one."""
    selector = broker.replica_selector
    if selector is None:
        return None
    cluster, now_ms = broker.loader.published.cluster, broker.clock.monotonic_ms()

    def rack_of(broker_id: int) -> str | None:
        found = cluster.brokers.get(broker_id)
        return None if found is None or found.endpoint(request.listener) is None else found.rack

    def find(partition: ReadablePartition, offset: int) -> int | None:
        if not isinstance(partition, Partition) or partition.leader_id_if_local is None:
            return None
        leader_id = partition.leader_id_if_local
        end_offset = partition.log.local_log.log_end_offset
        leader = ReplicaView(leader_id, rack_of(leader_id), end_offset, 0.0)
        followers = [
            ReplicaView(
                follower,
                rack_of(follower),
                progress.log_end_offset,
                now_ms - progress.last_caught_up_ms,
            )
            for follower, progress in partition.in_sync_followers()
            if progress.log_start_offset <= offset <= progress.log_end_offset
        ]
        view = PartitionView((*followers, leader), leader)
        selected = selector.select(request.body.rack_id, view)
        return None if selected == leader else selected.broker_id

    return find
