"""Records of a broker over the wire: what waits, what is refused, and what comes and goes."""

import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from tests.node.embedded_cluster import brokers, set_config
from tests.support.header_variants import (
    BASE_OFFSET,
    LAST_OFFSET_DELTA,
    RECORD_COUNT,
    with_fields,
    without_records,
)
from tests.support.raw_client import RawClient
from tests.support.record_requests import (
    FETCH_VERSION,
    batch,
    fetch,
    fetch_request,
    list_offset,
    produce,
    values,
)
from tests.support.replicated_topics import create_replicated
from tests.support.topics import delete_topic, read_topics
from tests.support.waiting import Threads, wait_for

from kvorum.coordinator.coordinator_type import CoordinatorType
from kvorum.metadata.configs_image import ResourceType
from kvorum.metadata.image import MetadataImage
from kvorum.node.broker.replica_manager import ReplicaManager
from kvorum.node.coroutines import other_work
from kvorum.storage.errors import DiskError
from kvorum.storage.log import recent_batches
from kvorum.storage.log.local_log import LocalLog
from kvorum.storage.topic_log.unified_log import FetchDataInfo, UnifiedLog
from kvorum.testing import Cluster
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kvorum.wire.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from kvorum.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
)
from kvorum.wire.messages.fetch import FetchResponse
from kvorum.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kvorum.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kvorum.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kvorum.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from kvorum.wire.primitives import Message

FOR_EVER_MS = 3_600_000
"""The wait of a fetch that is never answered within a client's patience."""
NO_COORDINATOR_TYPE = 3


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(controllers=1, brokers=2) as cluster:
        yield cluster


@pytest.fixture
def broker(cluster: Cluster) -> Iterator[RawClient]:
    address, _ = cluster.bootstrap_servers.split(",")
    with RawClient(address) as client:
        yield client


@pytest.fixture
def topic(cluster: Cluster, broker: RawClient, request: pytest.FixtureRequest) -> str:
    """A topic whose only replica is on the broker that the client is connected to."""
    name = str(request.node.name)[:60].replace("[", "-").replace("]", "")
    create_replicated(cluster, name, [brokers(cluster)[0][0]])
    wait_for(lambda: fetch(broker, name, 0).error_code == 0, "it is hosted")
    return name


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Brokers make no log of a new partition before this event is set."""
    gate = threading.Event()
    apply_delta = ReplicaManager.apply_delta

    async def held(self: ReplicaManager, before: MetadataImage, image: MetadataImage) -> bool:
        while not gate.is_set():
            await other_work(self._broker.runtime)  # pyright: ignore[reportPrivateUsage] - its loop
        return await apply_delta(self, before, image)

    monkeypatch.setattr(ReplicaManager, "apply_delta", held)
    yield gate
    gate.set()


def create_held(cluster: Cluster, topic: str) -> str:
    """Create a topic whose log the gate holds back; return the address of its leader."""
    leader_id, address = brokers(cluster)[0]
    create_replicated(cluster, topic, [leader_id])
    wait_for(lambda: topic in read_topics(address), "clients are told of the topic")
    return address


@contextmanager
def reads_under_way(address: str, topic: str) -> Generator[Callable[[], dict[str, int]]]:
    """Send every read of a partition; the function returns the code of each response."""
    with ExitStack() as stack:
        asking = [
            (stack.enter_context(RawClient(address)), *one) for one in reads_of_a_partition(topic)
        ]
        for client, request, _, version in asking:
            client.send(request, version)
        yield lambda: {
            kind.__name__: code_in(client.response(kind, version))
            for client, _, kind, version in asking
        }


def test_requests_wait_for_the_log_of_a_partition_that_was_created_just_now(
    cluster: Cluster, broker: RawClient, gate: threading.Event
) -> None:
    """Clients know the leader of a partition before it has made the log."""
    address = create_held(cluster, "held")
    with reads_under_way(address, "held") as codes:
        # Requests that do not wait are answered before this one, which comes later.
        broker.ask(ApiVersionsRequest("a-client", "1"), ApiVersionsResponse, 4)
        gate.set()
        found = codes()
    assert set(found.values()) == {ErrorCode.NONE}, found


@pytest.mark.slow
def test_requests_do_not_wait_for_ever_for_the_log_of_a_new_partition(
    cluster: Cluster, gate: threading.Event
) -> None:
    address = create_held(cluster, "held-for-ever")
    with reads_under_way(address, "held-for-ever") as codes:
        found = codes()
    assert not gate.is_set()
    assert set(found.values()) == {ErrorCode.NOT_LEADER_OR_FOLLOWER}, found


def test_a_followers_fetch_does_not_wait_for_the_log_of_a_new_partition(
    cluster: Cluster, broker: RawClient, gate: threading.Event
) -> None:
    """Its other partitions must not stand still: it is refused while consumers wait."""
    address = create_held(cluster, "held-for-a-follower")
    request = fetch_request("held-for-a-follower", 0, min_bytes=0, max_wait_ms=0)
    request.replica_id = brokers(cluster)[1][0]
    with reads_under_way(address, "held-for-a-follower") as codes:
        refusal = broker.ask(request, FetchResponse, FETCH_VERSION)
        gate.set()
        found = codes()
    assert code_in(refusal) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert set(found.values()) == {ErrorCode.NONE}, found


def reads_of_a_partition(topic: str) -> list[tuple[Message, type[Message], int]]:
    """Return requests for partition 0, each with the class of its response and a version."""
    return [
        (fetch_request(topic, 0, min_bytes=0, max_wait_ms=0), FetchResponse, FETCH_VERSION),
        (
            ListOffsetsRequest(
                -1,
                topics=[
                    ListOffsetsRequest.ListOffsetsTopic(
                        topic, [ListOffsetsRequest.ListOffsetsPartition(0, timestamp=-1)]
                    )
                ],
            ),
            ListOffsetsResponse,
            7,
        ),
        (
            OffsetForLeaderEpochRequest(
                -1,
                [
                    OffsetForLeaderEpochRequest.OffsetForLeaderTopic(
                        topic, [OffsetForLeaderEpochRequest.OffsetForLeaderPartition(0, -1, 0)]
                    )
                ],
            ),
            OffsetForLeaderEpochResponse,
            4,
        ),
        (
            DescribeProducersRequest([DescribeProducersRequest.TopicRequest(topic, [0])]),
            DescribeProducersResponse,
            0,
        ),
        (
            DeleteRecordsRequest(
                [
                    DeleteRecordsRequest.DeleteRecordsTopic(
                        topic, [DeleteRecordsRequest.DeleteRecordsPartition(0, 0)]
                    )
                ],
                5000,
            ),
            DeleteRecordsResponse,
            2,
        ),
    ]


def code_in(response: Message) -> int:
    """Return the error code of the only partition of a response."""
    (topic,) = getattr(response, "topics" if hasattr(response, "topics") else "responses")
    (partition,) = topic.partitions
    code: int = partition.error_code
    return code


def test_a_fetch_waits_until_there_are_enough_bytes(
    cluster: Cluster, broker: RawClient, topic: str
) -> None:
    one = batch(b"value")
    got: list[FetchResponse.PartitionData] = []
    with RawClient(cluster.bootstrap_servers.split(",")[0]) as reader:
        waiting = Threads()
        waiting.start(
            lambda: got.append(
                fetch(reader, topic, 0, min_bytes=2 * len(one), max_wait_ms=FOR_EVER_MS)
            )
        )
        assert produce(broker, topic, one).base_offset == 0
        # The broker has had something else to do since.
        assert values(fetch(broker, topic, 0)) == [b"value"]
        assert got == []
        assert produce(broker, topic, one).base_offset == 1
        waiting.join()
    assert values(got[0]) == [b"value", b"value"]
    assert got[0].high_watermark == 2


def test_numbers_that_no_batch_has_are_refused_for_good(broker: RawClient, topic: str) -> None:
    right = batch(b"value")
    fields = (BASE_OFFSET, LAST_OFFSET_DELTA, RECORD_COUNT)
    wrong = [with_fields(right, {place: -1}) for place in fields]
    wrong.append(with_fields(without_records(right), {LAST_OFFSET_DELTA: -1, RECORD_COUNT: 0}))
    for data in wrong:
        refused = produce(broker, topic, data)
        # Clients would repeat CORRUPT_MESSAGE until their time is up.
        assert (refused.error_code, refused.log_start_offset) == (ErrorCode.INVALID_RECORD, 0)
    assert produce(broker, topic, right).base_offset == 0


def test_a_negative_size_is_an_error_where_there_are_records(broker: RawClient, topic: str) -> None:
    produce(broker, topic, batch(b"value"))
    for offset, code in ((0, ErrorCode.UNKNOWN_SERVER_ERROR), (1, ErrorCode.NONE)):
        request = fetch_request(topic, offset, min_bytes=0, max_wait_ms=0)
        request.max_bytes = -1
        (answered,) = broker.ask(request, FetchResponse, FETCH_VERSION).responses
        assert (answered.partitions[0].error_code, answered.partitions[0].records) == (code, b"")


def test_a_fetch_that_waits_ends_when_its_time_is_up(broker: RawClient, topic: str) -> None:
    produce(broker, topic, batch(b"value"))
    assert values(fetch(broker, topic, 0, min_bytes=10_000, max_wait_ms=50)) == [b"value"]


def test_a_fetch_that_waits_hears_that_the_topic_is_gone(
    cluster: Cluster, broker: RawClient, topic: str
) -> None:
    with (
        RawClient(cluster.bootstrap_servers.split(",")[0]) as reader,
        RawClient(cluster.controller_servers) as controller,
    ):
        reader.send(fetch_request(topic, 0, min_bytes=1, max_wait_ms=60_000), FETCH_VERSION)
        assert produce(broker, topic, b"").error_code == ErrorCode.INVALID_RECORD
        delete_topic(controller, topic)
        assert reader.read_frame() is not None
    wait_for(lambda: fetch(broker, topic, 0).error_code == 3, "the topic is gone")


def test_a_topic_that_is_made_again_is_empty(
    cluster: Cluster, broker: RawClient, topic: str
) -> None:
    produce(broker, topic, batch(b"old"))
    with RawClient(cluster.controller_servers) as controller:
        delete_topic(controller, topic)
    wait_for(lambda: fetch(broker, topic, 0).error_code == 3, "it is gone")
    create_replicated(cluster, topic, [brokers(cluster)[0][0]])
    wait_for(lambda: fetch(broker, topic, 0).error_code == 0, "it is there again")
    assert produce(broker, topic, batch(b"new")).base_offset == 0
    assert values(fetch(broker, topic, 0)) == [b"new"]


def test_another_brokers_partition_is_not_served(
    cluster: Cluster, broker: RawClient, topic: str
) -> None:
    del broker
    with RawClient(cluster.bootstrap_servers.split(",")[1]) as other:
        assert produce(other, topic, batch(b"value")).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert fetch(other, topic, 0).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize("kind", [ResourceType.TOPIC, ResourceType.BROKER])
def test_a_log_follows_its_configuration(
    cluster: Cluster, broker: RawClient, topic: str, kind: ResourceType
) -> None:
    key = "max.message.bytes" if kind is ResourceType.TOPIC else "message.max.bytes"
    name = topic if kind is ResourceType.TOPIC else ""
    assert produce(broker, topic, batch(bytes(500))).error_code == ErrorCode.NONE
    set_config(cluster, kind, name, key, "300")

    def is_refused() -> bool:
        return produce(broker, topic, batch(bytes(500))).error_code == 10

    wait_for(is_refused, "the batch is too large")
    set_config(cluster, kind, name, key, "1000000")
    wait_for(lambda: not is_refused(), "the batch is not too large")


def test_an_invalid_value_of_a_broker_keeps_no_topic_from_its_own(
    cluster: Cluster, broker: RawClient, topic: str
) -> None:
    """Controllers write any value of a broker to the log, as Kafka's do."""
    set_config(cluster, ResourceType.BROKER, "", "log.roll.hours", "soon")
    set_config(cluster, ResourceType.TOPIC, topic, "max.message.bytes", "300")
    wait_for(
        lambda: produce(broker, topic, batch(bytes(500))).error_code == 10, "the batch is too large"
    )


def test_a_codec_that_damage_has_made_unknown_is_damage(broker: RawClient, topic: str) -> None:
    """The producer sends such a batch again."""
    damaged = bytearray(batch(b"value"))
    damaged[22] |= 7
    assert produce(broker, topic, bytes(damaged)).error_code == ErrorCode.CORRUPT_MESSAGE


def test_a_search_by_time_begins_again_where_compaction_has_closed_a_segment(
    broker: RawClient, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    produce(broker, topic, batch(b"a"))
    read = LocalLog.read
    is_compacted = False

    def compacted(log: LocalLog, offset: int, max_bytes: int, **options: Any) -> memoryview:
        nonlocal is_compacted
        if not is_compacted and log.directory.name == f"{topic}-0":
            is_compacted = True
            log.removal_count += 2
            raise DiskError("the file was closed meanwhile", errno=None, file=log.directory)
        return read(log, offset, max_bytes, **options)

    monkeypatch.setattr(LocalLog, "read", compacted)
    assert list_offset(broker, topic, 0) == (ErrorCode.NONE, 0)
    assert is_compacted


@pytest.mark.parametrize(
    ("key_type", "version", "message"),
    [
        (CoordinatorType.SHARE.value, 6, ""),
        # Its key is none of a share partition, and older versions have no share groups.
        (CoordinatorType.SHARE.value, 5, ""),
        (NO_COORDINATOR_TYPE, 6, ErrorCode.INVALID_REQUEST.default_message),
    ],
)
def test_a_key_that_is_not_coordinated_is_refused_with_a_text_by_its_type(
    broker: RawClient, key_type: int, version: int, message: str
) -> None:
    body = FindCoordinatorRequest("", key_type, ["mine"])
    (found,) = broker.ask(body, FindCoordinatorResponse, version).coordinators
    assert (found.node_id, found.error_code) == (-1, ErrorCode.INVALID_REQUEST)
    assert found.error_message == message


def test_a_transactional_batch_needs_a_coordinator(broker: RawClient, topic: str) -> None:
    """The cluster has no topic of transactions: no client has asked for a coordinator."""
    records = batch(b"value", is_transactional=True)
    nameless = produce(broker, topic, records)
    assert nameless.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    refused = produce(broker, topic, records, transactional_id="mine")
    assert refused.error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    assert (refused.error_message or "").endswith("COORDINATOR_NOT_AVAILABLE")


def test_every_producer_id_is_handed_out_once(cluster: Cluster) -> None:
    body = InitProducerIdRequest(transactional_id=None)
    ids: list[int] = []
    for address in cluster.bootstrap_servers.split(","):
        with RawClient(address) as client:
            for _ in range(1_100):
                answered = client.ask(body, InitProducerIdResponse, 4)
                assert (answered.error_code, answered.producer_epoch) == (ErrorCode.NONE, 0)
                ids.append(answered.producer_id)
    assert len(set(ids)) == len(ids)


@pytest.mark.slow
def test_records_outlive_a_restart(cluster: Cluster, broker: RawClient, topic: str) -> None:
    for number in range(20):
        assert produce(broker, topic, batch(b"%d" % number)).base_offset == number
    node_id, address = brokers(cluster)[0]
    cluster.restart(node_id)
    with RawClient(address) as client:
        wait_for(lambda: fetch(client, topic, 0).error_code == 0, "it leads again")
        data = fetch(client, topic, 0)
        assert values(data) == [b"%d" % number for number in range(20)]
        assert data.high_watermark == 20


def test_a_finished_segment_is_made_durable_beside_the_event_loop(
    cluster: Cluster, broker: RawClient, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_config(cluster, ResourceType.TOPIC, topic, "internal.segment.bytes", "700")
    flushed: list[str] = []
    flush = LocalLog.flush

    def noted(log: LocalLog) -> int:
        # The metadata log of the process is flushed meanwhile, by a thread of its own.
        if log.directory.name == f"{topic}-0":
            flushed.append(threading.current_thread().name)
        return flush(log)

    monkeypatch.setattr(LocalLog, "flush", noted)

    def is_flushed() -> bool:
        # As soon as the configuration is there, two of them do not fit a segment.
        assert produce(broker, topic, batch(bytes(500))).error_code == ErrorCode.NONE
        return bool(flushed)

    wait_for(is_flushed, "a segment is flushed")
    assert all(name.startswith("kvorum-logs") for name in flushed)


def test_a_fetch_does_not_wait_at_the_end_of_a_finished_segment(
    cluster: Cluster, broker: RawClient, topic: str
) -> None:
    set_config(cluster, ResourceType.TOPIC, topic, "internal.segment.bytes", "700")
    assert produce(broker, topic, batch(b"first")).error_code == ErrorCode.NONE
    sent = [b"first"]

    def is_rolled() -> bool:
        # As soon as the configuration is there, two of them do not fit a segment.
        sent.append(bytes(500))
        assert produce(broker, topic, batch(sent[-1])).error_code == ErrorCode.NONE
        return len(values(fetch(broker, topic, 0, max_wait_ms=0))) < len(sent)

    wait_for(is_rolled, "a segment is finished")
    found = fetch(broker, topic, 0, min_bytes=1 << 19, max_wait_ms=FOR_EVER_MS)
    assert values(found)[0] == b"first"


def test_a_damaged_header_is_shown_to_the_reader_as_kafka_does(
    broker: RawClient, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs: list[UnifiedLog] = []
    read_range = UnifiedLog.read_range

    def noted(log: UnifiedLog, offset: int, max_bytes: int, *, end_offset: int) -> FetchDataInfo:
        logs.append(log)
        return read_range(log, offset, max_bytes, end_offset=end_offset)

    # The last batches are handed out without a look at the file.
    monkeypatch.setattr(recent_batches, "KEPT_MAX", 2)
    monkeypatch.setattr(UnifiedLog, "read_range", noted)
    for _ in range(2):
        assert produce(broker, topic, batch(b"value")).error_code == ErrorCode.NONE
    assert values(fetch(broker, topic, 0)) == [b"value", b"value"]
    (segment,) = logs[0].hosted(lambda work: work()).log.segments
    with segment.path.open("r+b") as file:
        file.seek(8)
        file.write(bytes(4))
    assert fetch(broker, topic, 0).error_code == ErrorCode.CORRUPT_MESSAGE
