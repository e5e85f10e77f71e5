"""Coordinators of consumer groups (KIP-848) that move between a real broker and ours.

The only partition of ``__consumer_offsets`` is led by one and then by the other, while the members
of a group live on.
"""

import re
from collections.abc import Iterator
from contextlib import closing
from typing import Any, Final

import pytest
from tests.interop.broker_cluster import BrokerCluster, RunBrokers, faults, kind_of_controllers
from tests.interop.clients.confluent import send
from tests.interop.clients.group_members import Confluent
from tests.interop.clients.java_records import JavaClients, JavaMember
from tests.support.kafka.java import Java
from tests.support.waiting import PATIENCE_S, wait_for

REAL, OURS = 11, 12
OFFSETS: Final = "__consumer_offsets"
TOPIC: Final = "shared"
PARTITIONS: Final = 4
ROUND: Final = 8
SETTINGS: Final = {
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "2",
    "group.consumer.heartbeat.interval.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "1000",
}


@pytest.fixture(scope="module")
def cluster(run_brokers: RunBrokers) -> Iterator[BrokerCluster]:
    with run_brokers(kind_of_controllers(), brokers=2, ours={OURS}, settings=SETTINGS) as made:
        made.make_topic(OFFSETS, f"{OURS}:{REAL}", "cleanup.policy=compact")
        made.make_topic(TOPIC, ",".join([f"{REAL}:{OURS}"] * PARTITIONS))
        yield made
        assert faults(made.brokers[OURS]) == []
        assert not re.search(r"IllegalState|Received fatal error", made.brokers[REAL].log_text)


def coordinate_at(cluster: BrokerCluster, leader: int) -> None:
    cluster.let_lead(OFFSETS, leader, OURS if leader == REAL else REAL)


def values_of(group: str, number: int) -> list[bytes]:
    return [f"{group} {number} {one}".encode() for one in range(ROUND)]


@pytest.mark.slow
@pytest.mark.parametrize("first", [OURS, REAL], ids=["from ours", "from a real one"])
def test_members_go_on_under_another_coordinator(
    cluster: BrokerCluster, java: Java, first: int
) -> None:
    """No record is read twice: every member keeps its id, its partitions and its offsets."""
    then = REAL if first == OURS else OURS
    group = f"from-{first}"
    coordinate_at(cluster, first)
    with (
        closing(Confluent(cluster.servers, group, TOPIC, **{"group.protocol": "consumer"})) as one,
        closing(
            JavaMember(JavaClients(java), cluster.servers, group, TOPIC, protocol="consumer")
        ) as two,
    ):
        members: tuple[Any, ...] = (one, two)
        owned = wait_until_shared(members)
        for number, leader in enumerate((first, then, first, then)):
            coordinate_at(cluster, leader)
            values = values_of(group, number)
            send_each(cluster, values)
            wait_until_read(members, values)
            assert [set(member.partitions) for member in members] == owned
    read = [value for member in members for value in member.values]
    own = [value for value in read if value.startswith(group.encode())]
    assert len(set(own)) == len(own)


def send_each(cluster: BrokerCluster, values: list[bytes]) -> None:
    records = [
        {"value": value, "partition": place % PARTITIONS} for place, value in enumerate(values)
    ]
    send(cluster.servers, TOPIC, records)


def wait_until_shared(members: tuple[Any, ...]) -> list[set[int]]:
    """Wait until the members have all partitions, and return those of each."""

    def look() -> list[set[int]] | None:
        owned = [set(member.partitions) for member in members]
        is_shared = sorted(one for each in owned for one in each) == list(range(PARTITIONS))
        return owned if is_shared and all(owned) else None

    return wait_for(look, "the members share all partitions")


def wait_until_read(members: tuple[Any, ...], values: list[bytes]) -> None:
    wait_for(
        lambda: set(values) <= {value for member in members for value in member.values},
        f"{values[0]!r} and those after it are read",
        patience_s=2 * PATIENCE_S,
        otherwise=lambda: [(member.partitions, len(member.values)) for member in members],
    )
