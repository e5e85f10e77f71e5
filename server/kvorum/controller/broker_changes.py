"""The records that fence, unfence, shut down or unregister a broker."""

from collections.abc import Iterator
from typing import Final

from kvorum.controller.api import Steps, records_of
from kvorum.controller.cluster_rules import ClusterRules
from kvorum.controller.leader_and_isr_updates import (
    leader_and_isr_changes,
    partitions_in_directory,
    partitions_with_elr_member,
    partitions_with_isr_member,
    partitions_without_leader,
)
from kvorum.metadata.cluster_image import BrokerRegistration
from kvorum.metadata.record_types import RecordAndVersion
from kvorum.wire.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kvorum.wire.messages.unregister_broker_record import UnregisterBrokerRecord

FENCE: Final = 1
UNFENCE: Final = -1
IN_CONTROLLED_SHUTDOWN: Final = 1


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


def unregister_broker(
    rules: ClusterRules, broker: BrokerRegistration
) -> Iterator[RecordAndVersion]:
    """Yield the records that unregister `broker`: it leaves every ISR and ELR first."""
    for partitions in (
        partitions_with_isr_member(rules.image, broker.id),
        partitions_with_elr_member(rules.image, broker.id),
    ):
        yield from records_of(leader_and_isr_changes(rules, partitions, broker_to_remove=broker.id))
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
