"""A group of stock consumers that goes over to the consumer protocol, one by one, and back."""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions
from confluent_kafka.admin import AdminClient
from tests.interop.clients.confluent import make_topics, send
from tests.interop.clients.group_members import Confluent
from tests.support.clients.driver import TopicWish
from tests.support.node import Node
from tests.support.waiting import PATIENCE_S, wait_for

TOPIC: Final = "rolled"
GROUP: Final = "of-ten"
MEMBERS: Final = 10
PARTITIONS: Final = 20
SETTINGS: Final = {
    "process.roles": "broker,controller",
    "group.consumer.heartbeat.interval.ms": "300",
    "group.consumer.min.heartbeat.interval.ms": "300",
    "group.consumer.assignment.interval.ms": "0",
}
SETTINGS_OF_PROTOCOL: Final[dict[str, dict[str, object]]] = {
    "classic": {"heartbeat.interval.ms": 300},
    "consumer": {"group.protocol": "consumer"},
}


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[str]:
    with Node(tmp_path, SETTINGS).format() as node:
        make_topics(node.address, TopicWish(TOPIC, partitions=PARTITIONS))
        yield node.address


@pytest.mark.slow
def test_a_group_of_ten_changes_its_protocol_and_back_and_loses_no_commit(servers: str) -> None:
    """Members of a real broker read a few records again too, where their group is classic again."""
    sent: list[bytes] = []
    with ExitStack() as stack:
        everyone: list[Confluent] = []

        def join(protocol: str) -> Confluent:
            settings = SETTINGS_OF_PROTOCOL[protocol]
            member = Confluent(servers, GROUP, TOPIC, **settings)
            everyone.append(stack.enter_context(closing(member)))
            return member

        members = [join("classic") for _ in range(MEMBERS)]
        wait_until_shared(members)
        for protocol in ("consumer", "classic"):
            for place in range(MEMBERS):
                sent += send_round(servers, f"{protocol} {place}")
                new = join(protocol)
                wait_until_assigned(new)
                members[place].close()
                members[place] = new
            wait_until_shared(members)
            wait_until_read(everyone, sent)
            assert type_of_group(servers) == protocol
        everything = dict.fromkeys(range(PARTITIONS), len(sent) // PARTITIONS)
        # A member that leaves while others rejoin may not commit, nor the next one read it again.
        wait_for(
            lambda: committed(servers) == everything,
            "all is committed",
            otherwise=lambda: committed(servers),
        )
    assert {value for member in everyone for value in member.values} == set(sent)
    assert committed(servers) == everything


def send_round(servers: str, name: str) -> list[bytes]:
    """Send a record to each partition; return their values."""
    values = [f"{name} {partition}".encode() for partition in range(PARTITIONS)]
    records = [{"value": value, "partition": place} for place, value in enumerate(values)]
    send(servers, TOPIC, records)
    return values


def wait_until_assigned(member: Confluent) -> None:
    wait_for(lambda: bool(member.partitions), "the new member has partitions")


def wait_until_shared(members: list[Confluent]) -> None:
    def look() -> bool:
        owned = [partition for member in members for partition in member.partitions]
        return sorted(owned) == list(range(PARTITIONS))

    wait_for(look, "the members share all partitions", patience_s=2 * PATIENCE_S)


def wait_until_read(members: list[Confluent], values: list[bytes]) -> None:
    wait_for(
        lambda: {value for member in members for value in member.values} >= set(values),
        "all records are read",
        otherwise=lambda: [(member.partitions, len(member.values)) for member in members],
    )


def committed(servers: str) -> dict[int, int]:
    """Return the committed offset of each partition."""
    admin: Any = AdminClient({"bootstrap.servers": servers})
    asked = ConsumerGroupTopicPartitions(GROUP)
    found = admin.list_consumer_group_offsets([asked])[GROUP].result(PATIENCE_S)
    return {one.partition: one.offset for one in found.topic_partitions}


def type_of_group(servers: str) -> str:
    admin: Any = AdminClient({"bootstrap.servers": servers})
    listed = admin.list_consumer_groups().result(PATIENCE_S)
    (found,) = (one for one in listed.valid if one.group_id == GROUP)
    return str(found.type.name).lower()
