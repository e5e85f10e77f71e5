"""The replica that the leader sends a consumer to (KIP-392): Kafka's findPreferredReadReplica."""

from kvorum.broker.partition import Partition
from kvorum.broker.replica_selector import PartitionView, RackAwareReplicaSelector, ReplicaView
from kvorum.metadata.cluster_image import ClusterImage
from kvorum.node.broker.delayed_fetch import PreferredReadReplica, ReadablePartition
from kvorum.node.services import BrokerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.messages.fetch import FetchRequest


def preferred_read_replica(
    request: IncomingRequest[FetchRequest],
    broker: BrokerServices,
    selector: RackAwareReplicaSelector,
) -> PreferredReadReplica:
    """Return what finds the follower for the consumer that a request is from."""
    body = request.body
    cluster, now_ms = broker.loader.published.cluster, broker.clock.monotonic_ms()

    def find(partition: ReadablePartition, offset: int) -> int | None:
        if not isinstance(partition, Partition):
            return None
        view = _view(partition, offset, _Racks(cluster, request.listener), now_ms)
        return None if view is None else _select(selector, body.rack_id, view)

    return find


class _Racks:
    """The racks of brokers, for clients of one listener."""

    def __init__(self, cluster: ClusterImage, listener: str) -> None:
        self._cluster = cluster
        self._listener = listener

    def of(self, broker_id: int) -> str | None:
        broker = self._cluster.brokers.get(broker_id)
        if broker is None or broker.endpoint(self._listener) is None:
            return None
        return broker.rack


def _view(partition: Partition, offset: int, racks: _Racks, now_ms: float) -> PartitionView | None:
    leader_id = partition.leader_id_if_local
    if leader_id is None:
        return None
    end_offset = partition.log.local_log.log_end_offset
    leader = ReplicaView(leader_id, racks.of(leader_id), end_offset, 0.0)
    followers = [
        ReplicaView(
            follower,
            racks.of(follower),
            progress.log_end_offset,
            now_ms - progress.last_caught_up_ms,
        )
        for follower, progress in partition.in_sync_followers()
        if progress.log_start_offset <= offset <= progress.log_end_offset
    ]
    return PartitionView((*followers, leader), leader)


def _select(selector: RackAwareReplicaSelector, rack_id: str, view: PartitionView) -> int | None:
    selected = selector.select(rack_id, view)
    return None if selected == view.leader else selected.broker_id
