"""A member of a share group (KIP-932): it acquires records, and says what became of them."""

from collections.abc import Mapping
from random import Random
from typing import Final

from kvorum.broker.share_partition.acknowledgement import AcknowledgeType
from kvorum.broker.share_partition.acquisition import ShareAcquireMode
from kvorum.groups.modern_group.member_state import JOIN_EPOCH, LEAVE_EPOCH
from kvorum.node.handlers.share_requests import FIRST_VERSION_WITH_RENEWAL
from kvorum.simulation.partitions.broker_surroundings import END_IS_KNOWN_MS_MAX, BrokerSurroundings
from kvorum.simulation.partitions.clients import READ_BYTES
from kvorum.simulation.partitions.groups import GroupClient
from kvorum.simulation.partitions.settings import PEACE_FROM_MS, TOPIC, TOPIC_ID
from kvorum.simulation.partitions.share_connection import (
    HeldRecord,
    ShareConnection,
    ShareFetchLimits,
)
from kvorum.simulation.partitions.share_group_ledger import ShareGroupLedger
from kvorum.simulation.partitions.share_group_settings import SHARE_GROUP
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.share_acknowledge import ShareAcknowledgeRequest, ShareAcknowledgeResponse
from kvorum.wire.messages.share_fetch import ShareFetchRequest, ShareFetchResponse
from kvorum.wire.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from kvorum.wire.primitives import Message
from kvorum.wire.records import read_batches
from kvorum.wire.uuid_text import uuid_to_text

GOES: Final = 0.01
SLEEPS: Final = 0.02
SLEEP_MS_MAX: Final = 1_200
AWAY_MS_MAX: Final = 900
LEAVES: Final = 0.5
"""The share of processes that leave the group and end their sessions before they end."""
"""The time in which a broker learns that a connection has ended."""
HEARTBEAT_MS: Final = 80
TIMEOUT_MS: Final = 500
"""Longer than other clients wait: two coordinators may have to write before an answer."""
FETCHES_UNTIL_MS: Final = 10_000
"""The end of all fetches: what is acquired is written by the end of the world."""
KEEPS: Final = 0.3
"""The share of its records of which a member says nothing yet."""
SAYS_ALONE: Final = 0.3
"""The share of acknowledgements that come in a request of their own."""
RENEWS: Final = 0.1
_WORDS: Final = (
    *(AcknowledgeType.ACCEPT,) * 4,
    *(AcknowledgeType.RELEASE,) * 4,
    AcknowledgeType.REJECT,
)
_WORDS_WITH_QUEUE: Final = (
    AcknowledgeType.ACCEPT,
    *(AcknowledgeType.RELEASE,) * 3,
    *(AcknowledgeType.REJECT,) * 4,
)
"""The same where what is rejected comes to a dead-letter queue."""
REJECTS_IN_PEACE: Final = 0.25
"""The share of records that a member then rejects in peace, too."""
REJECTS_UNTIL_MS: Final = 9_000
"""The end of that: every dead letter is written by the end of the world."""
_MAX_RECORDS: Final = (1, 5, 500)
_BATCH_SIZES: Final = (2, 500)
_ALL: Final = ShareFetchLimits(500, 500, ShareAcquireMode.BATCH_OPTIMIZED.value, 100_000)
"""The limits in peace, in which a member does not ask for a few records at a time."""
_IS_FENCED: Final = frozenset(
    {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.GROUP_ID_NOT_FOUND,
    }
)


class ShareMember(GroupClient):
    """One consumer: a process after the other, each with an id of its own.

    It has a connection to each leader of its partitions, and asks one broker after the other.
    """

    def __init__(
        self, around: BrokerSurroundings, ledger: ShareGroupLedger, random: Random
    ) -> None:
        super().__init__(around, SHARE_GROUP)
        self._random = random
        self._shares = ledger
        versions = map(self.version_of, (ShareFetchRequest, ShareAcknowledgeRequest))
        share = around.settings.groups.share
        self._has_queue = share is not None and share.dead_letter_queue is not None
        self._can_renew = min(versions) >= FIRST_VERSION_WITH_RENEWAL
        self._asleep_until_ms = 0.0
        self._heartbeat_at_ms = 0.0
        self._begin_process()

    def _begin_process(self) -> None:
        random = self._random
        self.member_id = uuid_to_text(random.randbytes(16))
        self._limits = ShareFetchLimits(
            random.choice(_MAX_RECORDS),
            random.choice(_BATCH_SIZES),
            random.choice(tuple(ShareAcquireMode)).value,
            READ_BYTES,
        )
        self._connections: dict[int, ShareConnection] = {}
        self._join_anew()

    def _join_anew(self) -> None:
        self._epoch = JOIN_EPOCH
        self._assigned: frozenset[int] = frozenset()
        self._must_say_all = True

    def describe(self) -> str:
        """Return where it stands, in words."""
        held = {broker: list(one.held) for broker, one in self._connections.items()}
        return (
            f"{self.member_id} at {self._epoch} with {sorted(self._assigned)}, {held}, "
            f"last answer {self.last_code}"
        )

    @property
    def _is_restless(self) -> bool:
        return self.around.now_ms < PEACE_FROM_MS

    # --- steps ---

    def step(self) -> None:
        """Do what comes next; end, leave or fall asleep now and then."""
        random = self._random
        now_ms = self.around.now_ms
        if now_ms < self._asleep_until_ms or self.is_waiting:
            return
        if self._is_restless and random.random() < GOES:
            self.go(random.uniform(0, AWAY_MS_MAX), is_orderly=random.random() < LEAVES)
            return
        if self._is_restless and random.random() < SLEEPS:
            self._asleep_until_ms = now_ms + random.uniform(0, SLEEP_MS_MAX)
            return
        leaders = self._leaders()
        coordinator = self.leader()
        if coordinator is not None and now_ms >= self._heartbeat_at_ms:
            self._heartbeat(coordinator)
        elif leaders:
            broker = random.choice(sorted(leaders))
            self._visit(broker, leaders[broker])

    def go(self, away_ms: float, *, is_orderly: bool) -> None:
        """End a process, which leaves the group or is killed; the next one begins later."""
        self.give_up()
        coordinator = self.leader()
        if is_orderly and coordinator is not None and self._epoch > JOIN_EPOCH:
            farewell = ShareGroupHeartbeatRequest(self.group_id, self.member_id, LEAVE_EPOCH)
            self.send(coordinator, farewell, lambda _: None)
            self.around.ledger.counts["sharers: left"] += 1
        for connection in list(self._connections.values()):
            self._end_connection(connection)
        self._begin_process()
        self._asleep_until_ms = self.around.now_ms + away_ms

    def _leaders(self) -> dict[int, set[int]]:
        """Return the partitions by the leader that some broker believes them to have."""
        servers = [one for one in self.around.servers.values() if one.is_up]
        if not servers:
            return {}
        topic = self._random.choice(servers).image.topics.by_id.get(TOPIC_ID)
        leaders: dict[int, set[int]] = {}
        for index in sorted(self._assigned):
            partition = None if topic is None else topic.partitions.get(index)
            if partition is not None and partition.has_leader:
                leaders.setdefault(partition.leader, set()).add(index)
        for broker in self._connections:
            leaders.setdefault(broker, set())
        return leaders

    # --- the group ---

    def _heartbeat(self, coordinator: int) -> None:
        self._heartbeat_at_ms = self.around.now_ms + HEARTBEAT_MS
        request = ShareGroupHeartbeatRequest(self.group_id, self.member_id, self._epoch)
        if self._must_say_all:
            request.subscribed_topic_names = [TOPIC]
        # As with Kafka's client: an assignment whose answer is lost comes to a full request alone.
        self._must_say_all = True

        def on_answer(answer: Message | None) -> None:
            if not isinstance(answer, ShareGroupHeartbeatResponse):
                return
            self.last_code = answer.error_code
            if answer.error_code in _IS_FENCED:
                self._join_anew()
            if answer.error_code != ErrorCode.NONE:
                return
            self._must_say_all = False
            self._epoch = answer.member_epoch
            if answer.assignment is not None:
                before = self._assigned
                self._assigned = frozenset(
                    index
                    for topic in answer.assignment.topic_partitions
                    for index in topic.partitions
                )
                for index in self._assigned - before:
                    self._shares.assign(index, self.around.now_ms)
            self.around.ledger.counts["sharers: heartbeats"] += 1

        self.send(coordinator, request, on_answer, timeout_ms=TIMEOUT_MS)

    # --- the records ---

    def _visit(self, broker: int, wanted: set[int]) -> None:
        """Fetch from a broker, say what became of records, or end the session there."""
        incarnation = self.around.servers[broker].incarnation
        connection = self._connections.get(broker)
        if connection is not None and connection.opened.incarnation != incarnation:
            self._end_connection(connection)
            connection = None
        if connection is None:
            connection = ShareConnection(self.member_id, broker, incarnation)
            self._connections[broker] = connection
        said = self._draw_words(connection)
        if self.around.now_ms > FETCHES_UNTIL_MS:
            if said:
                self._ask(connection, connection.acknowledge(said), is_last=False)
            return
        is_last = not wanted
        if is_last and not connection.has_session:
            self._end_connection(connection)
        elif said and not is_last and self._random.random() < SAYS_ALONE:
            self._ask(connection, connection.acknowledge(said), is_last=False)
        else:
            limits = self._limits if self._is_restless else _ALL
            request = connection.fetch(wanted, said, limits, is_last=is_last)
            self._ask(connection, request, is_last=is_last)

    def _draw_words(self, connection: ShareConnection) -> Mapping[HeldRecord, AcknowledgeType]:
        """Return what the member says of records that it has; in peace, it is done with them."""
        random = self._random
        said: dict[HeldRecord, AcknowledgeType] = {}
        renews = self._can_renew and self._is_restless and random.random() < RENEWS
        for record, is_there in connection.held.items():
            if self._is_restless and random.random() < KEEPS:
                continue
            if renews:
                said[record] = AcknowledgeType.RENEW
            elif not is_there:
                said[record] = AcknowledgeType.GAP
            elif self._is_restless:
                said[record] = random.choice(_WORDS_WITH_QUEUE if self._has_queue else _WORDS)
            else:
                said[record] = self._draw_last_word()
        return said

    def _draw_last_word(self) -> AcknowledgeType:
        may_reject = self._has_queue and self.around.now_ms < REJECTS_UNTIL_MS
        if may_reject and self._random.random() < REJECTS_IN_PEACE:
            return AcknowledgeType.REJECT
        return AcknowledgeType.ACCEPT

    def _ask(
        self,
        connection: ShareConnection,
        request: ShareFetchRequest | ShareAcknowledgeRequest,
        *,
        is_last: bool,
    ) -> None:
        def on_answer(answer: Message | None) -> None:
            match answer:
                case ShareFetchResponse() if answer.error_code == ErrorCode.NONE and not is_last:
                    connection.advance()
                    self._take(connection, answer)
                case ShareAcknowledgeResponse() if answer.error_code == ErrorCode.NONE:
                    connection.advance()
                case _:
                    self._end_connection(connection)

        self.send(
            connection.broker,
            request,
            on_answer,
            timeout_ms=TIMEOUT_MS,
            connection=connection.opened,
        )

    def _take(self, connection: ShareConnection, answer: ShareFetchResponse) -> None:
        for data in (one for topic in answer.responses for one in topic.partitions):
            self.last_code = data.error_code
            batches = list(read_batches(memoryview(data.records or b""), is_cut_allowed=True))
            message = f"sharer {self.member_id} of broker {connection.broker}"
            self.around.ledger.on_read(data.partition_index, batches, message=message)
            for acquired in data.acquired_records:
                connection.take(
                    data.partition_index, acquired.first_offset, acquired.last_offset, batches
                )
                count = acquired.last_offset - acquired.first_offset + 1
                self.around.ledger.counts["sharers: acquired records"] += count
                self._shares.take(data.partition_index, self.around.now_ms)

    def _end_connection(self, connection: ShareConnection) -> None:
        """End a connection, of which its broker learns soon: it releases what the member has."""
        del self._connections[connection.broker]
        server = self.around.servers[connection.broker]

        def end() -> None:
            self._shares.let_go(connection.member_id)
            server.end_connection(connection.opened)

        self.around.events.after(self._random.uniform(0, END_IS_KNOWN_MS_MAX), end)
