"""A known flaw of Kafka's coordinators: they take a partition without a leader for a deleted one.

A transaction is committed while a partition of it has no leader, since its only replica is down. A
real coordinator leaves the partition out, and what the producer aborts next aborts those records
too: an acknowledged value is lost, and the transaction torn. Ours waits for the leader.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from tests.interop.broker_cluster import BrokerCluster, RunBrokers, faults
from tests.interop.clients.confluent import read_to_end
from tests.interop.raw_producer import RawProducer
from tests.interop.written_history import WrittenHistory
from tests.support.raw_client import RawClient
from tests.support.waiting import wait_for

from kvorum.client_histories.anomalies import Anomaly, Settings
from kvorum.client_histories.check import check_history
from kvorum.client_histories.reader import read_history
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

REAL: Final = 11
OURS: Final = 12
HOLDER: Final = 13
"""The broker, one of ours, that alone has the partition without a leader."""
STATE: Final = "__transaction_state"
KEPT: Final = 0
CUT: Final = 1
"""The partitions of each topic."""
FIRST: Final = 1
SECOND: Final = 2
THIRD: Final = 3
"""The values of the transactions."""
SETTINGS: Final = {
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}
Read = dict[int, list[tuple[int, int]]]
"""Offset and value of the records of each partition."""


@pytest.fixture(scope="module")
def cluster(run_brokers: RunBrokers) -> Iterator[BrokerCluster]:
    with run_brokers("kvorum", brokers=3, ours={OURS, HOLDER}, settings=SETTINGS) as made:
        made.make_topic(STATE, f"{OURS}", "cleanup.policy=compact")
        yield made
        for node_id in (OURS, HOLDER):
            assert faults(made.brokers[node_id]) == []


def coordinate(cluster: BrokerCluster, coordinator: int, transaction_version: int) -> None:
    """Let a broker coordinate all transactions, at a transaction.version that all know of."""
    if cluster.partitions(STATE)[0].leader != coordinator:
        cluster.reassign(STATE, coordinator)
        cluster.wait_for_partitions(STATE, leaders={coordinator})
    verb = "upgrade" if transaction_version > 1 else "downgrade"
    feature = f"transaction.version={transaction_version}"
    servers = ("--bootstrap-server", cluster.servers)
    cluster.tools.run("kafka-features", *servers, verb, "--feature", feature)
    wait_for(
        lambda: all(
            level_at(broker.address) == transaction_version for broker in cluster.brokers.values()
        ),
        f"all brokers know of {feature}",
    )


def level_at(address: str) -> int:
    """Return the transaction.version that a broker knows of."""
    with RawClient(address) as client:
        answered = client.ask(ApiVersionsRequest("test", "1"), ApiVersionsResponse, 4)
    levels = {one.name: one.max_version_level for one in answered.finalized_features}
    return levels.get("transaction.version", 0)


def read_committed(cluster: BrokerCluster, topic: str, *partitions: int) -> Read:
    places = [(topic, partition) for partition in partitions]
    found: Read = {partition: [] for partition in partitions}
    for message in read_to_end(cluster.servers, places, isolation="read_committed"):
        value = int(message.value() or b"0")
        found[message.partition() or 0].append((message.offset() or 0, value))
    return found


def values(found: Read) -> dict[int, list[int]]:
    return {partition: [value for _, value in pairs] for partition, pairs in found.items()}


class Story:
    """Three transactions over a topic: one committed, one aborted, one committed."""

    def __init__(
        self, cluster: BrokerCluster, coordinator: int, transaction_version: int, topic: str
    ) -> None:
        self._cluster = cluster
        self._topic = topic
        self._coordinator = cluster.brokers[coordinator]
        words = f"--create --topic {topic} --replica-assignment {OURS},{HOLDER}"
        cluster.tool("kafka-topics", *words.split())
        cluster.wait_for_partitions(topic, leaders={OURS, HOLDER})
        leaders = {KEPT: cluster.brokers[OURS].address, CUT: cluster.brokers[HOLDER].address}
        self._producer = RawProducer(
            topic, topic, transaction_version, self._coordinator.address, leaders
        )

    def play(self, history: WrittenHistory) -> Read:
        """Return what a reader of committed records gets in the end."""
        process = history.new_process()
        self._commit_without_leader(history, process)
        with history.transaction(process, [(CUT, SECOND)]) as second:
            self._producer.send(CUT, SECOND)
            assert self._end(is_commit=False) == ErrorCode.NONE
            second.failed()
        with history.transaction(process, [(KEPT, THIRD), (CUT, THIRD)]) as third:
            offsets = {(one, THIRD): self._producer.send(one, THIRD) for one in (KEPT, CUT)}
            assert self._end(is_commit=True) == ErrorCode.NONE
            third.sent(offsets)
        reader = history.new_process()
        history.assign(reader, [KEPT, CUT])
        with history.poll(reader) as poll:
            found = read_committed(self._cluster, self._topic, KEPT, CUT)
            poll.polled(found)
        return found

    def _commit_without_leader(self, history: WrittenHistory, process: int) -> None:
        """Commit to both partitions while one has no leader; return once it has one again."""
        holder = self._cluster.brokers[HOLDER]
        with history.transaction(process, [(KEPT, FIRST), (CUT, FIRST)]) as first:
            offsets = {(one, FIRST): self._producer.send(one, FIRST) for one in (KEPT, CUT)}
            holder.kill()
            wait_for(self._is_cut, "the coordinator knows of no leader")
            commit = self._producer.end_request(is_commit=True)
            assert self._producer.decide(commit) == ErrorCode.NONE
            first.sent(offsets)
        # The other partition's marker is written: the coordinator has gone through both.
        wait_for(
            lambda: values(read_committed(self._cluster, self._topic, KEPT)) == {KEPT: [FIRST]},
            "the marker is written where there is a leader",
        )
        holder.start()
        self._cluster.wait_for_brokers(REAL, OURS, HOLDER)
        self._cluster.wait_for_partitions(self._topic, leaders={OURS, HOLDER})
        self._producer.wait_for_end()

    def _is_cut(self) -> bool:
        """Return whether the coordinator's metadata have the partition without a leader."""
        found = self._cluster.partitions_at(self._coordinator, self._topic)
        return CUT in found and found[CUT].leader < 0

    def _end(self, *, is_commit: bool) -> int:
        return self._producer.end(self._producer.end_request(is_commit=is_commit))


@pytest.mark.slow
@pytest.mark.parametrize("transaction_version", [2, 1])
@pytest.mark.parametrize(
    ("coordinator", "read", "anomalies"),
    [
        (REAL, {KEPT: [FIRST, THIRD], CUT: [THIRD]}, {Anomaly.LOST_WRITE, Anomaly.UNSEEN}),
        (OURS, {KEPT: [FIRST, THIRD], CUT: [FIRST, THIRD]}, set[Anomaly]()),
    ],
    ids=["real", "ours"],
)
def test_a_commit_to_a_partition_without_a_leader_is_torn_by_a_real_coordinator_and_not_by_ours(
    cluster: BrokerCluster,
    tmp_path: Path,
    coordinator: int,
    read: dict[int, list[int]],
    anomalies: set[Anomaly],
    transaction_version: int,
) -> None:
    coordinate(cluster, coordinator, transaction_version)
    file = tmp_path / "history.jsonl"
    topic = f"torn-{coordinator}-{transaction_version}"
    with WrittenHistory(file) as history:
        found = Story(cluster, coordinator, transaction_version, topic).play(history)
    with file.open("rb") as lines:
        report = check_history(read_history(lines), Settings())
    assert (values(found), {kind.anomaly for kind in report.counts}) == (read, anomalies)
