"""Client quotas over the wire: times to wait, muted connections, and who is not counted."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TypeVar

import pytest
from tests.interop.controller_quorum import wait_for
from tests.unit.node.raw_client import RawClient
from tests.unit.node.record_requests import FETCH_VERSION, PRODUCE_VERSION, batch, fetch_request

from kvorum.testing import Cluster
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntityData,
    AlterClientQuotasRequestEntryData,
    AlterClientQuotasRequestOpData,
    AlterClientQuotasResponse,
)
from kvorum.wire.messages.create_topics import (
    CreateTopicsRequest,
    CreateTopicsRequestCreatableTopic,
    CreateTopicsResponse,
)
from kvorum.wire.messages.fetch import FetchRequest, FetchResponse
from kvorum.wire.messages.metadata import MetadataRequest, MetadataResponse
from kvorum.wire.messages.produce import (
    ProduceRequest,
    ProduceRequestPartitionProduceData,
    ProduceRequestTopicProduceData,
    ProduceResponse,
)
from kvorum.wire.primitives import Message

TOPIC = "t"
VALUE = batch(b"x" * 100_000)
Response = TypeVar("Response", bound=Message)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(
        controllers=1,
        brokers=1,
        overrides={"quota.window.num": "2", "replica.fetch.wait.max.ms": "9"},
    ) as cluster:
        with RawClient(cluster.bootstrap_servers) as client:
            topic = CreateTopicsRequestCreatableTopic(TOPIC, 1, 1)
            request = CreateTopicsRequest(topics=[topic], timeout_ms=10_000)
            assert client.ask(request, CreateTopicsResponse, 7).topics[0].error_code == 0
            wait_for(
                lambda: (
                    not error_of(client.ask(production(), ProduceResponse, PRODUCE_VERSION)) or None
                ),
                lambda: "the partition is led",
            )
        yield cluster


@pytest.fixture
def client(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[RawClient]:
    """A client that has a quota of its own."""
    with RawClient(cluster.bootstrap_servers, client_id=request.node.name) as client:
        yield client


def limit(client: RawClient, key: str, bound: float | None) -> None:
    """Give a client a quota, or take it away; return when the broker knows it."""
    operation = AlterClientQuotasRequestOpData(key, bound or 0.0, bound is None)
    entity = [AlterClientQuotasRequestEntityData("client-id", client.client_id)]
    request = AlterClientQuotasRequest([AlterClientQuotasRequestEntryData(entity, [operation])])
    (changed,) = client.ask(request, AlterClientQuotasResponse, 1).entries
    assert changed.error_code == ErrorCode.NONE
    # The controller answers before the broker has read the change.
    time.sleep(0.2)


def production(acks: int = -1) -> ProduceRequest:
    data = ProduceRequestPartitionProduceData(0, VALUE)
    return ProduceRequest(
        None, acks, 5000, [ProduceRequestTopicProduceData(TOPIC, partition_data=[data])]
    )


def error_of(response: ProduceResponse) -> int:
    return response.responses[0].partition_responses[0].error_code


def asked(
    client: RawClient, request: Message, kind: type[Response], version: int
) -> tuple[Response, float]:
    """Return the response, and after how many seconds it came."""
    started = time.monotonic()
    return client.ask(request, kind, version), time.monotonic() - started


def test_a_producer_beyond_its_quota_is_answered_and_muted(client: RawClient) -> None:
    limit(client, "producer_byte_rate", 150_000)
    first, _ = asked(client, production(), ProduceResponse, PRODUCE_VERSION)
    assert (error_of(first), first.throttle_time_ms) == (0, 0)
    second, seconds = asked(client, production(), ProduceResponse, PRODUCE_VERSION)
    # A third too much of one second; the records are in the log all the same.
    assert error_of(second) == ErrorCode.NONE
    assert 250 < second.throttle_time_ms < 450
    assert seconds < 0.2
    _, seconds = asked(client, MetadataRequest(topics=[]), MetadataResponse, 12)
    assert seconds > second.throttle_time_ms / 1000 - 0.05


def test_a_producer_without_acknowledgement_is_muted(client: RawClient) -> None:
    limit(client, "producer_byte_rate", 150_000)
    client.send(production(acks=0), PRODUCE_VERSION)
    client.send(production(acks=0), PRODUCE_VERSION)
    _, seconds = asked(client, MetadataRequest(topics=[]), MetadataResponse, 12)
    assert 0.2 < seconds < 1


def test_a_consumer_beyond_its_quota_gets_nothing_and_is_muted(client: RawClient) -> None:
    limit(client, "consumer_byte_rate", 150_000)
    request = fetch_request(TOPIC, 0, min_bytes=1, max_wait_ms=0)
    first, _ = asked(client, request, FetchResponse, FETCH_VERSION)
    # No more than the quota allows is read at once.
    assert 100_000 < len(first.responses[0].partitions[0].records or b"") <= 150_000
    assert first.throttle_time_ms == 0
    second, _ = asked(client, request, FetchResponse, FETCH_VERSION)
    assert (second.responses, second.error_code) == ([], ErrorCode.NONE)
    assert second.throttle_time_ms > 0
    _, seconds = asked(client, request, FetchResponse, FETCH_VERSION)
    assert seconds > second.throttle_time_ms / 1000 - 0.05
    # Whether the next is refused as well depends on which side of a window's end it falls; that
    # one is met by the time both windows are over is what a client relies on.
    wait_for(
        lambda: client.ask(request, FetchResponse, FETCH_VERSION).responses or None,
        lambda: "the consumer's quota has room again",
    )


def test_what_followers_fetch_counts_for_nobody(client: RawClient) -> None:
    limit(client, "consumer_byte_rate", 1)
    request = fetch_request(TOPIC, 0, min_bytes=1, max_wait_ms=0)
    request.replica_id = 5
    response = client.ask(request, FetchResponse, FETCH_VERSION)
    assert response.throttle_time_ms == 0
    consumed = FetchRequest(max_wait_ms=0, min_bytes=1, topics=request.topics)
    assert client.ask(consumed, FetchResponse, FETCH_VERSION).throttle_time_ms > 1000


@pytest.mark.parametrize("is_forwarded", [False, True], ids=["by the broker", "forwarded"])
def test_requests_that_take_too_much_time_wait(client: RawClient, *, is_forwarded: bool) -> None:
    limit(client, "request_percentage", 0.0001)
    if is_forwarded:
        topic = CreateTopicsRequestCreatableTopic("u", 1, 1)
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
    _, seconds = asked(client, MetadataRequest(topics=[]), MetadataResponse, 12)
    assert 0.9 < seconds < 2


def test_a_quota_that_is_taken_away_counts_no_more(client: RawClient, cluster: Cluster) -> None:
    limit(client, "producer_byte_rate", 1000)
    assert client.ask(production(), ProduceResponse, PRODUCE_VERSION).throttle_time_ms > 10_000
    with RawClient(cluster.bootstrap_servers, client_id=client.client_id) as other:
        limit(other, "producer_byte_rate", None)
        assert other.ask(production(), ProduceResponse, PRODUCE_VERSION).throttle_time_ms == 0
