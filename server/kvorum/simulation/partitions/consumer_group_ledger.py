"""The promises to the members of a consumer group (KIP-848), and the answers that they got.

A member owns a partition from the answer that gives it until it drops it, which it reports to the
coordinator afterwards. Members that sleep, or whose requests are lost, still take for theirs what
their last answer gave: they are excused once the coordinator may have fenced them, and then have to
be refused.
"""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from kvorum.groups.modern_group.member_state import JOIN_EPOCH
from kvorum.simulation.partitions import promises
from kvorum.simulation.partitions.consumer_group_settings import ClusterConsumerGroupSettings
from kvorum.simulation.properties.catalogue import Checks, PropertyViolatedError
from kvorum.wire.error_codes import ErrorCode

TopicIdPartition: TypeAlias = tuple[bytes, int]
NEVER: Final = float("-inf")
NOT_YET: Final = float("inf")
_REFUSES: Final = frozenset(
    {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.GROUP_ID_NOT_FOUND,
    }
)
_ROUNDING_MS: Final = 2
"""Clocks of the day have whole milliseconds."""


@dataclass(slots=True)
class Membership:
    """One member from its join to its next one, as itself and the coordinator know it."""

    member_id: str
    epoch: int = JOIN_EPOCH
    owned: set[TopicIdPartition] = field(default_factory=set[TopicIdPartition], repr=False)
    """The partitions that it takes for its own, in no order that a failed world could repeat."""
    seen_ms: float = NEVER
    """When the present coordinator last got a heartbeat that it answered."""
    answered_ms: float = NEVER
    """When that answer was decided on."""
    is_sure: bool = False
    """Whether the last answer was the present coordinator's: others report what may be lost."""
    unheard_from_ms: float = NOT_YET
    """When the first heartbeat was sent after the last one whose answer was heard."""
    owes_from_ms: float = NOT_YET
    """When the heartbeat was sent with which the coordinator may first have taken something."""
    fenced_from_ms: float = NOT_YET
    """From when on it is known to be fenced, as another member has what it takes for its own."""


class ConsumerGroupLedger:
    """The members of one group, those that sleep included."""

    def __init__(self, settings: ClusterConsumerGroupSettings, checks: Checks) -> None:
        self._settings = settings
        self._checks = checks
        self._members: dict[str, Membership] = {}

    # --- what members do ---

    def join(self, member_id: str) -> Membership:
        """Note that a member owns nothing and joins, again or for the first time."""
        self._members[member_id] = member = Membership(member_id)
        return member

    def end(self, member_id: str) -> None:
        """Note that the process of a member has ended."""
        self._members.pop(member_id, None)

    def on_told(
        self,
        member: Membership,
        *,
        epoch: int,
        assigned: AbstractSet[TopicIdPartition],
        now_ms: float,
    ) -> None:
        """Check what a member hears: its epoch, and all that it may own."""
        message = f"{member.member_id}: epoch {member.epoch}, then {epoch}"
        is_no_lower = epoch >= member.epoch
        self._checks.demand(promises.MEMBER_EPOCH_RISES, message, holds=is_no_lower)
        member.epoch = epoch
        for partition in sorted(assigned - member.owned):
            self._check_owners(member, partition, now_ms)
        if member.owned <= assigned:
            member.owes_from_ms = NOT_YET
        else:
            member.owes_from_ms = min(member.owes_from_ms, member.unheard_from_ms)
        member.owned |= assigned
        member.unheard_from_ms = NOT_YET

    def _check_owners(self, member: Membership, partition: TopicIdPartition, now_ms: float) -> None:
        is_kept = member.is_sure and not self._may_be_fenced(member, now_ms)
        if not is_kept:
            return
        for other in self._others(member):
            if partition not in other.owned:
                continue
            if self._may_be_fenced(other, now_ms):
                if member.answered_ms > other.answered_ms:
                    other.fenced_from_ms = min(other.fenced_from_ms, now_ms)
            elif other.is_sure:
                message = f"{partition[0].hex()}-{partition[1]} at {now_ms:.0f}: {other}, {member}"
                raise PropertyViolatedError(promises.ONE_OWNER_AT_A_TIME, message)
        self._checks.held(promises.ONE_OWNER_AT_A_TIME)

    def _others(self, member: Membership) -> Iterator[Membership]:
        return (one for one in self._members.values() if one is not member)

    def _may_be_fenced(self, member: Membership, now_ms: float) -> bool:
        """Return whether the coordinator may have fenced a member that thinks it is one."""
        rebalance_from_ms = min(member.unheard_from_ms, member.owes_from_ms)
        kept_until_ms = min(
            member.seen_ms + self._settings.session_timeout_ms,
            rebalance_from_ms + self._settings.rebalance_timeout_ms,
        )
        return now_ms >= kept_until_ms - _ROUNDING_MS

    # --- what coordinators answer ---

    def on_answer(
        self, code: int, member_id: str, *, asked_ms: float, now_ms: float, is_present: bool
    ) -> None:
        """Check the answer to a heartbeat, or to a commit, in the epoch of a membership."""
        member = self._members.get(member_id)
        if member is None:
            return
        if code == ErrorCode.NONE:
            member.is_sure = is_present
        if not is_present:
            return
        is_fenced = asked_ms >= member.fenced_from_ms
        message = f"{member} at {now_ms:.0f}: {ErrorCode(code).name}"
        if is_fenced and code == ErrorCode.NONE:
            raise PropertyViolatedError(promises.FENCED_ARE_REFUSED, message)
        if is_fenced and code in _REFUSES:
            self._checks.held(promises.FENCED_ARE_REFUSED)
        if code == ErrorCode.UNKNOWN_MEMBER_ID and member.seen_ms > NEVER:
            is_over = self._may_be_fenced(member, now_ms)
            self._checks.demand(promises.SESSION_KEPT, message, holds=is_over)

    def on_heartbeat(self, member_id: str, *, asked_ms: float, now_ms: float) -> None:
        """Note that the present coordinator has answered a heartbeat: a session begins again."""
        member = self._members.get(member_id)
        if member is not None:
            member.seen_ms, member.answered_ms = asked_ms, now_ms
