"""Two real brokers on three of our controllers, through whatever befalls either of them.

The tests share one cluster and leave it as they found it: everybody up, every replica in sync.
KVORUM_REAL_CONTROLLERS=1 in the environment tells the same about three real controllers.
"""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.interop.broker_cluster import BrokerCluster, RunBrokers, faults, kind_of_controllers
from tests.interop.clients.confluent import end_transaction, transactional_producer
from tests.interop.metadata_shell import history, load, records_of, tree_text, without_provenance
from tests.interop.traffic import Traffic, read_all
from tests.support.golden_data import snapshots
from tests.support.waiting import wait_for

from kvorum.metadata.image import MetadataImage
from kvorum.wire.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kvorum.wire.messages.partition_change_record import PartitionChangeRecord
from kvorum.wire.messages.register_broker_record import RegisterBrokerRecord
from kvorum.wire.primitives import Message
from kvorum.wire.records import read_batches

FIRST, SECOND = 11, 12
BOTH = {FIRST, SECOND}
PARTITIONS = 4
SNAPSHOTS_PER_NODE = 3
# A broker gets to know a replica that was moved to it from the metadata and at once complains.
# The second: a producer with several batches under way may reach a new leader with a later one
# first, gets OutOfOrderSequence, and sends them again in their order.
FAULTS_AT_REAL_CONTROLLERS = re.compile(
    r"Expected partition \S+ with topic id \S+ to exist, but it was missing\. Creating"
    r"|Error processing append operation on partition "
)
REFUSED_APPEND = re.compile(r"Error processing append operation on partition .*\n(.*)")
FAULT_OF_OURS = re.compile(r"^\[[^\]]*\] (?:ERROR|CRITICAL) |^Traceback|^kvorum server: ")


@pytest.fixture(scope="module")
def cluster(run_brokers: RunBrokers) -> Iterator[BrokerCluster]:
    """The cluster, with both brokers unfenced."""
    with run_brokers(kind_of_controllers(), brokers=2, controllers=3) as made:
        yield made


def make_topic(cluster: BrokerCluster, topic: str, *options: str) -> None:
    """Create a topic with a replica on each broker, and wait until all are in sync."""
    options = options or ("--partitions", str(PARTITIONS), "--replication-factor", "2")
    cluster.tool("kafka-topics", "--create", "--topic", topic, *options)
    cluster.wait_for_partitions(topic, leaders=BOTH, isr=BOTH)


def traffic_to(cluster: BrokerCluster, topic: str) -> Traffic:
    make_topic(cluster, topic)
    return Traffic(cluster.servers, topic, PARTITIONS)


def test_records_and_groups(cluster: BrokerCluster) -> None:
    with traffic_to(cluster, "plain") as traffic:
        traffic.wait_for_acknowledged(50)
    traffic.check()
    assert len(cluster.wait_for_partitions("__consumer_offsets", leaders=BOTH, isr=BOTH)) == 3
    assert traffic.group in cluster.tool("kafka-consumer-groups", "--list").splitlines()


def test_transactions(cluster: BrokerCluster) -> None:
    make_topic(cluster, "transacted")
    producer = transactional_producer(cluster.servers, "numbers")
    for number in range(10):
        producer.begin_transaction()
        producer.produce("transacted", str(number), partition=0)
        end_transaction(producer, is_committed=number % 2 == 0)
    committed = read_all(cluster.servers, "transacted", 1, isolation="read_committed")
    assert committed == {0: [0, 2, 4, 6, 8]}


def test_a_leading_controller_is_killed(cluster: BrokerCluster) -> None:
    with traffic_to(cluster, "failover") as traffic:
        traffic.wait_for_acknowledged(20)
        leader, offset = cluster.leader_of_quorum(), cluster.metadata_batches()[-1].last_offset
        cluster.quorum.kill(leader)
        cluster.quorum.settled(cluster.quorum.keys(1, 2, 3))
        assert cluster.leader_of_quorum() != leader
        make_topic(cluster, "made-after-failover")
        traffic.wait_for_acknowledged(100)
        cluster.quorum.start(leader)
        cluster.quorum.settled(cluster.quorum.keys(1, 2, 3))
    traffic.check()
    assert not falls_after(cluster, offset)


def falls_after(cluster: BrokerCluster, offset: int) -> list[Message]:
    """Return the records after an offset by which a broker was changed or an ISR or a leader.

    Others come at any time: brokers tell in which directories they have put their replicas.
    """
    return [
        message
        for batch in cluster.metadata_batches()
        for message, _, at in records_of(batch)
        if at > offset
        and (
            isinstance(message, BrokerRegistrationChangeRecord)
            or (isinstance(message, PartitionChangeRecord) and message.directories is None)
        )
    ]


@pytest.mark.slow
def test_a_broker_is_killed_and_comes_back(cluster: BrokerCluster) -> None:
    with traffic_to(cluster, "killed") as traffic:
        traffic.wait_for_acknowledged(20)
        cluster.brokers[SECOND].kill()
        cluster.wait_for_partitions("killed", leaders={FIRST}, isr={FIRST})
        traffic.wait_for_acknowledged(100)
        cluster.brokers[SECOND].start()
        cluster.wait_for_brokers(FIRST, SECOND)
        cluster.wait_for_partitions("killed", leaders={FIRST}, isr=BOTH)
    traffic.check()
    elect_preferred_leaders(cluster, "killed")


def elect_preferred_leaders(cluster: BrokerCluster, topic: str) -> None:
    """Have Kafka's tool put those in the lead that are first among the replicas."""
    cluster.tool("kafka-leader-election", "--election-type", "preferred", "--all-topic-partitions")

    def look() -> bool:
        return all(part.leader == part.replicas[0] for part in cluster.partitions(topic).values())

    wait_for(look, "the preferred replicas lead", otherwise=lambda: cluster.partitions(topic))
    assert {partition.leader for partition in cluster.partitions(topic).values()} == BOTH


@pytest.mark.slow
def test_a_broker_leaves_in_a_controlled_way(cluster: BrokerCluster) -> None:
    leaving = cluster.brokers[FIRST]
    with traffic_to(cluster, "controlled") as traffic:
        traffic.wait_for_acknowledged(20)
        offset = cluster.metadata_batches()[-1].last_offset
        leaving.stop()
        assert "The controller has asked us to exit controlled shutdown" in leaving.log_text
        assert steps_of_leaving(falls_after(cluster, offset)) == ["granted", "led away", "fenced"]
        traffic.wait_for_acknowledged(50)
        leaving.start()
        cluster.wait_for_brokers(FIRST, SECOND)
        cluster.wait_for_partitions("controlled", leaders={SECOND}, isr=BOTH)
        elect_preferred_leaders(cluster, "controlled")
    traffic.check()


def steps_of_leaving(records: Sequence[Message]) -> list[str]:
    """Return how a broker left, each kind of step when it came first."""
    steps: list[str] = []
    for record in records:
        if isinstance(record, PartitionChangeRecord) and record.leader == SECOND:
            steps.append("led away")
        if isinstance(record, BrokerRegistrationChangeRecord) and record.broker_id == FIRST:
            steps.append("granted" if record.in_controlled_shutdown == 1 else "fenced")
    return list(dict.fromkeys(steps))


@pytest.mark.slow
def test_who_comes_back_after_a_crash_may_not_lead(cluster: BrokerCluster) -> None:
    """Of those outside the ISR, who stopped in order stays eligible, who crashed does not."""
    options = ("--partitions", "1", "--replication-factor", "2")
    make_topic(cluster, "eligible", *options, "--config", "min.insync.replicas=2")
    broker = cluster.brokers[FIRST]
    for leave in (broker.stop, broker.kill):
        leave()
        cluster.wait_for_partitions("eligible", leaders={SECOND}, isr={SECOND})
        broker.start()
        cluster.wait_for_partitions("eligible", leaders={SECOND}, isr=BOTH)
    first, after_stop, after_crash = registrations(cluster, FIRST, "eligible")[-3:]
    assert (after_stop.eligible_before, after_stop.eligible_after) == ((FIRST,), (FIRST,))
    assert (after_crash.eligible_before, after_crash.eligible_after) == ((FIRST,), ())
    assert len({each.incarnation_id for each in (first, after_stop, after_crash)}) == 3
    assert first.epoch < after_stop.epoch < after_crash.epoch


class Registration(NamedTuple):
    """A broker's registration, and who might lead a partition outside its ISR around it."""

    incarnation_id: bytes
    epoch: int
    eligible_before: tuple[int, ...]
    eligible_after: tuple[int, ...]


def registrations(cluster: BrokerCluster, broker_id: int, topic: str) -> list[Registration]:
    """Return all registrations of a broker, with the partition 0 of a topic."""
    image, found = MetadataImage(), list[Registration]()
    for batch in cluster.metadata_batches():
        before, image = image, image.apply_all(records_of(batch))
        for message, _, _ in records_of(batch):
            if isinstance(message, RegisterBrokerRecord) and message.broker_id == broker_id:
                eligible = eligible_of(before, topic), eligible_of(image, topic)
                found.append(Registration(message.incarnation_id, message.broker_epoch, *eligible))
    return found


def eligible_of(image: MetadataImage, topic: str) -> tuple[int, ...]:
    """Return the eligible replicas outside the ISR of a topic's first partition."""
    found = image.topics.by_name(topic)
    return () if found is None else found.partitions[0].elr


def test_replicas_are_moved(cluster: BrokerCluster, tmp_path: Path) -> None:
    cluster.make_topic("moved", f"{FIRST},{FIRST},{FIRST}")
    cluster.wait_until_known("moved")
    wanted = [(SECOND,), (SECOND, FIRST), (FIRST, SECOND)]
    with Traffic(cluster.servers, "moved", 3) as traffic:
        traffic.wait_for_acknowledged(50)
        file = tmp_path / "wanted.json"
        file.write_text(reassignment("moved", wanted))
        plan = ("--reassignment-json-file", str(file))
        cluster.tool("kafka-reassign-partitions", *plan, "--execute", "--throttle", "50000000")
        wait_for(
            lambda: is_complete(cluster, plan),
            "the reassignment is complete",
            otherwise=lambda: cluster.partitions("moved"),
        )
        found = cluster.partitions("moved")
        assert [found[index].replicas for index in range(3)] == wanted
        assert [set(found[index].isr) for index in range(3)] == [set(want) for want in wanted]
        traffic.wait_for_acknowledged(50)
    traffic.check()
    listed = cluster.tool("kafka-reassign-partitions", "--list")
    assert "No partition reassignments found." in listed


def reassignment(topic: str, wanted: Sequence[Sequence[int]]) -> str:
    """Return a plan as Kafka's tool reads it."""
    partitions = [
        {"topic": topic, "partition": index, "replicas": list(replicas)}
        for index, replicas in enumerate(wanted)
    ]
    return json.dumps({"version": 1, "partitions": partitions})


def is_complete(cluster: BrokerCluster, plan: Sequence[str]) -> bool:
    """Tell whether Kafka's tool says that a plan is carried out."""
    told = cluster.tool("kafka-reassign-partitions", *plan, "--verify")
    return "is still in progress" not in told and told.count("is completed.") == 3


@pytest.fixture(scope="module")
def stopped(cluster: BrokerCluster) -> BrokerCluster:
    """The cluster after everybody stopped as they should."""
    for broker in cluster.brokers.values():
        broker.stop()
    for controller in cluster.quorum.members.values():
        controller.stop()
    return cluster


def test_no_controller_told_of_a_fault(stopped: BrokerCluster) -> None:
    if stopped.quorum.members[1].kind == "kafka":
        pytest.skip("whether real controllers do is not for us to say")
    for controller in stopped.quorum.members.values():
        lines = controller.log_text.splitlines()
        assert any("The node runs" in line for line in lines)
        assert [line for line in lines if FAULT_OF_OURS.search(line)] == []


def test_no_broker_told_of_a_fault(stopped: BrokerCluster) -> None:
    logs = [broker.log_text for broker in stopped.brokers.values()]
    reasons = [reason for log in logs for reason in REFUSED_APPEND.findall(log)]
    assert [one for one in reasons if "OutOfOrderSequenceException" not in one] == []
    found = [line for broker in stopped.brokers.values() for line in faults(broker)]
    assert [line for line in found if not FAULTS_AT_REAL_CONTROLLERS.search(line)] == []


def test_all_nodes_hold_the_same_log(stopped: BrokerCluster) -> None:
    logs = [
        {
            batch.base_offset: bytes(batch.data)
            for segment in directory.glob("*.log")
            for batch in read_batches(segment.read_bytes())
        }
        for directory in stopped.metadata_directories().values()
    ]
    longest = max(logs, key=len)
    for log in logs:
        assert len(log) > 20
        assert log.items() <= longest.items()


def test_snapshots_hold_what_the_log_does_and_kafkas_tool_reads_both(
    stopped: BrokerCluster,
) -> None:
    for directory in stopped.metadata_directories().values():
        log = history(directory)
        written = dict(list(snapshots(directory).items())[-SNAPSHOTS_PER_NODE:])
        assert written
        for end, file in written.items():
            said = tree_text(*load(file.read_bytes()))
            expected = tree_text(*load(log, end_offset=end))
            assert without_provenance(said) == without_provenance(expected), file
        for file in (*written.values(), *directory.glob("*.log")):
            options = ("--cluster-metadata-decoder", "--files", str(file))
            dumped = stopped.tools.run("kafka-dump-log", *options)
            # The tool says so of every log that begins after a snapshot.
            complaint = dumped.stderr.splitlines()[1:]
            assert dumped.exit_code == 0
            assert all(line.startswith("  -1 is followed by ") for line in complaint)
            assert "Error at" not in dumped.stdout
