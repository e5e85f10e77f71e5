"""Consumers of one group over a shard in memory, and the topics that they read (KIP-848)."""

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from tests.unit.groups.coordinator import GROUP, Coordinator

from kvorum.groups.consumer_group.group import ConsumerGroup
from kvorum.groups.request_context import RequestContext
from kvorum.metadata.api import RequestError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kvorum.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kvorum.wire.messages.partition_record import PartitionRecord
from kvorum.wire.messages.remove_topic_record import RemoveTopicRecord
from kvorum.wire.messages.topic_record import TopicRecord
from kvorum.wire.primitives import Message

INTERVAL_MS: Final = 1_000
"""The time from one target of a group to the next."""
SESSION_MS: Final = 45_000
REBALANCE_MS: Final = 5_000
NOTHING: Final[Mapping[str, Iterable[int]]] = {}
Partitions: TypeAlias = Mapping[str, Iterable[int]]


class Consumers(Coordinator):
    """The caller of a shard with topics, by their names and numbers of partitions."""

    def __init__(self, **topics: int) -> None:
        super().__init__()
        # At 0 a group would take its target for one that was never computed.
        self.now = 1
        self._names: dict[bytes, str] = {}
        for name, partitions in topics.items():
            self.create_topic(name, partitions)

    @property
    def consumer_group(self) -> ConsumerGroup:
        return self.shard.state.consumer_group(GROUP)

    # --- topics ---

    def create_topic(self, name: str, partitions: int) -> None:
        topic_id = bytes([len(self._names) + 1] * 16)
        self._names[topic_id] = name
        self._apply(TopicRecord(name, topic_id))
        for index in range(partitions):
            self._apply(PartitionRecord(index, topic_id, replicas=[1], isr=[1], leader=1))
        self.append(self.shard.on_topics_changed({name}, has_new_topics=True))

    def delete_topic(self, name: str) -> None:
        self._apply(RemoveTopicRecord(self.image.topics.ids[name]))
        self.append(self.shard.on_topics_changed({name}, has_new_topics=False))

    def _apply(self, record: Message) -> None:
        self.image = self.image.apply(record, 0, self.image.last_offset + 1)

    # --- members ---

    def enter(
        self,
        member_id: str,
        *names: str,
        regex: str | None = None,
        instance: str | None = None,
    ) -> ConsumerGroupHeartbeatResponse:
        """Have a member join."""
        return self.beat(
            member_id, 0, *names, regex=regex, owned=NOTHING, instance=instance, says_all=True
        )

    def beat(
        self,
        member_id: str,
        epoch: int,
        *names: str,
        regex: str | None = None,
        owned: Partitions | None = None,
        instance: str | None = None,
        says_all: bool = False,
    ) -> ConsumerGroupHeartbeatResponse:
        """Send a heartbeat; `owned` None does not say what the member owns."""
        request = ConsumerGroupHeartbeatRequest(
            GROUP,
            member_id,
            epoch,
            instance,
            rebalance_timeout_ms=REBALANCE_MS if says_all else -1,
            subscribed_topic_names=list(names) if names or says_all else None,
            subscribed_topic_regex=regex,
        )
        if owned is not None:
            request.topic_partitions = [
                ConsumerGroupHeartbeatRequest.TopicPartitions(
                    self.image.topics.ids[topic], list(partitions)
                )
                for topic, partitions in owned.items()
            ]
        return self.consumer_heartbeat(request)

    def depart(self, member_id: str, epoch: int = -1, *, instance: str | None = None) -> None:
        """Have a member leave for good, or with -2 for a while."""
        self.beat(member_id, epoch, instance=instance)

    def refusal(self, member_id: str, epoch: int, *, owned: Partitions | None = None) -> ErrorCode:
        """Return the code with which a heartbeat is refused."""
        try:
            self.beat(member_id, epoch, owned=owned)
        except RequestError as error:
            return error.code
        return ErrorCode.NONE

    def commit_of(self, member_id: str, epoch: int, topic: str, partition: int) -> ErrorCode:
        """Return the code of a member's commit."""
        wanted = OffsetCommitRequestTopic(
            topic, self.image.topics.ids[topic], [OffsetCommitRequestPartition(partition, 5)]
        )
        request = OffsetCommitRequest(GROUP, epoch, member_id, topics=[wanted])
        result = self.shard.commit_offsets(RequestContext(9), request, self.now)
        self.append(result)
        return ErrorCode.NONE if result.error is None else result.error.code

    def assigned(self, response: ConsumerGroupHeartbeatResponse) -> dict[str, list[int]] | None:
        """Return the partitions in a response by topic; None where it does not tell them."""
        if response.assignment is None:
            return None
        return {
            self._names[one.topic_id]: sorted(one.partitions)
            for one in response.assignment.topic_partitions
        }

    def pair(self) -> tuple[int, dict[str, list[int]], dict[str, list[int]]]:
        """Have a and b share the topic t, each with what it is to have; return epoch and parts."""
        owned = self.assigned(self.enter("a", "t"))
        assert owned is not None
        self.advance(INTERVAL_MS)
        self.enter("b", "t")
        told = self.beat("a", 2, owned=owned)
        kept = self.assigned(told)
        assert kept is not None
        epoch = self.beat("a", told.member_epoch, owned=kept).member_epoch
        others = self.assigned(self.beat("b", epoch, "t", owned=NOTHING, says_all=True))
        assert others is not None
        return epoch, kept, others
