"""The controller mutation quota over the wire: refusals, times to wait, muted connections."""

import time
from collections.abc import Callable

import pytest
from tests.node.embedded_cluster import set_quota
from tests.support.raw_client import RawClient

from kvorum.testing import Cluster
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from kvorum.wire.messages.metadata import MetadataRequest, MetadataResponse

StartCluster = Callable[..., Cluster]
CLOCKS_DIFFER_S = 0.01
"""By how much a timer of the event loop may be early."""


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
