"""The partition that this broker hosts for a topic's name or id in a request."""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from typing import Final, NamedTuple

from kvorum.broker.partition import Partition
from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.request_error import RequestError
from kvorum.metadata.standard_authorizer import Access
from kvorum.metadata.topics_image import TopicImage, TopicsImage
from kvorum.node.asyncio_bridge import run
from kvorum.node.broker.broker_metadata_publisher import BrokerMetadataPublisher
from kvorum.node.broker.replica_manager import ReplicaManager
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.uuid_text import ZERO_UUID

_MS_PER_S: Final = 1000


class TopicChoice(NamedTuple):
    """A topic as a request names it: by name, or by id in versions that have ids."""

    name: str
    topic_id: bytes = ZERO_UUID
    is_by_id: bool = False


class Hosting(NamedTuple):
    """The views that a request for records is looked up in."""

    topics: TopicsImage
    replicas: ReplicaManager
    publisher: BrokerMetadataPublisher

    def topic(self, choice: TopicChoice, operation: AclOperation, access: Access) -> TopicImage:
        """Return the topic.

        Raises RequestError: UNKNOWN_TOPIC_ID, TOPIC_AUTHORIZATION_FAILED before a client learns
        whether a name exists, or UNKNOWN_TOPIC_OR_PARTITION.
        """
        topic = self._find(choice)
        name = choice.name if topic is None else topic.name
        if not access.allows_on_topic(operation, name):
            raise RequestError.with_default_message(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        if topic is None:
            raise RequestError.with_default_message(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return topic

    def topic_for_broker(self, choice: TopicChoice) -> TopicImage:
        """Return the topic for another broker, whose permission is not the topic's.

        Raises RequestError: UNKNOWN_TOPIC_ID, or UNKNOWN_TOPIC_OR_PARTITION.
        """
        topic = self._find(choice)
        if topic is None:
            raise RequestError.with_default_message(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return topic

    def _find(self, choice: TopicChoice) -> TopicImage | None:
        if choice.name:
            return self.topics.by_name(choice.name)
        topic = self.topics.by_id.get(choice.topic_id)
        if topic is None and (choice.is_by_id or choice.topic_id != ZERO_UUID):
            raise RequestError.with_default_message(ErrorCode.UNKNOWN_TOPIC_ID)
        return topic

    async def wait_until_led(
        self, partitions: Iterable[tuple[TopicImage, int]], *, timeout_ms: int
    ) -> None:
        """Wait for new partitions, whose leader clients know before it has made their logs."""
        publisher = self.publisher
        if publisher.is_current:
            return
        keys = {
            (topic.id, index)
            for topic, index in partitions
            if (found := topic.partitions.get(index)) is not None
            and found.leader == self.replicas.broker_id
        }
        with suppress(TimeoutError):
            async with asyncio.timeout(max(timeout_ms, 0) / _MS_PER_S):
                while not (publisher.is_current or all(map(self._is_led, keys))):
                    await run(publisher.next_turn())

    def _is_led(self, key: tuple[bytes, int]) -> bool:
        partition = self.replicas.partition(*key)
        return partition is not None and partition.is_leader

    def partition(self, topic: TopicImage, index: int) -> Partition:
        """Return a partition that this broker hosts.

        Raises RequestError: UNKNOWN_TOPIC_OR_PARTITION, or NOT_LEADER_OR_FOLLOWER where this broker
        does not have it, or KAFKA_STORAGE_ERROR where its log directory is offline.
        """
        if topic.partitions.get(index) is None:
            raise RequestError.with_default_message(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        partition = self.replicas.partition(topic.id, index)
        if partition is None:
            raise RequestError.with_default_message(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if partition.is_offline:
            raise RequestError.with_default_message(ErrorCode.KAFKA_STORAGE_ERROR)
        return partition
