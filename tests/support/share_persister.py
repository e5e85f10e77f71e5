"""A persister in memory, which refuses the partitions that a test names."""

from typing import Final

from kvorum.node.coroutines import Promise
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.delete_share_group_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
)
from kvorum.wire.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
)
from kvorum.wire.messages.read_share_group_state import (
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
)
from kvorum.wire.messages.read_share_group_state_summary import (
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
)
from kvorum.wire.messages.write_share_group_state import (
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
)

REFUSAL: Final = "No."
_InitializedTopic = InitializeShareGroupStateResponse.InitializeStateResult
_InitializedPartition = InitializeShareGroupStateResponse.PartitionResult
_DeletedTopic = DeleteShareGroupStateResponse.DeleteStateResult
_DeletedPartition = DeleteShareGroupStateResponse.PartitionResult
_SummaryTopic = ReadShareGroupStateSummaryResponse.ReadStateSummaryResult
_SummaryPartition = ReadShareGroupStateSummaryResponse.PartitionResult


class MemoryPersister:
    """The start offsets of partitions, by group, topic id and number.

    `refused` are codes by topic id and number. `delivery_complete_count` is that of all partitions.
    """

    def __init__(self) -> None:
        self.offsets: dict[tuple[str, bytes, int], int] = {}
        self.refused: dict[tuple[bytes, int], ErrorCode] = {}
        self.delivery_complete_count = 0
        self.held: Promise[None] | None = None
        """A promise before which no state is initialized or deleted."""

    async def initialize_state(
        self, request: InitializeShareGroupStateRequest
    ) -> InitializeShareGroupStateResponse:
        """Keep start offsets."""
        if self.held is not None:
            await self.held.result()
        results: list[InitializeShareGroupStateResponse.InitializeStateResult] = []
        for topic in request.topics:
            partitions: list[InitializeShareGroupStateResponse.PartitionResult] = []
            for one in topic.partitions:
                code = self._code(topic.topic_id, one.partition)
                message = None if code is ErrorCode.NONE else REFUSAL
                partitions.append(_InitializedPartition(one.partition, code, message))
                if code is ErrorCode.NONE:
                    key = request.group_id, topic.topic_id, one.partition
                    self.offsets[key] = one.start_offset
            results.append(_InitializedTopic(topic.topic_id, partitions))
        return InitializeShareGroupStateResponse(results)

    async def read_state(self, _: ReadShareGroupStateRequest) -> ReadShareGroupStateResponse:
        """Is not for group coordinators."""
        raise NotImplementedError

    async def write_state(self, _: WriteShareGroupStateRequest) -> WriteShareGroupStateResponse:
        """Is not for group coordinators."""
        raise NotImplementedError

    async def delete_state(
        self, request: DeleteShareGroupStateRequest
    ) -> DeleteShareGroupStateResponse:
        """Forget start offsets."""
        if self.held is not None:
            await self.held.result()
        results: list[DeleteShareGroupStateResponse.DeleteStateResult] = []
        for topic in request.topics:
            partitions: list[DeleteShareGroupStateResponse.PartitionResult] = []
            for one in topic.partitions:
                code = self._code(topic.topic_id, one.partition)
                partitions.append(_DeletedPartition(one.partition, code))
                if code is ErrorCode.NONE:
                    self.offsets.pop((request.group_id, topic.topic_id, one.partition), None)
            results.append(_DeletedTopic(topic.topic_id, partitions))
        return DeleteShareGroupStateResponse(results)

    async def read_state_summary(
        self, request: ReadShareGroupStateSummaryRequest
    ) -> ReadShareGroupStateSummaryResponse:
        """Return start offsets, -1 where there is none."""
        results = [
            _SummaryTopic(
                topic.topic_id,
                [
                    _SummaryPartition(
                        one.partition,
                        self._code(topic.topic_id, one.partition),
                        leader_epoch=3,
                        start_offset=self.offsets.get(
                            (request.group_id, topic.topic_id, one.partition), -1
                        ),
                        delivery_complete_count=self.delivery_complete_count,
                    )
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ]
        return ReadShareGroupStateSummaryResponse(results)

    def _code(self, topic_id: bytes, partition: int) -> ErrorCode:
        return self.refused.get((topic_id, partition), ErrorCode.NONE)
