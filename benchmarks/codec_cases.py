"""The messages that the codec benchmark encodes and decodes.

Each case is built as one of our messages. Every candidate decodes its bytes, and every candidate's
own object must encode to the same bytes, so that all do the same work.
"""

from dataclasses import dataclass

from kvorum.wire.messages.api_versions import ApiVersionsResponse
from kvorum.wire.messages.fetch import FetchResponse
from kvorum.wire.messages.heartbeat import HeartbeatRequest
from kvorum.wire.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kvorum.wire.messages.produce import ProduceRequest
from kvorum.wire.primitives import Message

TOPICS = 100
PARTITIONS_PER_TOPIC = 10
FETCH_PARTITIONS = 500
BLOB_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Case:
    """One message at one version; `group` is its name in the table of docs/figures.md."""

    group: str
    message: Message
    version: int

    @property
    def name(self) -> str:
        return f"{self.group} ({type(self.message).__name__} v{self.version})"


def topic_id(number: int) -> bytes:
    return number.to_bytes(16, "big")


def api_versions() -> ApiVersionsResponse:
    keys = [ApiVersionsResponse.ApiVersion(key, 0, key % 12) for key in range(60)]
    return ApiVersionsResponse(api_keys=keys)


def metadata() -> MetadataResponse:
    brokers = [
        MetadataResponseBroker(
            node_id=number, host=f"broker-{number}.example.net", port=9092, rack=f"rack-{number}"
        )
        for number in range(3)
    ]
    topics = [metadata_topic(number) for number in range(TOPICS)]
    return MetadataResponse(
        brokers=brokers, cluster_id="Zm9yLWJlbmNobWFyay0wMQ", controller_id=1, topics=topics
    )


def metadata_topic(number: int) -> MetadataResponseTopic:
    partitions = [
        MetadataResponsePartition(
            partition_index=index,
            leader_id=index % 3,
            leader_epoch=7,
            replica_nodes=[0, 1, 2],
            isr_nodes=[0, 1, 2],
        )
        for index in range(PARTITIONS_PER_TOPIC)
    ]
    return MetadataResponseTopic(
        name=f"orders.region-{number:03}", topic_id=topic_id(number + 1), partitions=partitions
    )


def fetch_of_many(version: int) -> FetchResponse:
    partitions = [
        FetchResponse.PartitionData(
            partition_index=index,
            high_watermark=1000 + index,
            last_stable_offset=1000 + index,
            log_start_offset=0,
            records=memoryview(b"r" * 100),
            aborted_transactions=None,
        )
        for index in range(FETCH_PARTITIONS)
    ]
    return FetchResponse(responses=[fetch_topic(version, partitions)])


def fetch_of_blob(version: int) -> FetchResponse:
    blob = FetchResponse.PartitionData(
        partition_index=0, high_watermark=5, records=memoryview(bytes(BLOB_BYTES))
    )
    return FetchResponse(responses=[fetch_topic(version, [blob])])


def fetch_topic(
    version: int, partitions: list[FetchResponse.PartitionData]
) -> FetchResponse.FetchableTopicResponse:
    if version >= 13:
        return FetchResponse.FetchableTopicResponse(topic_id=topic_id(1), partitions=partitions)
    return FetchResponse.FetchableTopicResponse(topic="orders", partitions=partitions)


def produce_of_blob() -> ProduceRequest:
    data = ProduceRequest.PartitionProduceData(index=0, records=memoryview(bytes(BLOB_BYTES)))
    topic = ProduceRequest.TopicProduceData(name="orders", partition_data=[data])
    return ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic])


def heartbeat() -> HeartbeatRequest:
    return HeartbeatRequest("billing", 12, "member-1-5f0c", None)


def cases() -> list[Case]:
    """Return the newest versions that kafka-python and kio know, then older ones for aiokafka."""
    return [
        Case("ApiVersions", api_versions(), 3),
        Case("Metadata", metadata(), 12),
        Case("Fetch of 500 partitions", fetch_of_many(13), 13),
        Case("Fetch of a 1 MiB blob", fetch_of_blob(13), 13),
        Case("Produce of a 1 MiB blob", produce_of_blob(), 9),
        Case("Heartbeat", heartbeat(), 4),
        Case("ApiVersions, old", api_versions(), 1),
        Case("Metadata, old", metadata(), 5),
        Case("Fetch of 500 partitions, old", fetch_of_many(11), 11),
        Case("Fetch of a 1 MiB blob, old", fetch_of_blob(11), 11),
    ]
