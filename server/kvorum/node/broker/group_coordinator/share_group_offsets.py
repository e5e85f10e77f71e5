"""DescribeShareGroupOffsets: where share groups go on in partitions, and how much is left there."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from kvorum.groups.offsets.store import TopicPartition
from kvorum.node.broker.group_coordinator.group_coordinator_service import GroupCoordinatorService
from kvorum.node.broker.group_coordinator.partition_metadata_client import (
    LatestOffset,
    PartitionMetadataClient,
)
from kvorum.node.broker.share_coordinator.persister import Persister
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)
from kvorum.wire.messages.read_share_group_state_summary import (
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
    ReadShareGroupStateSummaryResponsePartitionResult,
)

_NO_OFFSET: Final = -1
_NO_LAG: Final = -1
_NO_COUNT: Final = -1
_TOPIC: Final = ReadShareGroupStateSummaryRequest.ReadStateSummaryData
_PARTITION: Final = ReadShareGroupStateSummaryRequest.PartitionData


class ShareGroupOffsets:
    """The offsets of share groups, which share coordinators know and not this one."""

    def __init__(
        self,
        groups: GroupCoordinatorService,
        persister: Persister,
        partitions: PartitionMetadataClient,
    ) -> None:
        self._groups = groups
        self._persister = persister
        self._partitions = partitions

    async def describe(
        self, request: DescribeShareGroupOffsetsRequestGroup
    ) -> DescribeShareGroupOffsetsResponseGroup:
        """Describe partitions of a group; topics of None are all whose state is initialized.

        Named partitions may be those of any group. For all, raises RequestError on another broker
        than that of the group's coordinator.
        """
        self._groups.runtime.demand_active()
        group_id = request.group_id
        if request.topics is None:
            context = self._groups.operations.context_for(group_id)
            wanted = context.read(lambda shard: shard.initialized_share_group_partitions(group_id))
            return await self._described(group_id, self._existing(wanted), [])
        topics = self._groups.image.topics
        named: dict[bytes, Collection[int]] = {}
        unknown: list[DescribeShareGroupOffsetsResponseTopic] = []
        for topic in request.topics:
            found = topics.by_name(topic.topic_name)
            if found is None:
                unknown.append(_unknown_topic(topic.topic_name, topic.partitions))
            else:
                named[found.id] = topic.partitions
        return await self._described(group_id, named, unknown)

    def _existing(self, partitions: Mapping[bytes, Collection[int]]) -> dict[bytes, list[int]]:
        topics = self._groups.image.topics.by_id
        return {
            topic_id: sorted(numbers)
            for topic_id, numbers in partitions.items()
            if topic_id in topics
        }

    async def _described(
        self,
        group_id: str,
        partitions: Mapping[bytes, Collection[int]],
        unknown: list[DescribeShareGroupOffsetsResponseTopic],
    ) -> DescribeShareGroupOffsetsResponseGroup:
        if not partitions:
            return DescribeShareGroupOffsetsResponseGroup(group_id, unknown)
        names = {one: self._groups.topic_name(one) for one in partitions}
        wanted = [
            _TOPIC(topic_id, [_PARTITION(one) for one in numbers])
            for topic_id, numbers in partitions.items()
        ]
        summary = await self._persister.read_state_summary(
            ReadShareGroupStateSummaryRequest(group_id, wanted)
        )
        ends = await self._partitions.list_latest_offsets(_with_lag(summary, names))
        topics = [
            DescribeShareGroupOffsetsResponseTopic(
                names[topic.topic_id],
                topic.topic_id,
                [
                    _described(one, ends.get(TopicPartition(names[topic.topic_id], one.partition)))
                    for one in topic.partitions
                ],
            )
            for topic in summary.results
        ]
        return DescribeShareGroupOffsetsResponseGroup(group_id, [*topics, *unknown])


def _with_lag(
    summary: ReadShareGroupStateSummaryResponse, names: Mapping[bytes, str]
) -> Iterator[TopicPartition]:
    """Yield the partitions whose records left are known once their ends are."""
    for topic in summary.results:
        for one in topic.partitions:
            has_offset = one.start_offset != _NO_OFFSET
            has_count = one.delivery_complete_count != _NO_COUNT
            if one.error_code == ErrorCode.NONE and has_offset and has_count:
                yield TopicPartition(names[topic.topic_id], one.partition)


def _described(
    summary: ReadShareGroupStateSummaryResponsePartitionResult, end: LatestOffset | None
) -> DescribeShareGroupOffsetsResponsePartition:
    """Describe a partition; as in Kafka, an error of its share coordinator is not among it."""
    if end is not None and end.error is not ErrorCode.NONE:
        return DescribeShareGroupOffsetsResponsePartition(
            partition_index=summary.partition,
            error_code=end.error,
            error_message=end.error.default_message,
        )
    if summary.error_code != ErrorCode.NONE:
        return DescribeShareGroupOffsetsResponsePartition(
            partition_index=summary.partition, start_offset=_NO_OFFSET
        )
    lag = _NO_LAG
    if end is not None:
        lag = end.offset - summary.start_offset - summary.delivery_complete_count
    return DescribeShareGroupOffsetsResponsePartition(
        partition_index=summary.partition,
        start_offset=summary.start_offset,
        leader_epoch=summary.leader_epoch,
        lag=lag,
    )


def _unknown_topic(name: str, partitions: Iterable[int]) -> DescribeShareGroupOffsetsResponseTopic:
    return DescribeShareGroupOffsetsResponseTopic(
        topic_name=name,
        partitions=[
            DescribeShareGroupOffsetsResponsePartition(one, _NO_OFFSET) for one in partitions
        ],
    )
