"""Share groups as requests see them: their coordinator, and the state that share coordinators keep.

Methods raise RequestError, also after they have waited. Authorization is for handlers.
"""

import logging
from collections.abc import Coroutine, Iterable, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

from kvorum.groups.request_context import RequestContext
from kvorum.groups.share.state_deletion import GroupDeletion, OffsetDeletion
from kvorum.groups.share_group.heartbeat_checks import check_share_heartbeat
from kvorum.metadata.api import RequestError
from kvorum.node.broker.group_coordinator.group_coordinator_service import GroupCoordinatorService
from kvorum.node.broker.group_coordinator.group_operations import GroupOperation
from kvorum.node.broker.group_coordinator.partition_metadata_client import PartitionMetadataClient
from kvorum.node.broker.group_coordinator.share_group_offsets import ShareGroupOffsets
from kvorum.node.broker.group_coordinator.share_group_rebalances import ShareGroupRebalances
from kvorum.node.broker.share_coordinator.persister import Persister
from kvorum.node.coroutines import Promise, Task, Wait, all_of, other_work
from kvorum.node.events.log_event import LogEvent
from kvorum.node.runtime import Runtime
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
)
from kvorum.wire.messages.delete_groups import DeleteGroupsResponse
from kvorum.wire.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)
from kvorum.wire.messages.delete_share_group_state import DeleteShareGroupStateRequest
from kvorum.wire.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
)
from kvorum.wire.messages.share_group_describe import ShareGroupDescribeResponse
from kvorum.wire.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)

Response = TypeVar("Response")
_log = logging.getLogger(__name__)


class ShareGroupService:
    """Share groups on this broker's partitions of ``__consumer_offsets``."""

    def __init__(
        self,
        groups: GroupCoordinatorService,
        persister: Persister,
        partitions: PartitionMetadataClient,
        *,
        runtime: Runtime,
    ) -> None:
        self._groups = groups
        self._persister = persister
        self._partitions = partitions
        self._runtime = runtime
        self.offsets = ShareGroupOffsets(groups, persister, partitions)
        """The offsets of groups, to be described."""
        self.rebalances = ShareGroupRebalances(runtime.monotonic_ms())
        self._tasks: dict[int, Task[None]] = {}
        self._task_count = 0

    def close(self) -> None:
        """Have no state initialized any more; the next coordinator asks again."""
        for task in self._tasks.values():
            task.close()
        self._tasks.clear()
        self._partitions.close()

    async def heartbeat(
        self, context: RequestContext, request: ShareGroupHeartbeatRequest
    ) -> ShareGroupHeartbeatResponse:
        """Have a member join, stay or leave; states that it needs are initialized afterwards."""
        self._groups.runtime.demand_active()
        check_share_heartbeat(request)
        answer = await self._written(
            request.group_id,
            lambda shard, now_ms: shard.share_group_heartbeat(context, request, now_ms),
        )
        if answer.is_rebalance:
            self.rebalances.record(self._runtime.monotonic_ms())
        if answer.initialize is not None:
            self._begin(self._initialize(answer.initialize))
        return answer.response

    def describe_group(self, group_id: str) -> ShareGroupDescribeResponse.DescribedGroup:
        """Describe a share group as it is committed."""
        try:
            self._groups.demand_group_id(group_id)
            context = self._groups.operations.context_for(group_id)
            return context.read(lambda shard: shard.describe_share_group(group_id))
        except RequestError as error:
            # As in Kafka, an empty id alone has no text.
            text = error.message_or_default if group_id else None
            return ShareGroupDescribeResponse.DescribedGroup(
                group_id=group_id, error_code=error.code, error_message=text
            )

    async def alter_offsets(
        self, request: AlterShareGroupOffsetsRequest
    ) -> AlterShareGroupOffsetsResponse:
        """Begin the state of partitions of a group without members again, at other offsets."""
        self._groups.demand_group_id(request.group_id)
        change = await self._written(
            request.group_id,
            lambda shard, now_ms: shard.alter_share_group_offsets(request, now_ms),
        )
        response = change.response
        if not change.initialize.topics:
            return response
        kept = await self._persister.initialize_state(change.initialize)
        if _first_error(kept) is ErrorCode.NONE:
            self._begin(self._note_initialized(request.group_id, kept))
            return response
        _add_errors(response, kept)
        return response

    async def delete_offsets(
        self, request: DeleteShareGroupOffsetsRequest
    ) -> DeleteShareGroupOffsetsResponse:
        """Delete the state that a group without members has of topics."""
        self._groups.demand_group_id(request.group_id)
        deletion = await self._written(
            request.group_id, lambda shard, _: shard.begin_share_offset_deletion(request)
        )
        if deletion.request is None:
            return DeleteShareGroupOffsetsResponse(responses=deletion.refused)
        topics = await self._delete_topics(deletion, deletion.request)
        if not topics:
            return DeleteShareGroupOffsetsResponse(responses=deletion.refused)
        return await self._written(
            request.group_id,
            lambda shard, _: shard.complete_share_offset_deletion(
                request.group_id, topics, deletion.refused
            ),
        )

    async def delete_groups(
        self, group_ids: Sequence[str]
    ) -> list[DeleteGroupsResponse.DeletableGroupResult]:
        """Delete empty groups, no id twice; a share group only after the states that it has."""
        by_partition: dict[int, list[str]] = {}
        for group_id in group_ids:
            by_partition.setdefault(self._groups.runtime.partition_for(group_id), []).append(
                group_id
            )
        refused: dict[str, ErrorCode] = {}
        deletions = [self._delete_states(*each) for each in by_partition.items()]
        deleted = await all_of(self._runtime, deletions)
        for codes in deleted:
            refused.update(codes)
        promise: Promise[list[DeleteGroupsResponse.DeletableGroupResult]] = Promise(self._runtime)
        self._groups.delete_groups(
            [group_id for group_id in group_ids if group_id not in refused], promise.settle
        )
        results = [
            DeleteGroupsResponse.DeletableGroupResult(group_id, code)
            for group_id, code in refused.items()
        ]
        return results + await promise.result()

    async def _delete_states(self, partition: int, group_ids: list[str]) -> dict[str, ErrorCode]:
        """Delete the states of share groups; return why others of the groups must stay."""
        promise: Promise[dict[str, GroupDeletion]] = Promise(self._runtime)
        try:
            self._groups.operations.write_to_partition(
                partition,
                lambda shard, _: shard.begin_share_group_deletions(group_ids),
                promise.settle,
            )
            deletions = await promise.result()
        except RequestError as error:
            return dict.fromkeys(group_ids, error.code)
        refused = {
            group_id: deletion
            for group_id, deletion in deletions.items()
            if isinstance(deletion, ErrorCode)
        }
        asked = [
            self._state_error(deletion)
            for deletion in deletions.values()
            if not isinstance(deletion, ErrorCode)
        ]
        codes = dict(await all_of(self._runtime, asked))
        return refused | {one: code for one, code in codes.items() if code is not ErrorCode.NONE}

    async def _state_error(self, request: DeleteShareGroupStateRequest) -> tuple[str, ErrorCode]:
        """Delete states; return the group with the last error of a topic, or NONE."""
        response = await self._persister.delete_state(request)
        codes = [_error_of(topic.partitions) for topic in response.results]
        errors = [code for code in codes if code is not ErrorCode.NONE]
        return request.group_id, errors[-1] if errors else ErrorCode.NONE

    async def _delete_topics(
        self, deletion: OffsetDeletion, request: DeleteShareGroupStateRequest
    ) -> dict[bytes, str]:
        """Delete states; return the names of topics by id, and add the others to the refused."""
        response = await self._persister.delete_state(request)
        deleted: dict[bytes, str] = {}
        for result in response.results:
            code = _error_of(result.partitions)
            name = self._groups.topic_name(result.topic_id)
            if code is ErrorCode.NONE:
                deleted[result.topic_id] = name
                continue
            deletion.refused.append(
                DeleteShareGroupOffsetsResponseTopic(
                    name, result.topic_id, code, code.default_message
                )
            )
        return deleted

    # The initialization of states.

    async def _initialize(self, request: InitializeShareGroupStateRequest) -> None:
        # The answer to the member leaves first.
        await other_work(self._runtime)
        kept = await self._persister.initialize_state(request)
        await self._note_initialized(request.group_id, kept)

    async def _note_initialized(
        self, group_id: str, kept: InitializeShareGroupStateResponse
    ) -> None:
        """Have the group note which states are there; with one error, none of them is."""
        await other_work(self._runtime)
        partitions = {
            topic.topic_id: [one.partition for one in topic.partitions] for topic in kept.results
        }
        error = _first_error(kept)
        if error is ErrorCode.NONE:
            try:
                await self._noted(
                    group_id,
                    lambda shard, now_ms: shard.initialize_share_group_state(
                        group_id, partitions, now_ms
                    ),
                )
            except RequestError as refusal:
                error = refusal.code
            else:
                return
        _log.error(
            LogEvent("The state of share partitions is not there", group=group_id, error=error.name)
        )
        try:
            await self._noted(
                group_id,
                lambda shard, _: shard.uninitialize_share_group_state(group_id, partitions),
            )
        except RequestError as refusal:
            _log.error(
                LogEvent(
                    "The state of share partitions is asked for again in a while",
                    group=group_id,
                    error=refusal.code.name,
                )
            )

    def _begin(self, coroutine: Coroutine[Wait[Any], Any, None]) -> None:
        """Run a coroutine, which does not end at once, beside others."""
        self._task_count += 1
        number = self._task_count
        self._tasks[number] = Task(coroutine, partial(self._ended, number))

    def _ended(self, number: int, result: Exception | None) -> None:
        del self._tasks[number]
        if result is not None:
            _log.error("An unexpected error of the state of share partitions", exc_info=result)

    async def _noted(self, group_id: str, decide: GroupOperation[None]) -> None:
        promise: Promise[None] = Promise(self._runtime)
        self._groups.operations.write_unanswered(group_id, decide, promise.settle)
        await promise.result()

    async def _written(self, group_id: str, decide: GroupOperation[Response]) -> Response:
        promise: Promise[Response] = Promise(self._runtime)
        self._groups.operations.write(group_id, decide, promise.settle)
        return await promise.result()


def _add_errors(
    response: AlterShareGroupOffsetsResponse, kept: InitializeShareGroupStateResponse
) -> None:
    """Have partitions that were known refused by their share coordinators, where these did so."""
    refused = {
        (topic.topic_id, one.partition): one for topic in kept.results for one in topic.partitions
    }
    for topic in response.responses:
        for partition in topic.partitions:
            found = refused.get((topic.topic_id, partition.partition_index))
            if found is not None and partition.error_code == ErrorCode.NONE:
                partition.error_code = found.error_code
                partition.error_message = found.error_message


def _first_error(kept: InitializeShareGroupStateResponse) -> ErrorCode:
    return _error_of(one for topic in kept.results for one in topic.partitions)


class _WithCode(Protocol):
    """A partition of a response."""

    error_code: int


def _error_of(partitions: Iterable[_WithCode]) -> ErrorCode:
    """Return the code of the first partition with an error, or NONE."""
    codes = (ErrorCode(one.error_code) for one in partitions)
    return next((code for code in codes if code is not ErrorCode.NONE), ErrorCode.NONE)
