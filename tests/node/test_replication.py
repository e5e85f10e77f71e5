"""Three brokers that replicate: over the wire, with leaders that go and come back."""

from collections.abc import Iterator

import pytest
from tests.node.embedded_cluster import append, killed, leader, parted
from tests.support.raw_client import RawClient
from tests.support.record_requests import batch, fetch, fetch_request, list_offset, produce, values
from tests.support.replicated_topics import (
    BROKERS,
    CONTROLLER,
    OVERRIDES,
    address_of,
    create_replicated,
    log_bytes,
    state_of,
    topic_id_of,
    wait_for_isr,
)
from tests.support.waiting import wait_for

from kvorum.broker.fetcher.fetch_requests import FIRST_VERSION_WITH_REPLICA_STATE
from kvorum.node.broker.metadata_topic import EARLIEST, LATEST, MAX_TIMESTAMP
from kvorum.node.handlers.fetch import FIRST_VERSION_WITH_LEADERS
from kvorum.testing import Cluster
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from kvorum.wire.messages.fetch import FetchRequest, FetchResponse


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(controllers=1, brokers=3, overrides=OVERRIDES) as cluster:
        yield cluster


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    return str(request.node.name)[:60].replace("[", "-").replace("]", "")


def read(cluster: Cluster, topic: str) -> list[bytes | None]:
    with leader(cluster, topic) as client:
        found: list[bytes | None] = []
        while records := values(fetch(client, topic, len(found))):
            found += records
        return found


def assert_same_logs(cluster: Cluster, topic: str, brokers: tuple[int, ...] = BROKERS) -> None:
    wait_for(
        lambda: len({log_bytes(cluster.folder, node_id, topic) for node_id in brokers}) == 1,
        "all logs are the same",
    )


def test_a_write_for_all_reaches_every_replica(cluster: Cluster, topic: str) -> None:
    create_replicated(cluster, topic, [*BROKERS])
    for number in range(20):
        assert append(cluster, topic, b"%d" % number) == number
    assert_same_logs(cluster, topic)
    assert wait_for_isr(cluster, topic, {*BROKERS}).leader_epoch == 0
    assert read(cluster, topic) == [b"%d" % number for number in range(20)]


def test_a_killed_leader_is_replaced_and_comes_back(cluster: Cluster, topic: str) -> None:
    create_replicated(cluster, topic, [*BROKERS], {"min.insync.replicas": "2"})
    written: list[bytes] = []
    for round_number in range(3):
        for number in range(5):
            written.append(b"%d-%d" % (round_number, number))
            append(cluster, topic, written[-1])
        killed = state_of(cluster, topic).leader
        cluster.kill(killed)
        wait_for_isr(cluster, topic, {*BROKERS} - {killed})
        written.append(b"%d without %d" % (round_number, killed))
        append(cluster, topic, written[-1])
        cluster.restart(killed)
        wait_for_isr(cluster, topic, {*BROKERS})
    assert read(cluster, topic) == written
    assert_same_logs(cluster, topic)


def test_a_controlled_shutdown_moves_the_leader(cluster: Cluster, topic: str) -> None:
    create_replicated(cluster, topic, [103, 101, 102])
    append(cluster, topic, b"before")
    cluster.restart(103)
    assert wait_for_isr(cluster, topic, {*BROKERS}).leader != 103
    append(cluster, topic, b"after")
    assert read(cluster, topic) == [b"before", b"after"]
    assert_same_logs(cluster, topic)


def test_too_few_replicas_in_sync_refuse_a_write(cluster: Cluster, topic: str) -> None:
    create_replicated(cluster, topic, [*BROKERS], {"min.insync.replicas": "3"})
    append(cluster, topic, b"one")
    with killed(cluster, 103):
        wait_for_isr(cluster, topic, {101, 102})
        with leader(cluster, topic) as client:
            wait_for(
                lambda: produce(client, topic, batch(b"early")).error_code == 19,
                "the leader knows that there are not enough replicas",
            )
            assert produce(client, topic, batch(b"two"), acks=1).error_code == ErrorCode.NONE
            # Records that too few replicas have are not committed.
            assert values(fetch(client, topic, 0)) == [b"one"]
    wait_for_isr(cluster, topic, {*BROKERS})
    wait_for(lambda: read(cluster, topic)[-1] == b"two", "two is committed")
    # The leader may have taken an early one before it knew that a replica was gone.
    assert [value for value in read(cluster, topic) if value != b"early"] == [b"one", b"two"]
    assert_same_logs(cluster, topic)


def delete_records(
    cluster: Cluster, topic: str, offset: int, *, timeout_ms: int
) -> tuple[int, int]:
    """Return the error code and the low watermark."""
    wish = DeleteRecordsRequest.DeleteRecordsPartition(0, offset)
    wanted = DeleteRecordsRequest.DeleteRecordsTopic(topic, [wish])
    request = DeleteRecordsRequest([wanted], timeout_ms)
    with leader(cluster, topic) as client:
        (answered,) = client.ask(request, DeleteRecordsResponse, 2).topics
    (result,) = answered.partitions
    return result.error_code, result.low_watermark


def test_a_deletion_waits_for_the_followers(cluster: Cluster, topic: str) -> None:
    create_replicated(cluster, topic, [*BROKERS])
    for number in range(4):
        append(cluster, topic, b"%d" % number)
    assert delete_records(cluster, topic, 2, timeout_ms=20_000) == (0, 2)
    # The follower is silent, and the controller still has it for alive.
    with parted(cluster, 103):
        assert delete_records(cluster, topic, 3, timeout_ms=300) == (ErrorCode.REQUEST_TIMED_OUT, 2)
    assert delete_records(cluster, topic, 3, timeout_ms=20_000) == (0, 3)


def follower_fetch(topic: str, *, version: int, broker_id: int, epoch: int) -> FetchRequest:
    request = fetch_request(topic, 0, min_bytes=0, max_wait_ms=0)
    request.topics[0].partitions[0].current_leader_epoch = epoch
    if version >= FIRST_VERSION_WITH_REPLICA_STATE:
        request.replica_state.replica_id = broker_id
    else:
        request.replica_id = broker_id
    return request


@pytest.mark.parametrize("version", [12, 14, 15, 18])
def test_a_follower_reads_what_is_not_committed(cluster: Cluster, topic: str, version: int) -> None:
    create_replicated(cluster, topic, [101, 102], {"min.insync.replicas": "2"})
    append(cluster, topic, b"one")
    topic_id = topic_id_of(cluster, topic)
    with parted(cluster, 102), RawClient(address_of(cluster, 101)) as client:
        assert produce(client, topic, batch(b"two"), acks=1).error_code == ErrorCode.NONE
        assert values(fetch(client, topic, 0)) == [b"one"]
        for broker_id, epoch, expected in (
            (102, 0, ErrorCode.NONE),
            (102, -1, ErrorCode.NONE),
            (102, 1, ErrorCode.UNKNOWN_LEADER_EPOCH),
            (103, 0, ErrorCode.UNKNOWN_LEADER_EPOCH),
            (103, -1, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        ):
            request = follower_fetch(topic, version=version, broker_id=broker_id, epoch=epoch)
            request.topics[0].topic_id = topic_id
            response = client.ask(request, FetchResponse, version)
            (data,) = response.responses[0].partitions
            assert data.error_code == expected
            is_told = version >= FIRST_VERSION_WITH_LEADERS and broker_id == 103 and epoch == -1
            assert data.current_leader.leader_id == (101 if is_told else -1)
            assert response.node_endpoints == []
            assert values(data) == ([b"one", b"two"] if expected == ErrorCode.NONE else [])


def test_consumers_of_new_versions_read_from_followers(cluster: Cluster, topic: str) -> None:
    create_replicated(cluster, topic, [*BROKERS])
    append(cluster, topic, b"one")
    with RawClient(address_of(cluster, 102)) as client:
        wait_for(
            lambda: values(fetch(client, topic, 0)) == [b"one"],
            "the follower knows that the record is committed",
        )
        request = fetch_request(topic, 0, min_bytes=0, max_wait_ms=0)
        (answered,) = client.ask(request, FetchResponse, 10).responses
        assert answered.partitions[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_an_unclean_leader_decides_what_is_there(cluster: Cluster, topic: str) -> None:
    create_replicated(cluster, topic, [101, 102], {"unclean.leader.election.enable": "true"})
    append(cluster, topic, b"one")
    assert_same_logs(cluster, topic, (101, 102))
    with killed(cluster, 102):
        wait_for_isr(cluster, topic, {101})
        append(cluster, topic, b"lost")
        cluster.kill(101)
    assert wait_for_isr(cluster, topic, {102}).leader == 102
    append(cluster, topic, b"two")
    cluster.restart(101)
    wait_for_isr(cluster, topic, {101, 102})
    assert read(cluster, topic) == [b"one", b"two"]
    assert_same_logs(cluster, topic, (101, 102))


def test_a_follower_that_waits_is_woken_by_an_append(cluster: Cluster, topic: str) -> None:
    """Also where the record is not committed, as no other replica has it."""
    create_replicated(cluster, topic, [101, 102], {"min.insync.replicas": "2"})
    append(cluster, topic, b"one")
    with (
        parted(cluster, 102),
        leader(cluster, topic) as follower,
        leader(cluster, topic) as producer,
    ):
        request = fetch_request(topic, 1, min_bytes=1, max_wait_ms=60_000)
        request.replica_id = 102
        follower.send(request, 12)
        produce(producer, topic, batch(b"two"), acks=1)
        assert values(follower.response(FetchResponse, 12).responses[0].partitions[0]) == [b"two"]


def test_a_consumer_that_waits_is_woken_by_the_high_watermark(cluster: Cluster, topic: str) -> None:
    """The awaited records were appended before it came, and are committed later."""
    create_replicated(cluster, topic, [101, 102], {"min.insync.replicas": "2"})
    append(cluster, topic, b"one")
    with leader(cluster, topic) as consumer:
        with parted(cluster, 102):
            with leader(cluster, topic) as producer:
                produce(producer, topic, batch(b"two"), acks=1)
            consumer.send(fetch_request(topic, 1, min_bytes=2, max_wait_ms=60_000), 12)
        response = consumer.response(FetchResponse, 12)
    assert values(response.responses[0].partitions[0]) == [b"two"]


def test_a_follower_that_lags_leaves_the_isr_and_comes_back(cluster: Cluster, topic: str) -> None:
    """Its broker is alive, so that the controller lets it be: the leader has it taken out."""
    create_replicated(cluster, topic, [*BROKERS], {"min.insync.replicas": "2"})
    append(cluster, topic, b"one")
    with parted(cluster, 103):
        with leader(cluster, topic) as client:
            produce(client, topic, batch(b"two"), acks=1)
        wait_for_isr(cluster, topic, {101, 102})
        image = cluster.node(CONTROLLER).shared_server.loader.published
        assert not image.cluster.brokers[103].is_fenced
        append(cluster, topic, b"three")
    state = wait_for_isr(cluster, topic, {*BROKERS})
    assert (state.leader, state.leader_epoch) == (101, 0)
    assert_same_logs(cluster, topic)
    assert read(cluster, topic) == [b"one", b"two", b"three"]


def test_offsets_do_not_go_back_where_another_leads(cluster: Cluster, topic: str) -> None:
    """KIP-207: too few replicas are left for the new leader to commit what it has."""
    create_replicated(cluster, topic, [*BROKERS], {"min.insync.replicas": "3"})
    with killed(cluster, 103):
        wait_for_isr(cluster, topic, {101, 102})
        with leader(cluster, topic) as client:
            assert produce(client, topic, batch(b"one"), acks=1).error_code == ErrorCode.NONE
        assert_same_logs(cluster, topic, (101, 102))
        with killed(cluster, 101):
            assert wait_for_isr(cluster, topic, {102}).leader == 102
            with leader(cluster, topic) as client:
                refused = ErrorCode.OFFSET_NOT_AVAILABLE, -1
                wait_for(
                    lambda: list_offset(client, topic, LATEST) == refused,
                    "the end is not known yet",
                    otherwise=lambda: list_offset(client, topic, LATEST),
                )
                assert list_offset(client, topic, MAX_TIMESTAMP) == refused
                assert list_offset(client, topic, 0) == refused
                assert list_offset(client, topic, LATEST, version=5) == refused
                before_5 = ErrorCode.LEADER_NOT_AVAILABLE, -1
                assert list_offset(client, topic, LATEST, version=4) == before_5
                assert list_offset(client, topic, EARLIEST) == (ErrorCode.NONE, 0)
                assert list_offset(client, topic, LATEST, replica_id=101) == (ErrorCode.NONE, 1)
    wait_for_isr(cluster, topic, {*BROKERS})
    with leader(cluster, topic) as client:
        wait_for(
            lambda: list_offset(client, topic, LATEST) == (ErrorCode.NONE, 1),
            "the end is known",
            otherwise=lambda: list_offset(client, topic, LATEST),
        )
        assert list_offset(client, topic, MAX_TIMESTAMP) == (ErrorCode.NONE, 0)


def test_a_follower_lists_the_offsets_of_its_own_log_for_a_debugging_replica(
    cluster: Cluster, topic: str
) -> None:
    create_replicated(cluster, topic, [*BROKERS])
    assert append(cluster, topic, b"one") == 0
    assert_same_logs(cluster, topic, BROKERS)
    (follower, *_) = {*BROKERS} - {state_of(cluster, topic).leader}
    with RawClient(address_of(cluster, follower)) as client:
        refused = ErrorCode.NOT_LEADER_OR_FOLLOWER, -1
        assert list_offset(client, topic, LATEST) == refused
        assert list_offset(client, topic, LATEST, replica_id=101) == refused
        assert list_offset(client, topic, LATEST, replica_id=-2) == (ErrorCode.NONE, 1)
        assert list_offset(client, topic, EARLIEST, replica_id=-2) == (ErrorCode.NONE, 0)
