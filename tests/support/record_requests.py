"""Produce, Fetch and ListOffsets of one partition, as a raw client sends them."""

from tests.support.raw_client import RawClient

from kvorum.wire.messages.fetch import FetchRequest, FetchResponse
from kvorum.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kvorum.wire.messages.produce import ProduceRequest, ProduceResponse
from kvorum.wire.records import BatchOptions, RecordData, build_batch, read_batches

PRODUCE_VERSION = 9
FETCH_VERSION = 12
CONSUMER = -1


def batch(value: bytes, *, is_transactional: bool = False) -> bytes:
    options = BatchOptions(
        base_offset=0,
        producer_id=9 if is_transactional else -1,
        producer_epoch=0 if is_transactional else -1,
        base_sequence=0 if is_transactional else -1,
        is_transactional=is_transactional,
    )
    return bytes(build_batch([RecordData(value, None, 1, ())], options))


def keyed_batch(key: bytes, value: bytes) -> bytes:
    return bytes(build_batch([RecordData(value, key, 1, ())]))


def produce(
    client: RawClient,
    topic: str,
    records: bytes | None,
    *,
    acks: int = -1,
    transactional_id: str | None = None,
) -> ProduceResponse.PartitionProduceResponse:
    data = ProduceRequest.PartitionProduceData(0, records)
    sent = ProduceRequest.TopicProduceData(topic, partition_data=[data])
    body = ProduceRequest(transactional_id, acks, 5000, [sent])
    (answered,) = client.ask(body, ProduceResponse, PRODUCE_VERSION).responses
    return answered.partition_responses[0]


def fetch_request(topic: str, offset: int, *, min_bytes: int, max_wait_ms: int) -> FetchRequest:
    wish = FetchRequest.FetchPartition(0, fetch_offset=offset, partition_max_bytes=1 << 20)
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=1 << 20,
        topics=[FetchRequest.FetchTopic(topic, partitions=[wish])],
    )


def fetch(
    client: RawClient, topic: str, offset: int, *, min_bytes: int = 0, max_wait_ms: int = 0
) -> FetchResponse.PartitionData:
    request = fetch_request(topic, offset, min_bytes=min_bytes, max_wait_ms=max_wait_ms)
    (answered,) = client.ask(request, FetchResponse, FETCH_VERSION).responses
    return answered.partitions[0]


def list_offset(
    client: RawClient, topic: str, timestamp: int, *, version: int = 7, replica_id: int = CONSUMER
) -> tuple[int, int]:
    wish = ListOffsetsRequest.ListOffsetsPartition(0, timestamp=timestamp)
    body = ListOffsetsRequest(
        replica_id, topics=[ListOffsetsRequest.ListOffsetsTopic(topic, [wish])]
    )
    (answered,) = client.ask(body, ListOffsetsResponse, version).topics
    return answered.partitions[0].error_code, answered.partitions[0].offset


def values(data: FetchResponse.PartitionData) -> list[bytes | None]:
    return [
        record.value
        for one in read_batches(data.records or b"", is_cut_allowed=True)
        for record in one.records()
    ]
