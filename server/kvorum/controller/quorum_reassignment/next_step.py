"""The next step from the present voters to the target voters (KIP-642, "Reassignment Algorithm").

One voter is added or removed at a time. While there are at least as many new voters as leaving ones
the step is an addition, and otherwise a removal: so the quorum never has fewer voters than the
smaller of the two sets. The leader leaves last, and first hands over to a voter that stays.

A node whose directory is replaced is the exception: its id can be a voter only once, so its old
directory goes first, when the new one is ready to follow. Until then the quorum lacks one voter.

No step is taken after which no majority of the voters would be fetching: it could not be committed,
and while it is not, there is no other.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, unique
from typing import TypeAlias

from kvorum.controller.quorum_description import QuorumDescription, ReplicaState
from kvorum.metadata.cluster_image import ControllerRegistration
from kvorum.metadata.voters import TargetVoters, VoterKey


@unique
class BlockReason(Enum):
    """The reason against a step now; the values are the ones that a metric shows."""

    STATIC_VOTERS = 1
    """The voters are not in the log: kraft.version is 0."""
    VOTER_CHANGE_UNDER_WAY = 2
    """The change before is not committed yet."""
    TARGET_UNKNOWN = 3
    """A target does not fetch, or is not a registered controller."""
    TARGET_AMBIGUOUS = 4
    """Two directories claim a target's id."""
    TARGET_LAGGING = 5
    """A target is behind."""
    MAJORITY_MISSING = 6
    """After the step no majority would be fetching."""
    REFUSED = 7
    """The leader has refused the step."""
    UNREADABLE = 8
    """The recorded value does not name target voters."""


@dataclass(frozen=True, slots=True)
class AddVoter:
    """Make a replica a voter, reachable as its node has registered."""

    key: VoterKey
    registration: ControllerRegistration

    def __str__(self) -> str:
        return f"add voter {self.key}"


@dataclass(frozen=True, slots=True)
class RemoveVoter:
    """Make a voter an observer."""

    key: VoterKey

    def __str__(self) -> str:
        return f"remove voter {self.key}"


@dataclass(frozen=True, slots=True)
class HandOver:
    """Resign, so that a voter that stays becomes the leader and removes this one."""

    def __str__(self) -> str:
        return "hand over the leadership"


@dataclass(frozen=True, slots=True)
class Reached:
    """The voters are the target voters: clear those."""

    def __str__(self) -> str:
        return "clear the target voters, which are reached"


@dataclass(frozen=True, slots=True)
class Blocked:
    """Nothing can be done now; `text` is for the operator."""

    reason: BlockReason
    text: str

    def __str__(self) -> str:
        return f"wait: {self.text}"


Step: TypeAlias = AddVoter | RemoveVoter | HandOver | Reached | Blocked


@dataclass(frozen=True, slots=True)
class Assignment:
    """The present voters and the targets, sorted into what stays, comes and goes.

    `unknown` are targets to come of which no replica is known, or more than one. `unclear` are
    targets that may be voters already: a voter has that id, and so has another replica.
    """

    retained: tuple[VoterKey, ...]
    new: tuple[VoterKey, ...]
    leaving: tuple[VoterKey, ...]
    unknown: tuple[Blocked, ...]
    unclear: tuple[Blocked, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """The facts that a step depends on besides the quorum itself.

    `has_caught_up` returns whether a replica may become a voter, `progress_text` how far it is. A
    replica whose last fetch is not older than `fetch_timeout_ms` counts as fetching. `refusals` is
    how often the leader has refused to add a replica.
    """

    controllers: Mapping[int, ControllerRegistration]
    fetch_timeout_ms: float
    has_caught_up: Callable[[VoterKey], bool]
    progress_text: Callable[[VoterKey], str]
    refusals: Mapping[VoterKey, int] = field(default_factory=dict[VoterKey, int])


def assignment_of(targets: TargetVoters, quorum: QuorumDescription) -> Assignment:
    """Return the targets that are voters already, those to come, and the voters to go."""
    voters = [state.key for state in quorum.voters]
    wanted: list[VoterKey] = []
    unknown: dict[int, Blocked] = {}
    for target in targets:
        found = _resolve(target, quorum)
        if isinstance(found, Blocked):
            unknown[target.id] = found
        else:
            wanted.append(found)
    # A voter whose id is wanted without its directory stays until it is clear which one is meant.
    unclear_ids = {key.id for key in voters} & set(unknown)
    return Assignment(
        retained=tuple(key for key in voters if key in wanted),
        new=tuple(key for key in wanted if key not in voters),
        leaving=tuple(key for key in voters if key not in wanted and key.id not in unclear_ids),
        unknown=tuple(text for node_id, text in unknown.items() if node_id not in unclear_ids),
        unclear=tuple(text for node_id, text in unknown.items() if node_id in unclear_ids),
    )


def _resolve(target: VoterKey, quorum: QuorumDescription) -> VoterKey | Blocked:
    if target.directory_id is not None:
        return target
    keys = [state.key for state in quorum.replicas_of(target.id)]
    if len(keys) == 1:
        return keys[0]
    if not keys:
        return Blocked(
            BlockReason.TARGET_UNKNOWN, f"target {target.id} does not fetch from the leader"
        )
    return Blocked(
        BlockReason.TARGET_AMBIGUOUS,
        f"two directories claim target {target.id}: {', '.join(map(str, keys))}; name the "
        "one that is meant",
    )


def next_step(
    targets: TargetVoters, quorum: QuorumDescription, circumstances: Circumstances
) -> Step:
    """Return the step to take now; the caller takes it only while it leads."""
    if quorum.has_static_voters:
        return Blocked(
            BlockReason.STATIC_VOTERS,
            f"the voters are static, because kraft.version is {quorum.kraft_version}",
        )
    if not quorum.may_change:
        return Blocked(
            BlockReason.VOTER_CHANGE_UNDER_WAY, "the latest change of the voters is not committed"
        )
    assignment = assignment_of(targets, quorum)
    # An unclear target counts on neither side: if another directory of a voter's node is meant, one
    # voter more is to come and one more is to go, which is the same comparison.
    coming = len(assignment.new) + len(assignment.unknown)
    if not coming and not assignment.leaving:
        return _combined(assignment.unclear) if assignment.unclear else Reached()
    if coming >= len(assignment.leaving):
        return _addition(assignment, quorum, circumstances)
    coming_ids = {key.id for key in assignment.new}
    return _removal(assignment.leaving, quorum, circumstances, coming_ids=coming_ids)


def _addition(
    assignment: Assignment, quorum: QuorumDescription, circumstances: Circumstances
) -> Step:
    """Add a new voter that has caught up: one that was not refused, with the longest log."""
    voter_ids = {state.key.id for state in quorum.voters}
    states = {state.key: state for state in quorum.observers}
    blocked: list[Blocked] = list(assignment.unknown)
    ready: dict[VoterKey, ControllerRegistration] = {}
    replaced: list[VoterKey] = []
    for key in assignment.new:
        found = _ready(key, states.get(key), circumstances)
        if isinstance(found, Blocked):
            blocked.append(found)
        elif key.id in voter_ids:
            replaced += [old for old in assignment.leaving if old.id == key.id]
        else:
            ready[key] = found

    def preference(key: VoterKey) -> tuple[int, int, int]:
        return -circumstances.refusals.get(key, 0), states[key].log_end_offset or 0, -key.id

    if ready:
        chosen = max(ready, key=preference)
        return _checked_addition(AddVoter(chosen, ready[chosen]), quorum, circumstances)
    if replaced:
        # A node's id is there once: its old directory goes before its new one comes.
        return _removal(tuple(replaced), quorum, circumstances)
    return _combined(blocked)


def _checked_addition(
    step: AddVoter, quorum: QuorumDescription, circumstances: Circumstances
) -> Step:
    """Return the step, unless so many voters are silent that one more makes no majority."""
    silent = _silent_voters(quorum, circumstances)
    voters = [*(state.key for state in quorum.voters), step.key]
    if _has_fetching_majority(voters, silent):
        return step
    return Blocked(
        BlockReason.MAJORITY_MISSING,
        f"even with voter {step.key} no majority would be fetching: {_listed(voters, silent)}",
    )


def _ready(
    key: VoterKey, state: ReplicaState | None, circumstances: Circumstances
) -> ControllerRegistration | Blocked:
    """Return the registration of a replica that may become a voter now, or why it may not."""
    registration = circumstances.controllers.get(key.id)
    if registration is None:
        return Blocked(
            BlockReason.TARGET_UNKNOWN, f"target {key} has not registered as a controller"
        )
    if state is None or not state.fetches(within_ms=circumstances.fetch_timeout_ms):
        return Blocked(BlockReason.TARGET_UNKNOWN, f"target {key} does not fetch from the leader")
    if not circumstances.has_caught_up(key):
        return Blocked(
            BlockReason.TARGET_LAGGING,
            f"target {key} is behind: {circumstances.progress_text(key)}",
        )
    return registration


def _combined(blocked: Collection[Blocked]) -> Blocked:
    """Return one reason to wait that names all that is missing."""
    return Blocked(next(iter(blocked)).reason, "; ".join(one.text for one in blocked))


def _removal(
    leaving: tuple[VoterKey, ...],
    quorum: QuorumDescription,
    circumstances: Circumstances,
    *,
    coming_ids: Collection[int] = (),
) -> Step:
    """Remove a voter that does not fetch before one that does, and the leader last of all.

    A node that stays with another directory is kept while others can go.
    """
    silent = _silent_voters(quorum, circumstances)
    others = [key for key in leaving if key.id != quorum.leader_id]

    def preference(key: VoterKey) -> tuple[bool, bool, int]:
        return key in silent, key.id not in coming_ids, key.id

    chosen = max(others, key=preference) if others else leaving[0]
    rest = [state.key for state in quorum.voters if state.key != chosen]
    if not rest:
        return Blocked(BlockReason.MAJORITY_MISSING, f"voter {chosen} is the only one")
    if not _has_fetching_majority(rest, silent):
        return Blocked(
            BlockReason.MAJORITY_MISSING,
            f"without voter {chosen} no majority would be fetching: {_listed(rest, silent)}",
        )
    return RemoveVoter(chosen) if others else HandOver()


def _silent_voters(quorum: QuorumDescription, circumstances: Circumstances) -> frozenset[VoterKey]:
    """Return the voters that do not fetch; the leader needs not."""
    return frozenset(
        state.key
        for state in quorum.voters
        if state.key.id != quorum.leader_id
        and not state.fetches(within_ms=circumstances.fetch_timeout_ms)
    )


def _has_fetching_majority(voters: Sequence[VoterKey], silent: Collection[VoterKey]) -> bool:
    return sum(key not in silent for key in voters) > len(voters) // 2


def _listed(voters: Sequence[VoterKey], silent: Collection[VoterKey]) -> str:
    names = [str(key) for key in voters if key in silent]
    return f"{', '.join(names)} {'does' if len(names) == 1 else 'do'} not"
