"""A group of the classic protocol: its members, its generation, its state.

Kafka's ClassicGroup, ClassicGroupMember and ClassicGroupState. What is in here is not part of the
shard's history: only that there is a group of this name is.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Final

from kvorum.groups.classic_group.consumer_protocol import CONSUMER_PROTOCOL_TYPE, subscribed_topics
from kvorum.groups.classic_group.supported_protocol import SupportedProtocol
from kvorum.groups.promises import JoinPromise, SyncPromise
from kvorum.metadata.api import RequestError
from kvorum.metadata.java_hash import JavaHashMap
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.describe_groups import DescribeGroupsResponse
from kvorum.wire.messages.join_group import JoinGroupResponse, JoinGroupResponseMember


class ClassicGroupState(Enum):
    """States by the names that clients see."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


_EMPTY = ClassicGroupState.EMPTY
_PREPARING = ClassicGroupState.PREPARING_REBALANCE
_COMPLETING = ClassicGroupState.COMPLETING_REBALANCE
_STABLE = ClassicGroupState.STABLE

VALID_PREVIOUS_STATES: Final[Mapping[ClassicGroupState, frozenset[ClassicGroupState]]] = (
    MappingProxyType(
        {
            _EMPTY: frozenset({_PREPARING}),
            _PREPARING: frozenset({_STABLE, _COMPLETING, _EMPTY}),
            _COMPLETING: frozenset({_PREPARING}),
            _STABLE: frozenset({_COMPLETING}),
            ClassicGroupState.DEAD: frozenset(ClassicGroupState),
        }
    )
)


@dataclass(slots=True, kw_only=True, eq=False)
class ClassicGroupMember:
    """A member; `supported_protocols` are in its order of preference."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocol_type: str
    supported_protocols: tuple[SupportedProtocol, ...]
    assignment: bytes = b""
    awaiting_join: JoinPromise | None = None
    awaiting_sync: SyncPromise | None = None
    is_new: bool = False
    """Whether it has not been in a generation yet: such a member may expire while it waits."""

    @property
    def is_static(self) -> bool:
        """Whether the member has an instance id (KIP-345)."""
        return self.group_instance_id is not None

    @property
    def has_satisfied_heartbeat(self) -> bool:
        """Whether the member is alive without heartbeats, because it waits for an answer."""
        if self.is_new:
            return False
        return self.awaiting_join is not None or self.awaiting_sync is not None

    def metadata(self, protocol: str | None) -> bytes:
        """Return the metadata for a protocol; refuses one that the member does not support."""
        for supported in self.supported_protocols:
            if supported.name == protocol:
                return supported.metadata
        raise RequestError(ErrorCode.UNKNOWN_SERVER_ERROR)

    def vote(self, candidates: Collection[str]) -> str:
        """Return the first of the member's protocols that is among the candidates."""
        for supported in self.supported_protocols:
            if supported.name in candidates:
                return supported.name
        raise RequestError(ErrorCode.UNKNOWN_SERVER_ERROR)

    def describe(self, protocol: str | None) -> DescribeGroupsResponse.DescribedGroupMember:
        """Return the member for DescribeGroups; without a protocol, its metadata is left out."""
        return DescribeGroupsResponse.DescribedGroupMember(
            member_id=self.member_id,
            group_instance_id=self.group_instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            member_metadata=b"" if protocol is None else self.metadata(protocol),
            member_assignment=self.assignment,
        )


@dataclass(slots=True, kw_only=True, eq=False)
class ClassicGroup:
    """One group; `current_state_timestamp` is None where an old record has none."""

    group_id: str
    state: ClassicGroupState = ClassicGroupState.EMPTY
    previous_state: ClassicGroupState = ClassicGroupState.DEAD
    current_state_timestamp: int | None
    generation_id: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader_id: str | None = None
    members: JavaHashMap[ClassicGroupMember] = field(
        default_factory=JavaHashMap[ClassicGroupMember]
    )
    static_members: dict[str, str] = field(default_factory=dict[str, str])
    """Member ids by instance id."""
    pending_join_members: set[str] = field(default_factory=set[str])
    """Member ids that were handed out and did not come back yet."""
    pending_sync_members: set[str] = field(default_factory=set[str])
    new_member_added: bool = False
    """Whether a member came during an initial rebalance, which is then delayed further."""
    subscribed_topics: frozenset[str] | None = None
    awaiting_join_count: int = 0
    _supported: Counter[str] = field(default_factory=Counter[str])

    def is_in(self, *states: ClassicGroupState) -> bool:
        """Return whether the group is in one of the states."""
        return self.state in states

    @property
    def is_empty(self) -> bool:
        """Whether the group is in the state Empty; a simple group always is."""
        return self.state is ClassicGroupState.EMPTY

    @property
    def uses_consumer_group_protocol(self) -> bool:
        """Whether the members are consumers, whose metadata can be read."""
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    @property
    def can_rebalance(self) -> bool:
        """Whether a rebalance may begin in this state."""
        return self.state in VALID_PREVIOUS_STATES[ClassicGroupState.PREPARING_REBALANCE]

    @property
    def has_all_members_joined(self) -> bool:
        """Whether every member waits in a join, and none is expected to come back."""
        return len(self.members) == self.awaiting_join_count and not self.pending_join_members

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest rebalance timeout of a member, at least 0."""
        return max([0, *(one.rebalance_timeout_ms for one in self.members.values())])

    def is_leader(self, member_id: str) -> bool:
        """Return whether the member leads."""
        return self.leader_id is not None and self.leader_id == member_id

    def transition_to(self, state: ClassicGroupState, now_ms: int) -> None:
        """Move to another state; refuses a move that there is not.

        A timer of a group that is gone, because its first record was not appended, can find
        another group of the same name: that one is not moved.
        """
        if self.state not in VALID_PREVIOUS_STATES[state]:
            raise RequestError(ErrorCode.UNKNOWN_SERVER_ERROR)
        self.previous_state = self.state
        self.state = state
        self.current_state_timestamp = now_ms

    def add(self, member: ClassicGroupMember, promise: JoinPromise | None = None) -> None:
        """Add a member; the first one gives the group its protocol type and leader."""
        if member.group_instance_id is not None:
            self.static_members[member.group_instance_id] = member.member_id
        if not len(self.members):
            self.protocol_type = member.protocol_type
        names = [one.name for one in member.supported_protocols]
        if not self.supports_protocols(member.protocol_type, names):
            raise RequestError(ErrorCode.UNKNOWN_SERVER_ERROR)
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.members.set(member.member_id, member)
        self._supported.update(names)
        member.awaiting_join = promise
        if promise is not None:
            self.awaiting_join_count += 1
        self.pending_join_members.discard(member.member_id)

    def remove(self, member_id: str) -> None:
        """Remove a member, or one that is only expected; another leads if it was the leader."""
        member = self.members.pop(member_id)
        if member is not None:
            self._supported.subtract(one.name for one in member.supported_protocols)
            if member.awaiting_join is not None:
                self.awaiting_join_count -= 1
            if member.group_instance_id is not None:
                self.static_members.pop(member.group_instance_id, None)
        if self.is_leader(member_id):
            self.leader_id = next(iter(self.members.keys()), None)
        self.pending_join_members.discard(member_id)
        self.pending_sync_members.discard(member_id)

    def update_member(
        self,
        member: ClassicGroupMember,
        *,
        protocols: tuple[SupportedProtocol, ...],
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        promise: JoinPromise | None,
    ) -> None:
        """Give a member what its new join says, and let it wait for the join's answer."""
        self._supported.subtract(one.name for one in member.supported_protocols)
        member.supported_protocols = protocols
        self._supported.update(one.name for one in protocols)
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms
        self.set_awaiting_join(member, promise)

    def set_awaiting_join(self, member: ClassicGroupMember, promise: JoinPromise | None) -> None:
        """Have a member wait for another answer, or for none."""
        was_awaiting = member.awaiting_join is not None
        self.awaiting_join_count += (promise is not None) - was_awaiting
        member.awaiting_join = promise

    def replace_static_member(
        self, group_instance_id: str, old: ClassicGroupMember, new_member_id: str
    ) -> ClassicGroupMember:
        """Return a member under another id that takes the place of a member of the group."""
        self.members.pop(old.member_id)
        new = ClassicGroupMember(
            member_id=new_member_id,
            group_instance_id=old.group_instance_id,
            client_id=old.client_id,
            client_host=old.client_host,
            rebalance_timeout_ms=old.rebalance_timeout_ms,
            session_timeout_ms=old.session_timeout_ms,
            protocol_type=old.protocol_type,
            supported_protocols=old.supported_protocols,
            assignment=old.assignment,
        )
        self.members.set(new_member_id, new)
        if self.is_leader(old.member_id):
            self.leader_id = new_member_id
        self.static_members[group_instance_id] = new_member_id
        return new

    def maybe_elect_new_joined_leader(self) -> bool:
        """Have a member lead that waits in a join; return whether there is one."""
        leader = self.members.get(self.leader_id) if self.leader_id is not None else None
        if leader is None:
            return False
        if leader.awaiting_join is not None:
            return True
        for member in self.members.values():
            if member.awaiting_join is not None:
                self.leader_id = member.member_id
                return True
        return False

    def validated_member(self, member_id: str, group_instance_id: str | None) -> ClassicGroupMember:
        """Return the member that a request is of; refuses an unknown or a fenced one."""
        if group_instance_id is not None:
            existing = self.static_members.get(group_instance_id)
            if existing is None:
                raise RequestError(ErrorCode.UNKNOWN_MEMBER_ID)
            if existing != member_id:
                raise RequestError(ErrorCode.FENCED_INSTANCE_ID)
        member = self.members.get(member_id)
        if member is None:
            raise RequestError(ErrorCode.UNKNOWN_MEMBER_ID)
        return member

    def supports_protocols(self, protocol_type: str, names: Iterable[str]) -> bool:
        """Return whether a member with these protocols can be in the group."""
        if self.is_empty:
            return bool(protocol_type) and any(True for _ in names)
        return self.protocol_type == protocol_type and any(
            self._supported[name] == len(self.members) for name in names
        )

    def select_protocol(self) -> str:
        """Return the protocol that all members support and that most of them prefer."""
        count = len(self.members)
        candidates = {name for name, number in self._supported.items() if number == count}
        votes: JavaHashMap[int] = JavaHashMap()
        for member in self.members.values():
            name = member.vote(candidates)
            votes.set(name, (votes.get(name) or 0) + 1)
        # Of equals, max returns the first.
        return max(votes.keys(), key=lambda name: votes.get(name) or 0)

    def init_next_generation(self, now_ms: int) -> None:
        """Begin the next generation with the members that there are."""
        self.generation_id += 1
        state = ClassicGroupState.COMPLETING_REBALANCE if self.members else ClassicGroupState.EMPTY
        self.protocol_name = self.select_protocol() if self.members else None
        self.refresh_subscribed_topics()
        self.transition_to(state, now_ms)
        self.pending_sync_members.clear()

    def refresh_subscribed_topics(self) -> None:
        """Read the members' subscriptions again; None means that they are not known."""
        name = self.protocol_name
        if not self.uses_consumer_group_protocol:
            self.subscribed_topics = None
        elif not len(self.members):
            self.subscribed_topics = frozenset()
        elif name is None:
            self.subscribed_topics = None
        else:
            self.subscribed_topics = subscribed_topics(
                member.metadata(name) for member in self.members.values()
            )

    def is_subscribed_to(self, topic: str) -> bool:
        """Return whether a member consumes the topic, or may do so."""
        if self.subscribed_topics is None:
            return self.uses_consumer_group_protocol
        return topic in self.subscribed_topics

    def join_response(self, member_id: str) -> JoinGroupResponse:
        """Return the answer to a member's join: the generation, and to its leader all members."""
        return JoinGroupResponse(
            members=self.current_members() if self.is_leader(member_id) else [],
            member_id=member_id,
            generation_id=self.generation_id,
            protocol_name=self.protocol_name,
            protocol_type=self.protocol_type,
            leader=self.leader_id or "",
        )

    def current_members(self) -> list[JoinGroupResponseMember]:
        """Return all members for the leader's answer to its join."""
        return [
            JoinGroupResponseMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                metadata=member.metadata(self.protocol_name),
            )
            for member in self.members.values()
        ]
