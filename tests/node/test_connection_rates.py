"""The rate of connections: the arithmetic of Kafka's quotas, and real connections."""

import time
from collections.abc import Callable

import pytest
from immutables import Map
from tests.node.embedded_cluster import set_quota
from tests.support.raw_client import RawClient
from tests.support.waiting import wait_for

from kvorum.broker.quota.rate import Rate, throttle_time_ms
from kvorum.broker.quota.sampled_stat import MetricConfig
from kvorum.metadata.client_quotas_image import IP, ClientQuotasImage, QuotaEntity
from kvorum.node.serving.connection_rates import (
    AT_ONCE,
    CONNECTION_CREATION_RATE,
    Admission,
    ConnectionRates,
    RateLimits,
    normalized,
)
from kvorum.testing import Cluster
from kvorum.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

StartCluster = Callable[..., Cluster]
SOFTWARE = ApiVersionsRequest("test", "1")
HOST = "127.0.0.1"


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
    assert [rates.admit("PLAINTEXT", f"::ffff:{HOST}", 0.0) for _ in range(3)] == [refused] * 3
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
