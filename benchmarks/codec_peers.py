"""The codecs of kafka-python, kio and aiokafka behind one small interface.

None of the peers' packages is fully typed, hence the `Any` at this edge.
"""

import importlib
import io
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

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
    """One message at one version; `group` is its name in the table of docs/figures.md.

    Each case is built as one of our messages. Every candidate decodes its bytes, and every
    candidate's own object must encode to the same bytes, so that all do the same work.
    """

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


@dataclass(frozen=True, slots=True)
class Codec:
    """One library's way to decode and encode one case; `encode` writes the result of `decode`."""

    library: str
    decode: Callable[[], object]
    encode: Callable[[], bytes]


def ours(case: Case, data: bytes) -> Codec:
    kind = type(case.message)
    version = case.version
    decoded = kind.decode(data, version)
    return Codec("kvorum", lambda: kind.decode(data, version), lambda: decoded.encode(version))


def kafka_python(case: Case, data: bytes) -> Codec | None:
    name = type(case.message).__name__
    kind = find_attribute(
        name, "kafka.protocol.metadata", "kafka.protocol.consumer", "kafka.protocol.producer"
    )
    if kind is None:
        return None
    version = case.version
    decoded = kind.decode(data, version=version)
    return Codec("kafka-python", lambda: kind.decode(data, version=version), decoded.encode)


def kio(case: Case, data: bytes) -> Codec | None:
    name = type(case.message).__name__
    api, kind_name = split_name(name)
    try:
        module = importlib.import_module(f"kio.schema.{api}.v{case.version}.{kind_name}")
    except ModuleNotFoundError:
        return None
    serial: Any = importlib.import_module("kio.serial")
    kind: Any = getattr(module, name)
    read = serial.entity_reader(kind)
    write = serial.entity_writer(kind)
    decoded, _ = read(data, 0)

    def encode() -> bytes:
        buffer = io.BytesIO()
        write(buffer, decoded)
        return buffer.getvalue()

    return Codec("kio", lambda: read(data, 0), encode)


def aiokafka(case: Case, data: bytes) -> Codec | None:
    name = type(case.message).__name__
    old_name = name.replace("ApiVersions", "ApiVersion")
    kind = find_attribute(
        f"{old_name}_v{case.version}",
        *(
            f"aiokafka.protocol.{module}"
            for module in ("metadata", "fetch", "admin", "coordination")
        ),
    )
    if kind is None:
        return None
    decoded = kind.decode(io.BytesIO(data))
    return Codec("aiokafka", lambda: kind.decode(io.BytesIO(data)), decoded.encode)


def codecs(case: Case) -> list[Codec]:
    """Return every library that supports the message's version, ours first, each one checked."""
    data = case.message.encode(case.version)
    candidates = [ours(case, data), kafka_python(case, data), kio(case, data), aiokafka(case, data)]
    found = [codec for codec in candidates if codec is not None]
    for codec in found:
        if codec.encode() != data:
            message = f"{codec.library} encodes {case.name} to different bytes"
            raise ValueError(message)
    return found


def split_name(name: str) -> tuple[str, str]:
    match = re.fullmatch(r"(\w+)(Request|Response)", name)
    if match is None:
        message = f"not a request or response: {name}"
        raise ValueError(message)
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", match[1]).lower(), match[2].lower()


def find_attribute(name: str, *modules: str) -> Any | None:
    for module in modules:
        found = getattr(importlib.import_module(module), name, None)
        if found is not None:
            return found
    return None
