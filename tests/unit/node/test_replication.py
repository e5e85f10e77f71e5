"""Three brokers that replicate: over the wire, with leaders that go and come back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.interop.controller_quorum import wait_for
from tests.unit.node.raw_client import RawClient
from tests.unit.node.record_requests import batch, fetch, produce, values
from tests.unit.node.replicated import (
    BROKERS,
    OVERRIDES,
    address_of,
    create_topic,
    log_bytes,
    state_of,
    wait_for_isr,
)

from kvorum.testing import Cluster
from kvorum.wire.error_codes import ErrorCode


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(controllers=1, brokers=3, overrides=OVERRIDES) as cluster:
        yield cluster


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    return str(request.node.name)[:60].replace("[", "-").replace("]", "")


def leader(cluster: Cluster, topic: str) -> RawClient:
    return RawClient(address_of(cluster, state_of(cluster, topic).leader))


def append(cluster: Cluster, topic: str, value: bytes) -> int:
    """Write a record with acks=all, again and again until the leader takes it."""

    def write() -> int | None:
        try:
            with leader(cluster, topic) as client:
                answer = produce(client, topic, batch(value))
        except (OSError, AssertionError, KeyError):
            return None
        return answer.base_offset if answer.error_code == ErrorCode.NONE else None

    return wait_for(write, lambda: f"{value!r} is not written: {state_of(cluster, topic)}")


def read(cluster: Cluster, topic: str) -> list[bytes | None]:
    with leader(cluster, topic) as client:
        found: list[bytes | None] = []
        while records := values(fetch(client, topic, len(found))):
            found += records
        return found


def assert_same_logs(cluster: Cluster, topic: str, brokers: tuple[int, ...] = BROKERS) -> None:
    """Wait until every replica has the same bytes."""

    def look() -> bool | None:
        logs = {log_bytes(cluster.folder, node_id, topic) for node_id in brokers}
        return len(logs) == 1 or None

    wait_for(look, lambda: "the logs differ")


def test_a_write_for_all_reaches_every_replica(cluster: Cluster, topic: str) -> None:
    create_topic(cluster, topic, [*BROKERS])
    for number in range(20):
        assert append(cluster, topic, b"%d" % number) == number
    assert_same_logs(cluster, topic)
    assert wait_for_isr(cluster, topic, {*BROKERS}).leader_epoch == 0
    assert read(cluster, topic) == [b"%d" % number for number in range(20)]


def test_a_killed_leader_is_replaced_and_comes_back(cluster: Cluster, topic: str) -> None:
    create_topic(cluster, topic, [*BROKERS], {"min.insync.replicas": "2"})
    written: list[bytes] = []
    for round_number in range(3):
        for number in range(5):
            written.append(b"%d-%d" % (round_number, number))
            append(cluster, topic, written[-1])
        killed = state_of(cluster, topic).leader
        cluster.kill(killed)
        wait_for_isr(cluster, topic, {*BROKERS} - {killed})
        written.append(b"%d without %d" % (round_number, killed))
        append(cluster, topic, written[-1])
        cluster.restart(killed)
        wait_for_isr(cluster, topic, {*BROKERS})
    assert read(cluster, topic) == written
    assert_same_logs(cluster, topic)


def test_a_controlled_shutdown_moves_the_leader(cluster: Cluster, topic: str) -> None:
    create_topic(cluster, topic, [103, 101, 102])
    append(cluster, topic, b"before")
    cluster.restart(103)
    assert wait_for_isr(cluster, topic, {*BROKERS}).leader != 103
    append(cluster, topic, b"after")
    assert read(cluster, topic) == [b"before", b"after"]
    assert_same_logs(cluster, topic)


def test_too_few_replicas_in_sync_refuse_a_write(cluster: Cluster, topic: str) -> None:
    create_topic(cluster, topic, [*BROKERS], {"min.insync.replicas": "3"})
    append(cluster, topic, b"one")
    cluster.kill(103)
    try:
        wait_for_isr(cluster, topic, {101, 102})
        with leader(cluster, topic) as client:
            wait_for(
                lambda: produce(client, topic, batch(b"early")).error_code == 19 or None,
                lambda: "NOT_ENOUGH_REPLICAS",
            )
            assert produce(client, topic, batch(b"two"), acks=1).error_code == ErrorCode.NONE
            # What too few replicas have is not committed.
            assert values(fetch(client, topic, 0)) == [b"one"]
    finally:
        cluster.restart(103)
    wait_for_isr(cluster, topic, {*BROKERS})
    wait_for(lambda: read(cluster, topic)[-1] == b"two" or None, lambda: "not committed")
    # The leader may have taken an early one before it knew that a replica was gone.
    assert [value for value in read(cluster, topic) if value != b"early"] == [b"one", b"two"]
    assert_same_logs(cluster, topic)
