"""Groups of stock consumers with their ordinary settings: they share, commit, go on, and leave."""

import asyncio
import importlib
from collections.abc import Callable
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol

import pytest
from tests.interop.clients.confluent import make_topics, send
from tests.interop.clients.group_members import Confluent, KafkaPython
from tests.interop.clients.java_records import JavaClients, JavaMember
from tests.support.clients.driver import TopicWish
from tests.support.kafka.java import Java
from tests.support.node import STANDALONE, Node
from tests.support.waiting import PATIENCE_S, wait_for

PARTITIONS: Final = 6
COUNT: Final = 60
VALUES: Final = [b"value-%d" % number for number in range(COUNT)]
RECORDS: Final = [
    {"value": value, "partition": number % PARTITIONS, "timestamp": 1000 + number}
    for number, value in enumerate(VALUES)
]
CONSUMER_PROTOCOL: Final = {"group.protocol": "consumer"}
confluent: Any = importlib.import_module("confluent_kafka")


@pytest.fixture(scope="module")
def servers(kvorum_node: Node) -> str:
    return kvorum_node.address


@pytest.fixture
def topic(servers: str, request: pytest.FixtureRequest) -> str:
    """A topic with records in all partitions."""
    name = "".join(one if one.isalnum() else "-" for one in request.node.name)
    # The records are of 1970: the node's next look for old segments would take them away.
    make_topics(servers, TopicWish(name, partitions=PARTITIONS, configs={"retention.ms": "-1"}))
    send(servers, name, RECORDS)
    return name


class AnyMember(Protocol):
    @property
    def values(self) -> list[bytes]: ...

    @property
    def partitions(self) -> set[int]: ...

    def close(self) -> None: ...


Join = Callable[[str, str, str], AnyMember]
"""Joins, by bootstrap servers, group and topic."""


@pytest.fixture(
    params=[
        "confluent-kafka",
        "kafka-python",
        "Java",
        "confluent-kafka by the consumer protocol",
        "Java by the consumer protocol",
    ]
)
def join(request: pytest.FixtureRequest) -> Join:
    match request.param:
        case "confluent-kafka":
            return Confluent
        case "kafka-python":
            return KafkaPython
        case "confluent-kafka by the consumer protocol":
            return partial(Confluent, **CONSUMER_PROTOCOL)
        case _:
            is_classic = request.param == "Java"
            clients = JavaClients(request.getfixturevalue("java"))
            return partial(JavaMember, clients, protocol="classic" if is_classic else "consumer")


def wait_until_shared(*members: AnyMember) -> None:
    wait_for(
        lambda: is_shared(*members),
        "each member has partitions, and every partition one member",
        otherwise=lambda: [one.partitions for one in members],
    )


def wait_until_read(count: int, *members: AnyMember) -> None:
    """Wait until so many values were read by any of the members."""
    wait_for(
        lambda: len({value for one in members for value in one.values}) >= count,
        f"{count} values are read",
        otherwise=lambda: [(one.partitions, len(one.values)) for one in members],
    )


def is_shared(*members: AnyMember) -> bool:
    """Return whether each member has partitions, and every partition one member."""
    owned = [partition for member in members for partition in member.partitions]
    return sorted(owned) == list(range(PARTITIONS)) and all(one.partitions for one in members)


@pytest.mark.slow
def test_members_share_the_partitions_and_go_on_from_what_is_committed(
    servers: str, topic: str, join: Join
) -> None:
    with ExitStack() as stack:
        first, second = (stack.enter_context(closing(join(servers, topic, topic))) for _ in "ab")
        wait_until_shared(first, second)
        wait_until_read(COUNT, first, second)
        third = stack.enter_context(closing(join(servers, topic, topic)))
        wait_until_shared(first, second, third)
        second.close()
        wait_until_shared(first, third)
        assert third.values == [], "what was read is committed before partitions change hands"
    send(servers, topic, RECORDS)
    with closing(join(servers, topic, topic)) as again:
        wait_until_read(COUNT, again)
        assert sorted(again.values) == sorted(VALUES)


@pytest.mark.slow
def test_members_of_different_libraries_share_a_group(servers: str, topic: str, java: Java) -> None:
    settings = {"partition.assignment.strategy": "range"}
    with (
        closing(Confluent(servers, topic, topic, **settings)) as one,
        closing(KafkaPython(servers, topic, topic)) as two,
        closing(JavaMember(JavaClients(java), servers, topic, topic)) as three,
    ):
        everyone = (one, two, three)
        wait_until_shared(*everyone)
        wait_until_read(COUNT, *everyone)


@pytest.mark.slow
def test_kafkas_own_member_commits_by_time(servers: str, topic: str, java: Java) -> None:
    clients = JavaClients(java)
    assert clients.commit_time(servers, topic, topic, 1000 + 3 * PARTITIONS) == 3
    with closing(JavaMember(clients, servers, topic, topic)) as member:
        wait_until_read(COUNT - 3, member)
        assert len(member.values) == COUNT - 3


@pytest.mark.slow
def test_members_by_aiokafka_share_and_commit(servers: str, topic: str) -> None:
    library: Any = importlib.import_module("aiokafka")

    def consumer() -> Any:
        return library.AIOKafkaConsumer(
            topic, bootstrap_servers=servers, group_id=topic, auto_offset_reset="earliest"
        )

    async def read(member: Any, values: list[bytes]) -> None:
        async for message in member:
            values.append(message.value)
            if len(values) == COUNT:
                return

    async def story() -> list[int]:
        first, second = consumer(), consumer()
        await asyncio.gather(first.start(), second.start())
        values: list[bytes] = []
        readers = [asyncio.create_task(read(one, values)) for one in (first, second)]
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.wait(readers, return_when=asyncio.FIRST_COMPLETED)
        assert sorted(values) == sorted(VALUES)
        shares = [len(one.assignment()) for one in (first, second)]
        for reader in readers:
            reader.cancel()
        await asyncio.gather(first.stop(), second.stop())
        async with consumer() as again:
            ends = await again.end_offsets(again.assignment())
            assert {one: await again.committed(one) for one in again.assignment()} == ends
        return shares

    assert asyncio.run(story()) == [PARTITIONS // 2] * 2


@pytest.mark.slow
def test_members_of_the_consumer_protocol_in_different_languages_share_a_group(
    servers: str, topic: str, java: Java
) -> None:
    with (
        closing(Confluent(servers, topic, topic, **CONSUMER_PROTOCOL)) as one,
        closing(Confluent(servers, topic, f"^{topic}.*", **CONSUMER_PROTOCOL)) as two,
        closing(JavaMember(JavaClients(java), servers, topic, topic, protocol="consumer")) as three,
    ):
        everyone = (one, two, three)
        wait_until_shared(*everyone)
        wait_until_read(COUNT, *everyone)


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_static_member_comes_back_to_its_partitions(
    servers: str, topic: str, protocol: str
) -> None:
    def member(name: str) -> Confluent:
        own = {"group.instance.id": name, "group.protocol": protocol}
        return Confluent(servers, topic, topic, **own)

    with closing(member("b")) as staying:
        first = member("a")
        wait_until_shared(first, staying)
        had, stayed = first.partitions, staying.partitions
        generation = described(servers, topic)
        first.close()
        with closing(member("a")) as again:
            wait_for(
                lambda: bool(again.partitions),
                "the member that is back has partitions",
                otherwise=lambda: (again.partitions, staying.partitions),
            )
            assert (again.partitions, staying.partitions) == (had, stayed)
        now = described(servers, topic)
        assert now.keys() == generation.keys() == {"a", "b"}
        assert now["b"] == generation["b"]


def described(servers: str, group: str) -> dict[str | None, tuple[str, object]]:
    """Return the id and the partitions of each member, by its instance id."""
    admin: Any = importlib.import_module("confluent_kafka.admin")
    client = admin.AdminClient({"bootstrap.servers": servers})
    found = client.describe_consumer_groups([group])[group].result(PATIENCE_S)
    return {
        one.group_instance_id: (
            one.member_id,
            sorted(place.partition for place in one.assignment.topic_partitions),
        )
        for one in found.members
    }


def test_a_member_seeks_by_time(servers: str, topic: str) -> None:
    consumer = confluent.Consumer({"bootstrap.servers": servers, "group.id": topic})
    with closing(consumer):
        wish = [confluent.TopicPartition(topic, 0, 1000 + 3 * PARTITIONS)]
        (place,) = consumer.offsets_for_times(wish, PATIENCE_S)
        assert place.offset == 3
        assert consumer.commit(offsets=[place], asynchronous=False)[0].error is None
        (committed,) = consumer.committed([confluent.TopicPartition(topic, 0)], PATIENCE_S)
        assert committed.offset == 3
    with closing(Confluent(servers, topic, topic)) as member:
        wait_until_read(COUNT - 3, member)
        assert len(member.values) == COUNT - 3


def test_a_consumer_that_asks_for_the_consumer_protocol_without_group_version_is_refused_at_once(
    tmp_path: Path,
) -> None:
    with Node(tmp_path, {"process.roles": "broker,controller"}).format(
        (*STANDALONE, "--feature", "group.version=0")
    ) as node:
        own = {"bootstrap.servers": node.address, "group.id": "g", "group.protocol": "consumer"}
        with closing(confluent.Consumer(own)) as consumer:
            consumer.subscribe(["any"])
            message = consumer.poll(PATIENCE_S)
    error = message.error()
    assert error.code() == confluent.KafkaError._FATAL
    assert "API version not supported" in error.str()
