"""The progress of a reassignment of the quorum (KIP-642), and the plan of all its steps.

The plan has the steps as `next_step` would take them. Each step is tried on the description of the
quorum, and the next one asked for. Nothing else decides. What is left out is time: a target that
fetches counts as caught up.
"""

from dataclasses import dataclass, replace
from typing import Final

from immutables import Map

from kvorum.controller.quorum_description import QuorumDescription, ReplicaState
from kvorum.controller.quorum_reassignment.next_step import (
    AddVoter,
    Blocked,
    BlockReason,
    Circumstances,
    HandOver,
    Reached,
    RemoveVoter,
    Step,
    assignment_of,
    next_step,
)
from kvorum.metadata.cluster_image import ControllerRegistration
from kvorum.metadata.voters import (
    InvalidTargetVotersError,
    TargetVoters,
    VoterKey,
    parse_target_voters,
)
from kvorum.wire.uuid_text import ZERO_UUID

_NOT_BLOCKED: Final = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReassignmentDescription:
    """A reassignment as the active controller sees it.

    `targets` are the wanted voters with their progress; a target of which no replica is known, or
    more than one, has its id alone. `blocked` is what is waited for, None while there is progress.
    `now_ms` is the wall clock to which the ages of the fetches belong.
    """

    targets: tuple[ReplicaState, ...]
    adding_count: int
    removing_count: int
    blocked: Blocked | None
    now_ms: int

    @property
    def reason_code(self) -> int:
        """The code of the reason why nothing can be done now, 0 while there is progress."""
        return _NOT_BLOCKED if self.blocked is None else self.blocked.reason.value

    @property
    def block_text(self) -> str:
        """The reason for the operator, empty while there is progress."""
        return "" if self.blocked is None else self.blocked.text


def describe_reassignment(
    text: str, quorum: QuorumDescription, blocked: Blocked | None, *, now_ms: int
) -> ReassignmentDescription:
    """Return how far the quorum is from the target voters that `text` lists."""
    try:
        targets = parse_target_voters(text)
    except InvalidTargetVotersError as error:
        return ReassignmentDescription(
            targets=(),
            adding_count=0,
            removing_count=0,
            blocked=Blocked(BlockReason.UNREADABLE, str(error)),
            now_ms=now_ms,
        )
    assignment = assignment_of(targets, quorum)
    resolved = {key.id: key for key in (*assignment.retained, *assignment.new)}
    return ReassignmentDescription(
        targets=tuple(
            _state_of(resolved.get(target.id, VoterKey(target.id)), quorum) for target in targets
        ),
        adding_count=len(assignment.new) + len(assignment.unknown),
        removing_count=len(assignment.leaving),
        blocked=blocked,
        now_ms=now_ms,
    )


def _state_of(key: VoterKey, quorum: QuorumDescription) -> ReplicaState:
    for state in quorum.replicas_of(key.id):
        if state.key == key:
            return state
    return ReplicaState(key, log_end_offset=None, last_fetch_age_ms=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedStep:
    """A step, and the quorum after it: its voters, and how many of them do not fetch."""

    step: Step
    voter_count: int
    silent_count: int

    @property
    def tolerated_failures(self) -> int:
        """The number of voters that fetch and may fail before the majority is lost."""
        return self.voter_count - self.silent_count - (self.voter_count // 2 + 1)


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps in their order; `blocked` is why the targets are not reached, None if they are."""

    steps: tuple[PlannedStep, ...]
    blocked: Blocked | None


def assumed_circumstances(quorum: QuorumDescription, *, fetch_timeout_ms: float) -> Circumstances:
    """Return circumstances for a plan: every replica is registered, and has caught up.

    The leader has checked the registrations when it accepted the targets; where a controller
    listens makes no difference to a plan.
    """
    replicas = (*quorum.voters, *quorum.observers)
    return Circumstances(
        controllers={state.key.id: _stand_in(state.key.id) for state in replicas},
        fetch_timeout_ms=fetch_timeout_ms,
        has_caught_up=lambda _: True,
        progress_text=lambda _: "",
    )


def _stand_in(node_id: int) -> ControllerRegistration:
    return ControllerRegistration(
        id=node_id,
        incarnation_id=ZERO_UUID,
        is_zk_migration_ready=False,
        listeners=(),
        supported_features=Map(),
    )


def planned_steps(
    targets: TargetVoters, quorum: QuorumDescription, circumstances: Circumstances
) -> Plan:
    """Return every step until the targets are reached, or until nothing can be done."""
    steps: list[PlannedStep] = []
    seen: set[tuple[int, frozenset[VoterKey]]] = set()
    while True:
        step = next_step(targets, quorum, circumstances)
        if isinstance(step, Reached):
            return Plan(tuple(steps), None)
        if isinstance(step, Blocked):
            return Plan(tuple(steps), step)
        quorum = _after(step, targets, quorum, circumstances)
        silent = [one for one in quorum.voters if not _is_fetching(one, quorum, circumstances)]
        steps.append(
            PlannedStep(step=step, voter_count=len(quorum.voters), silent_count=len(silent))
        )
        state = quorum.leader_id, frozenset(one.key for one in quorum.voters)
        if state in seen:
            raise AssertionError(f"the steps go round in a circle: {step}")
        seen.add(state)


def _is_fetching(
    state: ReplicaState, quorum: QuorumDescription, circumstances: Circumstances
) -> bool:
    is_leader = state.key.id == quorum.leader_id
    return is_leader or state.fetches(within_ms=circumstances.fetch_timeout_ms)


def _after(
    step: AddVoter | RemoveVoter | HandOver,
    targets: TargetVoters,
    quorum: QuorumDescription,
    circumstances: Circumstances,
) -> QuorumDescription:
    """Return the quorum as it is after a step."""
    match step:
        case AddVoter():
            return _moved(step.key, quorum, is_voter=True)
        case RemoveVoter():
            return _moved(step.key, quorum, is_voter=False)
        case HandOver():
            return replace(quorum, leader_id=_successor(targets, quorum, circumstances))


def _moved(key: VoterKey, quorum: QuorumDescription, *, is_voter: bool) -> QuorumDescription:
    """Return the quorum with a replica among the voters, or among the observers."""
    moved = tuple(state for state in (*quorum.voters, *quorum.observers) if state.key == key)
    voters = tuple(state for state in quorum.voters if state.key != key)
    observers = tuple(state for state in quorum.observers if state.key != key)
    if is_voter:
        return replace(quorum, voters=voters + moved, observers=observers)
    return replace(quorum, voters=voters, observers=observers + moved)


def _successor(
    targets: TargetVoters, quorum: QuorumDescription, circumstances: Circumstances
) -> int:
    """Return who probably leads next: the voter that stays with the longest log."""
    staying = set(assignment_of(targets, quorum).retained)
    states = [
        one
        for one in quorum.voters
        if one.key in staying and _is_fetching(one, quorum, circumstances)
    ]
    return max(states, key=lambda one: (one.log_end_offset or 0, -one.key.id)).key.id
