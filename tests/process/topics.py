"""Creating topics and looking at them, over a connection of one's own."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from tests.unit.node.raw_client import RawClient

from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from kvorum.wire.messages.metadata import MetadataRequest, MetadataResponse

CREATE_TIMEOUT_MS = 10_000
LAG_MAX_S = 10
POLL_INTERVAL_S = 0.01


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """What a topic is known by."""

    topic_id: bytes
    partition_count: int


def create_request(names: Sequence[str], *, partition_count: int = 1) -> CreateTopicsRequest:
    """Return a request for some topics."""
    return CreateTopicsRequest(
        topics=[
            CreateTopicsRequest.CreatableTopic(
                name, num_partitions=partition_count, replication_factor=1
            )
            for name in names
        ],
        timeout_ms=CREATE_TIMEOUT_MS,
    )


def create(address: str, *names: str) -> list[int]:
    """Create topics of one partition and return the error codes."""
    with RawClient(address) as client:
        response = client.ask(create_request(names), CreateTopicsResponse, 7)
    return [topic.error_code for topic in response.topics]


def read_topics(address: str) -> dict[str, TopicFacts]:
    """Return all topics, each of them named once."""
    with RawClient(address) as client:
        response = client.ask(MetadataRequest(topics=None), MetadataResponse, 12)
    found: dict[str, TopicFacts] = {}
    for topic in response.topics:
        assert topic.error_code == ErrorCode.NONE
        assert topic.name is not None
        assert topic.name not in found
        indexes = sorted(partition.partition_index for partition in topic.partitions)
        assert indexes == list(range(len(indexes)))
        found[topic.name] = TopicFacts(topic.topic_id, len(indexes))
    return found


def wait_for_topics(address: str, *names: str) -> None:
    """Return once these are all the topics; a broker may be a little behind its controller."""
    deadline = time.monotonic() + LAG_MAX_S
    while (found := read_topics(address).keys()) != set(names):
        assert time.monotonic() < deadline, f"there are {sorted(found)}"
        time.sleep(POLL_INTERVAL_S)


def is_served(address: str) -> bool:
    """Whether a new client is told of a broker."""
    with RawClient(address) as client:
        return bool(client.ask(MetadataRequest(topics=[]), MetadataResponse, 12).brokers)
