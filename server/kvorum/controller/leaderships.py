"""New leaders and ISRs for all partitions that a broker's coming or going touches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kvorum.controller.cluster_rules import ClusterRules
from kvorum.controller.election import Election
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.record_types import RecordAndVersion
from kvorum.metadata.topics_image import TopicImage

NOBODY = -1

PartitionOfTopic = tuple[TopicImage, int]


def leads_any(image: MetadataImage, broker_id: int) -> bool:
    """Tell whether the broker leads a partition."""
    return any(
        partition.leader == broker_id
        for topic in image.topics.by_id.values()
        for partition in topic.partitions.values()
    )


def partitions_with_isr_member(image: MetadataImage, broker_id: int) -> Iterator[PartitionOfTopic]:
    """Yield the partitions whose ISR the broker is in, by topic name and index."""
    for topic, index, partition in image.topics.all_partitions():
        if broker_id in partition.isr:
            yield topic, index


def partitions_with_elr_member(image: MetadataImage, broker_id: int) -> Iterator[PartitionOfTopic]:
    """Yield the partitions whose eligible leaders the broker is among."""
    for topic, index, partition in image.topics.all_partitions():
        if broker_id in partition.elr:
            yield topic, index


def partitions_in_directory(
    image: MetadataImage, directory_id: bytes
) -> Iterator[PartitionOfTopic]:
    """Yield the partitions that have a replica in the log directory."""
    for topic, index, partition in image.topics.all_partitions():
        if directory_id in partition.directories:
            yield topic, index


def partitions_without_leader(image: MetadataImage) -> Iterator[PartitionOfTopic]:
    """Yield the partitions that nobody leads."""
    for topic, index, partition in image.topics.all_partitions():
        if not partition.has_leader:
            yield topic, index


def leader_and_isr_changes(
    rules: ClusterRules,
    partitions: Iterable[PartitionOfTopic],
    *,
    broker_to_remove: int = NOBODY,
    broker_to_add: int = NOBODY,
    broker_with_unclean_shutdown: int = NOBODY,
) -> Iterator[RecordAndVersion]:
    """Yield the changes of `partitions` when brokers go, come, or went without saying goodbye."""
    gone = {broker_to_remove, broker_with_unclean_shutdown}

    def may_lead(broker_id: int) -> bool:
        return broker_id not in gone and (
            broker_id == broker_to_add or rules.image.cluster.is_broker_active(broker_id)
        )

    for topic, index in partitions:
        change = rules.change(topic, index, may_lead)
        if rules.is_unclean_election_enabled(topic.name):
            change.election = Election.UNCLEAN
        if broker_with_unclean_shutdown != NOBODY:
            change.unclean_shutdown_replicas = (broker_with_unclean_shutdown,)
        change.isr = tuple(replica for replica in change.isr if replica not in gone)
        record = change.record()
        if record is not None:
            yield record
