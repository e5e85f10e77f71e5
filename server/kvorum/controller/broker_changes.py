"""The records that fence, unfence, shut down or unregister a broker: new leaders and ISRs too."""

from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter
from typing import Final

from kvorum.controller.api import Steps
from kvorum.controller.cluster_rules import ClusterRules
from kvorum.controller.partition_change_builder import Election
from kvorum.metadata.cluster_image import BrokerRegistration
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.partition import NO_LEADER, PartitionRegistration
from kvorum.metadata.record_frame import RecordAndVersion
from kvorum.metadata.topics_image import TopicImage
from kvorum.wire.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kvorum.wire.messages.partition_change_record import PartitionChangeRecord
from kvorum.wire.messages.unregister_broker_record import UnregisterBrokerRecord

NO_BROKER = -1

PartitionOfTopic = tuple[TopicImage, int]
Search = Iterator[PartitionOfTopic | None]
"""Partitions that were found, and None where the search may pause without one."""
Decision = tuple[PartitionChangeRecord, int] | None
SEARCHED_PER_PIECE = 10_000
"""The number of topics and partitions that are checked between two pauses: some 10 ms."""
KINDS_MAX = 10_000
"""The number of decisions that are kept for equal partitions."""
FENCE: Final = 1
UNFENCE: Final = -1
IN_CONTROLLED_SHUTDOWN: Final = 1


def leads_any(image: MetadataImage, broker_id: int) -> bool:
    """Return whether the broker leads a partition."""
    return image.topics.counts.of_broker(broker_id).led > 0


def partitions_with_isr_member(image: MetadataImage, broker_id: int) -> Search:
    """Yield the partitions whose ISR contains the broker, by topic name and index."""
    return _found(
        image,
        lambda partition: broker_id in partition.isr,
        count=image.topics.counts.of_broker(broker_id).in_sync,
    )


def partitions_with_elr_member(image: MetadataImage, broker_id: int) -> Search:
    """Yield the partitions whose ELR contains the broker."""
    return _found(
        image,
        lambda partition: broker_id in partition.elr,
        count=image.topics.counts.of_broker(broker_id).eligible,
    )


def partitions_in_directory(image: MetadataImage, directory_id: bytes) -> Search:
    """Yield the partitions that have a replica in the log directory."""
    return _found(
        image,
        lambda partition: directory_id in partition.directories,
        count=image.topics.counts.all,
    )


def partitions_without_leader(image: MetadataImage) -> Search:
    """Yield the partitions without a leader."""
    return _found(
        image, lambda partition: partition.leader == NO_LEADER, count=image.topics.counts.leaderless
    )


def partitions_without_preferred_leader(image: MetadataImage) -> Search:
    """Yield the partitions whose leader is not their preferred replica."""
    return _found(
        image,
        lambda partition: not partition.has_preferred_leader,
        count=image.topics.counts.not_preferred,
    )


def _found(
    image: MetadataImage, is_wanted: Callable[[PartitionRegistration], bool], *, count: int
) -> Search:
    """Yield the partitions for which `is_wanted` holds, by topic name and index.

    There are at most `count` such partitions: the search ends with the last one, and does not
    begin otherwise. Only the topics with such partitions are sorted.
    """
    left, until_stop = count, SEARCHED_PER_PIECE
    finds: list[tuple[str, TopicImage, list[int]]] = []
    topics = iter(image.topics.by_id.values())
    while left and (topic := next(topics, None)) is not None:
        partitions = topic.partitions.in_order()
        indexes = [index for index, partition in partitions if is_wanted(partition)]
        if indexes:
            left -= len(indexes)
            finds.append((topic.name, topic, indexes))
        until_stop -= len(topic.partitions) + 1
        if until_stop < 0:
            until_stop = SEARCHED_PER_PIECE
            yield None
    finds.sort(key=itemgetter(0))
    for _, topic, indexes in finds:
        for index in indexes:
            yield topic, index


def leader_and_isr_changes(
    rules: ClusterRules,
    partitions: Iterable[PartitionOfTopic | None],
    *,
    broker_to_remove: int = NO_BROKER,
    broker_to_add: int = NO_BROKER,
    broker_with_unclean_shutdown: int = NO_BROKER,
) -> Steps:
    """Yield the changes of `partitions` when a broker is removed, added or shut down uncleanly.

    One decision serves all partitions that are alike. Two are alike if they are equal and their
    topics have the same configuration.
    """
    gone = {broker_to_remove, broker_with_unclean_shutdown}

    def may_lead(broker_id: int) -> bool:
        return broker_id not in gone and (
            broker_id == broker_to_add or rules.image.cluster.is_broker_active(broker_id)
        )

    def decide(topic: TopicImage, index: int, *, is_unclean_enabled: bool) -> Decision:
        change = rules.change(topic, index, may_lead)
        if is_unclean_enabled:
            change.election = Election.UNCLEAN
        if broker_with_unclean_shutdown != NO_BROKER:
            change.unclean_shutdown_replicas = (broker_with_unclean_shutdown,)
        change.isr = tuple(replica for replica in change.isr if replica not in gone)
        return change.record()

    decided: dict[object, Decision] = {}
    for found in partitions:
        if found is None:
            yield None
            continue
        topic, index = found
        is_unclean_enabled = rules.is_unclean_election_enabled(topic.name)
        kind = (topic.partitions[index], is_unclean_enabled, rules.min_insync_replicas(topic))
        if kind in decided:
            decision = _of_partition(decided[kind], topic.id, index)
        else:
            decision = decide(topic, index, is_unclean_enabled=is_unclean_enabled)
            if len(decided) < KINDS_MAX:
                decided[kind] = decision
        if decision is not None:
            yield decision


def _of_partition(decision: Decision, topic_id: bytes, index: int) -> Decision:
    """Return the decision on one partition, rewritten for another one."""
    if decision is None:
        return None
    record, version = decision
    return PartitionChangeRecord(
        partition_id=index,
        topic_id=topic_id,
        isr=record.isr,
        leader=record.leader,
        replicas=record.replicas,
        removing_replicas=record.removing_replicas,
        adding_replicas=record.adding_replicas,
        leader_recovery_state=record.leader_recovery_state,
        directories=record.directories,
        eligible_leader_replicas=record.eligible_leader_replicas,
        last_known_elr=record.last_known_elr,
    ), version


def handle_broker_fenced(rules: ClusterRules, broker: BrokerRegistration) -> Steps:
    """Yield the records that fence `broker`: it leaves every ISR, then it is marked as fenced."""
    yield from leader_and_isr_changes(
        rules, partitions_with_isr_member(rules.image, broker.id), broker_to_remove=broker.id
    )
    yield BrokerRegistrationChangeRecord(broker.id, broker.epoch, fenced=FENCE), 0


def handle_broker_unfenced(rules: ClusterRules, broker: BrokerRegistration) -> Steps:
    """Yield the records that unfence `broker` and elect it where a partition has no leader."""
    yield BrokerRegistrationChangeRecord(broker.id, broker.epoch, fenced=UNFENCE), 0
    yield from leader_and_isr_changes(
        rules, partitions_without_leader(rules.image), broker_to_add=broker.id
    )


def shutting_down(rules: ClusterRules, broker: BrokerRegistration) -> Steps:
    """Yield the records that move leaderships and ISR memberships off `broker` before it stops."""
    if not broker.is_in_controlled_shutdown:
        change = BrokerRegistrationChangeRecord(
            broker.id, broker.epoch, in_controlled_shutdown=IN_CONTROLLED_SHUTDOWN
        )
        yield change, 1
    yield from leader_and_isr_changes(
        rules, partitions_with_isr_member(rules.image, broker.id), broker_to_remove=broker.id
    )


def unregister_broker(rules: ClusterRules, broker: BrokerRegistration) -> Steps:
    """Yield the records that unregister `broker`: it leaves every ISR and ELR first."""
    for partitions in (
        partitions_with_isr_member(rules.image, broker.id),
        partitions_with_elr_member(rules.image, broker.id),
    ):
        yield from leader_and_isr_changes(rules, partitions, broker_to_remove=broker.id)
    yield UnregisterBrokerRecord(broker_id=broker.id, broker_epoch=broker.epoch), 0


def end_incarnation(rules: ClusterRules, broker_id: int, *, is_clean: bool) -> Steps:
    """Yield the changes due to a broker's earlier incarnation when a new one registers.

    A broker that did not shut down cleanly may have lost records that it acknowledged. With ELR on,
    it is therefore removed from the eligible leaders as well.
    """
    in_sync = partitions_with_isr_member(rules.image, broker_id)
    if is_clean or not rules.image.features.is_elr_enabled:
        yield from leader_and_isr_changes(rules, in_sync, broker_to_remove=broker_id)
        return
    for partitions in (in_sync, partitions_with_elr_member(rules.image, broker_id)):
        yield from leader_and_isr_changes(rules, partitions, broker_with_unclean_shutdown=broker_id)


def handle_directories_offline(
    rules: ClusterRules, broker: BrokerRegistration, offline: list[bytes]
) -> Steps:
    """Yield the changes due to failed log directories of `broker`; unknown ones are ignored."""
    newly_offline = [directory for directory in broker.directories if directory in offline]
    if not newly_offline:
        return
    for directory in newly_offline:
        yield from leader_and_isr_changes(
            rules, partitions_in_directory(rules.image, directory), broker_to_remove=broker.id
        )
    online = [directory for directory in broker.directories if directory not in offline]
    yield BrokerRegistrationChangeRecord(broker.id, broker.epoch, log_dirs=online), 2


def cordon_directories(
    broker: BrokerRegistration, cordoned: list[bytes] | None
) -> Iterator[RecordAndVersion]:
    """Yield the record of the cordoned directories, if they have changed."""
    known = broker.cordoned_directories
    if cordoned is None or (known is not None and set(known) == set(cordoned)):
        return
    change = BrokerRegistrationChangeRecord(
        broker.id, broker.epoch, cordoned_log_dirs=list(cordoned)
    )
    yield change, 3
