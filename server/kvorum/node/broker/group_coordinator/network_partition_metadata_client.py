"""The ends of partitions over connections to their leaders (NetworkPartitionMetadataClient)."""

from collections.abc import Callable, Iterable
from typing import Final

from kvorum.broker.coordinators import coordinator_node
from kvorum.groups.offsets.store import TopicPartition
from kvorum.metadata.image import MetadataImage
from kvorum.node.broker.exponential_backoff import ExponentialBackoff
from kvorum.node.broker.group_coordinator.partition_metadata_client import LatestOffset
from kvorum.node.broker.inter_broker_senders import BrokerConnection, Connections
from kvorum.node.broker.own_broker import OwnBroker
from kvorum.node.coroutines import Lock, all_of, sleep
from kvorum.node.outbound.client_connection import ClientConnectionError, NoCommonVersionError
from kvorum.node.runtime import Runtime
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse

ATTEMPTS_MAX: Final = 5
"""The tries after the first one, as in Kafka."""
BACKOFF_MS: Final = 1_000
BACKOFF_MAX_MS: Final = 30_000
_CONSUMER: Final = -1
"""Asks as consumers do, for the end of what is committed; replicas have that of the log."""
_LATEST: Final = -1
_NO_OFFSET: Final = -1
_TOPIC: Final = ListOffsetsRequest.ListOffsetsTopic
_PARTITION: Final = ListOffsetsRequest.ListOffsetsPartition


class NetworkPartitionMetadataClient:
    """Asks each leader for all of its partitions at once, and again where it cannot be had.

    `listener` is the one that brokers use. The broker is `own`, which is asked without a
    connection. `draw` returns a number from 0 up to 1, for the jitter of pauses.
    """

    def __init__(
        self,
        connections: Connections,
        own: OwnBroker,
        listener: str,
        *,
        image: Callable[[], MetadataImage],
        draw: Callable[[], float],
        runtime: Runtime,
    ) -> None:
        self._connections = connections
        self._own = own
        self._listener = listener
        self._image = image
        self._backoff = ExponentialBackoff(BACKOFF_MS, BACKOFF_MAX_MS, draw)
        self._runtime = runtime
        self._turns: dict[int, Lock] = {}
        """One request is under way to each leader."""

    def close(self) -> None:
        """Close all connections."""
        self._connections.close()

    async def list_latest_offsets(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, LatestOffset]:
        """Return the end of each partition, or the last error after all tries."""
        image = self._image()
        offsets: dict[TopicPartition, LatestOffset] = {}
        by_leader: dict[int, list[TopicPartition]] = {}
        for where in sorted(partitions):
            leader = coordinator_node(image, where.topic, where.partition, self._listener)
            if leader is None:
                offsets[where] = LatestOffset(_NO_OFFSET, ErrorCode.LEADER_NOT_AVAILABLE)
            else:
                by_leader.setdefault(leader.node_id, []).append(where)
        asked = [self._ask_until_answered(leader, some) for leader, some in by_leader.items()]
        answers = await all_of(self._runtime, asked)
        for answered in answers:
            offsets.update(answered)
        return offsets

    async def _ask_until_answered(
        self, leader_id: int, partitions: list[TopicPartition]
    ) -> dict[TopicPartition, LatestOffset]:
        error = ErrorCode.NETWORK_EXCEPTION
        for attempt in range(ATTEMPTS_MAX + 1):
            if attempt > 0:
                await sleep(self._runtime, self._backoff.pause_ms(attempt))
            try:
                async with self._turns.setdefault(leader_id, Lock(self._runtime)):
                    return await self._ask(await self._connection_to(leader_id), partitions)
            except NoCommonVersionError:
                error = ErrorCode.UNKNOWN_SERVER_ERROR
                break
            except ClientConnectionError:
                continue
        return dict.fromkeys(partitions, LatestOffset(_NO_OFFSET, error))

    async def _ask(
        self, connection: BrokerConnection, partitions: list[TopicPartition]
    ) -> dict[TopicPartition, LatestOffset]:
        topics: dict[str, ListOffsetsRequest.ListOffsetsTopic] = {}
        for where in partitions:
            topic = topics.setdefault(where.topic, _TOPIC(where.topic))
            topic.partitions.append(_PARTITION(where.partition, timestamp=_LATEST))
        response = await connection.send(
            ListOffsetsRequest(replica_id=_CONSUMER, topics=list(topics.values())),
            ListOffsetsResponse,
            timeout_ms=self._connections.request_timeout_ms,
            version=connection.version_for(ListOffsetsRequest),
        )
        answered = {
            TopicPartition(topic.name, one.partition_index): LatestOffset(
                one.offset, ErrorCode(one.error_code)
            )
            for topic in response.topics
            for one in topic.partitions
        }
        missing = LatestOffset(_NO_OFFSET, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return {where: answered.get(where, missing) for where in partitions}

    async def _connection_to(self, node_id: int) -> BrokerConnection:
        if node_id == self._own.broker_id:
            return self._own
        return await self._connections.to(node_id)
