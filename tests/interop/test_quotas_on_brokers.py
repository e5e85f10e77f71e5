"""Client quotas set by Kafka's tool: a real broker and ours make clients wait alike."""

import re
from collections.abc import Iterator
from itertools import count
from typing import Final

import pytest
from tests.interop.clients.confluent import make_topics
from tests.support.clients.driver import TopicWish
from tests.support.kafka.tools import ToolRunner
from tests.support.node import BothNodes, Node
from tests.support.raw_client import RawClient
from tests.support.record_requests import batch, fetch_request
from tests.support.waiting import wait_for

from kvorum.wire.messages.fetch import FetchResponse
from kvorum.wire.messages.produce import ProduceRequest, ProduceResponse

TOPIC: Final = "throttled"
PRODUCE_VERSION: Final = 9
FETCH_VERSION: Final = 12
VALUE: Final = batch(b"x" * 50_000)
WINDOWS: Final = {"quota.window.num": "2", "quota.window.size.seconds": "1"}
RATE: Final = 220_000
CLOSE_MS: Final = 150
"""The largest difference of times: requests do not come at the same moments."""
MARKERS: Final = count(1)


@pytest.fixture(scope="module")
def nodes(both_nodes: BothNodes) -> Iterator[tuple[Node, Node]]:
    with both_nodes(WINDOWS) as (real, ours):
        for node in (real, ours):
            make_topics(node.address, TopicWish(TOPIC))
            with Client(node, "warm") as client:
                node.process.wait_until(client.produces, "the partition is led")
                # As much as a consumer may fetch in a second, and more.
                assert all(client.produces() for _ in range(5))
        yield real, ours


class Client(RawClient):
    """A client with an id of its own, which its quotas are set for."""

    def __init__(self, node: Node, client_id: str) -> None:
        super().__init__(node.address, client_id=client_id)

    def produce(self) -> ProduceResponse:
        """Send one batch."""
        data = ProduceRequest.PartitionProduceData(0, VALUE)
        topic = ProduceRequest.TopicProduceData(TOPIC, partition_data=[data])
        return self.ask(ProduceRequest(None, -1, 5000, [topic]), ProduceResponse, PRODUCE_VERSION)

    def produces(self) -> bool:
        """Return whether a batch is taken."""
        return self.produce().responses[0].partition_responses[0].error_code == 0

    def fetch(self) -> FetchResponse:
        """Fetch from the beginning."""
        request = fetch_request(TOPIC, 0, min_bytes=1, max_wait_ms=0)
        return self.ask(request, FetchResponse, FETCH_VERSION)


def set_quota(tools: ToolRunner, node: Node, change: str, *entity: str) -> None:
    """Alter an entity by kafka-configs, and wait until the broker goes by it.

    Its quotas follow its metadata in a moment. It takes one change after the other: once it knows
    of a later one, which concerns no client, it goes by the first.
    """
    alter(tools, node, change, *entity)
    alter(tools, node, f"producer_byte_rate={next(MARKERS)}", *client_entity("nobody"))


def alter(tools: ToolRunner, node: Node, change: str, *entity: str) -> None:
    """Alter an entity, and wait until the broker knows of it."""
    server = ("--bootstrap-server", node.address)
    tools.printed("kafka-configs", *server, "--alter", *entity, "--add-config", change)
    key, _, value = change.partition("=")
    known = f"{key}={float(value)}"

    def described() -> str:
        return tools.run("kafka-configs", *server, "--describe", *entity).stdout

    wait_for(lambda: known in described(), f"{known} is described", otherwise=described)


def client_entity(name: str) -> tuple[str, ...]:
    return ("--entity-type", "clients", "--entity-name", name)


def test_producers_wait_alike(nodes: tuple[Node, Node], kafka_tools: ToolRunner) -> None:
    waits: list[list[int]] = []
    for node in nodes:
        set_quota(kafka_tools, node, f"producer_byte_rate={RATE}", *client_entity("producer"))
        with Client(node, "producer") as client:
            waits.append([client.produce().throttle_time_ms for _ in range(7)])
    real, ours = waits
    # Four batches are within the quota of a second.
    assert [wait > 0 for wait in real[:5]] == [False, False, False, False, True]
    assert ours == pytest.approx(real, abs=CLOSE_MS)


def test_consumers_wait_alike_and_get_nothing_meanwhile(
    nodes: tuple[Node, Node], kafka_tools: ToolRunner
) -> None:
    facts: list[list[tuple[int, int]]] = []
    for node in nodes:
        set_quota(kafka_tools, node, f"consumer_byte_rate={RATE}", *client_entity("consumer"))
        with Client(node, "consumer") as client:
            facts.append([fact_of(client.fetch()) for _ in range(2)])
    real, ours = facts
    # As much as the quota allows in a second, then nothing.
    assert [size for size, _ in real] == [RATE, 0]
    assert [size for size, _ in ours] == [RATE, 0]
    waits = [wait for _, wait in real]
    assert waits[1] > 0
    assert [wait for _, wait in ours] == pytest.approx(waits, abs=CLOSE_MS)


def fact_of(response: FetchResponse) -> tuple[int, int]:
    """Return how many bytes of records came, and the time to wait."""
    read = [one for topic in response.responses for one in topic.partitions]
    return sum(len(one.records or b"") for one in read), response.throttle_time_ms


def test_a_users_quota_counts_before_a_client_ids(
    nodes: tuple[Node, Node], kafka_tools: ToolRunner
) -> None:
    waits: list[int] = []
    for node in nodes:
        set_quota(kafka_tools, node, "producer_byte_rate=1000", *client_entity("both"))
        entity = ("--entity-type", "users", "--entity-name", "ANONYMOUS")
        set_quota(kafka_tools, node, f"producer_byte_rate={RATE}", *entity)
        with Client(node, "both") as client:
            waits.append(sum(client.produce().throttle_time_ms for _ in range(3)))
        kafka_tools.printed(
            *("kafka-configs", "--bootstrap-server", node.address),
            *("--alter", *entity, "--delete-config", "producer_byte_rate"),
        )
    assert waits == [0, 0]


@pytest.mark.slow
def test_the_perf_tool_is_held_to_the_quota(
    nodes: tuple[Node, Node], kafka_tools: ToolRunner
) -> None:
    speeds: list[float] = []
    for node in nodes:
        set_quota(kafka_tools, node, f"producer_byte_rate={RATE}", *client_entity("perf"))
        told = kafka_tools.printed(
            "org.apache.kafka.tools.ProducerPerformance",
            *("--bootstrap-server", node.address, "--topic", TOPIC),
            *("--num-records", "1200", "--record-size", "1000", "--throughput", "-1"),
            *("--command-property", "client.id=perf", "batch.size=20000"),
        )
        found = re.search(r"1200 records sent, ([0-9.]+) records/sec", told)
        assert found is not None, told
        speeds.append(float(found[1]) * 1000)
    assert max(speeds) < RATE * 1.8


@pytest.mark.slow
def test_requests_that_take_too_much_time_wait(
    nodes: tuple[Node, Node], kafka_tools: ToolRunner
) -> None:
    for node in nodes:
        set_quota(kafka_tools, node, "request_percentage=0.001", *client_entity("busy"))
        with Client(node, "busy") as client:
            waits = [client.produce().throttle_time_ms for _ in range(3)]
        # No longer than a window, whatever the machine needs for a request.
        assert max(waits) == 1000
