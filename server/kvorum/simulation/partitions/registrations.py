"""The conclusions that the checks draw from a partition's state in the metadata log."""

from __future__ import annotations

from kvorum.metadata.partition import PartitionRegistration
from kvorum.simulation.partitions import promises
from kvorum.simulation.properties.checks import PropertyViolatedError


def check_change(before: PartitionRegistration, after: PartitionRegistration) -> None:
    """Check what every committed change keeps; raises PropertyViolatedError."""
    message = f"{before} became {after}"
    if after.has_leader and after.leader not in after.isr:
        raise PropertyViolatedError(promises.LEADER_IN_ISR, message)
    if not set(after.isr) <= set(after.replicas) or set(after.isr) & set(after.elr):
        raise PropertyViolatedError(promises.ISR_OF_REPLICAS, message)
    if after.partition_epoch != before.partition_epoch + 1:
        raise PropertyViolatedError(promises.EPOCH_RISES, message)
    if after.leader != before.leader and after.leader_epoch != before.leader_epoch + 1:
        raise PropertyViolatedError(promises.NEW_LEADER_EPOCH, message)


def is_unclean(before: PartitionRegistration, after: PartitionRegistration) -> bool:
    """Return whether a leader was elected, or let into the ISR, that may lack committed records.

    Who gives up a reassignment while only added replicas are in sync makes the ISR of the first
    replica, where the topic allows that (Kafka's PartitionReassignmentRevert).
    """
    is_elected = after.has_leader and after.leader_epoch > before.leader_epoch
    # Kafka elects the last known leader only where no other replica is eligible.
    may_lead = {*before.isr, *(before.elr or before.last_known_elr)}
    is_reverted = bool(before.adding_replicas) and not (
        set(before.adding_replicas) & set(after.replicas)
    )
    is_isr_lost = is_reverted and not set(before.isr) & set(after.isr)
    return is_isr_lost or (is_elected and after.leader not in may_lead)


def waits_for_an_operator(partition: PartitionRegistration) -> bool:
    """Return whether a partition stays as it is until an operator changes it, as it does in Kafka.

    Either no replica can be elected, because a former one alone is eligible: PartitionChangeBuilder
    keeps a member of the ISR that a reassignment removes in the ELR where too few are in sync, and
    elects no last known leader while the ELR has members. That takes an unclean election. Or a
    replica is both added and removed, because a second reassignment took back what the first was to
    add, and nothing else was new: that never ends, but can be cancelled.
    """
    elr = set(partition.elr)
    is_leaderless = not partition.has_leader and not partition.isr
    is_added_and_removed = set(partition.adding_replicas) & set(partition.removing_replicas)
    is_elr_gone = is_leaderless and bool(elr) and not elr & set(partition.replicas)
    return is_elr_gone or bool(is_added_and_removed)
