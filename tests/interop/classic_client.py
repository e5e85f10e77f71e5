"""A made-up consumer of the classic protocol: what it asks for, and what answers tell it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from random import Random
from typing import Final

from kvorum.groups.classic_group.consumer_protocol import (
    MalformedProtocolError,
    assignment_of,
    subscription_of,
)
from kvorum.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from kvorum.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from kvorum.wire.messages.heartbeat import HeartbeatRequest
from kvorum.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from kvorum.wire.messages.leave_group import LeaveGroupRequest
from kvorum.wire.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)

NAMES: Final = ("one", "two", "three", "four", "absent")
PROTOCOLS: Final = (
    ("range",),
    ("range", "sticky"),
    ("sticky", "range"),
    ("cooperative-sticky", "range"),
    ("sticky",),
)
NO_SUBSCRIPTIONS: Final = (b"", b"\0", b"\xff\xff", b"\0\1\0\0", bytes.fromhex("000000000001"))
NO_ASSIGNMENTS: Final = (b"\0", b"\xff\xff", b"\0\0\0\0", bytes.fromhex("00000000000100"))
SESSIONS_MS: Final = (6_000, 20_000, 45_000)
REBALANCES_MS: Final = (-1, 4_000, 10_000, 60_000)
NEWEST: Final = 3
BEGIN_AGAIN: Final = frozenset({15, 25})
"""Codes after which a consumer joins under no id."""
FENCED: Final = 82
MEMBER_ID_REQUIRED: Final = 79
TopicCounts = Mapping[str, int]
"""The number of partitions of each topic."""


class Phase(Enum):
    """The request that a consumer makes next, or the answer that it waits for."""

    JOIN = "join"
    JOINING = "joining"
    SYNC = "sync"
    SYNCING = "syncing"
    STABLE = "stable"


@dataclass(eq=False)
class ClassicClient:
    """A consumer; `owned` are the partitions that it has, by topic."""

    group_id: str
    instance_id: str | None
    member_id: str = ""
    generation: int = -1
    phase: Phase = Phase.JOIN
    topics: list[str] = field(default_factory=lambda: ["one"])
    subscription_version: int = NEWEST
    rack_id: str | None = None
    protocol_type: str = "consumer"
    protocols: tuple[str, ...] = ("range",)
    protocol: str | None = None
    session_ms: int = 20_000
    rebalance_ms: int = 10_000
    owned: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    led: JoinGroupResponse | None = None
    """The answer to the join of a leader, which has the members."""
    is_fenced: bool = False

    def change(self, random: Random) -> None:
        """Choose another subscription and other times."""
        self.topics = random.sample(NAMES, random.choice((0, 1, 1, 2, 3)))
        self.subscription_version = random.choice((0, 1, 2, 3, 3, 3))
        self.rack_id = random.choice((None, None, "r0", ""))
        self.protocols = random.choice(PROTOCOLS)
        self.session_ms = random.choice(SESSIONS_MS)
        self.rebalance_ms = random.choice(REBALANCES_MS)
        self.protocol_type = "connect" if random.random() < 0.02 else "consumer"

    def join(self, random: Random) -> tuple[int, JoinGroupRequest]:
        """Return a version and the request to join."""
        self.phase = Phase.JOINING
        versions = (5, 7, 8, 9) if self.instance_id is not None else (0, 1, 3, 3, 4, 5, 7, 9, 9)
        version = random.choice(versions)
        request = JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=self.session_ms,
            # Version 0 has no timeout of rebalances: one that is not the default is refused.
            rebalance_timeout_ms=self.rebalance_ms if version else -1,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type=self.protocol_type,
            protocols=[
                JoinGroupRequestProtocol(name, self._subscription(random, is_first=not index))
                for index, name in enumerate(self.protocols)
            ],
        )
        if random.random() < 0.01:
            request.protocols = []
        return version, request

    def _subscription(self, random: Random, *, is_first: bool) -> bytes:
        if random.random() < (0.01 if is_first else 0.08):
            return random.choice(NO_SUBSCRIPTIONS)
        message = ConsumerProtocolSubscription(topics=self.topics)
        version = self.subscription_version
        if version >= 1 and random.random() < 0.9:
            message.owned_partitions = [
                ConsumerProtocolSubscription.TopicPartition(name, partitions)
                for name, partitions in self.owned.items()
            ]
        if version >= 2:
            message.generation_id = self.generation
        if version >= NEWEST:
            message.rack_id = self.rack_id
        written = version + 1 if version == NEWEST and random.random() < 0.05 else version
        return written.to_bytes(2) + message.encode(version) + random.choice((b"", b"", b"", b"x"))

    def sync(self, random: Random, counts: TopicCounts) -> SyncGroupRequest:
        """Return the request for an assignment, with those of all if the consumer leads."""
        self.phase = Phase.SYNCING
        request = SyncGroupRequest(
            group_id=self.group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type="consumer",
            protocol_name=self.protocol,
        )
        if random.random() < 0.2:
            request.protocol_type = request.protocol_name = None
        if random.random() < 0.02:
            request.protocol_type = "connect"
        if random.random() < 0.02:
            request.protocol_name = "other"
        if self.led is not None:
            request.assignments = _assignments(random, self.led, counts)
        return request

    def heartbeat(self, random: Random) -> HeartbeatRequest:
        """Return a heartbeat, sometimes of another generation."""
        generation = self.generation + random.choice((0,) * 20 + (1, -1))
        return HeartbeatRequest(self.group_id, generation, self.member_id, self.instance_id)

    def leave(self, random: Random) -> LeaveGroupRequest:
        """Return the request by which the consumer leaves, or an operator has it leave."""
        is_operator = self.instance_id is not None and random.random() < 0.5
        member_id = "" if is_operator else self.member_id
        identity = LeaveGroupRequest.MemberIdentity(member_id, self.instance_id)
        return LeaveGroupRequest(group_id=self.group_id, members=[identity])

    def joined(self, response: JoinGroupResponse) -> None:
        """Take the answer to a join."""
        if response.error_code == MEMBER_ID_REQUIRED:
            self.member_id, self.phase = response.member_id, Phase.JOIN
        elif response.error_code:
            self.refused(response.error_code)
        else:
            self.member_id, self.generation = response.member_id, response.generation_id
            self.protocol = response.protocol_name
            self.led = response if response.leader == response.member_id else None
            self.phase = Phase.SYNC

    def synced(self, response: SyncGroupResponse) -> None:
        """Take the answer to a sync."""
        if response.error_code:
            self.refused(response.error_code)
            return
        self.phase = Phase.STABLE
        try:
            assignment = assignment_of(response.assignment)
        except MalformedProtocolError:
            return
        self.owned = {one.topic: one.partitions for one in assignment.assigned_partitions}

    def refused(self, code: int) -> None:
        """Take an error."""
        self.phase = Phase.JOIN
        self.is_fenced = code == FENCED
        if code in BEGIN_AGAIN:
            self.member_id, self.generation, self.owned = "", -1, {}


def _assignments(
    random: Random, joined: JoinGroupResponse, counts: TopicCounts
) -> list[SyncGroupRequestAssignment]:
    """Return partitions of the topics for each member, mostly as an assignor of clients does."""
    topics = {one.member_id: _topics_of(one.metadata) for one in joined.members}
    shares: dict[str, dict[str, list[int]]] = {member_id: {} for member_id in topics}
    for name, count in counts.items():
        takers = [member_id for member_id, names in topics.items() if name in names]
        for index in range(count if takers else 0):
            shares[takers[index % len(takers)]].setdefault(name, []).append(index)
    if random.random() < 0.03 and len(shares) > 1:
        # Two members with the same partitions.
        first, second, *_ = shares
        shares[first] = shares[second]
    chance = random.random()
    assignments: list[SyncGroupRequestAssignment] = []
    for member_id, share in shares.items():
        data = _assignment(random, share, has_user_data=chance < 0.05)
        if 0.05 < chance < 0.08:
            data = random.choice(NO_ASSIGNMENTS)
        if not share and random.random() < 0.5:
            data = b""
        assignments.append(SyncGroupRequestAssignment(member_id, data))
    return assignments


def _assignment(
    random: Random, share: Mapping[str, Sequence[int]], *, has_user_data: bool
) -> bytes:
    topics = [
        ConsumerProtocolAssignment.TopicPartition(name, list(partitions))
        for name, partitions in share.items()
    ]
    random.shuffle(topics)
    message = ConsumerProtocolAssignment(topics, b"custom" if has_user_data else None)
    if random.random() < 0.1:
        message.user_data = b""
    return random.choice((0, 1, 3)).to_bytes(2) + message.encode(1)


def _topics_of(metadata: bytes) -> Sequence[str]:
    try:
        return subscription_of(metadata).topics
    except MalformedProtocolError:
        return ()
