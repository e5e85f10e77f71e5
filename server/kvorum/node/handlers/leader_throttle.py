"""The throttle of a leader on its followers (KIP-73), in Kafka a part of KafkaApis.

Only followers that are not in sync are throttled; what the others get counts against the quota too.
"""

from collections.abc import Callable
from copy import copy
from typing import Final

from kvorum.broker.partition import Partition
from kvorum.node.broker.delayed_fetch import FetchingReplica, ReadablePartition
from kvorum.node.services import BrokerServices
from kvorum.storage.topic_partition import TopicPartition
from kvorum.wire.messages.fetch import FetchResponse

SIZE_BYTES: Final = 4
"""The size before a response, which counts against a quota too."""


def throttle(
    replica: FetchingReplica, broker: BrokerServices
) -> Callable[[ReadablePartition], bool]:
    """Return what says of a partition whether its records are held back from a follower."""
    quota, clock = broker.replication_quotas.leader, broker.clock
    return lambda partition: (
        isinstance(partition, Partition)
        and quota.should_leader_throttle(partition, replica.broker_id, clock.monotonic_ms())
    )


def record_throttled(response: FetchResponse, version: int, broker: BrokerServices) -> None:
    """Count the throttled part of a follower's response, as long as it is on the wire."""
    quota = broker.replication_quotas.leader
    by_id = broker.loader.published.topics.by_id
    records_size = 0
    throttled: list[FetchResponse.FetchableTopicResponse] = []
    for topic in response.responses:
        known = by_id.get(topic.topic_id)
        name = topic.topic or ("" if known is None else known.name)
        partitions = [
            one
            for one in topic.partitions
            if quota.is_throttled(TopicPartition(name, one.partition_index))
        ]
        records_size += sum(len(one.records or b"") for one in partitions)
        if partitions:
            throttled.append(
                FetchResponse.FetchableTopicResponse(
                    topic=topic.topic,
                    topic_id=topic.topic_id,
                    partitions=[_without_records(one) for one in partitions],
                )
            )
    if throttled:
        rest = FetchResponse(responses=throttled).encode(version)
        quota.record(SIZE_BYTES + len(rest) + records_size, broker.clock.monotonic_ms())


def _without_records(data: FetchResponse.PartitionData) -> FetchResponse.PartitionData:
    bare = copy(data)
    bare.records = b""
    return bare
