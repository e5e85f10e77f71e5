"""Our brokers and real ones replicate the same partition, and either leads it.

One of our controllers has one of our brokers and two real ones. The tests share the cluster and
leave it as they found it: every broker up, every replica in sync. KVORUM_REAL_CONTROLLERS=1 in the
environment puts a real controller in the place of ours.
"""

import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from tests.interop.broker_cluster import BrokerCluster, RunBrokers, kind_of_controllers
from tests.interop.traffic import Writer, check
from tests.support.raw_client import RawClient
from tests.support.record_requests import batch, list_offset, produce
from tests.support.topics import topic_id
from tests.support.waiting import asked_until, wait_for

from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.fetch import FetchRequest
from kvorum.wire.messages.produce import ProduceRequest
from kvorum.wire.primitives import Message

OURS, REAL, OTHER = 11, 12, 13
EVERYBODY = {OURS, REAL, OTHER}
LATEST, EARLIEST = -1, -2


@pytest.fixture(scope="module")
def cluster(run_brokers: RunBrokers) -> Iterator[BrokerCluster]:
    with run_brokers(kind_of_controllers(), brokers=3, ours={OURS}) as made:
        yield made


def make_topic(cluster: BrokerCluster, topic: str, *replicas: int) -> None:
    cluster.make_topic(topic, ":".join(map(str, replicas)), "min.insync.replicas=2")


def elect(cluster: BrokerCluster, topic: str) -> None:
    """Let the preferred replica lead."""
    place = ("--topic", topic, "--partition", "0")
    cluster.tool("kafka-leader-election", "--election-type", "preferred", *place)


@pytest.mark.slow
def test_the_leader_moves_between_the_kinds(cluster: BrokerCluster) -> None:
    topic = "moved"
    make_topic(cluster, topic, OURS, REAL, OTHER)
    with Writer(cluster.servers, topic) as writer:
        for first in (REAL, OURS, OTHER, OURS):
            writer.wait_for_acknowledged(200)
            cluster.reassign(topic, first, *sorted(EVERYBODY - {first}))
            elect(cluster, topic)
            cluster.wait_for_partitions(topic, leaders={first}, isr=EVERYBODY)
        writer.wait_for_acknowledged(200)
    check(cluster, writer, EVERYBODY)
    described = cluster.tool("kafka-topics", "--describe", "--topic", topic)
    assert f"Leader: {OURS}" in described, described
    assert topic not in cluster.tool("kafka-topics", "--describe", "--under-replicated-partitions")


def test_a_replica_of_ours_is_added_and_taken_away(cluster: BrokerCluster) -> None:
    topic = "reassigned"
    make_topic(cluster, topic, REAL, OTHER)
    with Writer(cluster.servers, topic) as writer:
        writer.wait_for_acknowledged(300)
        cluster.reassign(topic, OURS, REAL)
        elect(cluster, topic)
        cluster.wait_for_partitions(topic, leaders={OURS}, isr={OURS, REAL})
        writer.wait_for_acknowledged(300)
        cluster.reassign(topic, OTHER, REAL)
        cluster.wait_for_partitions(topic, leaders={OTHER, REAL}, isr={OTHER, REAL})
        writer.wait_for_acknowledged(300)
    check(cluster, writer, {OTHER, REAL})
    ours = cluster.brokers[OURS].folder
    wait_for(
        lambda: not list(ours.glob(f"*/{topic}-0/*.log")), "the replica that was taken away is gone"
    )


@pytest.mark.slow
def test_a_clean_stop_hands_the_leadership_over(cluster: BrokerCluster) -> None:
    topic = "stopped"
    make_topic(cluster, topic, OURS, REAL, OTHER)
    ours = cluster.brokers[OURS]
    with Writer(cluster.servers, topic) as writer:
        writer.wait_for_acknowledged(200)
        ours.stop()
        left = {REAL, OTHER}
        cluster.wait_for_partitions(topic, leaders=left, isr=left)
        writer.wait_for_acknowledged(200)
        ours.start()
        cluster.wait_for_partitions(topic, leaders=left, isr=EVERYBODY)
        elect(cluster, topic)
        cluster.wait_for_partitions(topic, leaders={OURS}, isr=EVERYBODY)
    check(cluster, writer, EVERYBODY)


def has_records(folder: Path, topic: str) -> bool:
    return any(file.stat().st_size for file in folder.glob(f"*/{topic}-0/*.log"))


def code_of_offset(client: RawClient, topic: str, timestamp: int, version: int) -> int:
    """Return the code of a consumer's ListOffsets, once the broker leads."""
    return asked_until(
        lambda: list_offset(client, topic, timestamp, version=version)[0],
        lambda code: code != ErrorCode.NOT_LEADER_OR_FOLLOWER,
        "the broker leads",
    )


@pytest.mark.slow
def test_a_new_leader_names_no_end_before_it_knows_what_is_committed(
    cluster: BrokerCluster,
) -> None:
    """Nothing is committed while too few replicas are in sync; clients ask again (KIP-207)."""
    pairs = ((OURS, REAL), (REAL, OURS))
    for elected, former in pairs:
        assignment = f"{former}:{elected}:{OTHER}"
        cluster.make_topic(f"elected-{elected}", assignment, "min.insync.replicas=3")
        cluster.reassign(f"elected-{elected}", elected, former, OTHER)
    cluster.brokers[OTHER].kill()
    for elected, former in pairs:
        topic = f"elected-{elected}"
        cluster.wait_for_partitions(topic, leaders={former}, isr={OURS, REAL})
        with RawClient(cluster.brokers[former].address) as client:
            assert produce(client, topic, batch(b"value"), acks=1).error_code == ErrorCode.NONE
        folder = cluster.brokers[elected].folder
        wait_for(partial(has_records, folder, topic), "the replica has the record")
        elect(cluster, topic)
        with RawClient(cluster.brokers[elected].address) as client:
            codes = [code_of_offset(client, topic, LATEST, version) for version in (4, 7)]
            assert codes == [ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.OFFSET_NOT_AVAILABLE]
            assert code_of_offset(client, topic, 0, 7) == ErrorCode.OFFSET_NOT_AVAILABLE
            assert code_of_offset(client, topic, EARLIEST, 7) == ErrorCode.NONE
    cluster.brokers[OTHER].start()
    for elected, _ in pairs:
        topic = f"elected-{elected}"
        cluster.wait_for_partitions(topic, leaders={elected}, isr=EVERYBODY)
        with RawClient(cluster.brokers[elected].address) as client:
            ask = partial(code_of_offset, client, topic, LATEST, 7)
            assert asked_until(ask, lambda code: code == ErrorCode.NONE, "the end is named") == 0


def answers(cluster: BrokerCluster, broker_id: int, request: Message, version: int) -> bytes | None:
    """Return the response of one broker, byte for byte."""
    with RawClient(cluster.brokers[broker_id].address) as client:
        client.send(request, version)
        return client.read_frame()


def test_a_refusal_names_the_leader_as_a_real_broker_names_it(cluster: BrokerCluster) -> None:
    followed, elsewhere, fenced = "followed", "elsewhere", "fenced"
    make_topic(cluster, followed, OTHER, OURS, REAL)
    make_topic(cluster, elsewhere, OTHER)
    make_topic(cluster, fenced, OURS, REAL, OTHER)
    cluster.reassign(fenced, OTHER, OURS, REAL)
    elect(cluster, fenced)
    cluster.wait_for_partitions(fenced, leaders={OTHER}, isr=EVERYBODY)
    with RawClient(cluster.brokers[REAL].address) as client:
        ids = {topic: topic_id(client, topic) for topic in (followed, elsewhere, fenced)}
    seen: list[bytes | None] = []

    def compare(request: Message, version: int) -> None:
        def both() -> list[bytes | None]:
            return [answers(cluster, one, request, version) for one in (OURS, REAL)]

        def look() -> bytes | None:
            # A broker follows the metadata a moment after the others.
            ours, real = both()
            return ours if ours == real else None

        seen.append(
            wait_for(look, f"both answer {request} in version {version} alike", otherwise=both)
        )

    for topic in (followed, elsewhere):
        for version in (9, 10, 13):
            data = [ProduceRequest.PartitionProduceData(0, batch(b"value"))]
            sent = ProduceRequest.TopicProduceData(topic, ids[topic], data)
            compare(ProduceRequest(None, 1, 5000, [sent]), version)
    for topic, epoch in ((elsewhere, -1), (fenced, 0)):
        for version in (12, 15, 16, 17):
            wish = FetchRequest.FetchPartition(0, epoch, 0, partition_max_bytes=1000)
            asked = FetchRequest.FetchTopic(topic, ids[topic], [wish])
            compare(FetchRequest(max_wait_ms=0, topics=[asked]), version)
    host = cluster.brokers[OTHER].address.partition(":")[0].encode()
    assert [host in (one or b"") for one in seen] == [
        *(False, True, True, False, True, True),
        *(False, False, True, True, False, False, True, True),
    ]


ALL_OURS = {11, 12, 13}


@pytest.fixture(scope="module")
def our_cluster(run_brokers: RunBrokers) -> Iterator[BrokerCluster]:
    with run_brokers(brokers=3, ours=ALL_OURS) as made:
        yield made


def leader_of(our_cluster: BrokerCluster, topic: str) -> int:
    return wait_for(
        lambda: our_cluster.partitions(topic)[0].leader if our_cluster.partitions(topic) else None,
        f"{topic} has a leader",
    )


def wait_for_isr_at(our_cluster: BrokerCluster, node_id: int, topic: str, isr: set[int]) -> None:
    def look() -> bool:
        found = our_cluster.partitions_at(our_cluster.brokers[node_id], topic)
        return bool(found) and set(found[0].isr) == isr

    wait_for(look, f"broker {node_id} shows {isr} in sync")


@pytest.mark.slow
def test_a_leader_that_sleeps_is_replaced(our_cluster: BrokerCluster) -> None:
    """It wakes up as a leader that does not know better, with records that no other replica has."""
    topic = "slept"
    our_cluster.make_topic(topic, "11:12:13", "min.insync.replicas=2", "segment.bytes=1048576")
    with Writer(our_cluster.servers, topic) as writer:
        for _ in range(2):
            writer.wait_for_acknowledged(200)
            sleeper = leader_of(our_cluster, topic)
            process = our_cluster.brokers[sleeper].process
            process.send(signal.SIGSTOP)
            left = ALL_OURS - {sleeper}
            try:
                wait_for_isr_at(our_cluster, min(left), topic, left)
                writer.wait_for_acknowledged(200)
            finally:
                process.send(signal.SIGCONT)
            our_cluster.wait_for_partitions(topic, leaders=left, isr=ALL_OURS)
    check(our_cluster, writer, ALL_OURS)
