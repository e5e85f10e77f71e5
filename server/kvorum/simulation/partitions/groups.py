"""Clients of groups: those that commit and read offsets, and members."""

from __future__ import annotations

from typing import Final

from kvorum.simulation.partitions.clients import REQUEST_TIMEOUT_MS, Client
from kvorum.simulation.partitions.group_ledger import GroupLedger
from kvorum.simulation.partitions.network import CLIENTS, Reply
from kvorum.simulation.partitions.settings import OFFSETS_ID, QUIET_FROM_MS, TOPIC, TOPIC_ID
from kvorum.simulation.partitions.surroundings import Surroundings
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kvorum.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from kvorum.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupRequestMemberIdentity
from kvorum.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kvorum.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from kvorum.wire.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from kvorum.wire.primitives import Message

READS: Final = 0.4
NOT_IN_GROUP: Final = -1
GOES: Final = 0.06
"""The share of its steps with which a member that has its partitions goes."""
LEAVES: Final = 0.5
"""The share of those that leave in order; the group waits for the end of another's session."""
SLEEPS: Final = 0.02
"""The share of its steps at which a member falls asleep."""
SLEEP_MS_MAX: Final = 1_000
SESSION_TIMEOUT_MS: Final = 400
REBALANCE_TIMEOUT_MS: Final = 600
JOIN_TIMEOUT_MS: Final = 1_500
_IS_ANOTHER: Final = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID})
_JOINS_AGAIN: Final = frozenset(
    {
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
    }
)


class GroupClient(Client):
    """A client of one group, which does one thing at a time."""

    def __init__(self, around: Surroundings, group_id: str) -> None:
        super().__init__(around, 0, topic_id=OFFSETS_ID)
        self._group_id = group_id
        self._ledger = around.groups.setdefault(group_id, GroupLedger())
        self._is_waiting = False
        self._last_code = 0

    def _ask(
        self,
        coordinator: int,
        request: Message,
        on_answer: Reply,
        *,
        timeout_ms: int = REQUEST_TIMEOUT_MS,
    ) -> None:
        """Send a request that is handled at most once, and never after its connection has ended.

        An earlier commit that is handled after a later one would take its place, as in Kafka.
        """
        self._is_waiting = True
        is_over = False

        def told(answer: Message | None) -> None:
            nonlocal is_over
            is_over = True
            self._is_waiting = False
            on_answer(answer)

        def serve(reply: Reply) -> None:
            nonlocal is_over
            if not is_over:
                is_over = True
                self.around.servers[coordinator].receive(request, reply)

        self.around.network.ask((CLIENTS, coordinator), serve, told, timeout_ms=timeout_ms)


class Committer(GroupClient):
    """Commits one offset after the other for a group, each until it is acknowledged."""

    def __init__(self, around: Surroundings, group_id: str) -> None:
        super().__init__(around, group_id)
        self._offset: int | None = None

    @property
    def is_idle(self) -> bool:
        """Whether everything that has to be acknowledged has been."""
        return self._offset is None

    def told(self) -> str:
        """Return where it stands, in words."""
        return f"group {self._group_id}, offset {self._offset}, last answer {self._last_code}"

    def step(self) -> None:
        """Commit the next offset, or the last one again, or read."""
        coordinator = self.leader()
        if self._is_waiting or coordinator is None:
            return
        if self.around.random.random() < READS:
            self._ask(coordinator, self._fetch(), lambda _: None)
            return
        if self._offset is None:
            if self.around.now_ms > QUIET_FROM_MS:
                return
            self._ledger.sent += 1
            self._offset = self._ledger.sent
        self._ask(coordinator, self._commit(self._offset), self._on_committed)

    def _commit(self, offset: int) -> Message:
        partition = OffsetCommitRequestPartition(0, committed_offset=offset)
        topic = OffsetCommitRequestTopic(name=TOPIC, topic_id=TOPIC_ID, partitions=[partition])
        return OffsetCommitRequest(group_id=self._group_id, topics=[topic])

    def _fetch(self) -> Message:
        topic = OffsetFetchRequestTopics(name=TOPIC, topic_id=TOPIC_ID, partition_indexes=[0])
        return OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(group_id=self._group_id, topics=[topic])]
        )

    def _on_committed(self, answer: Message | None) -> None:
        if not isinstance(answer, OffsetCommitResponse) or self._offset is None:
            return
        self._last_code = answer.topics[0].partitions[0].error_code
        if self._last_code == ErrorCode.NONE:
            self._ledger.acknowledged = self._offset
            self._offset = None
            self.around.ledger.counts["committed offsets"] += 1


class Member(GroupClient):
    """A consumer of a group: it joins, gets its partitions, shows that it is there, and goes.

    It falls asleep at any moment of that. A static one comes back by its `instance_id` (KIP-345).
    """

    def __init__(self, around: Surroundings, group_id: str, instance_id: str | None) -> None:
        super().__init__(around, group_id)
        self._instance_id = instance_id
        self._asleep_until_ms = 0.0
        self._member_id = ""
        self._generation = NOT_IN_GROUP
        self._assignments: list[SyncGroupRequestAssignment] = []
        self.is_stable = False
        """Whether it has its partitions."""

    def told(self) -> str:
        """Return where it stands, in words."""
        return (
            f"member {self._member_id} of {self._group_id}, generation {self._generation}, "
            f"last answer {self._last_code}"
        )

    def step(self) -> None:
        """Do what comes next; leave, or forget who one was, now and then."""
        coordinator, random, now_ms = self.leader(), self.around.random, self.around.now_ms
        if self._is_waiting or coordinator is None or now_ms < self._asleep_until_ms:
            return
        if now_ms < QUIET_FROM_MS and random.random() < SLEEPS:
            self._asleep_until_ms = now_ms + random.uniform(0, SLEEP_MS_MAX)
        elif self.is_stable and now_ms < QUIET_FROM_MS and random.random() < GOES:
            if random.random() < LEAVES:
                self._ask(coordinator, self._leave(), lambda _: None)
            self._forget()
        elif self._generation == NOT_IN_GROUP:
            self._ask(coordinator, self._join(), self._on_joined, timeout_ms=JOIN_TIMEOUT_MS)
        elif not self.is_stable:
            self._ask(coordinator, self._sync(), self._on_synced, timeout_ms=JOIN_TIMEOUT_MS)
        else:
            heartbeat = HeartbeatRequest(
                self._group_id, self._generation, self._member_id, self._instance_id
            )
            self._ask(coordinator, heartbeat, self._on_heartbeat)

    def _forget(self) -> None:
        self._member_id = ""
        self._join_again()

    def _join_again(self) -> None:
        self._generation, self.is_stable = NOT_IN_GROUP, False

    def _leave(self) -> Message:
        members = [LeaveGroupRequestMemberIdentity(self._member_id, self._instance_id)]
        return LeaveGroupRequest(group_id=self._group_id, members=members)

    def _join(self) -> Message:
        return JoinGroupRequest(
            group_id=self._group_id,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
            member_id=self._member_id,
            group_instance_id=self._instance_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol("range", b"")],
        )

    def _sync(self) -> Message:
        return SyncGroupRequest(
            group_id=self._group_id,
            generation_id=self._generation,
            member_id=self._member_id,
            group_instance_id=self._instance_id,
            protocol_type="consumer",
            protocol_name="range",
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
            self.is_stable = True

    def _on_heartbeat(self, answer: Message | None) -> None:
        if isinstance(answer, HeartbeatResponse):
            self._is_fine(answer.error_code)

    def _is_fine(self, code: int) -> bool:
        """Return whether a code is NONE; after an error the member joins again, or as another."""
        self._last_code = code
        if code in _IS_ANOTHER:
            self._forget()
        elif code in _JOINS_AGAIN:
            self._join_again()
        return code == ErrorCode.NONE


def committed_offset(answer: OffsetFetchResponse) -> int | None:
    """Return the one offset of an answer; None where it is refused."""
    (group,) = answer.groups
    if group.error_code != ErrorCode.NONE:
        return None
    (partition,) = group.topics[0].partitions
    return partition.committed_offset if partition.error_code == ErrorCode.NONE else None
