"""The topic ``__cluster_metadata``, as a broker shows it to its clients where it may be read.

The image has no such topic: its only partition is the log that the image is made of. Every broker
has a whole copy of that log and serves it itself, so it names itself as the partition's leader and
only replica. There is no leader epoch: what is committed is never truncated, so clients have
nothing to check when the quorum changes its leader, or when they change the broker.

The topic is not shown as internal. It is none by Kafka's list of such topics either, and Spark's
connector reads no internal topic, even if that is assigned to it.
"""

from collections.abc import Iterable
from typing import Final

from kvorum.broker.view_api import BrokerView
from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.directory_ids import UNASSIGNED
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.partition import PartitionRegistration, Partitions
from kvorum.metadata.topic_names import CLUSTER_METADATA_TOPIC
from kvorum.metadata.topics_image import TopicImage
from kvorum.wire.uuid_text import METADATA_TOPIC_ID

NO_EPOCH: Final = -1
OPERATIONS: Final = 1 << AclOperation.READ | 1 << AclOperation.DESCRIBE
"""The operations that a client which sees the topic may do with it, as a bit field."""


def find_topic(image: MetadataImage, name: str, view: BrokerView) -> TopicImage | None:
    """Return the topic called `name`, None without one that clients see."""
    return _metadata_topic(view) if is_served(name, view) else image.topics.by_name(name)


def find_topic_by_id(image: MetadataImage, topic_id: bytes, view: BrokerView) -> TopicImage | None:
    """Return the topic with `topic_id`, None without one that clients see."""
    if view.serves_metadata_topic and topic_id == METADATA_TOPIC_ID:
        return _metadata_topic(view)
    return image.topics.by_id.get(topic_id)


def topic_names(image: MetadataImage, view: BrokerView) -> Iterable[str]:
    """Return the names of all topics that there are for clients, in any order."""
    names = image.topics.ids
    return [*names, CLUSTER_METADATA_TOPIC] if view.serves_metadata_topic else names


def may_describe(name: str, view: BrokerView, *, logs_denied: bool = True) -> bool:
    """Return whether the client may know of a topic; the metadata is described by the cluster.

    A refusal is logged if `logs_denied`: if the client has named the topic.
    """
    if is_served(name, view):
        return view.access.allows_on_cluster(AclOperation.DESCRIBE, logs_denied=logs_denied)
    return view.access.allows_on_topic(AclOperation.DESCRIBE, name, logs_denied=logs_denied)


def operations_on(name: str, view: BrokerView) -> int:
    """Return the bit field of what the client may do with a topic that it may describe."""
    return OPERATIONS if is_served(name, view) else view.access.operations_on_topic(name)


def is_served(name: str, view: BrokerView) -> bool:
    """Return whether `name` is that of the metadata, and clients may read it here."""
    return view.serves_metadata_topic and name == CLUSTER_METADATA_TOPIC


def _metadata_topic(view: BrokerView) -> TopicImage:
    this_broker = (view.node_id,)
    partition = PartitionRegistration(
        replicas=this_broker,
        directories=(UNASSIGNED,),
        isr=this_broker,
        leader=view.node_id,
        leader_epoch=NO_EPOCH,
    )
    return TopicImage(CLUSTER_METADATA_TOPIC, METADATA_TOPIC_ID, Partitions((partition,)))
