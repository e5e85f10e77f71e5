"""Members of a group: they join, get their partitions, show that they are there, and go."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from kvorum.groups.classic_group.consumer_protocol import CONSUMER_PROTOCOL_TYPE
from kvorum.simulation.partitions.broker_surroundings import BrokerSurroundings
from kvorum.simulation.partitions.groups import FIRST_COMMIT_OF_INSTANCE, GroupClient
from kvorum.simulation.partitions.settings import (
    RESTLESS_UNTIL_MS,
    SESSION_TIMEOUT_MS,
    STATIC_SESSION_TIMEOUT_MS,
    TOPIC,
)
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from kvorum.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kvorum.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from kvorum.wire.messages.leave_group import LeaveGroupRequest
from kvorum.wire.messages.offset_commit import OffsetCommitRequest
from kvorum.wire.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from kvorum.wire.primitives import Message

NOT_IN_GROUP: Final = -1
GOES: Final = 0.03
"""The share of its steps with which a member that has its partitions goes."""
DIES: Final = 0.02
"""The share of its steps with which a member ends that has none, whatever it waits for."""
LEAVES: Final = 0.5
"""The share of those that leave in order; the group waits for the end of another's session."""
STAYS_AWAY: Final = 0.4
AWAY_MS_MAX: Final = 1_500
SLEEPS: Final = 0.02
"""The share of its steps at which a member falls asleep."""
SLEEP_MS_MAX: Final = 1_000
IS_BUSY: Final = 0.03
"""The share of its steps at which a member works on, so that only its heartbeats go on."""
BUSY_MS_MAX: Final = 1_500
IS_STOPPED: Final = 0.4
STOPPED_MS_MAX: Final = 1_500
FIRST_USES: Final = 2
"""A member that gets its partitions reads an offset, and commits one."""
COMMITS: Final = 0.03
READS: Final = 0.1
JOIN_TIMEOUT_MS: Final = 2_000
VERSIONS: Final = (0, 3, 9, 9, 9)
STATIC_VERSIONS: Final = (5, 9)
_WITH_PROTOCOL_TYPE: Final = 7
"""The first version of JoinGroup of a release that has the protocol in a SyncGroup too."""
_LAST_SYNC_WITHOUT_PROTOCOL: Final = 4
_FIRST_LEAVE_OF_MANY: Final = 3
_FIRST_WITH_INSTANCE: Final[Mapping[type[Message], int]] = MappingProxyType(
    {
        HeartbeatRequest: 3,
        JoinGroupRequest: 5,
        LeaveGroupRequest: 3,
        OffsetCommitRequest: FIRST_COMMIT_OF_INSTANCE,
        SyncGroupRequest: 3,
    }
)
"""The first versions that name the instance of a static member (KIP-345)."""
_IS_ANOTHER: Final = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID})
_JOINS_AGAIN: Final = frozenset(
    {
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
    }
)
_VERSION_OF_SUBSCRIPTION: Final = 0
_SUBSCRIPTION: Final = _VERSION_OF_SUBSCRIPTION.to_bytes(2, "big") + ConsumerProtocolSubscription(
    topics=[TOPIC]
).encode(_VERSION_OF_SUBSCRIPTION)


class Member(GroupClient):
    """A consumer or worker of a group, of some release: one process after the other.

    It falls asleep at any moment, and may end at any moment. A static one comes back by its
    `instance_id` (KIP-345). Two may have one instance id by mistake: the one that is fenced ends.
    """

    def __init__(self, around: BrokerSurroundings, group_id: str, instance_id: str | None) -> None:
        super().__init__(around, group_id)
        self._instance_id = instance_id
        if instance_id is not None:
            clients = self.ledger.clients
            clients[instance_id] = clients.get(instance_id, 0) + 1
        drawn = around.random.choice(VERSIONS if instance_id is None else STATIC_VERSIONS)
        self._version = self._version_with_instance(JoinGroupRequest, latest=drawn)
        is_former = self._version < _WITH_PROTOCOL_TYPE
        latest = _LAST_SYNC_WITHOUT_PROTOCOL if is_former else None
        self._sync_version = self._version_with_instance(SyncGroupRequest, latest=latest)
        self.rebalance_timeout_ms = around.settings.groups.rebalance_timeouts_ms[0]
        self._member_id = ""
        self._generation = NOT_IN_GROUP
        self._asleep_until_ms, self._busy_until_ms = 0.0, 0.0
        self._uses = 0
        self._assignments: list[SyncGroupRequestAssignment] = []
        self._partitions = b""
        self.is_stable = False
        """Whether it has its partitions."""
        self.is_over = False
        """Whether it has ended for good."""

    def _version_with_instance(self, kind: type[Message], *, latest: int | None = None) -> int:
        """Return the version of a request, one that names the instance of a static member."""
        lowest = _FIRST_WITH_INSTANCE[kind] if self.is_static else 0
        return self.version_of(kind, lowest=lowest, latest=latest)

    @property
    def is_static(self) -> bool:
        """Whether it has an instance id (KIP-345)."""
        return self._instance_id is not None

    def describe(self) -> str:
        """Return where it stands, in words."""
        return (
            f"member {self._member_id} of {self.group_id}, generation {self._generation}, "
            f"last answer {self.last_code}"
        )

    def step(self) -> None:
        """Do what comes next; end, leave, or fall asleep now and then."""
        random, now_ms = self.around.random, self.around.now_ms
        if self.is_over or now_ms < self._asleep_until_ms:
            return
        is_busy, is_restless = now_ms < self._busy_until_ms, now_ms < RESTLESS_UNTIL_MS
        if is_restless and not is_busy:
            if random.random() < (GOES if self.is_stable else DIES):
                away_ms = random.uniform(0, AWAY_MS_MAX) if random.random() < STAYS_AWAY else 0.0
                self.go(away_ms, leaves=random.random() < LEAVES)
                return
            if not self.is_waiting and random.random() < SLEEPS:
                self._asleep_until_ms = now_ms + random.uniform(0, SLEEP_MS_MAX)
                return
            if self._generation != NOT_IN_GROUP and random.random() < IS_BUSY:
                self._busy_until_ms = now_ms + random.uniform(0, BUSY_MS_MAX)
                is_busy = True
        coordinator = self.leader()
        if coordinator is not None and not self.is_waiting:
            self._go_on(coordinator, is_busy=is_busy)

    def _go_on(self, coordinator: int, *, is_busy: bool) -> None:
        has_joined = self._generation != NOT_IN_GROUP
        if not has_joined and not is_busy:
            self.send(
                coordinator,
                self._join(),
                self._on_joined,
                timeout_ms=JOIN_TIMEOUT_MS,
                version=self._version,
            )
        elif has_joined and not self.is_stable and not is_busy:
            self.send(
                coordinator,
                self._sync(),
                self._on_synced,
                timeout_ms=JOIN_TIMEOUT_MS,
                version=self._sync_version,
            )
        elif self.is_stable and self._partitions and not is_busy and self._uses_offsets():
            self._use_offsets(coordinator)
        elif has_joined:
            heartbeat = HeartbeatRequest(
                self.group_id, self._generation, self._member_id, self._instance_id
            )
            version = self._version_with_instance(HeartbeatRequest)
            self.send(coordinator, heartbeat, self._on_heartbeat, version=version)

    def _uses_offsets(self) -> bool:
        return self._uses < FIRST_USES or self.around.random.random() < COMMITS + READS

    def go(self, away_ms: float, *, leaves: bool) -> None:
        """End a process, in order or not; the next one begins after a while."""
        coordinator = self.leader()
        self.give_up()
        if self.is_stable and coordinator is not None and leaves:
            version = self._version_with_instance(LeaveGroupRequest)
            self.send(coordinator, self._leave(version), lambda _: None, version=version)
        self._forget()
        self._asleep_until_ms, self._busy_until_ms = self.around.now_ms + away_ms, 0.0

    def _forget(self) -> None:
        self._member_id = ""
        self._join_again()

    def _join_again(self) -> None:
        self._generation, self.is_stable = NOT_IN_GROUP, False

    def _use_offsets(self, coordinator: int) -> None:
        """Commit an offset of one of its partitions, or read it."""
        random = self.around.random
        partition = random.choice(self._partitions)
        self._uses += 1
        is_read = self._uses == 1 or (
            self._uses > FIRST_USES and random.random() < READS / (COMMITS + READS)
        )
        if is_read or self.around.now_ms > RESTLESS_UNTIL_MS:
            self.read(coordinator, partition)
            return
        self.commit_as_member(
            coordinator,
            partition,
            epoch=self._generation,
            member_id=self._member_id,
            instance_id=self._instance_id,
            is_fine=self._is_fine,
            version=self._version_with_instance(OffsetCommitRequest),
        )

    def _leave(self, version: int) -> Message:
        """Return its farewell; a static member is removed by an operator, who knows no id of it."""
        if version < _FIRST_LEAVE_OF_MANY:
            return LeaveGroupRequest(group_id=self.group_id, member_id=self._member_id)
        member_id = self._member_id if self._instance_id is None else ""
        members = [LeaveGroupRequest.MemberIdentity(member_id, self._instance_id)]
        return LeaveGroupRequest(group_id=self.group_id, members=members)

    def _join(self) -> Message:
        settings = self.around.settings.groups
        metadata = _SUBSCRIPTION if settings.protocol_type == CONSUMER_PROTOCOL_TYPE else b""
        return JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=STATIC_SESSION_TIMEOUT_MS if self.is_static else SESSION_TIMEOUT_MS,
            # The first version has none.
            rebalance_timeout_ms=self.rebalance_timeout_ms if self._version else -1,
            member_id=self._member_id,
            group_instance_id=self._instance_id,
            protocol_type=settings.protocol_type,
            protocols=[JoinGroupRequestProtocol("range", metadata)],
        )

    def _sync(self) -> Message:
        has_type = self._sync_version > _LAST_SYNC_WITHOUT_PROTOCOL
        return SyncGroupRequest(
            group_id=self.group_id,
            generation_id=self._generation,
            member_id=self._member_id,
            group_instance_id=self._instance_id,
            protocol_type=self.around.settings.groups.protocol_type if has_type else None,
            protocol_name="range" if has_type else None,
            assignments=self._assignments,
        )

    def _on_joined(self, answer: Message | None) -> None:
        if not isinstance(answer, JoinGroupResponse):
            return
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self._member_id = answer.member_id
        if not self._is_fine(answer.error_code):
            return
        self._member_id, self._generation = answer.member_id, answer.generation_id
        members = sorted(member.member_id for member in answer.members)
        # Only the leader gets the others' names; its assignment counts.
        self._assignments = [
            SyncGroupRequestAssignment(
                member_id, bytes(range(place, self.around.settings.partitions, len(members)))
            )
            for place, member_id in enumerate(members)
        ]

    def _on_synced(self, answer: Message | None) -> None:
        if isinstance(answer, SyncGroupResponse) and self._is_fine(answer.error_code):
            self.is_stable, self._partitions = True, answer.assignment
            self._uses = 0

    def _on_heartbeat(self, answer: Message | None) -> None:
        if not isinstance(answer, HeartbeatResponse):
            return
        is_busy = self.around.now_ms < self._busy_until_ms
        if not (is_busy and answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS):
            self._is_fine(answer.error_code)

    def _is_fine(self, code: int) -> bool:
        """Return whether a code is NONE; after an error the member joins again, or as another."""
        self.last_code = code
        if code == ErrorCode.FENCED_INSTANCE_ID:
            # Another client has the same instance id: that one goes on, and this one ends for good.
            clients, instance_id = self.ledger.clients, self._instance_id or ""
            if clients[instance_id] > 1:
                clients[instance_id] -= 1
                self.is_over = True
        if code in _IS_ANOTHER:
            self._forget()
        elif code in _JOINS_AGAIN:
            self._join_again()
        return code == ErrorCode.NONE


class GroupMembers:
    """The members of a group, which an operator stops all at once and starts again."""

    def __init__(self, around: BrokerSurroundings, group_id: str) -> None:
        self._around = around
        random = around.random
        self.members = [
            Member(around, group_id, random.choice((None, f"instance {random.randint(0, 1)}")))
            for _ in range(around.settings.groups.members)
        ]

    def step(self) -> None:
        """Stop all members for a while, now and then; those with an id get another time-out."""
        random = self._around.random
        if self._around.now_ms > RESTLESS_UNTIL_MS or random.random() > IS_STOPPED:
            return
        away_ms, leaves = random.uniform(0, STOPPED_MS_MAX), random.random() < LEAVES
        timeout_ms = random.choice(self._around.settings.groups.rebalance_timeouts_ms)
        for member in [one for one in self.members if not one.is_over]:
            if member.is_static:
                member.rebalance_timeout_ms = timeout_ms
            member.go(away_ms, leaves=leaves)
