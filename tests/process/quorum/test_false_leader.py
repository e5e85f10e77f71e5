"""A leader that lies: its followers stay alive, keep what is committed, and choose another."""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pytest
from tests.process.quorum.broker import register_broker
from tests.process.quorum.fake_peer import FakePeer
from tests.process.quorum.life import assert_unharmed
from tests.process.quorum.logs import committed_bytes
from tests.process.quorum.members import Member, Quorum
from tests.process.quorum.peer_requests import TOPIC, TOPIC_ID, Setting
from tests.process.quorum.spoiling import Spoilt, name_of, spoil
from tests.unit.node.raw_client import RawClient

from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.begin_quorum_epoch import BeginQuorumEpochResponse
from kvorum.wire.messages.fetch import FetchRequest, FetchResponse
from kvorum.wire.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from kvorum.wire.messages.vote import VoteRequest, VoteResponse
from kvorum.wire.primitives import Message
from kvorum.wire.records import build_data_batch

FALSE_ID: Final = 3
REQUESTS_EACH: Final = 3
FETCHED: Final = "responses.0.partitions.0."
PART: Final = "topics.0.partitions.0."
NONE: Final[tuple[object, ...]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Lie:
    """What a lie is about: who asks, and how things stand."""

    epoch: int
    end_offset: int
    asking_id: int


def batch(lie: Lie, *, offset: int = 0, epoch: int = 0) -> bytes:
    """Return a batch, so far from the end of the log, and of an epoch so far from the leader's."""
    return build_data_batch(
        [b"no metadata record"],
        base_offset=lie.end_offset + offset,
        epoch=lie.epoch + epoch,
        timestamp_ms=1,
    )


def flipped(lie: Lie) -> bytes:
    data = bytearray(batch(lie))
    data[-1] ^= 1
    return bytes(data)


def ahead(lie: Lie) -> bytes:
    return batch(lie, offset=1)


def behind(lie: Lie) -> bytes:
    return batch(lie, offset=-1)


def of_a_later_epoch(lie: Lie) -> bytes:
    return batch(lie, epoch=1)


def of_an_old_epoch(lie: Lie) -> bytes:
    return batch(lie, epoch=-lie.epoch)


def without_records(lie: Lie) -> bytes:
    return batch(lie)[:61]


def of_negative_length(lie: Lie) -> bytes:
    return batch(lie)[:8] + struct.pack(">i", -1) + batch(lie)[12:]


def of_huge_length(lie: Lie) -> bytes:
    return batch(lie)[:8] + struct.pack(">i", 2**31 - 1) + batch(lie)[12:]


def of_an_old_format(lie: Lie) -> bytes:
    return batch(lie)[:16] + b"\x01" + batch(lie)[17:]


def own_id(lie: Lie) -> int:
    return lie.asking_id


def other_id(lie: Lie) -> int:
    return 3 - lie.asking_id


def beyond(lie: Lie) -> int:
    return lie.end_offset + 100


def now(lie: Lie) -> int:
    return lie.epoch


def before(lie: Lie) -> int:
    return lie.epoch - 1


def later(lie: Lie) -> int:
    return lie.epoch + 7


OF_FETCHES: Final[list[Spoilt]] = [
    {"responses": NONE},
    {"responses.0.partitions": NONE},
    {"responses.0.topic_id": bytes(16)},
    {FETCHED + "partition_index": 5},
    {"error_code": ErrorCode.INVALID_REQUEST},
    {"error_code": ErrorCode.CLUSTER_AUTHORIZATION_FAILED},
    {"error_code": ErrorCode.INCONSISTENT_CLUSTER_ID},
    {"error_code": 9999},
    {"error_code": -32768},
    {FETCHED + "error_code": ErrorCode.INVALID_REQUEST},
    {FETCHED + "error_code": ErrorCode.FENCED_LEADER_EPOCH},
    {FETCHED + "error_code": ErrorCode.UNKNOWN_LEADER_EPOCH},
    {FETCHED + "error_code": ErrorCode.NOT_LEADER_OR_FOLLOWER},
    {FETCHED + "error_code": 9999},
    {FETCHED + "current_leader.leader_id": own_id},
    {FETCHED + "current_leader.leader_id": other_id},
    {FETCHED + "current_leader.leader_id": 77},
    {FETCHED + "current_leader.leader_id": -5},
    {FETCHED + "current_leader.leader_epoch": before},
    {FETCHED + "current_leader.leader_epoch": -1},
    {FETCHED + "current_leader.leader_epoch": 2**31 - 1},
    {FETCHED + "records": b"\xff" * 200},
    {FETCHED + "records": bytes(200)},
    {FETCHED + "records": flipped},
    {FETCHED + "records": ahead},
    {FETCHED + "records": behind},
    {FETCHED + "records": of_a_later_epoch},
    {FETCHED + "records": of_an_old_epoch},
    {FETCHED + "records": without_records},
    {FETCHED + "records": of_negative_length},
    {FETCHED + "records": of_huge_length},
    {FETCHED + "records": of_an_old_format},
    {FETCHED + "high_watermark": 2**63 - 1},
    {FETCHED + "high_watermark": -(2**63)},
    {FETCHED + "high_watermark": 1},
    {FETCHED + "log_start_offset": 2**63 - 1},
    {FETCHED + "diverging_epoch.epoch": 0, FETCHED + "diverging_epoch.end_offset": 0},
    {FETCHED + "diverging_epoch.epoch": 1, FETCHED + "diverging_epoch.end_offset": 1},
    {FETCHED + "diverging_epoch.epoch": later, FETCHED + "diverging_epoch.end_offset": 0},
    {FETCHED + "diverging_epoch.epoch": 0, FETCHED + "diverging_epoch.end_offset": -7},
    {
        FETCHED + "diverging_epoch.epoch": 2**31 - 1,
        FETCHED + "diverging_epoch.end_offset": 2**63 - 1,
    },
    {FETCHED + "snapshot_id.end_offset": 0, FETCHED + "snapshot_id.epoch": 0},
    {FETCHED + "snapshot_id.end_offset": 1, FETCHED + "snapshot_id.epoch": 1},
    {FETCHED + "snapshot_id.end_offset": -1, FETCHED + "snapshot_id.epoch": 5},
    {FETCHED + "snapshot_id.end_offset": beyond, FETCHED + "snapshot_id.epoch": -1},
    {FETCHED + "snapshot_id.end_offset": beyond, FETCHED + "snapshot_id.epoch": later},
]
OF_SNAPSHOTS: Final[list[Spoilt]] = [
    {"topics": NONE},
    {"error_code": ErrorCode.INVALID_REQUEST},
    {PART + "error_code": ErrorCode.SNAPSHOT_NOT_FOUND},
    {PART + "error_code": ErrorCode.POSITION_OUT_OF_RANGE},
    {PART + "error_code": 9999},
    {PART + "index": 4},
    {PART + "size": 2**63 - 1},
    {PART + "size": 0},
    {PART + "size": -1},
    {PART + "size": 3},
    {PART + "position": 7},
    {PART + "position": -1},
    {PART + "position": 2**63 - 1},
    {PART + "unaligned_records": b""},
    {PART + "unaligned_records": b"\xff" * 64},
    {PART + "unaligned_records": bytes(64)},
    {PART + "snapshot_id.end_offset": 1},
    {PART + "snapshot_id.end_offset": -1},
    {PART + "snapshot_id.epoch": later},
    {PART + "current_leader.leader_id": own_id},
    {PART + "current_leader.leader_epoch": 2**31 - 1},
]


@pytest.fixture(scope="module")
def quorum(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Quorum]:
    """Two of three controllers; the third is the false one."""
    folder = tmp_path_factory.mktemp("lied-to")
    with Quorum(folder, 3, is_dynamic=True, absent=[FALSE_ID]) as running:
        register_broker(running)
        yield running


@pytest.fixture
def setting(quorum: Quorum) -> Iterator[Setting]:
    """How things stand before a lie; what is committed then has to be there after it."""
    end_offset = quorum.wait_until_settled()
    answer = quorum.leader()
    assert answer is not None
    believers = _believers(quorum)
    committed = [committed_bytes(member, end_offset) for member in believers]
    assert committed[0] == committed[1]
    false = quorum.members[FALSE_ID]
    yield Setting(
        asked=believers[0],
        asking=false,
        leader=false,
        epoch=answer.leader_epoch + 1,
        end_offset=end_offset,
    )
    assert_unharmed(quorum)
    assert [committed_bytes(member, end_offset) for member in believers] == committed


def _believers(quorum: Quorum) -> list[Member]:
    return [one for one in quorum.members.values() if one.node_id != FALSE_ID]


class Liar:
    """Answers as the leader of an epoch would, but for what is spoilt."""

    def __init__(self, setting: Setting, *, of_fetches: Spoilt, of_snapshots: Spoilt) -> None:
        self._setting = setting
        self._of_fetches = of_fetches
        self._of_snapshots = of_snapshots

    def answer(self, request: Message) -> Message | None:
        """Answer what followers ask; votes are refused."""
        if isinstance(request, FetchRequest):
            response: Message = self._fetched()
            spoil(response, self._of_fetches, self._lie(request.replica_state.replica_id))
            return response
        if isinstance(request, FetchSnapshotRequest):
            response = self._part(request)
            spoil(response, self._of_snapshots, self._lie(request.replica_id))
            return response
        if isinstance(request, VoteRequest):
            return VoteResponse(ErrorCode.INVALID_REQUEST)
        return BeginQuorumEpochResponse(ErrorCode.INVALID_REQUEST)

    def _lie(self, asking_id: int) -> Lie:
        setting = self._setting
        return Lie(epoch=setting.epoch, end_offset=setting.end_offset, asking_id=asking_id)

    def _fetched(self) -> FetchResponse:
        partition = FetchResponse.PartitionData(
            high_watermark=-1,
            current_leader=FetchResponse.LeaderIdAndEpoch(FALSE_ID, self._setting.epoch),
            records=b"",
        )
        return FetchResponse(
            responses=[
                FetchResponse.FetchableTopicResponse(topic_id=TOPIC_ID, partitions=[partition])
            ]
        )

    def _part(self, request: FetchSnapshotRequest) -> FetchSnapshotResponse:
        """Return a part that says it is the middle of a snapshot, whose end never comes."""
        asked = request.topics[0].partitions[0]
        partition = FetchSnapshotResponse.PartitionSnapshot(
            current_leader=FetchSnapshotResponse.LeaderIdAndEpoch(FALSE_ID, self._setting.epoch),
            snapshot_id=FetchSnapshotResponse.SnapshotId(
                asked.snapshot_id.end_offset, asked.snapshot_id.epoch
            ),
            size=64,
            position=asked.position,
            unaligned_records=b"part",
        )
        return FetchSnapshotResponse(
            topics=[FetchSnapshotResponse.TopicSnapshot(TOPIC, [partition])]
        )


def lead(quorum: Quorum, setting: Setting) -> None:
    """Tell both others that the false one leads."""
    for member in _believers(quorum):
        with RawClient(member.address) as client:
            response = client.ask(
                setting.asked_instead(member).begin(), BeginQuorumEpochResponse, 1
            )
        partition = response.topics[0].partitions[0]
        told = (partition.error_code, partition.leader_id, partition.leader_epoch)
        assert told == (ErrorCode.NONE, FALSE_ID, setting.epoch)


def has_heard(heard: Sequence[Message], kind: type[Message]) -> bool:
    """Tell whether both others have asked often enough."""
    asking = [_asking_id(request) for request in heard if isinstance(request, kind)]
    return all(asking.count(node_id) >= REQUESTS_EACH for node_id in (1, 2))


def _asking_id(request: Any) -> int:
    state = getattr(request, "replica_state", request)
    return int(state.replica_id)


@pytest.mark.parametrize("spoilt", OF_FETCHES, ids=lambda one: name_of(one, without=FETCHED))
def test_lies_about_the_log(quorum: Quorum, setting: Setting, spoilt: Spoilt) -> None:
    liar = Liar(setting, of_fetches=spoilt, of_snapshots={})
    with FakePeer(setting.leader.advertised_port, liar.answer) as peer:
        lead(quorum, setting)
        peer.wait_until(lambda heard, _: has_heard(heard, FetchRequest))


@pytest.mark.parametrize("spoilt", OF_SNAPSHOTS, ids=lambda one: name_of(one, without=PART))
def test_lies_about_a_snapshot(quorum: Quorum, setting: Setting, spoilt: Spoilt) -> None:
    named: Spoilt = {FETCHED + "snapshot_id.end_offset": beyond, FETCHED + "snapshot_id.epoch": now}
    liar = Liar(setting, of_fetches=named, of_snapshots=spoilt)
    with FakePeer(setting.leader.advertised_port, liar.answer) as peer:
        lead(quorum, setting)
        peer.wait_until(lambda heard, _: has_heard(heard, FetchSnapshotRequest))
