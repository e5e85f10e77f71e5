"""Reading ``__cluster_metadata`` at a broker, by the bytes on the wire, and who may do so."""

import time
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from tests.support.metadata_consumer import (
    EARLIEST,
    EARLIEST_LOCAL,
    FETCH_VERSIONS,
    FIRST_VERSION_WITH_TOPIC_IDS,
    LATEST,
    LATEST_TIERED,
    LIST_OFFSETS_VERSIONS,
    MAX_TIMESTAMP,
    PENDING_UPLOAD,
    fetch,
    fetch_request,
    list_offsets,
    offset_for,
    only_partition,
    segment_files,
)
from tests.support.raw_client import RawClient
from tests.support.topics import add_entries, create_topic, entry

from kvorum.metadata.acl_codes import CLUSTER_NAME, AclOperation, AclResourceType
from kvorum.metadata.topic_names import CLUSTER_METADATA_TOPIC
from kvorum.node.broker.metadata_topic import ANSWER_BYTES_MAX
from kvorum.testing import Cluster
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
from kvorum.wire.messages.fetch import FetchRequest, FetchResponse
from kvorum.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from kvorum.wire.messages.produce import ProduceRequest, ProduceResponse
from kvorum.wire.records import read_batches
from kvorum.wire.uuid_text import METADATA_TOPIC_ID

READABLE = {
    "kvorum.metadata.topic.readable": "true",
    # The log grows only when a test writes to it.
    "metadata.max.idle.interval.ms": "0",
    "controller.quorum.fetch.timeout.ms": "150",
    "auto.create.topics.enable": "false",
}
READ_AND_DESCRIBE = 1 << 3 | 1 << 8
REFUSED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
SETTINGS = {
    "kvorum.metadata.topic.readable": "true",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "super.users": "User:root",
}


class Reading(NamedTuple):
    """A node, a client of its broker, and one of its controller."""

    cluster: Cluster
    broker: RawClient
    controller: RawClient

    @property
    def log(self) -> bytes:
        return b"".join(file.read_bytes() for file in segment_files(self.cluster.folder))


@pytest.fixture(scope="module")
def reading() -> Iterator[Reading]:
    """A node whose metadata may be read, with a topic."""
    with (
        Cluster(overrides=READABLE) as cluster,
        RawClient(cluster.bootstrap_servers) as broker,
        RawClient(cluster.controller_servers) as controller,
    ):
        create_topic(controller, "first")
        yield Reading(cluster, broker, controller)


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_fetch_returns_the_bytes_of_the_log(reading: Reading, version: int) -> None:
    got = fetch(reading.broker, fetch_request(0, version=version), version)
    log = reading.log
    assert got.error_code == ErrorCode.NONE
    assert got.records == log
    *_, last = read_batches(log)
    assert got.high_watermark == got.last_stable_offset == last.next_offset
    assert got.log_start_offset == (0 if version >= 5 else -1)
    assert got.aborted_transactions is None


def test_reading_goes_on_where_it_ended_one_batch_at_a_time(reading: Reading) -> None:
    offset, parts = 0, list[bytes]()
    while True:
        got = fetch(reading.broker, fetch_request(offset, max_bytes=1))
        assert got.records is not None
        if not got.records:
            break
        (batch,) = read_batches(got.records)
        parts.append(bytes(got.records))
        offset = batch.next_offset
    assert offset == got.high_watermark
    assert b"".join(parts) == reading.log


def test_an_offset_inside_of_a_batch_gets_the_whole_batch(reading: Reading) -> None:
    long = next(batch for batch in read_batches(reading.log) if batch.last_offset_delta > 0)
    got = fetch(reading.broker, fetch_request(long.last_offset, max_bytes=1))
    assert got.records == bytes(long.data)


def test_a_committed_reader_gets_an_empty_list_of_aborted_transactions(reading: Reading) -> None:
    request = fetch_request(0)
    request.isolation_level = 1
    got = fetch(reading.broker, request)
    assert got.aborted_transactions == []
    assert got.records == reading.log
    request.isolation_level = 2
    refused = reading.broker.ask(request, FetchResponse, 17)
    assert refused.error_code == ErrorCode.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize("version", LIST_OFFSETS_VERSIONS)
def test_the_ends_of_the_log_in_every_version(reading: Reading, version: int) -> None:
    *_, last = read_batches(reading.log)
    (earliest,) = list_offsets(reading.broker, EARLIEST, version=version)
    (latest,) = list_offsets(reading.broker, LATEST, version=version)
    assert (earliest.error_code, earliest.offset, earliest.timestamp) == (0, 0, -1)
    assert (latest.error_code, latest.offset, latest.timestamp) == (0, last.next_offset, -1)
    if version >= 4:
        assert earliest.leader_epoch == latest.leader_epoch == last.partition_leader_epoch


@pytest.mark.parametrize(
    ("place", "first_version"),
    [(MAX_TIMESTAMP, 7), (EARLIEST_LOCAL, 8), (LATEST_TIERED, 9), (PENDING_UPLOAD, 11)],
)
def test_places_that_later_versions_know(reading: Reading, place: int, first_version: int) -> None:
    (before,) = list_offsets(reading.broker, place, version=first_version - 1)
    (since,) = list_offsets(reading.broker, place, version=first_version)
    assert before.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert since.error_code == ErrorCode.NONE
    *_, last = read_batches(reading.log)
    # Nothing of this log is in tiered storage.
    assert since.offset == {MAX_TIMESTAMP: last.base_offset, EARLIEST_LOCAL: 0}.get(place, -1)


def test_each_timestamp_leads_to_the_first_record_that_is_as_late(reading: Reading) -> None:
    batches = list(read_batches(reading.log))
    records = [(record.offset, record.timestamp) for one in batches for record in one.records()]
    for _, timestamp in records:
        for wanted in (timestamp, timestamp - 1):
            first = next(offset for offset, its in records if its >= wanted)
            found = offset_for(reading.broker, wanted)
            assert found[0] == first, wanted
            assert found[1] == dict(records)[first]
    assert offset_for(reading.broker, records[-1][1] + 1) == (-1, -1, -1)


def test_a_waiting_fetch_is_answered_as_soon_as_something_is_committed(reading: Reading) -> None:
    end = offset_for(reading.broker, LATEST)[0]
    reading.broker.send(fetch_request(end, min_bytes=1, max_wait_ms=60_000), 17)
    create_topic(reading.controller, "woken")
    got = only_partition(reading.broker.response(FetchResponse, 17))
    assert got.records
    assert next(read_batches(got.records)).base_offset == end
    assert got.high_watermark > end


def test_a_fetch_waits_for_as_many_bytes_as_it_wants(reading: Reading) -> None:
    end = offset_for(reading.broker, LATEST)[0]
    reading.broker.send(fetch_request(end, min_bytes=1_000, max_wait_ms=60_000), 17)
    for number in range(9):
        create_topic(reading.controller, f"of-many-{number}")
    got = only_partition(reading.broker.response(FetchResponse, 17))
    assert got.records is not None
    batches = list(read_batches(got.records))
    assert len(got.records) >= 1_000
    assert len(batches) > 1
    # Batch after batch as in the log, none left out where one wait ended and the next began.
    assert bytes(got.records) in reading.log


def test_a_fetch_at_the_end_is_answered_when_its_time_is_up(reading: Reading) -> None:
    end = offset_for(reading.broker, LATEST)[0]
    started = time.monotonic()
    got = fetch(reading.broker, fetch_request(end, min_bytes=1, max_wait_ms=300))
    assert time.monotonic() - started >= 0.3
    assert (got.error_code, got.records, got.high_watermark) == (0, b"", end)


def test_a_response_is_of_bounded_size(reading: Reading) -> None:
    for number in range(3):
        create_topic(reading.controller, f"wide-{number}", partitions=2_000)
    offset, sizes = 0, list[int]()
    while True:
        got = fetch(reading.broker, fetch_request(offset))
        if not got.records:
            break
        sizes.append(len(got.records))
        *_, last = read_batches(got.records)
        offset = last.next_offset
    assert sum(sizes) == len(reading.log) > ANSWER_BYTES_MAX
    assert max(sizes) <= ANSWER_BYTES_MAX


def test_places_outside_of_the_log(reading: Reading) -> None:
    for offset in (-1, offset_for(reading.broker, LATEST)[0] + 1, 2**62):
        got = fetch(reading.broker, fetch_request(offset, min_bytes=1, max_wait_ms=60_000))
        assert got.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert (got.high_watermark, got.records) == (-1, b"")


def test_anything_that_is_not_a_partition_of_the_topic(reading: Reading) -> None:
    (topic,) = reading.broker.ask(fetch_request(0, partitions=(0, 1)), FetchResponse, 17).responses
    assert [(one.partition_index, one.error_code) for one in topic.partitions] == [
        (0, ErrorCode.NONE),
        (1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    (listed,) = list_offsets(reading.broker, LATEST, partition=1)
    assert listed.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_partition_asked_for_many_times_is_read_once(reading: Reading) -> None:
    response = reading.broker.ask(fetch_request(0, partitions=(0,) * 500), FetchResponse, 17)
    assert only_partition(response).records
    (refused,) = list_offsets(reading.broker, LATEST, EARLIEST)
    assert refused.error_code == ErrorCode.INVALID_REQUEST


def test_a_replica_is_refused(reading: Reading) -> None:
    request = fetch_request(0)
    request.replica_state = FetchRequest.ReplicaState(replica_id=2)
    assert fetch(reading.broker, request).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    older = fetch_request(0, version=12)
    older.replica_id = 2
    assert fetch(reading.broker, older, 12).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize("version", [12, FETCH_VERSIONS[-1]])
def test_a_session_gets_what_is_new(reading: Reading, version: int) -> None:
    full = fetch_request(offset_for(reading.broker, LATEST)[0], version=version)
    full.session_epoch = 0
    session_id = reading.broker.ask(full, FetchResponse, version).session_id
    next_one = FetchRequest(session_id=session_id, session_epoch=1)
    assert reading.broker.ask(next_one, FetchResponse, version).responses == []
    create_topic(reading.controller, f"of-a-session-{version}")
    next_one.session_epoch = 2
    (topic,) = reading.broker.ask(next_one, FetchResponse, version).responses
    assert topic.partitions[0].records


def test_a_fetch_of_another_topic_too_waits_for_either(reading: Reading) -> None:
    end = offset_for(reading.broker, LATEST)[0]
    request = fetch_request(end, version=12, min_bytes=1, max_wait_ms=60_000)
    request.topics.append(
        FetchRequest.FetchTopic(topic="first", partitions=[FetchRequest.FetchPartition()])
    )
    reading.broker.send(request, 12)
    create_topic(reading.controller, "beside")
    ours, other = reading.broker.response(FetchResponse, 12).responses
    assert (ours.topic, other.topic) == (CLUSTER_METADATA_TOPIC, "first")
    assert ours.partitions[0].records
    assert (other.partitions[0].error_code, other.partitions[0].records) == (ErrorCode.NONE, b"")


def metadata_topic(response: MetadataResponse) -> MetadataResponseTopic:
    (found,) = [topic for topic in response.topics if topic.name == CLUSTER_METADATA_TOPIC]
    return found


@pytest.mark.parametrize("version", range(14))
def test_the_topic_is_shown_with_this_broker_as_its_leader(reading: Reading, version: int) -> None:
    everything = MetadataRequest(topics=[] if version == 0 else None)
    by_name = MetadataRequest(topics=[MetadataRequestTopic(name=CLUSTER_METADATA_TOPIC)])
    by_id = MetadataRequest(topics=[MetadataRequestTopic(name=None, topic_id=METADATA_TOPIC_ID)])
    for request in (everything, by_name, *([by_id] if version >= 12 else [])):
        response = reading.broker.ask(request, MetadataResponse, version)
        topic = metadata_topic(response)
        (broker,) = response.brokers
        (partition,) = topic.partitions
        assert (topic.error_code, partition.error_code, partition.partition_index) == (0, 0, 0)
        # Spark's connector leaves out internal topics, even one that is assigned to it.
        assert not topic.is_internal
        assert partition.leader_id == broker.node_id
        assert partition.replica_nodes == partition.isr_nodes == [broker.node_id]
        assert partition.offline_replicas == []
        # No epoch: clients have nothing to check when they come from another broker.
        assert partition.leader_epoch == -1
        if version >= 10:
            assert topic.topic_id == METADATA_TOPIC_ID


def test_the_topic_is_described_with_what_may_be_done(reading: Reading) -> None:
    request = DescribeTopicPartitionsRequest(
        topics=[DescribeTopicPartitionsRequest.TopicRequest(CLUSTER_METADATA_TOPIC)],
        response_partition_limit=10,
    )
    (topic,) = reading.broker.ask(request, DescribeTopicPartitionsResponse, 0).topics
    assert (topic.error_code, topic.is_internal, len(topic.partitions)) == (0, False, 1)
    assert topic.topic_authorized_operations == READ_AND_DESCRIBE
    wanted = MetadataRequest(topics=None, include_topic_authorized_operations=True)
    shown = metadata_topic(reading.broker.ask(wanted, MetadataResponse, 12))
    assert shown.topic_authorized_operations == READ_AND_DESCRIBE


def test_no_client_writes_to_it(reading: Reading) -> None:
    data = ProduceRequest.PartitionProduceData(index=0, records=reading.log)
    topic = ProduceRequest.TopicProduceData(name=CLUSTER_METADATA_TOPIC, partition_data=[data])
    before = reading.log
    request = ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=[topic])
    (refused,) = reading.broker.ask(request, ProduceResponse, 9).responses
    assert refused.partition_responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert reading.log == before


def test_damage_is_shown_to_the_reader_and_harms_nothing_else() -> None:
    with (
        Cluster(overrides=READABLE) as cluster,
        RawClient(cluster.bootstrap_servers) as broker,
        RawClient(cluster.controller_servers) as controller,
    ):
        create_topic(controller, "before")
        (segment,) = segment_files(cluster.folder)
        whole = segment.read_bytes()
        *_, last = read_batches(whole)
        with segment.open("r+b") as file:
            file.seek(len(whole) - 1)
            file.write(bytes([whole[-1] ^ 1]))
        got = fetch(broker, fetch_request(last.base_offset))
        assert (got.error_code, got.records) == (ErrorCode.KAFKA_STORAGE_ERROR, b"")
        older = fetch(broker, fetch_request(last.base_offset, version=5), 5)
        assert older.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        create_topic(controller, "after")
        segment.write_bytes(whole + segment.read_bytes()[len(whole) :])
        assert fetch(broker, fetch_request(last.base_offset)).error_code == ErrorCode.NONE


@pytest.mark.slow
def test_a_client_that_reads_nothing_keeps_no_more_than_one_response() -> None:
    """Requests wait in the socket, not their responses in memory; others are served meanwhile."""
    with (
        Cluster(overrides=READABLE) as cluster,
        RawClient(cluster.bootstrap_servers) as slow,
        RawClient(cluster.bootstrap_servers) as quick,
        RawClient(cluster.controller_servers) as controller,
    ):
        create_topic(controller, "wide", partitions=2_000)
        for _ in range(200):
            slow.send(fetch_request(0), 17)
        assert fetch(quick, fetch_request(0)).records
        create_topic(controller, "meanwhile")
        for _ in range(200):
            assert slow.read_frame()


def test_a_node_does_not_wait_for_those_who_wait_for_it() -> None:
    with Cluster(overrides=READABLE) as cluster, RawClient(cluster.bootstrap_servers) as broker:
        end = offset_for(broker, LATEST)[0]
        # More than the end of the node will write.
        broker.send(fetch_request(end, min_bytes=100_000, max_wait_ms=3_600_000), 17)
        cluster.stop()
        assert broker.is_closed()


@pytest.mark.parametrize("is_off", [{}, {"kvorum.metadata.topic.readable": "false"}])
def test_nothing_is_there_where_the_setting_is_off(is_off: dict[str, str]) -> None:
    with (
        Cluster(overrides={"auto.create.topics.enable": "false", **is_off}) as cluster,
        RawClient(cluster.bootstrap_servers) as broker,
    ):
        assert broker.ask(MetadataRequest(topics=None), MetadataResponse, 12).topics == []
        by_name = MetadataRequest(topics=[MetadataRequestTopic(name=CLUSTER_METADATA_TOPIC)])
        (named,) = broker.ask(by_name, MetadataResponse, 12).topics
        assert (named.error_code, named.is_internal) == (3, False)
        by_id = MetadataRequest(topics=[MetadataRequestTopic(METADATA_TOPIC_ID, None)])
        (with_id,) = broker.ask(by_id, MetadataResponse, 12).topics
        assert with_id.error_code == ErrorCode.UNKNOWN_TOPIC_ID
        for version in FETCH_VERSIONS:
            got = fetch(broker, fetch_request(0, version=version), version)
            has_ids = version >= FIRST_VERSION_WITH_TOPIC_IDS
            unknown = (
                ErrorCode.UNKNOWN_TOPIC_ID if has_ids else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            )
            assert (got.error_code, got.records) == (unknown, b"")
        incremental = fetch_request(0)
        incremental.session_id, incremental.session_epoch = 7, 1
        whole = broker.ask(incremental, FetchResponse, 12)
        assert whole.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        (listed,) = list_offsets(broker, EARLIEST)
        assert listed.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class Sides(NamedTuple):
    """Clients of a broker and of a controller, both anonymous."""

    broker: RawClient
    controller: RawClient


def allow(client: RawClient, *permissions: tuple[AclResourceType, str, AclOperation]) -> None:
    """Add entries that let all clients here do something; brokers may go on."""
    cluster_action = (AclResourceType.CLUSTER, CLUSTER_NAME, AclOperation.CLUSTER_ACTION)
    add_entries(client, *(entry(*one) for one in (*permissions, cluster_action)))


@pytest.fixture
def sides() -> Iterator[Sides]:
    with (
        Cluster(overrides=SETTINGS) as cluster,
        RawClient(cluster.bootstrap_servers) as broker,
        RawClient(cluster.controller_servers) as controller,
    ):
        yield Sides(broker, controller)


def shown(broker: RawClient) -> list[tuple[str | None, int]]:
    """Return name and error of all topics, of the one by its name, and of the one by its id."""
    everything = MetadataRequest(topics=None)
    by_name = MetadataRequest(topics=[MetadataRequestTopic(name=CLUSTER_METADATA_TOPIC)])
    by_id = MetadataRequest(topics=[MetadataRequestTopic(METADATA_TOPIC_ID, None)])
    return [
        (topic.name, topic.error_code)
        for request in (everything, by_name, by_id)
        for topic in broker.ask(request, MetadataResponse, 12).topics
    ]


def described(broker: RawClient) -> int:
    request = DescribeTopicPartitionsRequest(
        topics=[DescribeTopicPartitionsRequest.TopicRequest(CLUSTER_METADATA_TOPIC)],
        response_partition_limit=10,
    )
    (topic,) = broker.ask(request, DescribeTopicPartitionsResponse, 0).topics
    return topic.error_code


def test_a_permission_on_the_topic_does_not_count(sides: Sides) -> None:
    """Only an entry about the cluster counts."""
    allow(sides.controller, (AclResourceType.TOPIC, CLUSTER_METADATA_TOPIC, AclOperation.ALL))
    got = fetch(sides.broker, fetch_request(0))
    assert (got.error_code, got.high_watermark, got.records) == (REFUSED, -1, b"")
    (listed,) = list_offsets(sides.broker, -1)
    assert (listed.error_code, listed.offset) == (REFUSED, -1)
    assert shown(sides.broker) == [(CLUSTER_METADATA_TOPIC, REFUSED), (None, REFUSED)]
    assert described(sides.broker) == REFUSED


def test_describing_the_cluster_is_enough(sides: Sides) -> None:
    allow(
        sides.controller,
        (AclResourceType.TOPIC, CLUSTER_METADATA_TOPIC, AclOperation.WRITE),
        (AclResourceType.CLUSTER, CLUSTER_NAME, AclOperation.DESCRIBE),
    )
    got = fetch(sides.broker, fetch_request(0))
    assert got.error_code == ErrorCode.NONE
    assert got.records
    (listed,) = list_offsets(sides.broker, -1)
    assert listed.offset == got.high_watermark
    assert shown(sides.broker) == [(CLUSTER_METADATA_TOPIC, 0)] * 3
    assert described(sides.broker) == ErrorCode.NONE
