"""Leaders and replicas of partitions, as clients of one listener see them."""

from collections.abc import Iterable

from kvorum.metadata.cluster_image import ClusterImage
from kvorum.metadata.partition import PartitionRegistration

NO_NODE = -1


def named_controller(cluster: ClusterImage, quorum_leader_id: int | None) -> int:
    """Return the id to report as the controller's: always the same one while brokers stay alive.

    It is the leader of the quorum if that is a broker as well, else the unfenced broker with the
    lowest id, or -1 without one. Every broker forwards requests that only the controller can
    handle.
    """
    alive = [broker.id for broker in cluster.unfenced_brokers()]
    if quorum_leader_id is not None and quorum_leader_id in alive:
        return quorum_leader_id
    return min(alive, default=NO_NODE)


def has_listener(cluster: ClusterImage, broker_id: int, listener: str) -> bool:
    """Return whether the broker is registered with `listener`."""
    broker = cluster.brokers.get(broker_id)
    return broker is not None and broker.endpoint(listener) is not None


def alive_replicas(cluster: ClusterImage, replicas: Iterable[int], listener: str) -> list[int]:
    """Return those of `replicas` that are unfenced and have `listener`."""
    alive: list[int] = []
    for replica in replicas:
        broker = cluster.brokers.get(replica)
        if broker is not None and not broker.is_fenced and broker.endpoint(listener):
            alive.append(replica)
    return alive


def offline_replicas(
    cluster: ClusterImage, partition: PartitionRegistration, listener: str
) -> list[int]:
    """Return the replicas that are fenced, gone, without `listener`, or whose directory failed."""
    alive = alive_replicas(cluster, partition.replicas, listener)
    return [
        replica
        for replica in partition.replicas
        if replica not in alive
        or not cluster.brokers[replica].has_online_directory(partition.directory(replica))
    ]
