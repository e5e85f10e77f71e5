"""Requests to one broker about many partitions at once, over one connection."""

import itertools
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Final

from tests.support.raw_client import RawClient

from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from kvorum.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kvorum.wire.messages.produce import ProduceRequest, ProduceResponse
from kvorum.wire.records import RecordData, build_batch

PARTITIONS_OF_TOPIC: Final = 100
ANSWER_S_MAX: Final = 120.0
RETRY_S: Final = 0.005
PATIENCE_S: Final = 600.0
LATEST: Final = -1
_CREATE_TOPICS_VERSION: Final = 7
_PRODUCE_VERSION: Final = 9
_LIST_OFFSETS_VERSION: Final = 7
_TOPICS_A_REQUEST: Final = 10
_NOT_THERE_YET: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
    }
)


class NotServedError(Exception):
    """The broker has answered, but does not serve a partition."""


def topic_names(partitions: int) -> list[str]:
    """Return the names of topics that have so many partitions together."""
    return [f"many-{number}" for number in range(partitions // PARTITIONS_OF_TOPIC)]


@contextmanager
def connected(address: str) -> Generator[RawClient]:
    """Return a client that waits long for its answers."""
    with RawClient(address) as client:
        client.socket.settimeout(ANSWER_S_MAX)
        yield client


def create_topics(client: RawClient, names: list[str]) -> None:
    """Create topics of `PARTITIONS_OF_TOPIC` partitions with one replica."""
    for some in _in_groups(names):
        topics = [CreateTopicsRequest.CreatableTopic(name, PARTITIONS_OF_TOPIC, 1) for name in some]
        request = CreateTopicsRequest(topics, int(ANSWER_S_MAX * 1000))
        response = client.ask(request, CreateTopicsResponse, _CREATE_TOPICS_VERSION)
        _check(one.error_code for one in response.topics)


def produce_to_each(client: RawClient, names: list[str], *, value: bytes) -> None:
    """Append one record to every partition."""
    records = bytes(build_batch([RecordData(value, None, 1, ())]))
    for some in _in_groups(names):
        data = [
            ProduceRequest.TopicProduceData(
                name,
                partition_data=[
                    ProduceRequest.PartitionProduceData(index, records)
                    for index in range(PARTITIONS_OF_TOPIC)
                ],
            )
            for name in some
        ]
        request = ProduceRequest(None, -1, int(ANSWER_S_MAX * 1000), data)
        response = client.ask(request, ProduceResponse, _PRODUCE_VERSION)
        _check(
            partition.error_code
            for topic in response.responses
            for partition in topic.partition_responses
        )


def check_end_offsets(client: RawClient, names: list[str], *, expected: int) -> None:
    """Ask for the end of every partition; raises NotServedError where one is not served."""
    for some in _in_groups(names):
        topics = [
            ListOffsetsRequest.ListOffsetsTopic(
                name,
                [
                    ListOffsetsRequest.ListOffsetsPartition(index, timestamp=LATEST)
                    for index in range(PARTITIONS_OF_TOPIC)
                ],
            )
            for name in some
        ]
        request = ListOffsetsRequest(replica_id=-1, topics=topics)
        response = client.ask(request, ListOffsetsResponse, _LIST_OFFSETS_VERSION)
        found = [partition for topic in response.topics for partition in topic.partitions]
        _check(partition.error_code for partition in found)
        if any(partition.offset != expected for partition in found):
            raise AssertionError(f"a partition does not end at {expected}")


def wait_for_end_offsets(address: str, names: list[str], *, expected: int) -> float:
    """Return the `time.perf_counter()` at which every partition was served."""
    deadline = time.perf_counter() + PATIENCE_S
    waiting = names
    while time.perf_counter() < deadline:
        try:
            with connected(address) as client:
                while waiting:
                    check_end_offsets(client, waiting[:_TOPICS_A_REQUEST], expected=expected)
                    waiting = waiting[_TOPICS_A_REQUEST:]
                return time.perf_counter()
        except (OSError, NotServedError):
            time.sleep(RETRY_S)
    raise TimeoutError(f"{len(waiting)} topics are not served")


def _in_groups(names: list[str]) -> Iterator[list[str]]:
    remaining = iter(names)
    while some := list(itertools.islice(remaining, _TOPICS_A_REQUEST)):
        yield some


def _check(codes: Iterator[int]) -> None:
    for code in codes:
        if code in _NOT_THERE_YET:
            raise NotServedError(ErrorCode(code).name)
        if code != ErrorCode.NONE:
            raise AssertionError(f"the broker answers {ErrorCode(code).name}")
