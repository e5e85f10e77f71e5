"""The promises to the clients of a group, and the answers that they got.

Offsets are numbers that grow with each commit. A commit without an answer may have happened, or may
yet be replayed by the next coordinator; one that is acknowledged is read from then on, until a
later one takes its place, or its retention is over.
"""

from dataclasses import dataclass, field
from typing import Final, TypeAlias

from kvorum.simulation.partitions import promises
from kvorum.simulation.partitions.settings import (
    COMMIT_TIMEOUT_MS,
    SESSION_TIMEOUT_MS,
    STATIC_SESSION_TIMEOUT_MS,
    ClusterGroupSettings,
)
from kvorum.simulation.properties.catalogue import Checks, PropertyViolatedError
from kvorum.simulation.requests import CLIENT_ID
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kvorum.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

Place: TypeAlias = tuple[int, str, str]
"""A broker, what is asked of it, and the member that asks: the empty id of a new one too."""
NOTHING: Final = -1
NEVER: Final = float("-inf")
_NOT_KNOWN: Final = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID})
_ROUNDING_MS: Final = 2
"""Clocks of the day have whole milliseconds."""
_TURN_MS: Final = 150
"""The time that a coordinator takes beside the times that are waited for."""


class OffsetLedger:
    """The offsets that one group has committed for one partition."""

    def __init__(self, checks: Checks) -> None:
        self._checks = checks
        self.sent = NOTHING
        """The last offset of a commit that may count by now."""
        self.acknowledged = NOTHING
        self._acknowledged_ms = NEVER
        self._given = NOTHING
        self._refused: set[int] = set()
        self.is_pending = False
        """Whether a transaction that has not ended got the answer that its offset is there."""

    def give(self) -> int:
        """Return an offset to commit, which is higher than all before."""
        self._given += 1
        return self._given

    def send(self) -> int:
        """Return an offset to commit, outside of a transaction."""
        self.sent = self.give()
        return self.sent

    def refuse(self, offset: int) -> None:
        """Note that an offset counts in no case: it was refused, or its transaction is aborted."""
        self._refused.add(offset)

    def give_to_transaction(self) -> int:
        """Return an offset that counts in no case until its transaction may be committed."""
        offset = self.give()
        self.refuse(offset)
        return offset

    def permit(self, offset: int) -> None:
        """Note that an offset may count from now on, as its transaction may be committed."""
        self._refused.discard(offset)
        self.sent = max(self.sent, offset)

    def acknowledge(self, offset: int, since_ms: float) -> None:
        """Note that a commit that was sent at `since_ms` is acknowledged."""
        if offset > self.acknowledged:
            self.acknowledged, self._acknowledged_ms = offset, since_ms

    def expire(self, oldest_ms: float) -> None:
        """Note that what was committed until a time may be gone, if the group had no member."""
        if self._acknowledged_ms <= oldest_ms:
            self.acknowledged = NOTHING

    def on_read(self, offset: int, message: str) -> None:
        """Check what the present coordinator has answered."""
        if offset < self.acknowledged:
            raise PropertyViolatedError(promises.OFFSETS_KEPT, message)
        if offset > self.sent or offset in self._refused:
            raise PropertyViolatedError(promises.OFFSETS_KNOWN, message)
        self._checks.held(promises.OFFSETS_KEPT, promises.OFFSETS_KNOWN)


@dataclass(slots=True)
class _MemberBook:
    """The times of a member's join, and of its last heartbeat in its generation."""

    joined_ms: float
    rebalance_timeout_ms: int
    generation: int = NOTHING
    """The generation in which it last got its assignment."""
    seen_ms: float = NEVER


@dataclass(slots=True)
class GroupLedger:
    """The offsets of one group by partition, its members, and the owners by generation."""

    settings: ClusterGroupSettings
    checks: Checks
    clients: dict[str, int] = field(default_factory=dict[str, int])
    """The number of clients that have an instance id and go on."""
    _offsets: dict[int, OffsetLedger] = field(default_factory=dict[int, OffsetLedger])
    _owners: dict[tuple[int, int], str] = field(default_factory=dict[tuple[int, int], str])
    _members: dict[str, _MemberBook] = field(default_factory=dict[str, _MemberBook])
    _replaced_ms: dict[str, float] = field(default_factory=dict[str, float])
    """When a client of an instance id last asked for a new member id, or was to be removed."""
    _timeouts_ms: dict[str, set[int]] = field(default_factory=dict[str, set[int]])
    """The rebalance timeouts of a static member that may be in force."""
    _waiting: dict[Place, object] = field(default_factory=dict[Place, object])
    _alive_ms: float = NEVER

    def offsets(self, partition: int) -> OffsetLedger:
        """Return the offsets of a partition."""
        return self._offsets.setdefault(partition, OffsetLedger(self.checks))

    def on_read(self, partition: int, offset: int, message: str, now_ms: float) -> None:
        """Check what the present coordinator has answered."""
        oldest_ms, offsets = self._oldest_ms(now_ms), self.offsets(partition)
        if self._alive_ms <= oldest_ms:
            offsets.expire(oldest_ms)
        offsets.on_read(offset, message)

    def open_partitions(self) -> frozenset[int]:
        """Return the partitions with an offset of a transaction that is open."""
        return frozenset(one for one, offsets in self._offsets.items() if offsets.is_pending)

    # --- members ---

    def on_alive(self, now_ms: float) -> None:
        """Note that the present coordinator has a member."""
        oldest_ms = self._oldest_ms(now_ms)
        if self._alive_ms <= oldest_ms:
            # It may have had none for long enough.
            for offsets in self._offsets.values():
                offsets.expire(oldest_ms)
        self._alive_ms = now_ms

    def _oldest_ms(self, now_ms: float) -> float:
        """Return before when an offset must have got old to be gone by now."""
        return now_ms - self.settings.retention_ms + _ROUNDING_MS

    def longest_wait_ms(self) -> float:
        """Return for how long a member may wait for the others."""
        known = (one for each in self._timeouts_ms.values() for one in each)
        return max(self.settings.longest_wait_ms, *known, 0) + COMMIT_TIMEOUT_MS + _TURN_MS

    def on_join(self, request: JoinGroupRequest, now_ms: float) -> None:
        """Note that a coordinator handles a join, now or later."""
        instance = request.group_instance_id
        if instance is not None:
            self._timeouts_ms.setdefault(instance, set()).add(request.rebalance_timeout_ms)
            if not request.member_id:
                self._replaced_ms[instance] = now_ms
        self._forget_session(request.member_id)

    def on_leave(self, member_id: str, instance: str | None, now_ms: float) -> None:
        """Note that a coordinator handles the request of a member, or of its operator, to leave."""
        self._forget_session(member_id)
        if instance is not None:
            self._replaced_ms[instance] = now_ms
        for place in [one for one in self._waiting if _is_of(one[2], member_id, instance)]:
            del self._waiting[place]

    def begin_wait(self, place: Place) -> object:
        """Return a mark of a request that waits from now on, in place of an earlier one."""
        mark = self._waiting[place] = object()
        return mark

    def is_waited_for(self, place: Place, mark: object) -> bool:
        """Return whether a request has to be answered.

        As in Kafka, that is not so where a member has repeated it, or is gone.
        """
        return not place[2] or self._waiting.get(place) is mark

    def _forget_session(self, member_id: str) -> None:
        """Note that a member may be removed before its session is over."""
        if member_id in self._members:
            self._members[member_id].seen_ms = NEVER

    def on_generation(self, generation: int) -> None:
        """Note that a coordinator, present or not, has begun a generation.

        With the first one the group is a new one, or no member had an assignment in it before.
        """
        if generation == 1:
            self._owners.clear()

    def on_joined(
        self, request: JoinGroupRequest, answer: JoinGroupResponse, asked_ms: float
    ) -> None:
        """Check what a member was answered by the present coordinator."""
        message = f"generation {answer.generation_id}, {len(answer.members)} members to "
        message += f"{answer.member_id}, leader {answer.leader}"
        if bool(answer.members) is not (answer.leader == answer.member_id):
            raise PropertyViolatedError(promises.LEADER_KNOWS, message)
        self.checks.held(promises.LEADER_KNOWS)
        # Static members keep their places while they sleep, and may be too many then, as in Kafka.
        # Their ids begin with that of their instance, which older versions do not name.
        dynamic = sum(one.member_id.startswith(f"{CLIENT_ID}-") for one in answer.members)
        # A static leader that is back in its generation hears of those that have come since, too.
        if dynamic > self.settings.size_max and request.group_instance_id is None:
            raise PropertyViolatedError(promises.SIZE_KEPT, message)
        self.checks.held(promises.SIZE_KEPT)
        known = self._members.get(answer.member_id)
        self._members[answer.member_id] = _MemberBook(
            asked_ms, request.rebalance_timeout_ms, NOTHING if known is None else known.generation
        )

    def on_assigned(self, request: SyncGroupRequest, answer: SyncGroupResponse) -> None:
        """Check what a member has got in a generation, a byte for each partition."""
        generation, instance = request.generation_id, request.group_instance_id
        # A static member keeps its partitions under another member id (KIP-345).
        member = instance or request.member_id
        for partition in answer.assignment:
            owner = self._owners.setdefault((generation, partition), member)
            if owner != member:
                message = f"generation {generation}, partition {partition}: {owner} and {member}"
                raise PropertyViolatedError(promises.ONE_OWNER, message)
            self.checks.held(promises.ONE_OWNER)
        book = self._members.get(request.member_id)
        if book is not None:
            book.generation = generation
            if instance is not None and not self._is_replaced(instance, book):
                # The log has the timeout that it asked for.
                self._timeouts_ms[instance] = {book.rebalance_timeout_ms}

    def _is_replaced(self, instance: str | None, book: _MemberBook) -> bool:
        return self._replaced_ms.get(instance or "", NEVER) > book.joined_ms

    def on_heartbeat(self, member_id: str, generation: int, now_ms: float) -> None:
        """Note that a member's session begins again."""
        book = self._members.get(member_id)
        if book is not None and book.generation == generation:
            book.seen_ms = now_ms

    def on_refusal(self, code: int, member_id: str, instance: str | None, now_ms: float) -> None:
        """Check that the present coordinator does not know a member for a reason."""
        book = self._members.get(member_id)
        if book is None or book.generation == NOTHING or code not in _NOT_KNOWN:
            return
        if instance is not None and self._is_replaced(instance, book):
            return
        message = f"{member_id} at {now_ms:.0f}: {book}"
        if code == ErrorCode.FENCED_INSTANCE_ID:
            raise PropertyViolatedError(promises.FENCED_BY_ANOTHER, message)
        self.checks.held(promises.FENCED_BY_ANOTHER)
        # A join phase, and for a static member a sync phase as well, may end without it.
        phases = 1 if instance is None else 2
        rebalance_ms = phases * min(*self.settings.rebalance_timeouts_ms, SESSION_TIMEOUT_MS)
        session_ms = SESSION_TIMEOUT_MS if instance is None else STATIC_SESSION_TIMEOUT_MS
        if now_ms < book.seen_ms + min(session_ms, rebalance_ms) - _ROUNDING_MS:
            raise PropertyViolatedError(promises.SESSION_KEPT, message)
        self.checks.held(promises.SESSION_KEPT)


def _is_of(waiting: str, member_id: str, instance: str | None) -> bool:
    """Return whether a member that waits is one that goes; ids begin with those of instances."""
    return waiting == member_id or (instance is not None and waiting.startswith(f"{instance}-"))
