"""The changes of ISRs that a broker asks for, one request at a time."""

from __future__ import annotations

from collections.abc import Callable

from kvorum.broker.partition import Partition
from kvorum.broker.partition_leader.alter_partition_manager import AlterPartitionManager
from kvorum.broker.partition_leader.outcomes import Answer, Refused
from kvorum.broker.partition_leader.partition_state import IsrProposal
from kvorum.metadata.image import MetadataImage
from kvorum.simulation.partitions.controller_channel import ControllerChannel
from kvorum.simulation.partitions.settings import TOPIC_ID
from kvorum.simulation.partitions.surroundings import Surroundings
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from kvorum.wire.primitives import Message


class IsrChanges:
    """The real AlterPartitionManager, whose requests the simulated network carries.

    `partition_of` returns the partition that a proposal is about, None where it is gone.
    """

    def __init__(
        self,
        broker_id: int,
        around: Surroundings,
        channel: ControllerChannel,
        partition_of: Callable[[IsrProposal], Partition | None],
    ) -> None:
        self._broker_id = broker_id
        self._around = around
        self._channel = channel
        self._partition_of = partition_of
        self._queue = AlterPartitionManager(broker_id)
        self._attempt = 0

    def submit(self, proposal: IsrProposal) -> None:
        """Ask for a change, unless one of the same partition waits already."""
        if not self._queue.submit(proposal):
            self._on_outcome(proposal, Refused(ErrorCode.OPERATION_NOT_ATTEMPTED))

    def send_due(self, broker_epoch: int, image: MetadataImage) -> None:
        """Send what waits, as a broker of that epoch which knows that image."""
        request = self._queue.due(self._around.now_ms, broker_epoch=broker_epoch)
        if request is None:
            return
        self._attempt += 1
        attempt = self._attempt
        self._channel.ask(
            request,
            lambda answer: self._on_answer(attempt, answer),
            delay_ms=self._delay_ms(request, image),
        )

    def _delay_ms(self, request: AlterPartitionRequest, image: MetadataImage) -> float:
        """Return how long the request is delayed: the world may strike the joining replica."""
        delay_ms = 0.0
        for topic in request.topics:
            for change in topic.partitions:
                partition = image.topics.by_id[TOPIC_ID].partitions[change.partition_index]
                members = {state.broker_id for state in change.new_isr_with_epochs}
                for joining in sorted(members - set(partition.isr)):
                    delay_ms = max(delay_ms, self._around.on_expansion(self._broker_id, joining))
        return delay_ms

    def _on_answer(self, attempt: int, answer: Message | None) -> None:
        now_ms = self._around.now_ms
        # A request that was sent again has a newer attempt; this answer's connection has ended.
        if attempt != self._attempt:
            return
        if not isinstance(answer, AlterPartitionResponse):
            self._queue.on_disconnected(now_ms)
            return
        if answer.error_code == ErrorCode.NOT_CONTROLLER:
            self._channel.find_controller()
            self._queue.on_disconnected(now_ms)
            return
        for proposal, outcome in self._queue.on_response(answer, now_ms):
            self._on_outcome(proposal, outcome)

    def _on_outcome(self, proposal: IsrProposal, outcome: Answer) -> None:
        partition = self._partition_of(proposal)
        if partition is not None:
            partition.on_altered(proposal, outcome, self._around.now_ms)
