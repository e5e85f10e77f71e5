"""Transactional requests to the leaders of partitions and to group coordinators, over the wire.

No producer of these tests has begun a transaction: a test says itself what a coordinator would.
"""

from collections.abc import Iterator
from typing import Final

import pytest
from tests.node.embedded_cluster import brokers, set_config
from tests.support.raw_client import RawClient
from tests.support.record_requests import FETCH_VERSION, batch, produce, values
from tests.support.replicated_topics import create_replicated
from tests.support.topics import topic_id
from tests.support.waiting import wait_for

from kvorum.broker.add_partitions_to_txn import VERIFICATION_KEY
from kvorum.metadata.configs_image import ResourceType
from kvorum.testing import Cluster
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.fetch import FetchRequest, FetchResponse
from kvorum.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kvorum.wire.messages.produce import ProduceRequest, ProduceResponse
from kvorum.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from kvorum.wire.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from kvorum.wire.records import BatchOptions, RecordData, build_batch

TRANSACTION_STATE: Final = "__transaction_state"
TRANSACTION_KEY_TYPE: Final = 1
PRODUCER: Final = 9
MARKERS_VERSION: Final = 2
TOPIC: Final = "data"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(controllers=1, brokers=2) as cluster:
        leader = brokers(cluster)[0][0]
        for topic in (TRANSACTION_STATE, TOPIC):
            create_replicated(cluster, topic, [leader])
        with RawClient(cluster.bootstrap_servers.split(",")[0]) as client:
            wait_for(lambda: read(client).error_code == 0, "it is hosted")
        yield cluster


@pytest.fixture
def broker(cluster: Cluster) -> Iterator[RawClient]:
    with RawClient(cluster.bootstrap_servers.split(",")[0]) as client:
        yield client


def read(client: RawClient) -> FetchResponse.PartitionData:
    """Return what a reader of committed records gets from offset 0 on."""
    wish = FetchRequest.FetchPartition(0, fetch_offset=0, partition_max_bytes=1 << 20)
    request = FetchRequest(
        max_bytes=1 << 20,
        isolation_level=1,
        topics=[FetchRequest.FetchTopic(TOPIC, partitions=[wish])],
    )
    (answered,) = client.ask(request, FetchResponse, FETCH_VERSION).responses
    return answered.partitions[0]


def find(client: RawClient) -> FindCoordinatorResponse:
    request = FindCoordinatorRequest(key="mine", key_type=TRANSACTION_KEY_TYPE)
    return client.ask(request, FindCoordinatorResponse, 3)


def named(client: RawClient) -> tuple[int, str]:
    """Return id and address of the coordinator, once a broker names one."""
    wait_for(lambda: find(client).error_code == 0, "it is named")
    found = find(client)
    return found.node_id, f"{found.host}:{found.port}"


def end(
    client: RawClient, *topics: tuple[str, int], epoch: int = 0, transaction_version: int = 1
) -> list[tuple[str, int, int]]:
    """Abort the producer's transaction; return topic, partition and code of each result."""
    wanted = [WriteTxnMarkersRequest.WritableTxnMarkerTopic(name, [one]) for name, one in topics]
    marker = WriteTxnMarkersRequest.WritableTxnMarker(
        PRODUCER, epoch, False, wanted, 0, transaction_version
    )
    request = WriteTxnMarkersRequest(markers=[marker])
    return [
        (topic.name, result.partition_index, result.error_code)
        for one in client.ask(request, WriteTxnMarkersResponse, MARKERS_VERSION).markers
        for topic in one.topics
        for result in topic.partitions
    ]


def test_every_broker_names_the_leader_of_the_topic(cluster: Cluster, broker: RawClient) -> None:
    (leader, address), (_, other) = brokers(cluster)
    with RawClient(other) as client:
        for one in (client, broker):
            assert named(one) == (leader, address)


def test_a_batch_of_an_unknown_transaction_is_refused(broker: RawClient) -> None:
    refused = produce(
        broker, TOPIC, batch(b"value", is_transactional=True), transactional_id="mine"
    )
    assert refused.error_code == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert refused.base_offset == -1


def test_a_request_has_one_producer(broker: RawClient) -> None:
    def data(index: int, producer: int) -> ProduceRequest.PartitionProduceData:
        options = BatchOptions(
            producer_id=producer, producer_epoch=0, base_sequence=0, is_transactional=True
        )
        return ProduceRequest.PartitionProduceData(
            index, bytes(build_batch([RecordData(b"v", None, 1)], options))
        )

    topics = [
        ProduceRequest.TopicProduceData(TOPIC, partition_data=[data(0, 1)]),
        ProduceRequest.TopicProduceData(TRANSACTION_STATE, partition_data=[data(0, 2)]),
    ]
    answered = broker.ask(ProduceRequest("mine", -1, 5000, topics), ProduceResponse, 9)
    codes = [one.partition_responses[0].error_code for one in answered.responses]
    assert codes == [ErrorCode.INVALID_PRODUCER_ID_MAPPING] * 2


def test_a_marker_ends_the_transaction_of_a_batch_that_need_not_be_verified(
    cluster: Cluster, broker: RawClient
) -> None:
    set_config(cluster, ResourceType.BROKER, "", VERIFICATION_KEY, "false")
    records = batch(b"aborted", is_transactional=True)

    def is_appended() -> bool:
        return produce(broker, TOPIC, records, transactional_id="mine").error_code == ErrorCode.NONE

    wait_for(is_appended, "the broker knows that it need not ask")
    before = read(broker)
    assert (before.last_stable_offset, values(before)) == (0, [])
    stale = end(broker, (TOPIC, 0), transaction_version=2)
    assert stale == [(TOPIC, 0, ErrorCode.INVALID_PRODUCER_EPOCH)], "of the transaction before"
    assert end(broker, (TOPIC, 0)) == [(TOPIC, 0, ErrorCode.NONE)]
    after = read(broker)
    assert (after.last_stable_offset, after.high_watermark) == (2, 2)
    aborted = [(one.producer_id, one.first_offset) for one in after.aborted_transactions or []]
    assert aborted == [(PRODUCER, 0)]
    set_config(cluster, ResourceType.BROKER, "", VERIFICATION_KEY, "true")


def test_every_partition_of_a_marker_has_its_code(cluster: Cluster, broker: RawClient) -> None:
    assert end(broker, (TOPIC, 0), (TOPIC, 7), ("unknown", 0), (TOPIC, 0), epoch=5) == [
        (TOPIC, 0, ErrorCode.NONE),
        (TOPIC, 7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("unknown", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert end(broker, (TOPIC, 0), epoch=4) == [(TOPIC, 0, ErrorCode.INVALID_PRODUCER_EPOCH)]
    with RawClient(cluster.bootstrap_servers.split(",")[1]) as other:
        not_hosted = end(other, (TOPIC, 0), epoch=5)
    assert not_hosted == [(TOPIC, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
    empty = broker.ask(WriteTxnMarkersRequest(), WriteTxnMarkersResponse, MARKERS_VERSION)
    assert empty.markers == []


def commit(
    client: RawClient, *topics: TxnOffsetCommitRequestTopic, version: int
) -> TxnOffsetCommitResponse:
    request = TxnOffsetCommitRequest("mine", "group", PRODUCER, 0, topics=list(topics))
    return client.ask(request, TxnOffsetCommitResponse, version)


@pytest.mark.parametrize("version", range(6))
def test_offsets_of_unknown_topics_are_refused_and_others_may_be_sent_again(
    broker: RawClient, version: int
) -> None:
    offsets = [TxnOffsetCommitRequestPartition(index, 1) for index in (0, 3)]
    topics = [
        TxnOffsetCommitRequestTopic("unknown", partitions=offsets[:1]),
        TxnOffsetCommitRequestTopic(TOPIC, partitions=offsets),
    ]
    codes = {
        (topic.name, one.partition_index): one.error_code
        for topic in commit(broker, *topics, version=version).topics
        for one in topic.partitions
    }
    assert codes.pop(("unknown", 0)) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert codes.pop((TOPIC, 3)) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    # There is no topic of groups yet.
    assert codes.keys() == {(TOPIC, 0)}
    assert codes[TOPIC, 0] in {ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR}


def test_offsets_are_committed_by_topic_ids(broker: RawClient) -> None:
    """KIP-1319: the topic's name is neither in the request nor in the response."""
    offsets = [TxnOffsetCommitRequestPartition(index, 1) for index in (0, 3)]
    known, unknown = topic_id(broker, TOPIC), b"u" * 16
    topics = [TxnOffsetCommitRequestTopic("", one, offsets) for one in (known, unknown)]
    codes = {
        (topic.topic_id, one.partition_index): one.error_code
        for topic in commit(broker, *topics, version=6).topics
        for one in topic.partitions
    }
    assert codes.pop((known, 0)) in {ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR}
    assert codes == {
        (known, 3): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        (unknown, 0): ErrorCode.UNKNOWN_TOPIC_ID,
        (unknown, 3): ErrorCode.UNKNOWN_TOPIC_ID,
    }


@pytest.mark.parametrize(("index", "answered_topics"), [(0, 2), (3, 1)])
def test_a_topic_named_twice_is_answered_twice_unless_something_is_refused(
    broker: RawClient, index: int, answered_topics: int
) -> None:
    offsets = [TxnOffsetCommitRequestPartition(one, 1) for one in (0, index)]
    topics = [TxnOffsetCommitRequestTopic(TOPIC, partitions=[one]) for one in offsets]
    answered = commit(broker, *topics, version=5)
    assert [topic.name for topic in answered.topics] == [TOPIC] * answered_topics
