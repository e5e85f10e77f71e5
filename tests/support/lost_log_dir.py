"""A log directory whose disk is taken away from a running node."""

import math
import threading
from collections import Counter
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.support.node import Node
from tests.support.raw_client import RawClient
from tests.support.record_requests import batch, fetch, fetch_request, produce, values
from tests.support.topics import create
from tests.support.waiting import Threads, wait_for

from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from kvorum.wire.messages.fetch import FetchResponse
from kvorum.wire.messages.metadata import MetadataRequest, MetadataResponse

TOPICS = [f"topic{number}" for number in range(4)]
RECORD_BYTES = 10_000


def described(node: Node) -> dict[str, tuple[int, set[str]]]:
    """Return code and topics of each log directory."""
    with RawClient(node.broker) as client:
        response = client.ask(DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse, 4)
    return {
        one.log_dir: (one.error_code, {topic.name for topic in one.topics})
        for one in response.results
    }


def leaders(node: Node) -> dict[str | None, int]:
    with RawClient(node.broker) as client:
        response = client.ask(MetadataRequest(topics=None), MetadataResponse, 12)
    return {topic.name: topic.partitions[0].leader_id for topic in response.topics}


def wait_until_described(node: Node) -> None:
    """Return once each topic is in a log directory."""
    wait_for(
        lambda: set().union(*(each for _, each in described(node).values())) == {*TOPICS},
        "each topic is in a log directory",
        otherwise=lambda: described(node),
    )


class Producer:
    """Writes to one topic with acks=all until it is stopped, or was refused so often."""

    def __init__(self, address: str, topic: str, refusals_max: float) -> None:
        self.acknowledged: list[bytes] = []
        self.codes: Counter[int] = Counter()
        self._place = (address, topic)
        self._refusals_max = refusals_max
        self._has_stopped = threading.Event()
        self._threads = Threads()

    @property
    def refusal_count(self) -> int:
        return self.codes.total() - self.codes[ErrorCode.NONE]

    def start(self) -> None:
        self._threads.start(self._run)

    def stop(self) -> None:
        self._has_stopped.set()
        self._threads.join()

    def _run(self) -> None:
        address, topic = self._place
        # The node may end, and whatever was on its way then was not acknowledged.
        with suppress(OSError, AssertionError), RawClient(address) as client:
            while self.refusal_count < self._refusals_max and not self._has_stopped.is_set():
                value = b"%d " % len(self.acknowledged) + bytes(RECORD_BYTES)
                code = produce(client, topic, batch(value)).error_code
                self.codes[code] += 1
                if code == ErrorCode.NONE:
                    self.acknowledged.append(value)


@contextmanager
def producing(address: str, *, refusals_max: float = math.inf) -> Generator[Mapping[str, Producer]]:
    """Have a producer write to each of the topics, whatever it is answered."""
    producers = {topic: Producer(address, topic, refusals_max) for topic in TOPICS}
    for producer in producers.values():
        producer.start()
    try:
        yield producers
    finally:
        for producer in producers.values():
            producer.stop()


def wait_until_others_go_on(producers: Mapping[str, Producer], kept: Iterable[str]) -> None:
    """Wait until each of these topics has got another batch."""
    counts = {topic: len(producers[topic].acknowledged) for topic in kept}
    wait_for(
        lambda: all(len(producers[topic].acknowledged) > counts[topic] for topic in counts),
        "the other producers go on",
        otherwise=lambda: {topic: one.codes for topic, one in producers.items()},
    )


def read_all(client: RawClient, topic: str) -> list[bytes | None]:
    found: list[bytes | None] = []
    while more := values(fetch(client, topic, len(found))):
        found += more
    return found


def fetch_error(client: RawClient, topic: str, *, version: int) -> int:
    request = fetch_request(topic, 0, min_bytes=0, max_wait_ms=0)
    (answered,) = client.ask(request, FetchResponse, version).responses
    return answered.partitions[0].error_code


def lose_the_disk(node: Node, disk: Path, broker_id: int = 1) -> None:
    """Fill the disk by producing; the partitions on it are lost, the others are not."""
    assert create(node.broker, *TOPICS) == [ErrorCode.NONE] * len(TOPICS)
    wait_until_described(node)
    before = described(node)
    lost, kept = before[str(disk)][1], before[str(node.data)][1]
    assert (len(lost), len(kept)) == (2, 2)
    with producing(node.broker, refusals_max=1) as producers:
        wait_for(
            lambda: all(producers[topic].refusal_count for topic in lost),
            "producers to the full disk are refused",
            otherwise=lambda: {topic: one.codes for topic, one in producers.items()},
        )
        wait_until_others_go_on(producers, kept)
    # Two producers filled the small disk; the others never noticed.
    for topic in lost:
        assert producers[topic].codes.keys() == {ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR}
    assert [producers[topic].refusal_count for topic in kept] == [0, 0]
    # A producer is refused first; then the replicas of the directory are taken down.
    offline = {
        str(node.data): (ErrorCode.NONE, kept),
        str(disk): (ErrorCode.KAFKA_STORAGE_ERROR, set[str]()),
    }
    wait_for(
        lambda: described(node) == offline,
        "the full disk is described as offline",
        otherwise=lambda: described(node),
    )
    left = {topic: -1 if topic in lost else broker_id for topic in TOPICS}
    wait_for(
        lambda: leaders(node) == left, f"the leaders are {left}", otherwise=lambda: leaders(node)
    )
    with RawClient(node.broker) as client:
        for topic in lost:
            answer = produce(client, topic, batch(b"again"))
            assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
            # Older clients do not know that code.
            assert fetch_error(client, topic, version=6) == ErrorCode.KAFKA_STORAGE_ERROR
            assert fetch_error(client, topic, version=5) == ErrorCode.NOT_LEADER_OR_FOLLOWER
        for topic in kept:
            assert read_all(client, topic) == producers[topic].acknowledged


def two_directories(folder: Path, second: Path, *, has_records_in_both: bool = True) -> Node:
    """Format a node whose metadata log is in the first directory."""
    first = folder / "data"
    dirs = f"{first},{second}" if has_records_in_both else str(second)
    return Node(folder, {"log.dirs": dirs, "metadata.log.dir": str(first)}).format()
