"""Transactions from their first request to their markers, on embedded clusters."""

from collections.abc import Iterator
from functools import partial
from typing import Final, TypeVar

import pytest
from tests.node.embedded_cluster import brokers
from tests.support.raw_client import RawClient
from tests.support.record_requests import FETCH_VERSION, produce
from tests.support.replicated_topics import address_of, create_replicated, state_of
from tests.support.topics import delete_topic
from tests.support.waiting import wait_for

from kvorum.testing import Cluster
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
)
from kvorum.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from kvorum.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from kvorum.wire.messages.fetch import FetchRequest, FetchResponse
from kvorum.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kvorum.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kvorum.wire.primitives import Message
from kvorum.wire.records import BatchOptions, RecordData, build_batch, read_batches

TRANSACTION_STATE: Final = "__transaction_state"
OF_TRANSACTIONS: Final = 1
ID: Final = "payments"
FIRST, SECOND = "first", "second"
Response = TypeVar("Response", bound=Message)


class Transaction:
    """A producer with an open transaction on some topics, and what it sends."""

    def __init__(self, cluster: Cluster, *topics: str, name: str = ID) -> None:
        self._cluster = cluster
        self._name = name
        begun = wait_for(self._begin, "the producer has an id")
        self._producer = begun.producer_id, begun.producer_epoch
        self.topics = topics
        wait_for(lambda: self._add() == {ErrorCode.NONE}, "the partitions are added")
        for topic in topics:
            wait_for(partial(self._send, topic), "the record is appended")

    def _ask_coordinator(self, request: Message, kind: type[Response], version: int) -> Response:
        with RawClient(coordinator_of(self._cluster, self._name)) as client:
            return client.ask(request, kind, version)

    def _begin(self) -> InitProducerIdResponse | None:
        request = InitProducerIdRequest(self._name, 60_000)
        begun = self._ask_coordinator(request, InitProducerIdResponse, 4)
        return begun if begun.error_code == ErrorCode.NONE else None

    def _add(self) -> set[int]:
        topics = [
            AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name, [0]) for name in self.topics
        ]
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._name,
            v3_and_below_producer_id=self._producer[0],
            v3_and_below_producer_epoch=self._producer[1],
            v3_and_below_topics=topics,
        )
        answered = self._ask_coordinator(request, AddPartitionsToTxnResponse, 3)
        return {
            one.partition_error_code
            for topic in answered.results_by_topic_v3_and_below
            for one in topic.results_by_partition
        }

    def _send(self, topic: str) -> bool:
        producer_id, epoch = self._producer
        options = BatchOptions(
            producer_id=producer_id, producer_epoch=epoch, base_sequence=0, is_transactional=True
        )
        records = bytes(build_batch([RecordData(topic.encode(), None, 1, ())], options))
        with RawClient(address_of(self._cluster, state_of(self._cluster, topic).leader)) as client:
            answered = produce(client, topic, records, transactional_id=self._name)
        return answered.error_code == ErrorCode.NONE

    def end(self, *, is_commit: bool) -> None:
        """Decide the outcome; the markers may still be missing then."""

        def is_decided() -> bool:
            request = EndTxnRequest(self._name, *self._producer, is_commit)
            return self._ask_coordinator(request, EndTxnResponse, 4).error_code == ErrorCode.NONE

        wait_for(is_decided, "the outcome is decided")

    @property
    def state(self) -> str | None:
        """The state at the coordinator; None without one."""
        request = DescribeTransactionsRequest(transactional_ids=[self._name])
        try:
            answered = self._ask_coordinator(request, DescribeTransactionsResponse, 0)
        except OSError:
            return None
        return answered.transaction_states[0].transaction_state

    def wait_until(self, state: str) -> None:
        wait_for(lambda: self.state == state, f"it is in {state}", otherwise=lambda: self.state)


def coordinator_of(cluster: Cluster, name: str) -> str:
    """Return the address of an id's coordinator, named by any broker that is up."""

    def found() -> str | None:
        for address in cluster.bootstrap_servers.split(","):
            request = FindCoordinatorRequest(key=name, key_type=OF_TRANSACTIONS)
            try:
                with RawClient(address) as client:
                    answered = client.ask(request, FindCoordinatorResponse, 3)
            except OSError:
                continue
            if answered.error_code == ErrorCode.NONE:
                return f"{answered.host}:{answered.port}"
        return None

    return wait_for(found, "the id has a coordinator")


def committed(cluster: Cluster, topic: str) -> list[bytes | None]:
    """Return what a reader of committed records gets."""
    wish = FetchRequest.FetchPartition(0, fetch_offset=0, partition_max_bytes=1 << 20)
    request = FetchRequest(
        max_bytes=1 << 20,
        isolation_level=1,
        topics=[FetchRequest.FetchTopic(topic, partitions=[wish])],
    )
    with RawClient(address_of(cluster, state_of(cluster, topic).leader)) as client:
        (answered,) = client.ask(request, FetchResponse, FETCH_VERSION).responses
    (data,) = answered.partitions
    aborted = {one.producer_id for one in data.aborted_transactions or []}
    return [
        record.value
        for each in read_batches(data.records or b"", is_cut_allowed=True)
        if not each.is_control and each.producer_id not in aborted
        for record in each.records()
    ]


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(controllers=1, brokers=3) as cluster:
        yield cluster


def spread(cluster: Cluster, *, coordinators: int = 1) -> tuple[int, int]:
    """Create two topics on two brokers, and that of the coordinators on others.

    Return the brokers of the two topics.
    """
    ids = [node_id for node_id, _ in brokers(cluster)]
    own, *others = ids
    create_replicated(cluster, TRANSACTION_STATE, ids[:coordinators], {"min.insync.replicas": "1"})
    first, second = ids[-1], own if coordinators > 1 else others[0]
    create_replicated(cluster, FIRST, [first])
    create_replicated(cluster, SECOND, [second])
    return first, second


@pytest.mark.parametrize("is_commit", [True, False])
def test_a_transaction_is_read_when_it_is_committed_and_never_when_it_is_aborted(
    cluster: Cluster, is_commit: bool
) -> None:
    spread(cluster)
    transaction = Transaction(cluster, FIRST, SECOND)
    assert (committed(cluster, FIRST), transaction.state) == ([], "Ongoing")
    transaction.end(is_commit=is_commit)
    transaction.wait_until("CompleteCommit" if is_commit else "CompleteAbort")
    found = [committed(cluster, topic) for topic in (FIRST, SECOND)]
    assert found == ([[b"first"], [b"second"]] if is_commit else [[], []])


def test_a_partition_without_a_leader_is_waited_for_so_that_no_transaction_is_torn(
    cluster: Cluster,
) -> None:
    first, _ = spread(cluster)
    transaction = Transaction(cluster, FIRST, SECOND)
    cluster.kill(first)
    wait_for(lambda: state_of(cluster, FIRST).leader < 0, "the partition has no leader")
    transaction.end(is_commit=True)
    wait_for(lambda: committed(cluster, SECOND) == [b"second"], "the other one has its marker")
    assert transaction.state == "PrepareCommit"
    cluster.restart(first)
    transaction.wait_until("CompleteCommit")
    assert committed(cluster, FIRST) == [b"first"]


def test_the_next_coordinator_ends_what_the_one_before_has_decided(cluster: Cluster) -> None:
    first, second = spread(cluster, coordinators=2)
    transaction = Transaction(cluster, FIRST)
    cluster.kill(first)
    wait_for(lambda: state_of(cluster, FIRST).leader < 0, "the partition has no leader")
    transaction.end(is_commit=True)
    leader = state_of(cluster, TRANSACTION_STATE).leader
    assert leader == second
    wait_for(
        lambda: len(state_of(cluster, TRANSACTION_STATE).isr) > 1, "another replica is in sync"
    )
    cluster.kill(leader)
    wait_for(
        lambda: state_of(cluster, TRANSACTION_STATE).leader not in (leader, -1),
        "another broker coordinates",
    )
    transaction.wait_until("PrepareCommit")
    cluster.restart(first)
    transaction.wait_until("CompleteCommit")
    assert committed(cluster, FIRST) == [b"first"]


def test_a_deleted_partition_is_not_waited_for(cluster: Cluster) -> None:
    """KAFKA-5202."""
    spread(cluster)
    transaction = Transaction(cluster, FIRST, SECOND)
    with RawClient(cluster.controller_servers) as controller:
        delete_topic(controller, FIRST)
    transaction.end(is_commit=True)
    transaction.wait_until("CompleteCommit")
    assert committed(cluster, SECOND) == [b"second"]


def test_a_producer_that_begins_again_aborts_what_it_has_left_open(cluster: Cluster) -> None:
    spread(cluster)
    Transaction(cluster, FIRST)
    later = Transaction(cluster, SECOND)
    later.end(is_commit=True)
    later.wait_until("CompleteCommit")
    assert [committed(cluster, topic) for topic in (FIRST, SECOND)] == [[], [b"second"]]
