"""Share groups of Kafka's Java consumer: they share records, and each is done with once."""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import Final

import pytest
from tests.interop.clients.confluent import make_topics, send
from tests.interop.clients.java_share import JavaShareMember, Mode
from tests.support.clients.driver import TopicWish
from tests.support.group_configs import configure_group
from tests.support.kafka.java import Java
from tests.support.node import BothNodes
from tests.support.raw_client import RawClient
from tests.support.waiting import wait_for

PARTITIONS: Final = 2
COUNT: Final = 40
SETTINGS: Final = {
    "group.share.heartbeat.interval.ms": "500",
    "group.share.min.heartbeat.interval.ms": "500",
    "group.share.assignment.interval.ms": "0",
    "group.share.record.lock.duration.ms": "2000",
    "group.share.min.record.lock.duration.ms": "1000",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}


@pytest.fixture(scope="module", params=["ours", "real"])
def servers(request: pytest.FixtureRequest, both_nodes: BothNodes) -> Iterator[str]:
    """A node of ours, and a real one on which the same is to be seen."""
    with both_nodes(SETTINGS) as (real, ours):
        yield (ours if request.param == "ours" else real).address


def begin_at_start(servers: str, group: str) -> None:
    """Have a group read the records that are there before it."""
    with RawClient(servers) as client:
        configure_group(client, group, {"share.auto.offset.reset": "earliest"})


def prepare(servers: str, name: str, values: list[str]) -> None:
    """Make a topic with values in all partitions, and a group of its name that reads all."""
    make_topics(servers, TopicWish(name, partitions=PARTITIONS))
    begin_at_start(servers, name)
    send(
        servers,
        name,
        [
            {"value": value.encode(), "partition": number % PARTITIONS}
            for number, value in enumerate(values)
        ],
    )


def wait_until_delivered(values: list[str], *members: JavaShareMember) -> None:
    """Wait until members have got each value."""

    def delivered() -> list[str]:
        return [value for member in members for value in member.values]

    wait_for(
        lambda: set(values) <= set(delivered()),
        "everything is delivered",
        otherwise=lambda: sorted(set(values) - set(delivered())),
    )


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["implicit", "explicit"])
def test_members_share_records_and_each_is_delivered_once(
    servers: str, java: Java, mode: Mode
) -> None:
    values = [f"value {number}" for number in range(COUNT)]
    topic = f"shared-{mode}"
    prepare(servers, topic, values[: COUNT // 2])
    with ExitStack() as stack:
        members = [
            stack.enter_context(closing(JavaShareMember(java, servers, topic, topic, mode)))
            for _ in range(2)
        ]
        wait_until_delivered(values[: COUNT // 2], *members)
        send(servers, topic, [{"value": value.encode()} for value in values[COUNT // 2 :]])
        wait_until_delivered(values, *members)
    delivered = [one for member in members for one in member.delivered]
    assert sorted(one.value for one in delivered) == sorted(values)
    assert {one.delivery_count for one in delivered} == {1}
    assert [member.problems for member in members] == [[], []]
    with closing(JavaShareMember(java, servers, topic, topic)) as later:
        send(servers, topic, [{"value": b"one more"}])
        wait_until_delivered(["one more"], later)
        assert later.values == ["one more"]


@pytest.mark.slow
def test_what_is_released_comes_again_and_what_is_rejected_does_not(
    servers: str, java: Java
) -> None:
    values = ["accept a", "release b", "reject c", "release d"]
    prepare(servers, "told", values)
    with closing(JavaShareMember(java, servers, "told", "told")) as member:
        wait_for(lambda: len(member.delivered) >= 6, "what is released comes again")
        send(servers, "told", [{"value": b"last"}])
        wait_until_delivered(["last"], member)
    found = sorted((one.value, one.delivery_count) for one in member.delivered)
    assert found == sorted(
        [(value, 1) for value in (*values, "last")] + [("release b", 2), ("release d", 2)]
    )


@pytest.mark.slow
def test_the_records_of_a_member_that_was_killed_go_to_another_one(
    servers: str, java: Java
) -> None:
    values = [f"value {number}" for number in range(COUNT)]
    prepare(servers, "killed", values)
    with closing(JavaShareMember(java, servers, "killed", "killed", "implicit")) as first:
        wait_for(lambda: first.delivered, "the first member has records")
        first.kill()
    with closing(JavaShareMember(java, servers, "killed", "killed")) as second:
        wait_until_delivered(values, first, second)
        taken_over = [one for one in second.delivered if one.value in first.values]
        assert all(one.delivery_count == 2 for one in taken_over)
