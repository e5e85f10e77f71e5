"""The coordinators in partitions of an internal topic: who leads one, and which start and end."""

from dataclasses import dataclass
from typing import Final, NamedTuple

from kvorum.metadata.image import MetadataImage
from kvorum.metadata.java_hash import partition_of_string
from kvorum.metadata.topics_image import TopicImage, TopicsImage

TRANSACTION_STATE_TOPIC: Final = "__transaction_state"
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


class CoordinatorChange(NamedTuple):
    """A partition whose leadership this broker takes, keeps in a new epoch, or loses."""

    topic_id: bytes
    partition: int
    leader_epoch: int


@dataclass(frozen=True, slots=True)
class CoordinatorElections:
    """The partitions that the broker leads, and those that it leads no longer or has lost."""

    elected: tuple[CoordinatorChange, ...] = ()
    resigned: tuple[CoordinatorChange, ...] = ()


def coordinator_elections(
    before: TopicsImage, after: TopicsImage, topic: str, broker_id: int
) -> CoordinatorElections:
    """Return the changes of the partitions of `topic` from one image to a later one."""
    old, new = before.by_name(topic), after.by_name(topic)
    if old is new:
        return CoordinatorElections()
    elected: list[CoordinatorChange] = []
    resigned: list[CoordinatorChange] = []
    if old is not None and (new is None or new.id != old.id):
        resigned += _lost(old, broker_id)
        old = None
    if new is not None:
        _compare(old, new, broker_id, elected, resigned)
    return CoordinatorElections(tuple(elected), tuple(resigned))


def deleted_topics(before: TopicsImage, after: TopicsImage) -> list[TopicImage]:
    """Return the topics that are gone; another one may have the same name."""
    if before.by_id is after.by_id:
        return []
    return [topic for topic_id, topic in before.by_id.items() if topic_id not in after.by_id]


def _compare(
    old: TopicImage | None,
    new: TopicImage,
    broker_id: int,
    elected: list[CoordinatorChange],
    resigned: list[CoordinatorChange],
) -> None:
    for index, registration in new.partitions.in_order():
        known = None if old is None else old.partitions.get(index)
        if known is registration:
            continue
        if broker_id not in registration.replicas:
            if known is not None and broker_id in known.replicas:
                resigned.append(CoordinatorChange(new.id, index, NO_LEADER_EPOCH))
        elif registration.leader == broker_id:
            elected.append(CoordinatorChange(new.id, index, registration.leader_epoch))
        else:
            resigned.append(CoordinatorChange(new.id, index, registration.leader_epoch))


def _lost(topic: TopicImage, broker_id: int) -> list[CoordinatorChange]:
    return [
        CoordinatorChange(topic.id, index, NO_LEADER_EPOCH)
        for index, registration in topic.partitions.in_order()
        if broker_id in registration.replicas
    ]
