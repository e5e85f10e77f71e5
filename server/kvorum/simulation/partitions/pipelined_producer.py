"""A producer with several batches in flight, as Kafka's idempotent one (KIP-98, KAFKA-5494).

Batches arrive in order, on one connection; where an answer is missing, all that are not known to be
in the log are sent again on another one. Some of them are in the log by then, with others behind.

A batch may be overtaken by a later one. A broker that does not know a producer takes any sequence
from it, also where it has refused the first batch before it led; and one that has started knows of
each producer the last batch alone, which is what Kafka's files have, or nothing where records were
deleted. As in Kafka, the producer then begins another epoch; what was overtaken may be in the log.
"""

from collections import deque
from dataclasses import dataclass
from functools import partial
from typing import Final

from kvorum.broker.partition import ALL_IN_SYNC
from kvorum.simulation.partitions.broker_surroundings import BrokerSurroundings
from kvorum.simulation.partitions.client_history import OK
from kvorum.simulation.partitions.clients import REQUEST_TIMEOUT_MS, Producer
from kvorum.simulation.partitions.ordered_connection import OrderedConnection
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.produce import ProduceRequest, ProduceResponse
from kvorum.wire.primitives import Message
from kvorum.wire.records import RecordBatch
from kvorum.wire.records.batch import INT32_MAX

PIPELINED_ID: Final = 500
"""The id of the first such producer."""
IN_FLIGHT_MAX: Final = 5
"""The batches from the oldest one without an answer on, which a broker knows of each producer."""


@dataclass(slots=True)
class _Sent:
    """A batch, whether it is known to be in the log, and the connection that it was sent on."""

    batch: RecordBatch
    is_appended: bool = False
    connection: OrderedConnection | None = None


class PipelinedProducer(Producer):
    """Sends up to five batches before the first one is acknowledged."""

    def __init__(
        self, around: BrokerSurroundings, index: int, *, producer_id: int, first_sequence: int
    ) -> None:
        super().__init__(
            around,
            index,
            acks=ALL_IN_SYNC,
            producer_id=producer_id,
            first_sequence=first_sequence,
        )
        self._sent: deque[_Sent] = deque()
        self._connection: OrderedConnection | None = None

    @property
    def is_idle(self) -> bool:
        """Whether every batch is acknowledged."""
        return not self._sent

    def step(self) -> None:
        """Take the next batch, if it may be sent yet, and send all that are not under way."""
        is_full = len(self._sent) >= IN_FLIGHT_MAX
        if not is_full and not self.around.settings.is_resting(self.around.now_ms):
            batch = self.next_batch()
            self.sequence = (self.sequence + batch.last_offset_delta + 1) & INT32_MAX
            self._sent.append(_Sent(batch))
        leader = self.remembered_leader()
        if leader is None:
            return
        if self._connection is not None and self._connection.broker != leader:
            self._end_connection()
        if self._connection is None:
            self._connection = OrderedConnection(self.around, (self.id, leader))
        for one in self._sent:
            if one.connection is not self._connection and not one.is_appended:
                one.connection = self._connection
                self._send_on(self._connection, one)

    def _end_connection(self) -> None:
        if self._connection is not None:
            self._connection.end()
            self._connection = None

    def _send_on(self, connection: OrderedConnection, one: _Sent) -> None:
        connection.ask(
            self.request_of(one.batch),
            partial(self._on_answer_on, connection, one),
            version=self.version_of(ProduceRequest),
            timeout_ms=REQUEST_TIMEOUT_MS,
        )

    def _on_answer_on(
        self, connection: OrderedConnection, one: _Sent, answer: Message | None
    ) -> None:
        if connection is not self._connection or one not in self._sent:
            # It was given up.
            return
        if isinstance(answer, ProduceResponse):
            one.is_appended = self.is_appended(one.batch, answer)
        self.around.ledger.counts["batches in flight"] += len(self._sent)
        while self._sent and self._sent[0].is_appended:
            self._sent.popleft()
        if not self._sent:
            # All that were in flight together are one operation: they overlap.
            self.writer.end(OK)
        if one.is_appended:
            return
        self._end_connection()
        self.forget_leader()
        if self._is_overtaken:
            self.around.ledger.counts["overtaken batches"] += 1
            self.on_lost()
        elif self.has_lost_sequences:
            self.on_lost()

    @property
    def _is_overtaken(self) -> bool:
        """Whether a batch is out of order because a later one is in the log, or was."""
        is_refused = self.last_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        is_later_there = any(one.is_appended for one in self._sent)
        return is_refused and (is_later_there or self.around.ledger.has_deletions(self.place))

    def begin_epoch(self, epoch: int) -> None:
        """Begin with the first sequence of an epoch; what is under way is given up."""
        super().begin_epoch(epoch)
        self._sent.clear()
