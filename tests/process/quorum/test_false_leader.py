"""A leader that lies: its followers stay alive, keep what is committed, and choose another."""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pytest
from tests.process.quorum.peers import (
    QUORUM_KEYS,
    TOPIC,
    TOPIC_ID,
    FakePeer,
    Setting,
    Spoil,
    Spoilt,
    name_of,
    now_in,
    spoil,
)
from tests.process.quorum.unharmed_quorum import assert_unharmed, committed_bytes
from tests.support.fake_node import all_versions
from tests.support.node import Node
from tests.support.played_broker import register_broker
from tests.support.quorum.proxied_quorum import ProxiedQuorum
from tests.support.raw_client import RawClient

from kvorum.wire.api_keys import ApiKey
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.api_versions import ApiVersionsResponse
from kvorum.wire.messages.begin_quorum_epoch import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
)
from kvorum.wire.messages.fetch import FetchRequest, FetchResponse
from kvorum.wire.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from kvorum.wire.messages.vote import VoteRequest, VoteResponse
from kvorum.wire.primitives import Message
from kvorum.wire.records import build_data_batch

FALSE_ID: Final = 3
FETCHED: Final = "responses.0.partitions.0."
PART: Final = "topics.0.partitions.0."
NONE: Final[tuple[object, ...]] = ()
REQUESTS: Final = 3
REQUESTS_MAX: Final = 20
ELECTIONS_MAX: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Lie:
    """The subject of a lie: the sender, and the state."""

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


OF_VOTES: Final[list[Spoilt]] = [
    {"topics": NONE},
    {"error_code": ErrorCode.INVALID_REQUEST},
    {"error_code": ErrorCode.UNSUPPORTED_VERSION},
    {"error_code": 9999},
    {PART + "partition_index": 2},
    {PART + "error_code": ErrorCode.INVALID_VOTER_KEY},
    {PART + "error_code": ErrorCode.INVALID_REQUEST},
    {PART + "error_code": 9999},
    {PART + "leader_id": own_id},
    {PART + "leader_id": -9},
    {PART + "leader_epoch": 2**31 - 1},
    {PART + "leader_epoch": -1},
    {PART + "leader_epoch": 0},
    {PART + "leader_id": FALSE_ID, PART + "leader_epoch": later},
]


FRAMES: Final[dict[str, Spoil]] = {
    "garbage": lambda data: data[:4] + b"\xff" * (len(data) - 4),
    "negative_size": lambda data: struct.pack(">i", -1) + data[4:],
    "huge_size": lambda data: struct.pack(">i", 2**31 - 1) + data[4:],
    "no_size": lambda data: bytes(4) + data,
    "other_correlation": lambda data: data[:4] + struct.pack(">i", 77_777) + data[8:],
    "half": lambda data: data[: len(data) // 2],
    "longer": lambda data: struct.pack(">i", len(data) + 6) + data[4:] + bytes(10),
    "shorter": lambda data: struct.pack(">i", len(data) - 4 - 9) + data[4:-9],
    "hangs_up": lambda _: None,
}


def _versions(lowest: int, highest: int) -> ApiVersionsResponse:
    keys = [ApiVersionsResponse.ApiVersion(key, lowest, highest) for key in QUORUM_KEYS]
    return ApiVersionsResponse(api_keys=keys)


VERSIONS: Final = {
    "none": ApiVersionsResponse(),
    "error": ApiVersionsResponse(ErrorCode.INVALID_REQUEST),
    "unsupported": ApiVersionsResponse(ErrorCode.UNSUPPORTED_VERSION),
    "future": _versions(99, 120),
    "the wrong way round": _versions(5, 1),
    "negative": _versions(-5, -1),
    "no fetch": ApiVersionsResponse(
        api_keys=all_versions(
            [ApiKey.API_VERSIONS, ApiKey.VOTE, ApiKey.BEGIN_QUORUM_EPOCH, ApiKey.END_QUORUM_EPOCH]
        )
    ),
}


@pytest.fixture(scope="module")
def quorum(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxiedQuorum]:
    """Two of three controllers; the third is the false one."""
    folder = tmp_path_factory.mktemp("lied-to")
    with ProxiedQuorum(folder, 3, is_dynamic=True, absent=[FALSE_ID]) as running:
        register_broker(running)
        yield running


@pytest.fixture
def setting(quorum: ProxiedQuorum) -> Iterator[Setting]:
    """The state before a lie; its committed records have to be there after it."""
    answer = quorum.settled_logs()
    end_offset = answer.high_watermark
    believers = _believers(quorum)
    committed = [committed_bytes(member, end_offset) for member in believers]
    assert committed[0] == committed[1]
    false = quorum.members[FALSE_ID]
    yield Setting(
        asked=believers[0],
        asking=false,
        leader=false,
        leader_port=quorum.network.ports[FALSE_ID],
        epoch=answer.leader_epoch + 1,
        end_offset=end_offset,
    )
    assert_unharmed(quorum)
    assert [committed_bytes(member, end_offset) for member in believers] == committed


def _believers(quorum: ProxiedQuorum) -> list[Node]:
    return [one for one in quorum.members.values() if one.node_id != FALSE_ID]


class Liar:
    """Answers as the leader of an epoch would, but for what is spoilt."""

    def __init__(
        self,
        setting: Setting,
        *,
        of_fetches: Spoilt | None = None,
        of_snapshots: Spoilt | None = None,
        of_votes: Spoilt | None = None,
    ) -> None:
        self._setting = setting
        self._of_fetches = of_fetches or {}
        self._of_snapshots = of_snapshots or {}
        self._of_votes = of_votes
        self._voted: dict[int, int] = {}

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
            return self._vote(request)
        return BeginQuorumEpochResponse(ErrorCode.INVALID_REQUEST)

    def _vote(self, request: VoteRequest) -> VoteResponse:
        if self._of_votes is None:
            return VoteResponse(ErrorCode.INVALID_REQUEST)
        asked = request.topics[0].partitions[0]
        # One vote for each epoch: who gives two makes two leaders, and no majority helps then.
        if self._voted.setdefault(asked.replica_epoch, asked.replica_id) != asked.replica_id:
            return VoteResponse(ErrorCode.INVALID_REQUEST)
        partition = VoteResponse.PartitionData(
            leader_id=-1, leader_epoch=asked.replica_epoch, vote_granted=True
        )
        response = VoteResponse(topics=[VoteResponse.TopicData(TOPIC, [partition])])
        spoil(response, self._of_votes, self._lie(asked.replica_id))
        return response

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


def lead(quorum: ProxiedQuorum, setting: Setting) -> None:
    for member in _believers(quorum):
        with RawClient(member.address) as client:
            response = client.ask(
                setting.asked_instead(member).begin(), BeginQuorumEpochResponse, 1
            )
        partition = response.topics[0].partitions[0]
        told = (partition.error_code, partition.leader_id, partition.leader_epoch)
        assert told == (ErrorCode.NONE, FALSE_ID, setting.epoch)


def has_heard(heard: Sequence[Message], kind: type[Message]) -> bool:
    """Tell whether both others have asked often enough, or one that found no better one.

    Once they have a leader of their own, which says so, they do not ask any more.
    """
    asked: list[Any] = [request for request in heard if isinstance(request, kind)]
    asking = [getattr(request, "replica_state", request).replica_id for request in asked]
    if len(asking) >= REQUESTS_MAX or has_successor(heard):
        return True
    return all(asking.count(node_id) >= REQUESTS for node_id in (1, 2))


def has_successor(heard: Sequence[Message]) -> bool:
    """Tell whether the others have a leader of their own by now."""
    return any(isinstance(request, BeginQuorumEpochRequest) for request in heard)


def has_fetched(heard: Sequence[Message], _connection_count: int) -> bool:
    """Tell whether anybody has fetched, or will not any more."""
    return has_successor(heard) or any(isinstance(one, FetchRequest) for one in heard)


@pytest.mark.parametrize("spoilt", OF_FETCHES, ids=lambda one: name_of(one, without=FETCHED))
def test_lies_about_the_log(quorum: ProxiedQuorum, setting: Setting, spoilt: Spoilt) -> None:
    with FakePeer(setting.leader_port, Liar(setting, of_fetches=spoilt).answer) as peer:
        lead(quorum, setting)
        peer.wait_until(lambda heard, _: has_heard(heard, FetchRequest))


@pytest.mark.parametrize("spoilt", OF_SNAPSHOTS, ids=lambda one: name_of(one, without=PART))
def test_lies_about_a_snapshot(quorum: ProxiedQuorum, setting: Setting, spoilt: Spoilt) -> None:
    named: Spoilt = {FETCHED + "snapshot_id.end_offset": beyond, FETCHED + "snapshot_id.epoch": now}
    liar = Liar(setting, of_fetches=named, of_snapshots=spoilt)
    with FakePeer(setting.leader_port, liar.answer) as peer:
        lead(quorum, setting)
        peer.wait_until(lambda heard, _: has_heard(heard, FetchSnapshotRequest))


@pytest.mark.parametrize("spoilt", OF_VOTES, ids=lambda one: name_of(one, without=PART))
def test_lies_about_a_vote(quorum: ProxiedQuorum, setting: Setting, spoilt: Spoilt) -> None:
    """The others elect one of them in spite of a wrong answer to a vote."""
    liar = Liar(setting, of_fetches={"error_code": ErrorCode.INVALID_REQUEST}, of_votes=spoilt)
    with FakePeer(setting.leader_port, liar.answer) as peer:
        for _ in range(ELECTIONS_MAX):
            _dethrone(quorum)
            assert_unharmed(quorum)
            # Two are enough for an election: the third may be too late to be asked.
            if any(isinstance(request, VoteRequest) for request in peer.heard()):
                return
    pytest.fail("nobody ever asked for a vote")


def _dethrone(quorum: ProxiedQuorum) -> None:
    """Ask the leader for a vote in the next epoch, so that there is an election."""
    setting = now_in(quorum, asks_leader=True)
    request = setting.vote()
    request.topics[0].partitions[0].last_offset_epoch = 0
    with RawClient(setting.asked.address) as client:
        client.ask(request, VoteResponse, 2)


@pytest.mark.parametrize("name", FRAMES)
def test_responses_that_cannot_be_read(quorum: ProxiedQuorum, setting: Setting, name: str) -> None:
    with FakePeer(setting.leader_port, Liar(setting).answer, spoil=FRAMES[name]) as peer:
        lead(quorum, setting)
        peer.wait_until(has_fetched)
        assert_unharmed(quorum)


def test_no_response_at_all(quorum: ProxiedQuorum, setting: Setting) -> None:
    with FakePeer(setting.leader_port, lambda _: None) as peer:
        lead(quorum, setting)
        peer.wait_until(has_fetched)
        assert_unharmed(quorum)


@pytest.mark.parametrize("versions", VERSIONS)
def test_version_ranges_that_make_no_sense(
    quorum: ProxiedQuorum, setting: Setting, versions: str
) -> None:
    with FakePeer(setting.leader_port, Liar(setting).answer, versions=VERSIONS[versions]) as peer:
        lead(quorum, setting)
        peer.wait_until(lambda _, connection_count: connection_count > 0)
        assert_unharmed(quorum)
