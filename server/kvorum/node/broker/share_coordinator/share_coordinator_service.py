"""The share coordinator of a broker (Kafka's ShareCoordinatorService).

Each method answers when everything is committed that its response shows. A partition that is
refused has a code of its own. Authorization is for handlers.
"""

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias, TypeVar

from kvorum.coordinator.append_errors import append_error_to_response_error
from kvorum.coordinator.result import CoordinatorResult
from kvorum.coordinator.share_partition_key import SharePartitionKey
from kvorum.metadata.api import RequestError
from kvorum.metadata.features import SHARE_VERSION_FEATURE
from kvorum.metadata.image import ImageDelta, MetadataImage
from kvorum.metadata.topic_names import SHARE_GROUP_STATE_TOPIC
from kvorum.node.broker.coordinator.context import WriteOperation
from kvorum.node.broker.coordinator.runtime import CoordinatorRuntime
from kvorum.node.broker.coordinator.settings import FIRST_SEQUENCE, LEADER_ONLY, CoordinatorSettings
from kvorum.node.broker.replica_manager import ReplicaManager
from kvorum.node.broker.share_coordinator.periodic_jobs import PeriodicJobs
from kvorum.node.broker.share_coordinator.share_coordinator_metrics import ShareCoordinatorMetrics
from kvorum.node.config import ShareStateSettings
from kvorum.node.coroutines import Promise
from kvorum.node.runtime import Runtime
from kvorum.share_coordinator.shard import ShareCoordinatorShard
from kvorum.share_coordinator.share_state_rpc import (
    DELETE,
    INITIALIZE,
    READ,
    READ_SUMMARY,
    WRITE,
    PartT,
    ResponseT,
    ResultT,
    ShareStateRequest,
    ShareStateRpc,
)
from kvorum.storage.topic_partition import TopicPartition
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

NOT_AVAILABLE: Final = "Share coordinator is not available."
Response = TypeVar("Response")
Decide: TypeAlias = Callable[
    [ShareCoordinatorShard, SharePartitionKey, PartT, int], CoordinatorResult[Response]
]
"""Decides on what a request has for one share partition, at a time of day."""


class ShareCoordinatorService:
    """The state of the share partitions on this broker's partitions of ``__share_group_state``."""

    def __init__(
        self, settings: ShareStateSettings, replicas: ReplicaManager, *, runtime: Runtime
    ) -> None:
        self._settings = settings
        self._runtime = runtime
        self._image = MetadataImage()
        self.runtime = CoordinatorRuntime(
            CoordinatorSettings(
                topic=SHARE_GROUP_STATE_TOPIC,
                partition_count=settings.topic.partition_count,
                compression=settings.topic.compression,
                required_acks=LEADER_ONLY,
                base_sequence=FIRST_SEQUENCE,
                commit_timeout_ms=settings.write_timeout_ms,
                append_linger_ms=settings.append_linger_ms,
            ),
            self._new_shard,
            replicas.partition,
            broker_id=replicas.broker_id,
            runtime=runtime,
        )
        """The coordinators of this broker's partitions."""
        self.metrics = ShareCoordinatorMetrics(runtime.monotonic_ms())
        """To be read only."""
        self._jobs = PeriodicJobs(settings, self.runtime, runtime)

    @property
    def pruned_offsets(self) -> Mapping[TopicPartition, int]:
        """The offset up to which records were deleted last, of each partition where some were."""
        return self._jobs.pruned_offsets

    def on_image(self, before: MetadataImage, after: MetadataImage) -> None:
        """Follow a change of the image that the partitions have followed already."""
        self._image = after
        self.runtime.on_image(before, after)
        gone = frozenset(ImageDelta(before, after).topics.removed)
        if gone:
            for context in self.runtime.contexts():
                context.write_unasked(lambda shard, _: shard.on_topics_deleted(gone))
        self._jobs.set_enabled(bool(after.features.level(SHARE_VERSION_FEATURE)))

    def close(self) -> None:
        """Answer all who wait, and coordinate no more."""
        self._jobs.close()
        self.runtime.close()

    async def initialize_state(
        self, request: InitializeShareGroupStateRequest
    ) -> InitializeShareGroupStateResponse:
        """Begin the state of share partitions, or begin it again with a later state epoch."""
        return await self._answered(
            INITIALIZE,
            request,
            lambda shard, key, part, now_ms: shard.initialize_state(key, part, now_ms),
        )

    async def read_state(self, request: ReadShareGroupStateRequest) -> ReadShareGroupStateResponse:
        """Read the state of share partitions for their leaders, whose epochs are kept."""
        if not _is_complete(request):
            return ReadShareGroupStateResponse()
        return await self._answered(
            READ,
            request,
            lambda shard, key, part, now_ms: self._read(shard, key, part.leader_epoch, now_ms),
        )

    async def write_state(
        self, request: WriteShareGroupStateRequest
    ) -> WriteShareGroupStateResponse:
        """Keep what has changed in share partitions."""
        if not _is_complete(request):
            return WriteShareGroupStateResponse()
        began_ms = self._runtime.monotonic_ms()
        response = await self._answered(WRITE, request, self._write)
        now_ms = self._runtime.monotonic_ms()
        self.metrics.write_times_ms.record(now_ms - began_ms, now_ms)
        return response

    async def delete_state(
        self, request: DeleteShareGroupStateRequest
    ) -> DeleteShareGroupStateResponse:
        """Forget the state of share partitions."""
        if not _is_complete(request):
            return DeleteShareGroupStateResponse()
        return await self._answered(
            DELETE, request, lambda shard, key, _part, _now_ms: shard.delete_state(key)
        )

    async def read_state_summary(
        self, request: ReadShareGroupStateSummaryRequest
    ) -> ReadShareGroupStateSummaryResponse:
        """Read the start offsets of share partitions."""
        if not _is_complete(request):
            return ReadShareGroupStateSummaryResponse()
        return await self._answered(
            READ_SUMMARY, request, lambda shard, key, _part, _now_ms: shard.read_state_summary(key)
        )

    def _new_shard(self) -> ShareCoordinatorShard:
        return ShareCoordinatorShard(self._settings.coordinator, lambda: self._image)

    def _read(
        self, shard: ShareCoordinatorShard, key: SharePartitionKey, leader_epoch: int, now_ms: int
    ) -> CoordinatorResult[ReadShareGroupStateResponse.PartitionResult]:
        result = shard.read_state(key, leader_epoch, now_ms)
        if result.records:
            self.metrics.record_write(self._runtime.monotonic_ms())
        return result

    def _write(
        self,
        shard: ShareCoordinatorShard,
        key: SharePartitionKey,
        part: WriteShareGroupStateRequest.PartitionData,
        now_ms: int,
    ) -> CoordinatorResult[WriteShareGroupStateResponse.PartitionResult]:
        self.metrics.record_write(self._runtime.monotonic_ms())
        return shard.write_state(key, part, now_ms)

    async def _answered(
        self,
        rpc: ShareStateRpc[PartT, ResultT, ResponseT],
        request: ShareStateRequest[PartT],
        decide: Decide[PartT, ResultT],
    ) -> ResponseT:
        """Return the response of all coordinators; of two requests for a partition, the later's.

        As in Kafka a request without a group has no results.
        """
        if not request.group_id:
            return rpc.response({})
        begun = {
            key: self._begin(key, _for_partition(decide, key, part))
            for key, part in rpc.parts(request)
        }
        results: dict[SharePartitionKey, ResultT] = {}
        for key, written in begun.items():
            try:
                results[key] = await written.result()
            except RequestError as error:
                code, text = _explained(rpc, error)
                results[key] = rpc.new_result(key.partition, code, text)
        return rpc.response(results)

    def _begin(
        self, key: SharePartitionKey, decide: WriteOperation[ShareCoordinatorShard, Response]
    ) -> Promise[Response]:
        """Hand an operation to the coordinator of a share partition."""
        written: Promise[Response] = Promise(self._runtime)

        def settle(result: Response | RequestError | None) -> None:
            assert result is not None
            written.settle(result)

        try:
            self.runtime.context_for(key.coordinator_key).write(decide, settle)
        except RequestError as error:
            written.settle(error)
        return written


def _is_complete(request: ShareStateRequest[PartT]) -> bool:
    """Return whether each topic has partitions: without, as in Kafka there are no results."""
    return all(topic.partitions for topic in request.topics)


def _for_partition(
    decide: Decide[PartT, Response], key: SharePartitionKey, part: PartT
) -> WriteOperation[ShareCoordinatorShard, Response]:
    return lambda shard, now_ms: decide(shard, key, part, now_ms)


def _explained(
    rpc: ShareStateRpc[PartT, ResultT, ResponseT], error: RequestError
) -> tuple[ErrorCode, str]:
    """Return the code that clients understand for an error, and Kafka's text."""
    if error.code is ErrorCode.COORDINATOR_NOT_AVAILABLE:
        return error.code, NOT_AVAILABLE
    text = f"Unable to {rpc.verb} share group {rpc.noun}: {error.message_or_default}"
    return append_error_to_response_error(error.code), text
