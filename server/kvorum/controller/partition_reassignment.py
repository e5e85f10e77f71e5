"""The reassignment of a partition: replicas that are added, removed and kept."""

from typing import NamedTuple

from kvorum.metadata.partition import PartitionRegistration


class Reassignment(NamedTuple):
    """The replicas of a partition during a reassignment."""

    replicas: tuple[int, ...]
    removing: tuple[int, ...]
    adding: tuple[int, ...]


class CompletedReassignment(NamedTuple):
    """The replicas after a completed reassignment."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]


class RevertedReassignment(NamedTuple):
    """The replicas after a cancelled reassignment, which is unclean if none of them is in sync."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    is_unclean: bool


def plan_reassignment(current: tuple[int, ...], target: tuple[int, ...]) -> Reassignment:
    """Return the reassignment from the replicas `current` to `target`."""
    removing = tuple(sorted(set(current) - set(target)))
    adding = tuple(sorted(set(target) - set(current)))
    return Reassignment(replicas=target + removing, removing=removing, adding=adding)


def complete_reassignment(
    reassignment: Reassignment, isr: tuple[int, ...]
) -> CompletedReassignment | None:
    """Return the final replicas if `isr` allows the reassignment to complete, else None."""
    removing, adding = reassignment.removing, reassignment.adding
    if not removing and not adding:
        return None
    replicas_left = tuple(replica for replica in reassignment.replicas if replica not in removing)
    isr_left = tuple(replica for replica in isr if replica not in removing)
    if removing and not (isr_left and replicas_left):
        return None
    if not set(adding) <= set(isr_left):
        return None
    if len(adding) < len(removing) and not set(replicas_left) <= set(isr_left):
        return None
    return CompletedReassignment(replicas_left, isr_left)


def revert_reassignment(partition: PartitionRegistration) -> RevertedReassignment:
    """Return `partition` without the replicas that were being added."""
    adding = set(partition.adding_replicas)
    replicas = tuple(replica for replica in partition.replicas if replica not in adding)
    isr = tuple(replica for replica in partition.isr if replica not in adding)
    if isr:
        return RevertedReassignment(replicas, isr, is_unclean=False)
    return RevertedReassignment(replicas, replicas[:1], is_unclean=True)
