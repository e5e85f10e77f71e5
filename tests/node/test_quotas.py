"""Quotas over the wire: of clients, of changes by the controller, and of connections."""

import time
from collections.abc import Callable, Iterator

import pytest
from immutables import Map
from tests.node.embedded_cluster import set_quota
from tests.support.raw_client import RawClient
from tests.support.record_requests import FETCH_VERSION, PRODUCE_VERSION, batch, fetch_request
from tests.support.topics import create_topic
from tests.support.waiting import wait_for

from kvorum.broker.quota.rate import MetricConfig, Rate, throttle_time_ms
from kvorum.metadata.configs_image import IP, ClientQuotasImage, QuotaEntity
from kvorum.node.serving.connection_rates import (
    AT_ONCE,
    CONNECTION_CREATION_RATE,
    TOO_MANY_WAIT,
    Admission,
    ConnectionRates,
    RateLimits,
    normalized,
)
from kvorum.testing import Cluster
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kvorum.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from kvorum.wire.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from kvorum.wire.messages.fetch import FetchRequest, FetchResponse
from kvorum.wire.messages.metadata import MetadataRequest, MetadataResponse
from kvorum.wire.messages.produce import ProduceRequest, ProduceResponse

TOPIC = "t"
VALUE = batch(b"x" * 100_000)
CLOCKS_DIFFER_S = 0.01
"""By how much a timer of the event loop may be early."""
StartCluster = Callable[..., Cluster]
"""By how much a timer of the event loop may be early."""
SOFTWARE = ApiVersionsRequest("test", "1")
HOST = "127.0.0.1"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    overrides = {"quota.window.num": "2", "replica.fetch.wait.max.ms": "9"}
    with Cluster(controllers=1, brokers=1, overrides=overrides) as cluster:
        with RawClient(cluster.bootstrap_servers) as client:
            create_topic(client, TOPIC)
            wait_for(lambda: not error_of(produced(client)), "the partition is led")
        yield cluster


@pytest.fixture
def client(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[RawClient]:
    """A client that has a quota of its own."""
    with RawClient(cluster.bootstrap_servers, client_id=request.node.name) as client:
        yield client


def limit(client: RawClient, key: str, bound: float | None) -> None:
    """Give a client a quota, or take it away; return when the broker knows it."""
    set_quota(client, ("client-id", client.client_id), key, bound)
    # The controller answers before the broker has read the change.
    host, port = client.socket.getpeername()
    with RawClient(f"{host}:{port}", client_id="operator") as operator:
        wait_for(
            lambda: told_quotas(operator, client.client_id).get(key) == bound,
            f"the broker knows that {key} is {bound}",
        )


def told_quotas(operator: RawClient, client_id: str | None) -> dict[str, float]:
    """Return the quotas of a client id that the broker knows."""
    component = DescribeClientQuotasRequest.ComponentData("client-id", 0, client_id)
    request = DescribeClientQuotasRequest([component], strict=True)
    entries = operator.ask(request, DescribeClientQuotasResponse, 1).entries or []
    return {value.key: value.value for entry in entries for value in entry.values}


def production(acks: int = -1) -> ProduceRequest:
    data = ProduceRequest.PartitionProduceData(0, VALUE)
    topic = ProduceRequest.TopicProduceData(TOPIC, partition_data=[data])
    return ProduceRequest(None, acks, 5000, [topic])


def produced(client: RawClient) -> ProduceResponse:
    return client.ask(production(), ProduceResponse, PRODUCE_VERSION)


def error_of(response: ProduceResponse) -> int:
    return response.responses[0].partition_responses[0].error_code


class Muted:
    """A time for which a connection is muted; it begins after this is made."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def check(self, client: RawClient, throttle_time_ms: int) -> None:
        """Ask something, and see that it is answered no sooner than the time is over."""
        assert throttle_time_ms > 0
        assert client.ask(MetadataRequest(topics=[]), MetadataResponse, 12).brokers
        assert time.monotonic() - self._began > throttle_time_ms / 1000 - CLOCKS_DIFFER_S


def test_a_producer_beyond_its_quota_is_answered_and_muted(client: RawClient) -> None:
    limit(client, "producer_byte_rate", 150_000)
    first = produced(client)
    assert (error_of(first), first.throttle_time_ms) == (0, 0)
    # One batch alone is too much now; its records are in the log all the same.
    limit(client, "producer_byte_rate", 50_000)
    muted = Muted()
    second = produced(client)
    assert error_of(second) == ErrorCode.NONE
    muted.check(client, second.throttle_time_ms)


def test_a_producer_without_acknowledgement_is_muted(client: RawClient) -> None:
    limit(client, "producer_byte_rate", 50_000)
    muted = Muted()
    client.send(production(acks=0), PRODUCE_VERSION)
    # Twice the bytes of a second.
    muted.check(client, 1000)


def test_a_consumer_beyond_its_quota_gets_nothing_and_is_muted(client: RawClient) -> None:
    limit(client, "consumer_byte_rate", 150_000)
    request = fetch_request(TOPIC, 0, min_bytes=1, max_wait_ms=0)
    first = client.ask(request, FetchResponse, FETCH_VERSION)
    # No more than the quota allows is read at once.
    assert 100_000 < len(first.responses[0].partitions[0].records or b"") <= 150_000
    assert first.throttle_time_ms == 0
    limit(client, "consumer_byte_rate", 60_000)
    muted = Muted()
    second = client.ask(request, FetchResponse, FETCH_VERSION)
    assert (second.responses, second.error_code) == ([], ErrorCode.NONE)
    muted.check(client, second.throttle_time_ms)
    # Refused bytes do not count; earlier ones are forgotten after two windows.
    limit(client, "consumer_byte_rate", 150_000)
    wait_for(
        lambda: client.ask(request, FetchResponse, FETCH_VERSION).responses,
        "the consumer's quota has room again",
    )


def test_what_followers_fetch_counts_for_no_client(client: RawClient) -> None:
    limit(client, "consumer_byte_rate", 1)
    request = fetch_request(TOPIC, 0, min_bytes=1, max_wait_ms=0)
    request.replica_id = 5
    assert client.ask(request, FetchResponse, FETCH_VERSION).throttle_time_ms == 0
    consumed = FetchRequest(max_wait_ms=0, min_bytes=1, topics=request.topics)
    assert client.ask(consumed, FetchResponse, FETCH_VERSION).throttle_time_ms > 1000


@pytest.mark.parametrize("is_forwarded", [False, True], ids=["by the broker", "forwarded"])
def test_requests_that_take_too_much_time_wait(client: RawClient, *, is_forwarded: bool) -> None:
    limit(client, "request_percentage", 0.0001)
    muted = Muted()
    if is_forwarded:
        topic = CreateTopicsRequest.CreatableTopic("u", 1, 1)
        creation = CreateTopicsRequest(topics=[topic], timeout_ms=5000, validate_only=True)
        created = client.ask(creation, CreateTopicsResponse, 7)
        assert (created.topics[0].name, created.topics[0].error_code) == ("u", ErrorCode.NONE)
        throttle_time_ms = created.throttle_time_ms
    else:
        answer = client.ask(MetadataRequest(topics=[]), MetadataResponse, 12)
        assert answer.brokers
        throttle_time_ms = answer.throttle_time_ms
    # Never for longer than one window.
    assert throttle_time_ms == 1000
    muted.check(client, throttle_time_ms)


def test_a_quota_that_is_taken_away_counts_no_more(client: RawClient, cluster: Cluster) -> None:
    limit(client, "producer_byte_rate", 10)
    # The client hears it at once: this is longer than any patience.
    assert produced(client).throttle_time_ms > 1_000_000
    with RawClient(cluster.bootstrap_servers, client_id=client.client_id) as other:
        limit(other, "producer_byte_rate", None)
        assert produced(other).throttle_time_ms == 0


def limit_everyone(client: RawClient, rate: float) -> None:
    set_quota(client, ("user", None), "controller_mutation_rate", rate)


def create(client: RawClient, version: int, *topics: tuple[str, int]) -> CreateTopicsResponse:
    request = CreateTopicsRequest(
        topics=[CreateTopicsRequest.CreatableTopic(name, count, 1) for name, count in topics],
        timeout_ms=60_000,
    )
    return client.ask(request, CreateTopicsResponse, version)


@pytest.mark.parametrize("is_forwarded", [False, True], ids=["controller", "broker"])
def test_a_strict_quota_refuses_tells_to_wait_and_mutes_the_connection(
    kvorum_cluster_factory: StartCluster, *, is_forwarded: bool
) -> None:
    cluster = kvorum_cluster_factory(overrides={"controller.quota.window.num": "1"})
    address = cluster.bootstrap_servers if is_forwarded else cluster.controller_servers
    with RawClient(address) as client, RawClient(address) as other:
        limit_everyone(other, 2.0)
        started = time.monotonic()
        response = create(client, 7, ("a", 4), ("b", 1))
        assert [topic.error_code for topic in response.topics] == [
            ErrorCode.NONE,
            ErrorCode.THROTTLING_QUOTA_EXCEEDED,
        ]
        throttle_ms = response.throttle_time_ms
        assert 0 < throttle_ms <= 1_000
        create(other, 7)
        # This one comes too early, and is answered when the time is over and there are tokens.
        response = create(client, 7, ("b", 1))
        assert time.monotonic() - started > throttle_ms / 1000 - CLOCKS_DIFFER_S
        assert [topic.error_code for topic in response.topics] == [ErrorCode.NONE]
        assert response.throttle_time_ms == 0


def test_old_versions_are_served_and_told_to_wait(kvorum_cluster_factory: StartCluster) -> None:
    cluster = kvorum_cluster_factory(overrides={"controller.quota.window.num": "1"})
    with RawClient(cluster.controller_servers) as client:
        limit_everyone(client, 10.0)
        response = create(client, 5, ("a", 10), ("b", 10))
        assert [topic.error_code for topic in response.topics] == [0, 0]
        assert 0 < response.throttle_time_ms <= 1_000


def test_a_client_that_is_muted_keeps_no_other_waiting_and_is_forgotten_when_it_leaves(
    kvorum_cluster_factory: StartCluster,
) -> None:
    cluster = kvorum_cluster_factory(overrides={"controller.quota.window.num": "1"})
    with RawClient(cluster.bootstrap_servers) as client:
        limit_everyone(client, 0.01)
        # Much longer than anybody's patience.
        assert create(client, 7, ("a", 40), ("b", 1)).throttle_time_ms > 1_000_000
        with RawClient(cluster.bootstrap_servers) as other:
            assert other.ask(MetadataRequest(topics=[]), MetadataResponse, 12).brokers
    with RawClient(cluster.bootstrap_servers) as client:
        assert client.ask(MetadataRequest(topics=[]), MetadataResponse, 12).brokers


def quotas(**rates: float) -> ClientQuotasImage:
    """Return the rates of addresses, written with underscores; `default` is that of all others."""
    entities: dict[QuotaEntity, Map[str, float]] = {}
    for name, rate in rates.items():
        address = None if name == "default" else name.removeprefix("ip_").replace("_", ".")
        entities[((IP, address),)] = Map({CONNECTION_CREATION_RATE: rate})
    return ClientQuotasImage(Map(entities))


def rates_of(image: ClientQuotasImage, limits: RateLimits | None = None) -> ConnectionRates:
    return ConnectionRates(RateLimits() if limits is None else limits, lambda: image)


def test_a_rate_counts_windows_that_are_not_there_as_empty_ones() -> None:
    """Ten full windows and what has passed of the eleventh, as Kafka's Rate has it."""
    rate = Rate(MetricConfig(11, 1000.0))
    for _ in range(20):
        rate.record(1.0, 0.0)
    assert throttle_time_ms(rate, 2, 0.0) == 0
    rate.record(1.0, 0.0)
    # 21 in 10 s are 2.1 a second: 5 % too many of 10 s.
    assert throttle_time_ms(rate, 2, 0.0) == pytest.approx(500.0)
    assert throttle_time_ms(rate, 2, 500.0) == 0


def test_a_rate_forgets_what_lies_before_its_windows() -> None:
    rate = Rate(MetricConfig(2, 1000.0))
    rate.record(10.0, 0.0)
    assert throttle_time_ms(rate, 1, 1999.0) > 0
    assert throttle_time_ms(rate, 1, 2000.0) == 0


def test_without_a_limit_every_connection_is_served_at_once() -> None:
    rates = rates_of(quotas())
    assert {id(rates.admit("PLAINTEXT", HOST, 0.0)) for _ in range(1000)} == {id(AT_ONCE)}


def test_an_address_that_comes_too_fast_is_closed_after_a_while() -> None:
    rates = rates_of(quotas(ip_127_0_0_1=2))
    assert all(rates.admit("PLAINTEXT", HOST, 0.0) is AT_ONCE for _ in range(20))
    refused = Admission(500.0, is_served=False)
    assert [rates.admit("PLAINTEXT", HOST, 0.0) for _ in range(3)] == [refused] * 3
    assert rates.admit("PLAINTEXT", "127.0.0.2", 0.0) is AT_ONCE
    assert rates.admit("PLAINTEXT", HOST, 500.0) is AT_ONCE


def test_the_default_is_that_of_addresses_without_their_own() -> None:
    rates = rates_of(quotas(default=1, ip_127_0_0_1=100))
    assert all(rates.admit("PLAINTEXT", HOST, 0.0).is_served for _ in range(11))
    others = [rates.admit("PLAINTEXT", "10.0.0.1", 0.0).is_served for _ in range(11)]
    assert others == [True] * 10 + [False]


def test_a_changed_quota_counts_from_the_next_connection() -> None:
    images = [quotas(ip_127_0_0_1=1)]
    rates = ConnectionRates(RateLimits(), lambda: images[-1])
    assert [rates.admit("L", HOST, 0.0).is_served for _ in range(11)][-1] is False
    images.append(quotas())
    assert rates.admit("L", HOST, 0.0) is AT_ONCE


def test_a_rate_of_zero_serves_no_client() -> None:
    assert rates_of(quotas(default=0)).admit("L", HOST, 0.0) == Admission(1000.0, is_served=False)


def test_a_full_listener_takes_its_connections_in_one_after_the_other() -> None:
    rates = rates_of(quotas(), RateLimits(of_listeners={"A": 2}))
    assert all(rates.admit("A", HOST, 0.0) is AT_ONCE for _ in range(20))
    waits = [rates.admit("A", HOST, 0.0) for _ in range(4)]
    assert all(each.is_served for each in waits)
    assert [each.wait_ms for each in waits] == pytest.approx([500.0, 1000.0, 2000.0, 3000.0])
    assert rates.admit("B", HOST, 0.0) is AT_ONCE


def test_only_so_many_connections_wait_for_their_turn() -> None:
    rates = rates_of(quotas(), RateLimits(of_listeners={"A": 100}, waiting_max=50))
    crowd = [rates.admit("A", HOST, float(ms)) for ms in range(8_000)]
    assert crowd.count(TOO_MANY_WAIT) > 5_000
    # The first ones used up what may come in ten windows.
    assert max(each.wait_ms for each in crowd) < 10_000
    assert rates.admit("A", HOST, 20_000.0) is AT_ONCE, "those before have had their turn"
    assert rates.admit("B", HOST, 8_000.0) is AT_ONCE


def test_connections_between_brokers_do_not_count_for_the_node() -> None:
    rates = rates_of(quotas(), RateLimits(of_node=1, protected_listener="INTERNAL"))
    assert all(rates.admit("INTERNAL", HOST, 0.0) is AT_ONCE for _ in range(50))
    assert [rates.admit("A", HOST, 0.0).wait_ms > 0 for _ in range(11)] == [False] * 10 + [True]


def test_what_is_closed_unserved_does_not_count_for_the_others() -> None:
    rates = rates_of(quotas(ip_127_0_0_1=1), RateLimits(of_node=2))
    assert sum(rates.admit("A", HOST, 0.0).is_served for _ in range(15)) == 10
    assert all(rates.admit("A", "127.0.0.2", 0.0) is AT_ONCE for _ in range(10))
    assert rates.admit("A", "127.0.0.2", 0.0).wait_ms > 0


@pytest.mark.parametrize(
    ("address", "expected"),
    [("::ffff:10.0.0.1", "10.0.0.1"), ("FE80::1%eth0", "fe80::1"), ("somewhere", "somewhere")],
)
def test_addresses_have_one_form(address: str, expected: str) -> None:
    assert normalized(address) == expected


def is_served(address: str) -> bool:
    """Connect and ask something; a client that is not served is closed, which is an answer."""
    with RawClient(address) as client:
        try:
            client.ask(SOFTWARE, ApiVersionsResponse, 3)
        except (AssertionError, ConnectionError):
            return False
    return True


@pytest.mark.parametrize("listener", ["broker", "controller"])
def test_clients_that_connect_too_often_are_closed_unserved(
    kvorum_cluster_factory: StartCluster, listener: str
) -> None:
    cluster = kvorum_cluster_factory()
    addresses = {"broker": cluster.bootstrap_servers, "controller": cluster.controller_servers}
    with RawClient(cluster.bootstrap_servers) as first:
        set_quota(first, ("ip", HOST), CONNECTION_CREATION_RATE, 1)
        wait_for(lambda: not is_served(addresses[listener]), "a client is closed unserved")
        set_quota(first, ("ip", HOST), CONNECTION_CREATION_RATE, 1_000_000)
        wait_for(lambda: is_served(addresses[listener]), "a client is served again")


def test_a_listener_that_is_full_serves_later(kvorum_cluster_factory: StartCluster) -> None:
    key = "listener.name.plaintext.max.connection.creation.rate"
    cluster = kvorum_cluster_factory(overrides={key: "1"})
    # Ten connections may come at once; those after them are a second apart.
    started = time.monotonic()
    assert all(is_served(cluster.bootstrap_servers) for _ in range(12))
    assert time.monotonic() - started > 0.4
