"""The client of a quorum's leader: answers of every kind, from scripted controllers."""

from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from random import Random

import pytest
from tests.spark.streaming.fake_controllers import (
    VERSIONS,
    Answers,
    FakeController,
    fetched,
    led_by,
)
from tests.spark.streaming.scripted_log import CLUSTER, ScriptedLog

from kvorum.metadata.address import Address
from kvorum.quorum_client.client import QuorumClient, QuorumPlan
from kvorum.quorum_client.connection import Connection, ConnectionFailedError
from kvorum.quorum_client.errors import QuorumError
from kvorum.quorum_client.fetch import fetch
from kvorum.spark.streaming.quorum_planner import BEGINNING
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from kvorum.wire.messages.fetch import FetchRequest, FetchResponse
from kvorum.wire.offset_and_epoch import OffsetAndEpoch
from kvorum.wire.primitives import Message
from kvorum.wire.records import read_batches

LIMIT_S = 30.0


class Clock:
    """Time that passes only in pauses."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        self.now += seconds


@contextmanager
def client_of(*addresses: Address, epoch: int = 0) -> Generator[QuorumClient]:
    clock = Clock()
    plan = QuorumPlan(addresses, None, epoch, LIMIT_S, CLUSTER)
    with closing(QuorumClient(plan, clock=clock, pause=clock.pause)) as client:
        yield client


def log_of(count: int = 5) -> ScriptedLog:
    log = ScriptedLog()
    log.append(Random(1), count=count)
    return log


def refusal(
    code: ErrorCode, leader_id: int, epoch: int, endpoint: Address | None = None
) -> FetchResponse:
    data = FetchResponse.PartitionData(
        error_code=code, high_watermark=-1, current_leader=led_by(leader_id, epoch), records=b""
    )
    return fetched(data, [] if endpoint is None else [(leader_id, endpoint)])


def offsets(client: QuorumClient, place: OffsetAndEpoch = BEGINNING, reach: int = 0) -> list[int]:
    return [batch.base_offset for batch in fetch(client, place, reach=reach).batches]


def test_the_leader_is_learnt_from_the_asked_node() -> None:
    log = log_of()
    with FakeController(log) as leader:
        hint = refusal(ErrorCode.FENCED_LEADER_EPOCH, 1, log.epoch, leader.address)
        with FakeController(lambda _: hint) as other, client_of(other.address) as client:
            assert offsets(client) == [batch.base_offset for batch in log.batches]
            assert client.leader == leader.address
            assert client.leader_epoch == log.epoch
            asked = leader.requests[-1]
            assert isinstance(asked, FetchRequest)
            assert asked.replica_state.replica_id == -1
            assert asked.cluster_id == CLUSTER
            # The next request goes to the leader at once.
            before = len(other.requests)
            offsets(client)
            assert len(other.requests) == before


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.BROKER_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    ],
)
def test_a_refusal_without_a_hint_sends_the_request_elsewhere(code: ErrorCode) -> None:
    log = log_of()
    with (
        FakeController(lambda _: refusal(code, -1, 2)) as other,
        FakeController(log) as leader,
        client_of(other.address, leader.address) as client,
    ):
        assert len(offsets(client)) == len(log.batches)


@pytest.mark.parametrize(
    "reply",
    [None, b"\0\0\0\x02ab", b"\xff\xff\xff\xff", b"\0\0\0\x08\0\0\0\x63aaaa"],
    ids=["closed", "cut", "negative size", "other request"],
)
def test_a_broken_answer_sends_the_request_elsewhere(reply: bytes | None) -> None:
    log = log_of()
    with (
        FakeController(lambda _: reply) as other,
        FakeController(log) as leader,
        client_of(other.address, leader.address) as client,
    ):
        assert len(offsets(client)) == len(log.batches)


def test_a_dead_leader_is_looked_for_again() -> None:
    log = log_of()
    later = ScriptedLog(epoch=4, batches=list(log.batches))
    later.append(Random(2), count=2)
    with (
        FakeController(log) as first,
        FakeController(later) as second,
        client_of(first.address, second.address) as client,
    ):
        client.leader_epoch = log.epoch
        offsets(client)
        assert client.leader == first.address
        first.kill()
        assert len(offsets(client)) == len(later.batches)
        assert client.leader_epoch == later.epoch


def test_a_leader_of_before_is_not_believed() -> None:
    old = log_of(count=2)
    new = ScriptedLog(epoch=old.epoch + 1, batches=list(old.batches))
    new.append(Random(2), count=2)
    with (
        FakeController(old) as zombie,
        FakeController(new) as leader,
        client_of(zombie.address, leader.address, epoch=new.epoch) as client,
    ):
        place = OffsetAndEpoch(new.end - 1, new.epoch)
        assert offsets(client, place) == [new.batches[-1].base_offset]


@pytest.mark.parametrize("is_by_place", [False, True], ids=["as the client knows", "by the place"])
def test_the_endpoint_of_a_leader_of_before_is_passed_over(is_by_place: bool) -> None:
    log = log_of()
    with FakeController(ScriptedLog(log.epoch - 1)) as zombie:
        stale = refusal(ErrorCode.UNKNOWN_LEADER_EPOCH, 1, log.epoch - 1, zombie.address)
        with (
            FakeController(lambda _: stale) as follower,
            FakeController(log) as leader,
            client_of(
                follower.address, leader.address, epoch=0 if is_by_place else log.epoch
            ) as client,
        ):
            place = OffsetAndEpoch(log.batches[-1].base_offset, log.epoch)
            assert offsets(client, place) == [place.offset]
            assert (len(follower.requests), zombie.requests) == (1, [])
            assert (client.leader, client.leader_epoch) == (leader.address, log.epoch)
            assert zombie.address not in client.plan.addresses


def test_uncommitted_batches_are_left_out() -> None:
    log = log_of()
    log.high_watermark = log.batches[-1].base_offset
    with FakeController(log) as leader, client_of(leader.address) as client:
        assert offsets(client) == [batch.base_offset for batch in log.batches[:-1]]


def test_an_answer_that_does_not_reach_far_enough_is_not_used() -> None:
    log = log_of()
    behind = ScriptedLog(log.epoch, list(log.batches), high_watermark=log.batches[2].base_offset)
    with (
        FakeController(behind) as other,
        FakeController(log) as leader,
        client_of(other.address, leader.address, epoch=log.epoch) as client,
    ):
        assert len(offsets(client, reach=log.end)) == len(log.batches)


CRC_POSITION = 17


def change_a_checksum(index: int) -> Callable[[ScriptedLog], Answers]:
    """Return a defect: one batch has another checksum, and every other byte is right."""

    def defect(log: ScriptedLog) -> Answers:
        batches = list(log.batches)
        data = bytearray(batches[index].data)
        data[CRC_POSITION] ^= 1
        (batches[index],) = read_batches(bytes(data))
        return ScriptedLog(log.epoch, batches, log.high_watermark)

    return defect


def flip_a_bit(log: ScriptedLog) -> Answers:
    def answer(request: Message) -> Message | bytes | None:
        found = log(request)
        if isinstance(found, FetchResponse) and found.responses[0].partitions[0].records:
            data = bytearray(found.responses[0].partitions[0].records)
            data[-1] ^= 1
            found.responses[0].partitions[0].records = bytes(data)
        return found

    return answer


def leave_out_the_second(log: ScriptedLog) -> Answers:
    return ScriptedLog(log.epoch, [*log.batches[:1], *log.batches[2:]], log.high_watermark)


def diverge(log: ScriptedLog) -> Answers:
    data = FetchResponse.PartitionData(
        high_watermark=1,
        current_leader=led_by(1, log.epoch),
        diverging_epoch=FetchResponse.EpochEndOffset(1, 1),
        records=b"",
    )
    return lambda _: fetched(data)


def not_committed_yet(log: ScriptedLog) -> Answers:
    return ScriptedLog(log.epoch, log.batches, high_watermark=-1)


@pytest.mark.parametrize(
    ("defect", "said"),
    [
        (flip_a_bit, "checksum"),
        (change_a_checksum(0), "checksum"),
        (change_a_checksum(2), "checksum"),
        (change_a_checksum(-1), "checksum"),
        (leave_out_the_second, "belongs"),
        (diverge, "its epoch 1 ends at 1"),
        (not_committed_yet, "the high watermark is -1 yet"),
    ],
)
def test_a_leader_with_useless_answers_is_asked_until_the_time_limit(
    defect: Callable[[ScriptedLog], Answers], said: str
) -> None:
    log = log_of()
    with FakeController(defect(log)) as leader, client_of(leader.address) as client:
        with pytest.raises(QuorumError, match=said) as caught:
            offsets(client)
        assert "within 30 s" in str(caught.value)
        assert str(leader.address) in str(caught.value)
        assert len(leader.fetches) > 2
        leader.answers = log
        assert len(offsets(client)) == len(log.batches)


def test_another_cluster_is_an_error_at_once() -> None:
    answer = FetchResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    with FakeController(lambda _: answer) as other, client_of(other.address) as client:
        with pytest.raises(QuorumError, match="another cluster than cluster-a"):
            offsets(client)
        assert len(other.requests) == 1


def test_the_cluster_id_that_may_not_be_asked_for_is_an_error_at_once() -> None:
    answer = DescribeClusterResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    with FakeController(lambda _: answer) as other, client_of(other.address) as client:
        with pytest.raises(QuorumError, match=r"give option 'cluster\.id'"):
            client.find_cluster_id()
        assert len(other.requests) == 1


def test_no_controller_at_all_is_an_error_that_names_those_asked() -> None:
    with FakeController(log_of()) as gone:
        address = gone.address
    said = f"asked were {address}; .*refused"
    with client_of(address) as client, pytest.raises(QuorumError, match=said):
        offsets(client)


def no_answer(_: Message) -> None:
    """Have the connection closed."""


def test_a_connection_closed_without_an_answer_is_distinguished_from_one_closed_later() -> None:
    log = log_of()
    said = "closed the connection without an answer, as listeners do that are not PLAINTEXT"
    with FakeController(no_answer) as closing, client_of(closing.address) as client:
        with pytest.raises(QuorumError, match=said):
            offsets(client)
        connection = Connection(closing.address, timeout_s=LIMIT_S)
        closing.answers = log
        connection.ask(DescribeClusterRequest(), DescribeClusterResponse)
        closing.answers = no_answer
        with pytest.raises(ConnectionFailedError, match=r"closed the connection$"):
            connection.ask(DescribeClusterRequest(), DescribeClusterResponse)


def test_a_controller_that_is_too_old_is_named() -> None:
    old = FakeController(log_of(), VERSIONS | {1: (0, 12)})
    said = "FETCH is not served in a version known here"
    with old, client_of(old.address) as client, pytest.raises(QuorumError, match=said):
        offsets(client)
