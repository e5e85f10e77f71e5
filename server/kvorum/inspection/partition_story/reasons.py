"""The reasons for one change of a partition."""

from collections.abc import Iterator

from kvorum.inspection.partition_story.change import Reason, ReasonKind, Surroundings
from kvorum.metadata.partition import NO_LEADER, RECOVERED
from kvorum.spark.history.tables import LeaderChangeCause, PartitionTimelineRow


def reasons_for(
    before: PartitionTimelineRow,
    after: PartitionTimelineRow,
    surroundings: Surroundings,
    cause: str | None,
) -> tuple[Reason, ...]:
    """Return what explains a change; `cause` is that of its leader change, if it is one."""
    found = dict.fromkeys(
        (
            *_of_leader(before, after, surroundings, cause),
            *_of_reassignment(before, after),
            *_of_removals(before, after, surroundings, cause),
            *_of_additions(before, after, cause),
            *_of_the_rest(before, after),
        )
    )
    if not found:
        return (Reason(ReasonKind.ELR_CHANGED),)
    known = tuple(reason for reason in found if reason.kind is not ReasonKind.UNKNOWN)
    return known or tuple(found)


def _of_leader(
    before: PartitionTimelineRow,
    after: PartitionTimelineRow,
    surroundings: Surroundings,
    cause: str | None,
) -> Iterator[Reason]:
    if before.leader == NO_LEADER != after.leader == surroundings.unfenced:
        yield Reason(ReasonKind.BROKER_UNFENCED, (after.leader,))
    # A reassignment shows in the replicas.
    if cause is None or cause == LeaderChangeCause.REASSIGNMENT:
        return
    kind = ReasonKind(cause)
    match kind:
        case ReasonKind.BROKER_UNFENCED | ReasonKind.PREFERRED_ELECTION:
            yield Reason(kind, (after.leader,))
        case ReasonKind.UNKNOWN | ReasonKind.UNCLEAN_ELECTION:
            yield Reason(kind)
        case _:
            yield Reason(kind, (before.leader,))


def _of_reassignment(before: PartitionTimelineRow, after: PartitionTimelineRow) -> Iterator[Reason]:
    was_going_on = bool(before.adding_replicas or before.removing_replicas)
    goes_on = bool(after.adding_replicas or after.removing_replicas)
    if not was_going_on and goes_on:
        yield Reason(ReasonKind.REASSIGNMENT_BEGUN)
    elif not goes_on and was_going_on:
        is_back = _is_cancelled(before, after)
        yield Reason(
            ReasonKind.REASSIGNMENT_CANCELLED if is_back else ReasonKind.REASSIGNMENT_COMPLETED
        )
    elif not goes_on and before.replicas != after.replicas:
        # One that needs no new replica is done within one record.
        yield Reason(ReasonKind.REASSIGNMENT_COMPLETED)
    elif _replicas(before) != _replicas(after):
        yield Reason(ReasonKind.REASSIGNMENT_CHANGED)


def _replicas(state: PartitionTimelineRow) -> tuple[tuple[int, ...], ...]:
    return state.replicas, state.adding_replicas, state.removing_replicas


def _is_cancelled(before: PartitionTimelineRow, after: PartitionTimelineRow) -> bool:
    """Return whether a reassignment ended with the replicas of before it."""
    was_going_on = before.adding_replicas or before.removing_replicas
    if not was_going_on or after.adding_replicas or after.removing_replicas:
        return False
    return {*after.replicas} == {*before.replicas} - {*before.adding_replicas}


def _of_removals(
    before: PartitionTimelineRow,
    after: PartitionTimelineRow,
    surroundings: Surroundings,
    cause: str | None,
) -> Iterator[Reason]:
    departed = surroundings.departed
    if departed is not None and departed.broker_id in _given_up(before, after):
        yield Reason(ReasonKind(departed.cause), (departed.broker_id,))
    dropped: list[int] = []
    for broker in before.isr:
        if broker in after.isr or broker not in after.replicas:
            continue
        if departed is not None and departed.broker_id == broker:
            yield Reason(ReasonKind(departed.cause), (broker,))
        elif cause == LeaderChangeCause.UNCLEAN_ELECTION:
            # The new leader alone is in sync, whatever the others did.
            continue
        elif broker in surroundings.in_controlled_shutdown:
            yield Reason(ReasonKind.CONTROLLED_SHUTDOWN, (broker,))
        elif before.leader == after.leader:
            dropped.append(broker)
    if dropped:
        yield Reason(ReasonKind.ISR_SHRUNK, tuple(dropped))


def _given_up(before: PartitionTimelineRow, after: PartitionTimelineRow) -> set[int]:
    """Return the replicas that cannot be elected any more, for what they may lack."""
    return {*before.eligible_leader_replicas} - {*after.eligible_leader_replicas, *after.isr}


def _of_additions(
    before: PartitionTimelineRow, after: PartitionTimelineRow, cause: str | None
) -> Iterator[Reason]:
    added = tuple(broker for broker in after.isr if broker not in before.isr)
    # Any other election, and a cancelled reassignment, put the new leader into the ISR themselves.
    is_of_leader = cause in {None, LeaderChangeCause.REASSIGNMENT} and before.leader != NO_LEADER
    if added and is_of_leader and not _is_cancelled(before, after):
        yield Reason(ReasonKind.ISR_EXPANDED, added)


def _of_the_rest(before: PartitionTimelineRow, after: PartitionTimelineRow) -> Iterator[Reason]:
    if before.leader_recovery_state != after.leader_recovery_state == RECOVERED:
        yield Reason(ReasonKind.LEADER_RECOVERED)
    old = dict(zip(before.replicas, before.directories, strict=True))
    moved = tuple(
        replica
        for replica, directory in zip(after.replicas, after.directories, strict=True)
        if replica in old and old[replica] != directory
    )
    if moved:
        yield Reason(ReasonKind.DIRECTORY_ASSIGNED, moved)
