"""The progress of a reassignment of the quorum, for clients and metrics (KIP-642)."""

from dataclasses import dataclass
from typing import Final

from kvorum.controller.quorum_description import QuorumDescription, ReplicaState
from kvorum.controller.quorum_reassignment.next_step import Blocked, BlockReason, assignment_of
from kvorum.metadata.target_voters import InvalidTargetVotersError, parse_target_voters
from kvorum.metadata.voter_key import VoterKey

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
