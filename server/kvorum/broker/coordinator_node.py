"""The broker that coordinates: who leads a partition of an internal topic, and where it listens."""

from __future__ import annotations

from typing import Final, NamedTuple

from kvorum.metadata.image import MetadataImage
from kvorum.metadata.java_hash import partition_of_string

TRANSACTION_STATE_TOPIC: Final = "__transaction_state"


class CoordinatorNode(NamedTuple):
    """A broker's id, and its address on a listener."""

    node_id: int
    host: str
    port: int


def coordinator_node(
    image: MetadataImage, topic: str, partition: int, listener: str
) -> CoordinatorNode | None:
    """Return the leader of a partition; None while it has none that is alive on the listener."""
    found = image.topics.by_name(topic)
    registration = None if found is None else found.partitions.get(partition)
    leader = None if registration is None else image.cluster.brokers.get(registration.leader)
    if leader is None or leader.is_fenced:
        return None
    endpoint = leader.endpoint(listener)
    return None if endpoint is None else CoordinatorNode(leader.id, endpoint.host, endpoint.port)


def is_transaction_state_known(image: MetadataImage) -> bool:
    """Return whether the cluster keeps transactions: whether ``__transaction_state`` exists."""
    return image.topics.by_name(TRANSACTION_STATE_TOPIC) is not None


def transaction_coordinator(
    image: MetadataImage, transactional_id: str, listener: str
) -> CoordinatorNode | None:
    """Return the coordinator of a transactional id; None without one."""
    topic = image.topics.by_name(TRANSACTION_STATE_TOPIC)
    if topic is None:
        return None
    partition = partition_of_string(transactional_id, len(topic.partitions))
    return coordinator_node(image, TRANSACTION_STATE_TOPIC, partition, listener)
