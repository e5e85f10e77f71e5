"""The steps of share groups with our shard, answered as ShareGroupSteps.java does for Kafka's."""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from tests.interop.hash_order import sort_described_share_group, sort_share_heartbeat

from kvorum.coordinator.result import CoordinatorResult
from kvorum.groups.request_context import RequestContext
from kvorum.groups.shard import GroupCoordinatorShard
from kvorum.metadata.api import RequestError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.alter_share_group_offsets import AlterShareGroupOffsetsRequest
from kvorum.wire.messages.delete_share_group_offsets import DeleteShareGroupOffsetsRequest
from kvorum.wire.messages.delete_share_group_state import DeleteShareGroupStateRequest
from kvorum.wire.messages.initialize_share_group_state import InitializeShareGroupStateRequest
from kvorum.wire.messages.share_group_describe import ShareGroupDescribeResponse
from kvorum.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from kvorum.wire.uuid_text import uuid_to_text

Writing: TypeAlias = Callable[[CoordinatorResult[Any], int | None], str]
"""Writes the records of a result, and shows its response in a version, None to leave it out."""
NAME: Final = "name"
"""The name of all topics in the last step of a deletion of offsets."""


class ShareGroupSteps:
    """The requests of share groups to a shard; `write` shows what a result has become."""

    def __init__(self, shard: GroupCoordinatorShard, now_ms: int, write: Writing) -> None:
        self._shard = shard
        self._now_ms = now_ms
        self._write = write

    def request(self, name: str, context: RequestContext, body: bytes) -> str | None:
        """Return the answer to a step; None for a step of another kind."""
        match name:
            case "share_heartbeat":
                return self._heartbeat(context, ShareGroupHeartbeatRequest.decode(body, 1))
            case "initialize_share" | "uninitialize_share":
                return self._settled(name, DeleteShareGroupStateRequest.decode(body, 0))
            case "alter_share_offsets":
                return self._altered(AlterShareGroupOffsetsRequest.decode(body, 0))
            case "delete_share_offsets":
                return self._offsets_deleted(DeleteShareGroupOffsetsRequest.decode(body, 0))
            case "complete_share_offsets":
                given = DeleteShareGroupStateRequest.decode(body, 0)
                topics = {topic.topic_id: NAME for topic in given.topics}
                result = self._shard.complete_share_offset_deletion(given.group_id, topics, ())
                return self._write(result, 0)
            case "delete_share_groups":
                return self._groups_deleted(_words(body))
            case "describe_share":
                groups = [self._described(one) for one in _words(body)]
                return f"{ShareGroupDescribeResponse(groups=groups).encode(1).hex()} | "
            case _:
                return None

    def _heartbeat(self, context: RequestContext, request: ShareGroupHeartbeatRequest) -> str:
        result = self._shard.share_group_heartbeat(context, request, self._now_ms)
        if result.error is not None:
            return self._refused(result)
        assert result.response is not None
        sort_share_heartbeat(result.response.response)
        asked = result.response.initialize
        text = "~" if asked is None else _initialize_text(asked)
        return f"{result.response.response.encode(1).hex()} {text}{self._write(result, None)}"

    def _settled(self, name: str, given: DeleteShareGroupStateRequest) -> str:
        partitions: dict[bytes, set[int]] = {}
        for topic in given.topics:
            of_topic = partitions.setdefault(topic.topic_id, set())
            of_topic.update(one.partition for one in topic.partitions)
        if name == "initialize_share":
            return self._write(
                self._shard.initialize_share_group_state(given.group_id, partitions, self._now_ms),
                None,
            )
        return self._write(
            self._shard.uninitialize_share_group_state(given.group_id, partitions), None
        )

    def _altered(self, request: AlterShareGroupOffsetsRequest) -> str:
        result = self._shard.alter_share_group_offsets(request, self._now_ms)
        if result.error is not None:
            return self._refused(result)
        assert result.response is not None
        text = _initialize_text(result.response.initialize)
        return f"{result.response.response.encode(0).hex()} {text}{self._write(result, None)}"

    def _offsets_deleted(self, request: DeleteShareGroupOffsetsRequest) -> str:
        result = self._shard.begin_share_offset_deletion(request)
        if result.error is not None:
            return self._refused(result)
        assert result.response is not None
        refused = "".join(
            f"{one.topic_name}={int(one.error_code)}={one.error_message},"
            for one in result.response.refused
        )
        asked = result.response.request
        text = "~" if asked is None else _deletion_text(asked)
        return f"{refused} {text}{self._write(result, None)}"

    def _groups_deleted(self, group_ids: Sequence[str]) -> str:
        result = self._shard.begin_share_group_deletions(group_ids)
        assert result.response is not None
        texts = (
            f"{group_id}={int(deletion)}="
            if isinstance(deletion, ErrorCode)
            else f"{group_id}=0={_deletion_text(deletion)}"
            for group_id, deletion in result.response.items()
        )
        return f"{' '.join(sorted(texts))}{self._write(result, None)}"

    def _described(self, group_id: str) -> ShareGroupDescribeResponse.DescribedGroup:
        try:
            group = self._shard.describe_share_group(group_id)
        except RequestError as error:
            return ShareGroupDescribeResponse.DescribedGroup(
                error_code=error.code, error_message=error.message, group_id=group_id
            )
        sort_described_share_group(group)
        return group

    def _refused(self, result: CoordinatorResult[Any]) -> str:
        error = result.error
        assert error is not None
        self._write(result, None)
        text = "~" if error.own_message is None else error.own_message
        return f"error {int(error.code)} {text} | "


def _words(body: bytes) -> list[str]:
    return [word for word in body.decode().split(",") if word]


def _initialize_text(request: InitializeShareGroupStateRequest) -> str:
    texts = (
        f"{uuid_to_text(topic.topic_id)}:{one.partition}@{one.state_epoch}@{one.start_offset}"
        for topic in request.topics
        for one in topic.partitions
    )
    return f"{request.group_id};{';'.join(sorted(texts))}"


def _deletion_text(request: DeleteShareGroupStateRequest) -> str:
    texts = (
        f"{uuid_to_text(topic.topic_id)}:{one.partition}"
        for topic in request.topics
        for one in topic.partitions
    )
    return f"{request.group_id};{';'.join(sorted(texts))}"
