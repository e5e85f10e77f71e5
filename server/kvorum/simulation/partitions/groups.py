"""Clients of groups that commit and read offsets; `group_members` has those that are members."""

from collections.abc import Callable
from typing import Final

from kvorum.metadata.topic_names import GROUP_METADATA_TOPIC
from kvorum.simulation.network import OnReply
from kvorum.simulation.partitions.broker_surroundings import BrokerSurroundings
from kvorum.simulation.partitions.clients import REQUEST_TIMEOUT_MS, PartitionClient, Topic
from kvorum.simulation.partitions.closing_connection import ClosingConnection
from kvorum.simulation.partitions.group_ledger import GroupLedger
from kvorum.simulation.partitions.open_connection import OpenConnection
from kvorum.simulation.partitions.settings import OFFSETS_ID, QUIET_FROM_MS, TOPIC, TOPIC_ID
from kvorum.simulation.requests import OnAnswer
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from kvorum.wire.messages.heartbeat import HeartbeatResponse
from kvorum.wire.messages.join_group import JoinGroupResponse
from kvorum.wire.messages.leave_group import LeaveGroupResponse
from kvorum.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kvorum.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from kvorum.wire.messages.sync_group import SyncGroupResponse
from kvorum.wire.messages.txn_offset_commit import TxnOffsetCommitResponse
from kvorum.wire.primitives import Message

FIRST_READ_OF_ALL: Final = 2
FIRST_STABLE_READ: Final = 7
FIRST_READ_OF_GROUPS: Final = 8
"""The first versions of OffsetFetch that ask for all offsets, for stable ones, and for groups."""
FIRST_COMMIT_OF_INSTANCE: Final = 7
READS: Final = 0.4
READS_ALL: Final = 0.2
"""The share of reads that ask for all offsets of the group."""


class GroupClient(PartitionClient):
    """A client of one group, which does one thing at a time."""

    def __init__(self, around: BrokerSurroundings, group_id: str) -> None:
        super().__init__(around, 0, topic=Topic(GROUP_METADATA_TOPIC, OFFSETS_ID))
        self.group_id = group_id
        new = GroupLedger(around.settings.groups, around.checks)
        self.ledger = around.groups.setdefault(group_id, new)
        self.last_code = 0
        self._attempt = 0
        self._asked: int | None = None
        self._own_connection: ClosingConnection | None = None

    @property
    def is_waiting(self) -> bool:
        """Whether there is an answer to wait for; the end of a process ends its connections."""
        if self._asked is not None and not self.around.servers[self._asked].is_up:
            self.give_up()
        return self._asked is not None

    def give_up(self) -> None:
        """End the connection: what was asked is not handled any more, and no answer is heard."""
        self._attempt += 1
        self._asked = None
        if self._own_connection is not None:
            self._own_connection.give_up()
            self._own_connection = None

    def send(
        self,
        coordinator: int,
        request: Message,
        on_answer: OnAnswer,
        *,
        timeout_ms: int = REQUEST_TIMEOUT_MS,
        version: int | None = None,
        connection: OpenConnection | None = None,
    ) -> None:
        """Send a request that is handled at most once, and never after its connection has ended.

        Its version is by default any that this client has. An earlier commit that is handled after
        a later one would take its place, as in Kafka.
        """
        self._attempt += 1
        attempt = self._attempt
        self._asked = coordinator
        is_handled = False
        own = ClosingConnection(self.around, coordinator)
        self._own_connection = own

        def end(answer: Message | None) -> None:
            if attempt == self._attempt:
                if answer is not None:
                    self._own_connection = None
                self.give_up()
                on_answer(answer)

        def serve(frame: bytes, reply: OnReply) -> None:
            nonlocal is_handled
            if attempt == self._attempt and not is_handled:
                is_handled = True
                if connection is None:
                    own.serve(frame, reply)
                else:
                    self.around.servers[coordinator].receive(frame, reply, connection)

        self.around.requests.ask(
            (self.id, coordinator),
            request,
            serve,
            end,
            timeout_ms=timeout_ms,
            version=self.version_of(type(request)) if version is None else version,
        )

    def read(self, coordinator: int, partition: int, *, is_stable: bool = False) -> None:
        """Ask for the offset of a partition, or for all; the broker's answer is checked there."""
        version = self.version_of(OffsetFetchRequest)
        is_of_all = self.around.random.random() < READS_ALL and version >= FIRST_READ_OF_ALL
        is_stable = is_stable and version >= FIRST_STABLE_READ
        if version < FIRST_READ_OF_GROUPS:
            former = OffsetFetchRequestTopic(TOPIC, [partition])
            topics = None if is_of_all else [former]
            request = OffsetFetchRequest(self.group_id, topics, require_stable=is_stable)
        else:
            topic = OffsetFetchRequestTopics(
                name=TOPIC, topic_id=TOPIC_ID, partition_indexes=[partition]
            )
            group = OffsetFetchRequestGroup(self.group_id, topics=None if is_of_all else [topic])
            request = OffsetFetchRequest(groups=[group], require_stable=is_stable)
        self.send(coordinator, request, lambda _: None)

    def commit_as_member(
        self,
        coordinator: int,
        partition: int,
        *,
        epoch: int,
        member_id: str,
        instance_id: str | None,
        is_fine: Callable[[int], bool],
        version: int,
    ) -> None:
        """Commit the next offset of a partition; `is_fine` gets the code of the answer.

        `epoch` is the generation in a classic group.
        """
        offsets, sent_ms = self.ledger.offsets(partition), self.around.now_ms
        offset = offsets.send()
        request = self.commit(partition, offset)
        request.generation_id_or_member_epoch = epoch
        request.member_id, request.group_instance_id = member_id, instance_id

        def on_answer(answer: Message | None) -> None:
            if isinstance(answer, OffsetCommitResponse) and is_fine(code_of(answer)):
                offsets.acknowledge(offset, sent_ms)
                self.around.ledger.counts["offsets committed by members"] += 1

        self.send(coordinator, request, on_answer, version=version)

    def commit(self, partition: int, offset: int) -> OffsetCommitRequest:
        """Return the commit of an offset by a client that is not a member."""
        wanted = OffsetCommitRequestPartition(partition, committed_offset=offset)
        topic = OffsetCommitRequestTopic(name=TOPIC, topic_id=TOPIC_ID, partitions=[wanted])
        return OffsetCommitRequest(group_id=self.group_id, topics=[topic])


class Committer(GroupClient):
    """Commits one offset after the other for a group, each until it is acknowledged.

    It has its partitions without the group; an `instance_id` changes nothing in that.
    """

    def __init__(self, around: BrokerSurroundings, group_id: str, instance_id: str | None) -> None:
        super().__init__(around, group_id)
        self._instance_id = instance_id
        self._offset: int | None = None

    @property
    def is_idle(self) -> bool:
        """Whether everything that has to be acknowledged has been."""
        return self._offset is None

    def describe(self) -> str:
        """Return where it stands, in words."""
        return f"group {self.group_id}, offset {self._offset}, last answer {self.last_code}"

    def step(self) -> None:
        """Commit the next offset, or the last one again, or read."""
        coordinator = self.leader()
        if self.is_waiting or coordinator is None:
            return
        if self.around.random.random() < READS:
            self.read(coordinator, 0)
            return
        offsets, sent_ms = self.ledger.offsets(0), self.around.now_ms
        if self._offset is None:
            if sent_ms > QUIET_FROM_MS:
                return
            self._offset = offsets.send()
        offset = self._offset
        request = self.commit(0, offset)
        request.group_instance_id = self._instance_id

        def on_answer(answer: Message | None) -> None:
            if not isinstance(answer, OffsetCommitResponse):
                return
            self.last_code = code_of(answer)
            if self.last_code == ErrorCode.NONE:
                offsets.acknowledge(offset, sent_ms)
                self._offset = None
                self.around.ledger.counts["committed offsets"] += 1

        lowest = FIRST_COMMIT_OF_INSTANCE if self._instance_id else 0
        version = self.version_of(OffsetCommitRequest, lowest=lowest)
        self.send(coordinator, request, on_answer, version=version)


def code_of(answer: Message) -> int:
    """Return the error code of an answer about one group, and one partition at most."""
    match answer:
        case JoinGroupResponse() | SyncGroupResponse() | HeartbeatResponse() | LeaveGroupResponse():
            return answer.error_code
        case ConsumerGroupHeartbeatResponse():
            return answer.error_code
        case OffsetCommitResponse() | TxnOffsetCommitResponse():
            return answer.topics[0].partitions[0].error_code
        case _:
            raise TypeError(f"{type(answer).__name__} is no answer about a group")
