"""One AlterPartition request at a time for all partitions that a broker leads (KIP-497).

Pure: `due` returns the request to send now, `on_response` and `on_disconnected` handle its outcome,
and `next_due_ms` returns the time of the next call of `due`. A request has no deadline: the same
request is sent again until a controller responds.
"""

from itertools import groupby
from typing import Final, NamedTuple

from kvorum.broker.partition_leader.leader import IsrProposal
from kvorum.broker.partition_leader.outcomes import Accepted, Answer, Refused
from kvorum.metadata.known_error_code import known_error_code
from kvorum.metadata.partition import RECOVERED, RECOVERING
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse

RETRY_BACKOFF_MS: Final = 50
"""The time between a refusal of the whole request and the next request."""

Key = tuple[bytes, int]


class Answered(NamedTuple):
    """A proposal and the controller's response to it."""

    proposal: IsrProposal
    answer: Answer


class AlterPartitionManager:
    """The proposals that wait for the controller, at most one per partition."""

    def __init__(self, broker_id: int) -> None:
        self._broker_id = broker_id
        self._waiting: dict[Key, IsrProposal] = {}
        self._in_flight: dict[Key, IsrProposal] = {}
        self._request: AlterPartitionRequest | None = None
        self._is_sent = False
        self._not_before_ms = 0.0

    def submit(self, proposal: IsrProposal) -> bool:
        """Add a proposal; return False where another one of the same partition is in the queue.

        The caller must then treat the proposal as `Refused(OPERATION_NOT_ATTEMPTED)`.
        """
        if proposal.key in self._waiting:
            return False
        self._waiting[proposal.key] = proposal
        return True

    def next_due_ms(self) -> float | None:
        """Return the time of the next request; None while a response or a proposal is awaited."""
        if self._request is not None:
            return None if self._is_sent else self._not_before_ms
        return self._not_before_ms if self._waiting else None

    def due(self, now_ms: float, *, broker_epoch: int) -> AlterPartitionRequest | None:
        """Return the request to send now, None without one."""
        due_ms = self.next_due_ms()
        if due_ms is None or now_ms < due_ms:
            return None
        if self._request is None:
            # Proposals in flight stay in the queue until the controller has responded to them.
            self._in_flight = dict(self._waiting)
            self._request = self._build(broker_epoch)
        self._is_sent = True
        return self._request

    def on_disconnected(self, now_ms: float) -> None:
        """Send the same request again after a lost connection, or if no controller is active."""
        if self._request is not None and self._is_sent:
            self._is_sent = False
            self._not_before_ms = now_ms + RETRY_BACKOFF_MS

    def on_response(self, response: AlterPartitionResponse, now_ms: float) -> list[Answered]:
        """Return the controller's response to each proposal that was sent.

        After a refusal of the whole request, all proposals are sent again later, with the broker
        epoch of that time. So is a proposal whose partition the response leaves out.
        """
        if self._request is None:
            return []
        in_flight, self._in_flight, self._request = self._in_flight, {}, None
        self._is_sent = False
        if response.error_code != ErrorCode.NONE:
            self._not_before_ms = now_ms + RETRY_BACKOFF_MS
            return []
        self._not_before_ms = now_ms
        answers = {
            (topic.topic_id, partition.partition_index): _answer(partition)
            for topic in response.topics
            for partition in topic.partitions
        }
        answered: list[Answered] = []
        for key, proposal in in_flight.items():
            if key in answers:
                del self._waiting[key]
                answered.append(Answered(proposal, answers[key]))
        return answered

    def _build(self, broker_epoch: int) -> AlterPartitionRequest:
        proposals = sorted(self._in_flight.values(), key=lambda proposal: proposal.key)
        return AlterPartitionRequest(
            broker_id=self._broker_id,
            broker_epoch=broker_epoch,
            topics=[
                AlterPartitionRequest.TopicData(topic_id, [_partition(one) for one in of_topic])
                for topic_id, of_topic in groupby(proposals, key=lambda one: one.topic_id)
            ],
        )


def _partition(proposal: IsrProposal) -> AlterPartitionRequest.PartitionData:
    return AlterPartitionRequest.PartitionData(
        partition_index=proposal.partition_index,
        leader_epoch=proposal.leader_epoch,
        new_isr_with_epochs=[
            AlterPartitionRequest.BrokerState(member, epoch) for member, epoch in proposal.isr
        ],
        leader_recovery_state=proposal.recovery_state,
        partition_epoch=proposal.partition_epoch,
    )


def _answer(partition: AlterPartitionResponse.PartitionData) -> Answer:
    if partition.error_code != ErrorCode.NONE:
        return Refused(known_error_code(partition.error_code))
    if partition.leader_recovery_state not in (RECOVERED, RECOVERING):
        return Refused(ErrorCode.UNKNOWN_SERVER_ERROR)
    return Accepted(
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        isr=tuple(partition.isr),
        recovery_state=partition.leader_recovery_state,
    )
