"""The answers of two brokers to one request for records, and in what they must agree."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from tests.interop.data_plane_script import Step
from tests.support.raw_client import RawClient
from tests.support.topics import topic_id

from kvorum.wire.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from kvorum.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
)
from kvorum.wire.messages.fetch import FetchRequest, FetchResponse
from kvorum.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kvorum.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from kvorum.wire.messages.produce import ProduceRequest, ProduceResponse
from kvorum.wire.primitives import Message
from kvorum.wire.records import read_batches
from kvorum.wire.uuid_text import ZERO_UUID

RESPONSES: Final[dict[type[Message], type[Message]]] = {
    ProduceRequest: ProduceResponse,
    FetchRequest: FetchResponse,
    ListOffsetsRequest: ListOffsetsResponse,
    OffsetForLeaderEpochRequest: OffsetForLeaderEpochResponse,
    DeleteRecordsRequest: DeleteRecordsResponse,
    DescribeProducersRequest: DescribeProducersResponse,
}
STAMPED: Final = "stamped"
"""The topic whose records have the time at which each server got them."""
EARLIEST, MAX_TIMESTAMP = -2, -3


def comparable(response: Any, names: Mapping[bytes, str]) -> object:
    """Return the part of an answer in which both servers must agree; `names` are of its topics."""
    match response:
        case FetchResponse():
            return fetched(response, names)
        case ProduceResponse():
            mask_times(response)
            for produced in response.responses:
                produced.name = name_of(produced.name, produced.topic_id, names)
                produced.topic_id = ZERO_UUID
        case ListOffsetsResponse():
            stamped = [topic for topic in response.topics if topic.name == STAMPED]
            for partition in (one for topic in stamped for one in topic.partitions):
                if partition.timestamp >= 0:
                    # Which records a millisecond holds depends on when a server got them.
                    partition.timestamp, partition.offset = 1, 0
        case DescribeProducersResponse():
            for topic in response.topics:
                for described in topic.partitions:
                    mask_producers(described, is_stamped=topic.name == STAMPED)
        case _:
            pass
    return repr(response)


def name_of(name: str, topic_id: bytes, names: Mapping[bytes, str]) -> str:
    """Return the name of a topic in a response, and the id itself where no topic has it."""
    return name if topic_id == ZERO_UUID else names.get(topic_id, topic_id.hex())


def fetched(response: FetchResponse, names: Mapping[bytes, str]) -> list[object]:
    return [
        (
            response.error_code,
            name,
            partition.partition_index,
            partition.error_code,
            partition.high_watermark,
            partition.last_stable_offset,
            partition.log_start_offset,
            partition.aborted_transactions,
            whole_batches(partition.records, name),
        )
        for topic in response.responses
        for name in (name_of(topic.topic, topic.topic_id, names),)
        for partition in topic.partitions
    ]


def mask_times(response: ProduceResponse) -> None:
    for topic in response.responses:
        for partition in topic.partition_responses:
            mask_times_of(partition)


def mask_times_of(partition: ProduceResponse.PartitionProduceResponse) -> None:
    partition.log_append_time_ms = min(partition.log_append_time_ms, 1)
    partition.error_message = masked(partition.error_message)
    for record in partition.record_errors:
        record.batch_index_error_message = masked(record.batch_index_error_message)


def mask_producers(
    described: DescribeProducersResponse.PartitionResponse, *, is_stamped: bool
) -> None:
    described.active_producers.sort(key=lambda one: one.producer_id)
    for producer in described.active_producers if is_stamped else ():
        producer.last_timestamp = 1


def is_of_deleted_record(theirs: RawClient, step: Step) -> bool:
    """Return whether Kafka looks for a time among records that DeleteRecords has deleted.

    Their segments go with its next retention run only. Until then it may find one of them, or look
    no further.
    """
    if not isinstance(step.request, ListOffsetsRequest):
        return False
    wishes = step.request.topics[0].partitions
    if wishes[0].timestamp < 0 and wishes[0].timestamp != MAX_TIMESTAMP:
        return False
    found = theirs.ask(step.request, ListOffsetsResponse, step.version)
    wishes[0].timestamp = EARLIEST
    start = theirs.ask(step.request, ListOffsetsResponse, step.version)
    return found.topics[0].partitions[0].offset < start.topics[0].partitions[0].offset


def masked(text: str | None) -> str | None:
    """Leave out the server's own times."""
    return None if text is None else re.sub(r"within \[.*?\]", "within []", text)


def whole_batches(records: Any, topic: str) -> list[object]:
    """Return the batches of a response; Kafka may cut the last one off."""
    batches = read_batches(memoryview(records or b""), is_cut_allowed=True)
    if topic == STAMPED:
        return [(batch.base_offset, batch.size) for batch in batches]
    return [bytes(batch.data) for batch in batches]


def names_and_ids(
    client: RawClient, topics: Iterable[str]
) -> tuple[dict[bytes, str], dict[str, bytes]]:
    """Return the names of a server's topics by their ids, and the ids by the names."""
    ids = {name: topic_id(client, name) for name in topics}
    return {known: name for name, known in ids.items()}, ids
