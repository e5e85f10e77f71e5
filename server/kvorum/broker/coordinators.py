"""The coordinators in partitions of an internal topic: who leads one, and which start and end."""

from operator import attrgetter
from typing import Final, NamedTuple

from kvorum.broker.local_replica_changes import LocalReplicaChanges, compare_topic, replicas_of
from kvorum.coordinator.coordinator_partition import coordinator_partition
from kvorum.coordinator.coordinator_type import CoordinatorType
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.topics_image import TopicsImage

NO_LEADER_EPOCH: Final = -1
"""Stands for no epoch at all: a replica that is gone resigns whatever its last epoch was."""


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
    return None if registration is None else broker_node(image, registration.leader, listener)


def broker_node(image: MetadataImage, broker_id: int, listener: str) -> CoordinatorNode | None:
    """Return a broker; None while it is not alive on the listener."""
    broker = image.cluster.brokers.get(broker_id)
    endpoint = None if broker is None or broker.is_fenced else broker.endpoint(listener)
    return None if endpoint is None else CoordinatorNode(broker_id, endpoint.host, endpoint.port)


def coordinator_of_key(
    image: MetadataImage, kind: CoordinatorType, key: str, listener: str
) -> CoordinatorNode | None:
    """Return the coordinator of a key, a transactional id for example; None without one."""
    topic = image.topics.by_name(kind.topic)
    if topic is None:
        return None
    partition = coordinator_partition(key, len(topic.partitions))
    return coordinator_node(image, kind.topic, partition, listener)


class CoordinatorChange(NamedTuple):
    """A partition whose leadership this broker takes, keeps in a new epoch, or loses."""

    topic_id: bytes
    partition: int
    leader_epoch: int


class CoordinatorElections(NamedTuple):
    """The partitions that the broker leads, and those that it leads no longer or has lost."""

    elected: list[CoordinatorChange]
    resigned: list[CoordinatorChange]


def coordinator_elections(
    before: TopicsImage, after: TopicsImage, topic: str, broker_id: int
) -> CoordinatorElections:
    """Return the changes of the partitions of `topic` from one image to a later one."""
    old, new = before.by_name(topic), after.by_name(topic)
    local = LocalReplicaChanges()
    if old is not None and (new is None or new.id != old.id):
        local.deletes.extend(replicas_of(old, broker_id))
        old = None
    if new is not None and new is not old:
        compare_topic(old, new, broker_id, local)
    elected, followed = (
        [CoordinatorChange(*one.key, one.registration.leader_epoch) for one in infos]
        for infos in (local.leaders, local.followers)
    )
    gone = [CoordinatorChange(*one.key, NO_LEADER_EPOCH) for one in local.deletes]
    return CoordinatorElections(elected, sorted(gone + followed, key=attrgetter("partition")))
