"""A coordinator of share groups over partitions in memory, with two topics."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from tests.support.share_persister import MemoryPersister
from tests.unit.node.coordinated_groups import CONTEXT, SETTINGS, Coordinated

from kvorum.groups.offsets.store import TopicPartition
from kvorum.groups.settings import ShareGroupSettings
from kvorum.metadata.partition import Partitions
from kvorum.metadata.topics_image import TopicImage
from kvorum.node.broker.group_coordinator.partition_metadata_client import LatestOffset
from kvorum.node.broker.group_coordinator.share_group_service import ShareGroupService
from kvorum.node.tasks import run
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
)
from kvorum.wire.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from kvorum.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
    DescribeShareGroupOffsetsResponseGroup,
)
from kvorum.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest

ORDERS: Final = b"the-id-of-orders"
PAYMENTS: Final = b"those-of-payment"


class Ends:
    """The ends of partitions, 100 where `errors` has no error for one."""

    is_closed = False

    def __init__(self) -> None:
        self.errors: dict[TopicPartition, ErrorCode] = {}

    async def list_latest_offsets(
        self, partitions: Iterable[TopicPartition]
    ) -> Mapping[TopicPartition, LatestOffset]:
        return {
            where: LatestOffset(100, self.errors.get(where, ErrorCode.NONE)) for where in partitions
        }

    def close(self) -> None:
        self.is_closed = True


class Sharing(Coordinated):
    """A coordinator of share groups, with two topics of two partitions each."""

    def __init__(self) -> None:
        share = ShareGroupSettings(assignment_interval_ms=0)
        coordinator = replace(SETTINGS.coordinator, share=share)
        super().__init__(replace(SETTINGS, coordinator=coordinator))
        self.persister = MemoryPersister()
        self.ends = Ends()
        self.share = ShareGroupService(
            self.service, self.persister, self.ends, runtime=self.runtime
        )

    async def begin(self) -> None:
        await self.lead()
        both = Partitions((self.registration,) * 2)
        self.publish(TopicImage("orders", ORDERS, both), TopicImage("payments", PAYMENTS, both))

    async def heartbeat(
        self, epoch: int, names: list[str] | None = None, group_id: str = "g"
    ) -> tuple[int, dict[bytes, list[int]]]:
        """Return the epoch of member m, and the partitions that it shares."""
        request = ShareGroupHeartbeatRequest(group_id, "m", epoch, None, names)
        response = await run(self.share.heartbeat(CONTEXT, request))
        topics = [] if response.assignment is None else response.assignment.topic_partitions
        return response.member_epoch, {one.topic_id: one.partitions for one in topics}

    def initialized(self) -> dict[bytes, frozenset[int]]:
        context = self.service.operations.context_for("g")
        return context.read(lambda shard: shard.initialized_share_group_partitions("g"))

    def is_waiting(self) -> bool:
        """Whether partitions of the group wait for their state."""
        context = self.service.operations.context_for("g")
        state = context.read(lambda shard: shard.state.share_state_partitions.get("g"))
        return state is not None and bool(state.initializing)

    async def join_and_share(self) -> None:
        """Have a member join, and leave when the states are there that it needs."""
        await self.heartbeat(0, ["orders", "payments"])
        await self.until(lambda: len(self.initialized()) == 2)
        await self.heartbeat(-1)

    async def alter(self, *names: str, partition: int = 0) -> AlterShareGroupOffsetsResponse:
        topics = [
            AlterShareGroupOffsetsRequestTopic(
                name, [AlterShareGroupOffsetsRequestPartition(partition, 42)]
            )
            for name in names
        ]
        return await run(self.share.alter_offsets(AlterShareGroupOffsetsRequest("g", topics)))

    async def delete(self, *names: str) -> dict[str, tuple[int, str | None]]:
        topics = [DeleteShareGroupOffsetsRequestTopic(name) for name in names]
        response = await run(self.share.delete_offsets(DeleteShareGroupOffsetsRequest("g", topics)))
        return {one.topic_name: (one.error_code, one.error_message) for one in response.responses}

    async def describe(
        self, topics: list[DescribeShareGroupOffsetsRequestTopic] | None = None
    ) -> DescribeShareGroupOffsetsResponseGroup:
        group = DescribeShareGroupOffsetsRequestGroup("g", topics)
        return await run(self.share.offsets.describe(group))
