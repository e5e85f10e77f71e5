"""Transactions that a real broker coordinates, on partitions that ours lead.

One of our controllers has a real broker, which alone keeps ``__transaction_state``, and one of
ours, which leads the data and the groups. Clients begin at ours. The tests share the cluster, each
with topics of its own. KVORUM_REAL_CONTROLLERS=1 in the environment puts a real controller in the
place of ours.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from tests.interop.broker_cluster import BrokerCluster, RunBrokers, faults, kind_of_controllers
from tests.interop.clients.confluent import (
    end_transaction,
    read_to_end,
    send,
    transactional_producer,
)
from tests.interop.transaction_version import set_transaction_version
from tests.support.kafka.java import Java
from tests.support.waiting import PATIENCE_S, wait_for

REAL, OURS = 11, 12
OFFSETS: Final = "__consumer_offsets"
COUNT: Final = 40


@pytest.fixture(scope="module")
def cluster(run_brokers: RunBrokers) -> Iterator[BrokerCluster]:
    with run_brokers(kind_of_controllers(), brokers=2, ours={OURS}) as made:
        made.make_topic("__transaction_state", f"{REAL},{REAL}", "cleanup.policy=compact")
        made.make_topic(OFFSETS, ",".join([f"{OURS}:{REAL}"] * 3), "cleanup.policy=compact")
        yield made
        assert faults(made.brokers[OURS]) == []
        assert not re.search(r"IllegalState|Received fatal error", made.brokers[REAL].log_text)


def lead(cluster: BrokerCluster, topic: str, leader: int, follower: int) -> None:
    """Let one of the two brokers lead the only partition."""
    cluster.reassign(topic, leader, follower)
    place = ("--bootstrap-server", cluster.servers, "--topic", topic, "--partition", "0")

    def look() -> bool:
        cluster.tools.run("kafka-leader-election", "--election-type", "preferred", *place)
        return cluster.partitions(topic)[0].leader == leader

    wait_for(look, f"{leader} leads {topic}", otherwise=lambda: cluster.partitions(topic))
    cluster.wait_for_partitions(topic, leaders={leader}, isr={REAL, OURS})


def transacting(cluster: BrokerCluster, name: str) -> Producer:
    return transactional_producer(cluster.brokers[OURS].address, name, linger_ms=0)


def write(producer: Producer, topic: str, values: list[str], *, is_committed: bool) -> None:
    """Write records in a transaction, and end it."""
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value, partition=0)
    assert producer.flush(PATIENCE_S) == 0
    end_transaction(producer, is_committed=is_committed)


def consuming(
    cluster: BrokerCluster, group: str, settings: Mapping[str, Any] = MappingProxyType({})
) -> closing[Consumer]:
    """Return a consumer that commits nothing by itself."""
    own = {"bootstrap.servers": cluster.brokers[OURS].address, "group.id": group}
    return closing(Consumer({**own, "enable.auto.commit": False, **settings}))


def read(cluster: BrokerCluster, topic: str, *, isolation: str = "read_committed") -> list[str]:
    """Return the values of a topic up to its end, as a consumer sees them."""
    found = read_to_end(cluster.brokers[OURS].address, [(topic, 0)], isolation=isolation)
    return [(message.value() or b"").decode() for message in found]


def committed(cluster: BrokerCluster, group: str, topic: str) -> int:
    with consuming(cluster, group, {"log_level": 0}) as consumer:
        (found,) = consumer.committed([TopicPartition(topic, 0)], PATIENCE_S)
        return found.offset


def send_offset(producer: Producer, consumer: Consumer, topic: str, offset: int) -> None:
    """Have the consumer's group commit an offset in the producer's transaction."""
    group = consumer.consumer_group_metadata()
    producer.send_offsets_to_transaction([TopicPartition(topic, 0, offset)], group, PATIENCE_S)


def directories(cluster: BrokerCluster, name: str) -> dict[int, Path]:
    """Return where each broker has a partition."""
    return {
        broker.node_id: next(broker.folder.glob(f"*/{name}")) for broker in cluster.brokers.values()
    }


def indexes(cluster: BrokerCluster, name: str) -> dict[int, bytes]:
    """Return the aborted transactions of a partition as each broker has written them down."""
    return {
        node_id: b"".join(file.read_bytes() for file in sorted(folder.glob("*.txnindex")))
        for node_id, folder in directories(cluster, name).items()
    }


def dumped(cluster: BrokerCluster, name: str, *options: str) -> dict[int, list[str]]:
    """Return what Kafka's tool shows of the batches of a partition, for each broker."""
    found: dict[int, list[str]] = {}
    for node_id, folder in directories(cluster, name).items():
        files = ",".join(str(path) for path in sorted(folder.glob("*.log")))
        text = cluster.tools.printed("kafka-dump-log", *options, "--files", files)
        assert "isvalid: false" not in text
        found[node_id] = [line for line in text.splitlines() if "ffset: " in line]
    return found


def test_a_reader_of_committed_records_sees_those_alone(cluster: BrokerCluster) -> None:
    topic = "ends"
    cluster.make_topic(topic, f"{OURS}:{REAL}")
    producer = transacting(cluster, "ends")
    expected: list[str] = []
    for leader, follower in ((OURS, REAL), (REAL, OURS), (OURS, REAL)):
        if cluster.partitions(topic)[0].leader != leader:
            lead(cluster, topic, leader, follower)
        for number in range(6):
            values = [f"{leader}-{len(expected)}-{number}-{part}" for part in range(3)]
            is_committed = number % 3 != 1
            write(producer, topic, values, is_committed=is_committed)
            expected += values if is_committed else []
        assert read(cluster, topic) == expected
    assert len(read(cluster, topic, isolation="read_uncommitted")) == 3 * 3 * 6
    written = indexes(cluster, f"{topic}-0")
    assert written[OURS] == written[REAL]
    assert len(written[OURS]) == 6 * 34, "an entry of 34 bytes for each aborted transaction"
    batches = dumped(cluster, f"{topic}-0", "--deep-iteration")
    assert batches[OURS] == batches[REAL]


def test_records_of_an_open_transaction_hold_up_readers_of_committed_ones(
    cluster: BrokerCluster,
) -> None:
    topic = "open"
    cluster.make_topic(topic, f"{OURS}:{REAL}")
    first, second = (transacting(cluster, name) for name in ("open-1", "open-2"))
    first.begin_transaction()
    first.produce(topic, "first", partition=0)
    assert first.flush(PATIENCE_S) == 0
    write(second, topic, ["second"], is_committed=True)
    write(second, topic, ["dropped"], is_committed=False)
    assert read(cluster, topic) == []
    assert read(cluster, topic, isolation="read_uncommitted") == ["first", "second", "dropped"]
    first.commit_transaction(PATIENCE_S)
    assert read(cluster, topic) == ["first", "second"]


def test_a_producer_that_another_one_replaces_is_fenced(cluster: BrokerCluster) -> None:
    topic = "fenced"
    cluster.make_topic(topic, f"{OURS}:{REAL}")
    old = transacting(cluster, "fenced")
    old.begin_transaction()
    old.produce(topic, "old", partition=0)
    assert old.flush(PATIENCE_S) == 0
    new = transacting(cluster, "fenced")
    write(new, topic, ["new"], is_committed=True)
    old.produce(topic, "late", partition=0)
    with pytest.raises(KafkaException, match="fenced by newer producer"):
        old.flush(PATIENCE_S)
    assert read(cluster, topic) == ["new"]


@pytest.mark.slow
@pytest.mark.parametrize("version", [2, 1], ids=["epochs of their own", "first version"])
def test_kafkas_clients_copy_records_exactly_once(
    cluster: BrokerCluster, java: Java, version: int
) -> None:
    """The version is the cluster's, by which Kafka's producers choose how to ask."""
    set_transaction_version(cluster, version)
    source, target, group = (f"{name}-{version}" for name in ("source", "target", "copying"))
    cluster.make_topic(source, f"{OURS}:{REAL}")
    cluster.make_topic(target, f"{OURS}:{REAL}")
    expected: list[str] = []
    for leader, follower in ((OURS, REAL), (REAL, OURS)):
        if leader == REAL:
            # The target alone: the group stays with ours.
            lead(cluster, target, leader, follower)
        first = len(expected)
        numbers = [f"{number}" for number in range(first, first + COUNT)]
        values = [{"value": number, "partition": 0} for number in numbers]
        send(cluster.brokers[OURS].address, source, values)
        copy(cluster, java, group, source, target)
        expected += numbers
        assert read(cluster, target) == expected
        assert committed(cluster, group, source) == len(expected)
    written = indexes(cluster, f"{target}-0")
    assert written[OURS] == written[REAL] != b""
    batches = dumped(cluster, f"{target}-0", "--deep-iteration")
    assert batches[OURS] == batches[REAL]
    epochs = set(re.findall(r"producerEpoch: (\d+)", "\n".join(batches[OURS])))
    # Each of two producers had an epoch of its own, and with version 2 each transaction.
    assert len(epochs) > 10 if version > 1 else epochs == {"0", "1"}
    set_transaction_version(cluster, 2)


def copy(cluster: BrokerCluster, java: Java, group: str, source: str, target: str) -> None:
    """Copy so many records; the classic protocol is the one that our groups speak."""
    arguments = (cluster.brokers[OURS].address, group, group, source, target, str(COUNT), "0")
    assert f"copied {COUNT} in " in "\n".join(java.answers("ExactlyOnceCopy", *arguments))


def test_offsets_of_a_transaction_of_the_first_version_wait_for_its_end(
    cluster: BrokerCluster,
) -> None:
    topic, group = "consumed", "consuming"
    cluster.make_topic(topic, f"{OURS}:{REAL}")
    producer = transacting(cluster, "consuming")
    with consuming(cluster, group) as consumer:
        for offset, is_committed in ((5, True), (7, False), (9, True)):
            producer.begin_transaction()
            producer.produce(topic, f"{offset}", partition=0)
            send_offset(producer, consumer, topic, offset)
            end_transaction(producer, is_committed=is_committed)
            assert committed(cluster, group, topic) == (offset if is_committed else 5)
    for partition in range(3):
        batches = dumped(cluster, f"{OFFSETS}-{partition}", "--offsets-decoder")
        assert batches[OURS] == batches[REAL]


def test_an_open_transaction_goes_on_under_another_leader(cluster: BrokerCluster) -> None:
    topic = "moves"
    cluster.make_topic(topic, f"{OURS}:{REAL}")
    producer = transacting(cluster, "moves")
    for is_committed in (True, False):
        producer.begin_transaction()
        for leader, follower in ((OURS, REAL), (REAL, OURS), (OURS, REAL)):
            if cluster.partitions(topic)[0].leader != leader:
                lead(cluster, topic, leader, follower)
            producer.produce(topic, f"{is_committed} at {leader}", partition=0)
            assert producer.flush(PATIENCE_S) == 0
        end_transaction(producer, is_committed=is_committed)
        assert read(cluster, topic) == [f"True at {leader}" for leader in (OURS, REAL, OURS)]
    written = indexes(cluster, f"{topic}-0")
    assert written[OURS] == written[REAL] != b""


@pytest.mark.slow
def test_a_transaction_outlives_the_broker_that_led(cluster: BrokerCluster) -> None:
    topic, group = "outlived", "outliving"
    cluster.make_topic(topic, f"{OURS}:{REAL}")
    producer = transacting(cluster, "outlived")
    producer.begin_transaction()
    producer.produce(topic, "before", partition=0)
    with consuming(cluster, group) as consumer:
        send_offset(producer, consumer, topic, 5)
    assert producer.flush(PATIENCE_S) == 0
    ours = cluster.brokers[OURS]
    ours.kill()
    cluster.wait_for_partitions(topic, leaders={REAL}, isr={REAL})
    ours.start()
    for name in (topic, OFFSETS):
        cluster.wait_for_partitions(name, leaders={REAL}, isr={REAL, OURS})
    cluster.tool("kafka-leader-election", "--election-type", "preferred", "--all-topic-partitions")
    for name in (topic, OFFSETS):
        cluster.wait_for_partitions(name, leaders={OURS}, isr={REAL, OURS})
    assert read(cluster, topic) == []
    producer.produce(topic, "after", partition=0)
    producer.commit_transaction(PATIENCE_S)
    assert read(cluster, topic) == ["before", "after"]
    assert committed(cluster, group, topic) == 5
