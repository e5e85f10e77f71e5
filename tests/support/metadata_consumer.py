"""Requests of a consumer of ``__cluster_metadata``, one by one, in any version."""

from pathlib import Path

from tests.support.raw_client import RawClient

from kvorum.metadata.topic_names import CLUSTER_METADATA_TOPIC
from kvorum.wire.messages.fetch import FetchRequest, FetchResponse
from kvorum.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kvorum.wire.uuid_text import METADATA_TOPIC_ID

FETCH_VERSIONS = range(4, 19)
LIST_OFFSETS_VERSIONS = range(1, 12)
FIRST_VERSION_WITH_TOPIC_IDS = 13
MANY_BYTES = 2**31 - 1
LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, PENDING_UPLOAD = range(-1, -7, -1)


def fetch_request(
    offset: int,
    *,
    version: int = FETCH_VERSIONS[-1],
    partitions: tuple[int, ...] = (0,),
    max_bytes: int = MANY_BYTES,
    min_bytes: int = 0,
    max_wait_ms: int = 0,
) -> FetchRequest:
    """Return a consumer's full fetch of the metadata topic."""
    by_id = version >= FIRST_VERSION_WITH_TOPIC_IDS
    wishes = [
        FetchRequest.FetchPartition(index, fetch_offset=offset, partition_max_bytes=max_bytes)
        for index in partitions
    ]
    topic = FetchRequest.FetchTopic(partitions=wishes)
    if by_id:
        topic.topic_id = METADATA_TOPIC_ID
    else:
        topic.topic = CLUSTER_METADATA_TOPIC
    return FetchRequest(max_wait_ms=max_wait_ms, min_bytes=min_bytes, topics=[topic])


def only_partition(response: FetchResponse) -> FetchResponse.PartitionData:
    assert response.error_code == 0
    assert response.session_id == 0
    (topic,) = response.responses
    (partition,) = topic.partitions
    return partition


def fetch(
    client: RawClient, request: FetchRequest, version: int = FETCH_VERSIONS[-1]
) -> FetchResponse.PartitionData:
    return only_partition(client.ask(request, FetchResponse, version))


def list_offsets(
    client: RawClient,
    *timestamps: int,
    version: int = LIST_OFFSETS_VERSIONS[-1],
    partition: int = 0,
) -> list[ListOffsetsResponse.ListOffsetsPartitionResponse]:
    """Return what a broker knows about timestamps in the metadata topic."""
    wishes = [
        ListOffsetsRequest.ListOffsetsPartition(partition, timestamp=one) for one in timestamps
    ]
    wanted = ListOffsetsRequest.ListOffsetsTopic(CLUSTER_METADATA_TOPIC, wishes)
    request = ListOffsetsRequest(replica_id=-1, topics=[wanted])
    (topic,) = client.ask(request, ListOffsetsResponse, version).topics
    assert topic.name == CLUSTER_METADATA_TOPIC
    return topic.partitions


def offset_for(client: RawClient, timestamp: int) -> tuple[int, int, int]:
    (found,) = list_offsets(client, timestamp)
    assert found.error_code == 0
    return found.offset, found.timestamp, found.leader_epoch


def segment_files(folder: Path) -> list[Path]:
    """Return the segments of the only metadata log below `folder`, oldest first."""
    return sorted(folder.rglob("__cluster_metadata-0/*.log"))
