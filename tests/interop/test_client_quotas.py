"""Client quotas: Kafka's own managers and ours make the same clients wait for the same times."""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import count
from random import Random
from typing import Final

import pytest
from immutables import Map
from tests.interop.clients.confluent import make_topics
from tests.support.clients.driver import TopicWish
from tests.support.kafka.java import Java, ToolRunner
from tests.support.node import BothNodes, Node
from tests.support.raw_client import RawClient
from tests.support.record_requests import batch, fetch_request
from tests.support.waiting import wait_for

from kvorum.broker.quota.client_quota_manager import (
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    UNLIMITED,
    ClientQuotaManager,
    ClientRequestQuotaManager,
    QuotaClient,
)
from kvorum.broker.quota.rate import MetricConfig
from kvorum.metadata.configs_image import CLIENT_ID, USER, ClientQuotasImage, QuotaEntity
from kvorum.wire.messages.fetch import FetchResponse
from kvorum.wire.messages.produce import ProduceRequest, ProduceResponse

SCRIPTS: Final = 150
STEPS: Final = 120
MS_PER_S: Final = 1000.0
USERS: Final = ("alice", "b%b", "carol")
CLIENT_IDS: Final = ("one", "two", "-")
NO_LIMIT: Final = 1.7976931348623157e308
"""Java's largest double: Kafka's most bytes of a client without a quota."""


class Script:
    """Makes up quotas and what clients use of them; values that both add up without rounding."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._now_ms = random.randrange(10**6)
        self._last = ""

    def steps(self) -> list[str]:
        random = self._random
        kind = random.choice(("produce", "request"))
        samples, seconds = random.choice(((11, 1), (11, 1), (3, 1), (2, 5), (1, 1)))
        first = [f"new {kind} {samples} {seconds}", self._quota()]
        return [*first, *(self._step() for _ in range(STEPS))]

    def _step(self) -> str:
        random = self._random
        # As in a broker, what a client does not get is taken back at the time of the record.
        if self._last.startswith("record") and random.random() < 0.1:
            self._last = f"un{self._last}"
            return self._last
        self._now_ms += random.choice((0, 0, 7, 100, 400, 1000, 1001, 3500, 20_000))
        if random.random() < 0.12:
            self._last = self._quota()
        elif random.random() < 0.1:
            self._last = f"most {random.choice(USERS)} {random.choice(CLIENT_IDS)}"
        else:
            client = f"{random.choice(USERS)} {random.choice(CLIENT_IDS)}"
            value = random.choice((0.125, 3, 50, 800, 12_000, 250_000))
            self._last = f"record {self._now_ms} {client} {value}"
        return self._last

    def _quota(self) -> str:
        random = self._random
        user = random.choice(("-", "*", *USERS))
        client_id = random.choice(("-", "*", "one", "two"))
        if user == client_id == "-":
            user = "*"
        return f"quota {user} {client_id} {random.choice(('-', 0.5, 1, 20, 1000, 50_000))}"


class Fold:
    """Our managers, driven and asked as the Java program does with Kafka's."""

    def __init__(self) -> None:
        self._key = PRODUCER_BYTE_RATE
        self._entities: dict[QuotaEntity, Map[str, float]] = {}
        self._manager = ClientQuotaManager(self._key, MetricConfig(11, MS_PER_S))

    def answer(self, line: str) -> str:
        kind, *parts = line.split(" ")
        if kind == "new":
            self._begin(parts[0], MetricConfig(int(parts[1]), int(parts[2]) * MS_PER_S))
        elif kind == "quota":
            self._set(*parts)
        elif kind == "record":
            client, value = client_of(parts[1], parts[2]), float(parts[3])
            now_ms = float(parts[0])
            return str(self._manager.maybe_record_and_get_throttle_time_ms(client, value, now_ms))
        elif kind == "unrecord":
            client = client_of(parts[1], parts[2])
            self._manager.unrecord_quota_sensor(client, float(parts[3]), float(parts[0]))
        else:
            most = self._manager.max_value_in_quota_window(client_of(parts[0], parts[1]))
            return str(NO_LIMIT if most == UNLIMITED else most)
        return "ok"

    def _begin(self, kind: str, config: MetricConfig) -> None:
        self._entities = {}
        if kind == "request":
            self._key = REQUEST_PERCENTAGE
            self._manager = ClientRequestQuotaManager(self._key, config)
        else:
            self._key = PRODUCER_BYTE_RATE
            self._manager = ClientQuotaManager(self._key, config)

    def _set(self, user: str, client_id: str, bound: str) -> None:
        named = ((CLIENT_ID, client_id), (USER, user))
        entity = tuple((key, None if name == "*" else name) for key, name in named if name != "-")
        if bound == "-":
            self._entities.pop(entity, None)
        else:
            self._entities[entity] = Map({self._key: float(bound)})
        self._manager.update_quotas(ClientQuotasImage(Map(self._entities)))


def client_of(user: str, client_id: str) -> QuotaClient:
    return QuotaClient(user, "" if client_id == "-" else client_id)


@pytest.mark.slow
def test_each_client_waits_as_long_as_in_kafka(java: Java) -> None:
    random = Random(55)
    lines = [line for _ in range(SCRIPTS) for line in Script(random).steps()]
    answers = java.answers("ClientQuotaOracle", asked=lines)
    fold = Fold()
    kinds: Counter[str] = Counter()
    for line, theirs in zip(lines, answers, strict=True):
        ours = fold.answer(line)
        if line.startswith("most"):
            assert float(ours) == float(theirs), line
        else:
            assert ours == theirs, line
        kind = line.partition(" ")[0]
        kinds[kind if kind != "record" else f"record {'at once' if theirs == '0' else 'late'}"] += 1
    wanted = ("quota", "unrecord", "most", "record at once", "record late")
    assert min(kinds[kind] for kind in wanted) > SCRIPTS, kinds


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
        data = ProduceRequest.PartitionProduceData(0, VALUE)
        topic = ProduceRequest.TopicProduceData(TOPIC, partition_data=[data])
        return self.ask(ProduceRequest(None, -1, 5000, [topic]), ProduceResponse, PRODUCE_VERSION)

    def produces(self) -> bool:
        return self.produce().responses[0].partition_responses[0].error_code == 0

    def fetch(self) -> FetchResponse:
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
            "kafka-configs",
            "--bootstrap-server",
            node.address,
            "--alter",
            *entity,
            "--delete-config",
            "producer_byte_rate",
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
            "--bootstrap-server",
            node.address,
            "--topic",
            TOPIC,
            "--num-records",
            "1200",
            "--record-size",
            "1000",
            "--throughput",
            "-1",
            "--command-property",
            "client.id=perf",
            "batch.size=20000",
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
