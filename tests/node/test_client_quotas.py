"""Client quotas over the wire: times to wait, muted connections, clients that are not counted."""

import time
from collections.abc import Iterator

import pytest
from tests.node.embedded_cluster import set_quota
from tests.support.raw_client import RawClient
from tests.support.record_requests import FETCH_VERSION, PRODUCE_VERSION, batch, fetch_request
from tests.support.topics import create_topic
from tests.support.waiting import wait_for

from kvorum.testing import Cluster
from kvorum.wire.error_codes import ErrorCode
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
        elapsed_s = time.monotonic() - self._began
        assert elapsed_s > throttle_time_ms / 1000 - CLOCKS_DIFFER_S


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
