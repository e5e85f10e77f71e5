"""Creation of many topics: requests are encoded, and responses decoded, outside of the timing."""

import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass

from tests.support.raw_client import RawClient

from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.headers import decode_response_frame, encode_request_frame
from kvorum.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse

VERSION = 7
ANSWER_SECONDS_MAX = 60.0


@dataclass(frozen=True, slots=True)
class TopicShape:
    """The number of partitions and the replication factor of every topic."""

    partitions: int = 1
    replication_factor: int = 1


class TopicRefusedError(Exception):
    """A topic was not created."""


class TopicWriter:
    """A client that sends CreateTopics requests to the active controller, one after the other."""

    def __init__(self, address: str, label: str) -> None:
        self._client = RawClient(address)
        self._client.socket.settimeout(ANSWER_SECONDS_MAX)
        self._names = (f"{label}-{number}" for number in itertools.count())

    def close(self) -> None:
        """Close the connection."""
        self._client.socket.close()

    def create(self, count: int, *, per_request: int, shape: TopicShape) -> float:
        """Create `count` topics; return the seconds from the first request to the last response."""
        frames = list(self._frames(count, per_request, shape))
        answers: list[bytes | None] = []
        before = time.perf_counter()
        for frame in frames:
            self._client.send_frame(frame)
            answers.append(self._client.read_frame())
        passed = time.perf_counter() - before
        made = sum(map(_topics_made, answers))
        if made != count:
            raise TopicRefusedError(f"only {made} of {count} topics were created")
        return passed

    def _frames(self, count: int, per_request: int, shape: TopicShape) -> Iterator[bytes]:
        for start in range(0, count, per_request):
            topics = [
                CreateTopicsRequest.CreatableTopic(
                    next(self._names),
                    num_partitions=shape.partitions,
                    replication_factor=shape.replication_factor,
                )
                for _ in range(min(per_request, count - start))
            ]
            request = CreateTopicsRequest(topics=topics, timeout_ms=60_000)
            yield encode_request_frame(
                request, version=VERSION, correlation_id=start, client_id="topics"
            )


def _topics_made(answer: bytes | None) -> int:
    if answer is None:
        raise TopicRefusedError("the controller closed the connection")
    _, response = decode_response_frame(
        answer, response_class=CreateTopicsResponse, version=VERSION
    )
    refused = [topic for topic in response.topics if topic.error_code != ErrorCode.NONE]
    if refused:
        raise TopicRefusedError(f"{refused[0].error_code} {refused[0].error_message}")
    return len(response.topics)
