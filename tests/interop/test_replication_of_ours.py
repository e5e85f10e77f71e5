"""Three of our brokers replicate in processes of their own."""

import signal
from collections.abc import Iterator

import pytest
from tests.interop.broker_cluster import BrokerCluster, RunBrokers
from tests.interop.replicated_records import Writer, check
from tests.support.waiting import wait_for

EVERYBODY = {11, 12, 13}


@pytest.fixture(scope="module")
def cluster(run_brokers: RunBrokers) -> Iterator[BrokerCluster]:
    with run_brokers(brokers=3, ours=EVERYBODY) as made:
        yield made


def leader_of(cluster: BrokerCluster, topic: str) -> int:
    return wait_for(
        lambda: cluster.partitions(topic)[0].leader if cluster.partitions(topic) else None,
        f"{topic} has a leader",
    )


def wait_for_isr_at(cluster: BrokerCluster, node_id: int, topic: str, isr: set[int]) -> None:
    def look() -> bool:
        found = cluster.partitions_at(cluster.brokers[node_id], topic)
        return bool(found) and set(found[0].isr) == isr

    wait_for(look, f"broker {node_id} shows {isr} in sync")


@pytest.mark.slow
def test_a_leader_that_sleeps_is_replaced(cluster: BrokerCluster) -> None:
    """It wakes up as a leader that does not know better, with records that no other replica has."""
    topic = "slept"
    cluster.make_topic(topic, "11:12:13", "min.insync.replicas=2", "segment.bytes=1048576")
    with Writer(cluster.servers, topic) as writer:
        for _ in range(2):
            writer.wait_for_acknowledged(200)
            sleeper = leader_of(cluster, topic)
            process = cluster.brokers[sleeper].process
            process.send(signal.SIGSTOP)
            left = EVERYBODY - {sleeper}
            try:
                wait_for_isr_at(cluster, min(left), topic, left)
                writer.wait_for_acknowledged(200)
            finally:
                process.send(signal.SIGCONT)
            cluster.wait_for_partitions(topic, leaders=left, isr=EVERYBODY)
    check(cluster, writer, EVERYBODY)
