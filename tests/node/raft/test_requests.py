"""Requests of the quorum and about it: their errors in order, admission, versions of a peer."""

from typing import Any

import pytest
from tests.node.raft.cluster import CLUSTER_ID, LISTENER, Lab, Replica, static_settings
from tests.support.pretended_quorum import HERE, endpoint_of, key_of

from kvorum.metadata.image import MetadataImage
from kvorum.metadata.voters import TARGET_VOTERS
from kvorum.node.outbound.client_connection import NoCommonVersionError
from kvorum.node.raft.outbound_requests import PeerConnection, Response, ask_about_voters
from kvorum.node.raft.raft_api import RaftApi
from kvorum.node.raft.translation import add_raft_voter, remove_raft_voter
from kvorum.node.tasks import run
from kvorum.raft import messages as core
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from kvorum.wire.messages.begin_quorum_epoch import BeginQuorumEpochRequest
from kvorum.wire.messages.config_record import ConfigRecord
from kvorum.wire.messages.describe_quorum import DescribeQuorumRequest
from kvorum.wire.messages.end_quorum_epoch import EndQuorumEpochRequest
from kvorum.wire.messages.fetch import FetchRequest, FetchResponse
from kvorum.wire.messages.fetch_snapshot import FetchSnapshotRequest
from kvorum.wire.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from kvorum.wire.messages.vote import VoteRequest
from kvorum.wire.primitives import Message
from kvorum.wire.uuid_text import METADATA_TOPIC_ID, ZERO_UUID, uuid_to_text

TOPIC = "__cluster_metadata"
OWN_DIRECTORY = b"\x01" * 16
SETTINGS = static_settings(HERE)
BROKER = 4
DISK, OTHER_DISK = bytes([0xA0]) * 16, bytes([0xB0]) * 16
DISK_TEXT = uuid_to_text(DISK)
TARGETS_TEXT = "the target voters 4,5, to which the quorum is being reassigned."


@pytest.fixture
async def leader(lab: Lab) -> Replica:
    """A lone voter, id 1, that leads epoch 1 with records 0 (its epoch's start), 1 and 2."""
    replica = await lab.leading_voter()
    await replica.commit(b"a", b"b")
    return replica


async def ask(replica: Replica, request: Message, version: int | None = None) -> Any:
    """Ask as over the wire: encoded and decoded both ways."""
    chosen = request.MAX_VERSION if version is None else version
    heard = type(request).decode(request.encode(chosen), chosen)
    response = await run(replica.node.handle_request(heard, version=chosen, listener_name=LISTENER))
    return type(response).decode(response.encode(chosen), chosen)


def vote(cluster_id: str | None = CLUSTER_ID, **fields: Any) -> VoteRequest:
    usual: dict[str, Any] = {
        "replica_epoch": 2,
        "replica_id": 2,
        "last_offset_epoch": 1,
        "last_offset": 3,
    }
    voter_id = fields.pop("voter_id", 1)
    partition = VoteRequest.PartitionData(**usual | fields)
    return VoteRequest(cluster_id, voter_id, [VoteRequest.TopicData(TOPIC, [partition])])


@pytest.mark.parametrize(
    ("fields", "error", "is_granted"),
    [
        ({}, ErrorCode.NONE, True),
        ({"last_offset": 2}, ErrorCode.NONE, False),
        ({"last_offset": -1}, ErrorCode.INVALID_REQUEST, False),
        ({"last_offset_epoch": -1}, ErrorCode.INVALID_REQUEST, False),
        ({"last_offset_epoch": 2}, ErrorCode.INVALID_REQUEST, False),
        ({"last_offset_epoch": 2, "replica_epoch": 1}, ErrorCode.INVALID_REQUEST, False),
        (
            {"replica_epoch": 0, "pre_vote": True, "last_offset_epoch": 0},
            ErrorCode.FENCED_LEADER_EPOCH,
            False,
        ),
        ({"replica_id": -1}, ErrorCode.INVALID_REQUEST, False),
        ({"voter_id": 5}, ErrorCode.INVALID_VOTER_KEY, False),
        ({"voter_id": -1}, ErrorCode.NONE, True),
        ({"voter_directory_id": b"?" * 16}, ErrorCode.INVALID_VOTER_KEY, False),
        ({"voter_directory_id": OWN_DIRECTORY}, ErrorCode.NONE, True),
        ({"pre_vote": True}, ErrorCode.NONE, True),
        ({"pre_vote": True, "replica_epoch": 1}, ErrorCode.NONE, False),
    ],
)
async def test_vote(
    leader: Replica, fields: dict[str, Any], error: ErrorCode, is_granted: bool
) -> None:
    response = await ask(leader, vote(**fields))
    assert response.error_code == 0
    partition = response.topics[0].partitions[0]
    assert (partition.error_code, partition.vote_granted) == (error, is_granted)


async def test_a_vote_is_given_once_and_repeated(leader: Replica) -> None:
    granted = [
        (await ask(leader, vote(replica_id=replica_id))).topics[0].partitions[0].vote_granted
        for replica_id in (2, 3, 2)
    ]
    assert granted == [True, False, True]


@pytest.mark.parametrize("cluster_id", ["another", ""])
async def test_another_cluster_is_refused_before_anything_else(
    leader: Replica, cluster_id: str
) -> None:
    requests: list[Message] = [
        VoteRequest(cluster_id),
        BeginQuorumEpochRequest(cluster_id),
        EndQuorumEpochRequest(cluster_id),
        FetchRequest(cluster_id),
        FetchSnapshotRequest(cluster_id),
    ]
    for request in requests:
        response = await ask(leader, request)
        assert response.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
        topics = response.responses if isinstance(response, FetchResponse) else response.topics
        assert topics == []


async def test_requests_of_the_wrong_shape_are_refused_as_a_whole(leader: Replica) -> None:
    other = VoteRequest.TopicData("other", [VoteRequest.PartitionData()])
    second = VoteRequest.TopicData(TOPIC, [VoteRequest.PartitionData(partition_index=1)])
    requests: list[Message] = [
        VoteRequest(CLUSTER_ID),
        VoteRequest(CLUSTER_ID, topics=[other]),
        VoteRequest(CLUSTER_ID, topics=[second]),
        VoteRequest(CLUSTER_ID, topics=[second, second]),
        BeginQuorumEpochRequest(CLUSTER_ID),
        EndQuorumEpochRequest(CLUSTER_ID),
        FetchRequest(CLUSTER_ID),
        FetchSnapshotRequest(CLUSTER_ID),
    ]
    for request in requests:
        assert (await ask(leader, request)).error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("leader_id", "epoch", "error"),
    [
        (2, 0, ErrorCode.FENCED_LEADER_EPOCH),
        (-1, 1, ErrorCode.INVALID_REQUEST),
        (2, 1, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (2, 7, ErrorCode.NONE),
    ],
)
async def test_leaders_that_come_and_go(
    leader: Replica, leader_id: int, epoch: int, error: ErrorCode
) -> None:
    begin = BeginQuorumEpochRequest.PartitionData(leader_id=leader_id, leader_epoch=epoch)
    topic = BeginQuorumEpochRequest.TopicData(TOPIC, [begin])
    response = await ask(leader, BeginQuorumEpochRequest(CLUSTER_ID, 1, [topic]))
    partition = response.topics[0].partitions[0]
    assert (response.error_code, partition.error_code) == (0, error)
    assert partition.leader_epoch == max(epoch, 1)
    end = EndQuorumEpochRequest.PartitionData(leader_id=leader_id, leader_epoch=epoch)
    end_topic = EndQuorumEpochRequest.TopicData(TOPIC, [end])
    response = await ask(leader, EndQuorumEpochRequest(CLUSTER_ID, [end_topic]))
    assert response.topics[0].partitions[0].error_code == error


def fetch(
    *, replica_id: int = 7, max_wait_ms: int = 0, topic_id: bytes = METADATA_TOPIC_ID, **fields: Any
) -> FetchRequest:
    usual: dict[str, Any] = {"current_leader_epoch": 1, "fetch_offset": 3, "last_fetched_epoch": 1}
    partition = FetchRequest.FetchPartition(**usual | fields)
    return FetchRequest(
        CLUSTER_ID,
        replica_state=FetchRequest.ReplicaState(replica_id),
        max_wait_ms=max_wait_ms,
        topics=[FetchRequest.FetchTopic(topic_id=topic_id, partitions=[partition])],
    )


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({}, ErrorCode.NONE),
        ({"max_wait_ms": -1}, ErrorCode.INVALID_REQUEST),
        ({"fetch_offset": -1}, ErrorCode.INVALID_REQUEST),
        ({"last_fetched_epoch": -1}, ErrorCode.INVALID_REQUEST),
        ({"last_fetched_epoch": 2}, ErrorCode.INVALID_REQUEST),
        ({"current_leader_epoch": 0, "last_fetched_epoch": 0}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"current_leader_epoch": 2}, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ({"replica_id": 1}, ErrorCode.UNKNOWN_SERVER_ERROR),
        ({"replica_id": -1}, ErrorCode.NONE),
    ],
)
async def test_fetch(leader: Replica, fields: dict[str, Any], error: ErrorCode) -> None:
    response = await ask(leader, fetch(**fields))
    partition = response.responses[0].partitions[0]
    assert (response.error_code, partition.error_code) == (0, error)
    assert partition.high_watermark == (3 if error == ErrorCode.NONE else -1)
    current = partition.current_leader
    assert (current.leader_id, current.leader_epoch) == (1, 1)
    endpoint = response.node_endpoints[0]
    assert (endpoint.node_id, endpoint.host) == (1, "127.0.0.1")
    assert bytes(partition.records) == b""


async def test_fetch_of_a_topic_that_is_not_the_metadata(leader: Replica) -> None:
    named = await ask(leader, fetch(topic_id=b"t" * 16))
    # Without topic ids there is no way to ask for it at all.
    unnamed = await ask(leader, FetchRequest(CLUSTER_ID, topics=[]), 12)
    assert named.error_code == unnamed.error_code == ErrorCode.INVALID_REQUEST


async def test_fetch_after_the_end_diverges(leader: Replica) -> None:
    response = await ask(leader, fetch(fetch_offset=9))
    diverging = response.responses[0].partitions[0].diverging_epoch
    assert (diverging.epoch, diverging.end_offset) == (1, 3)


async def test_fetch_waits_as_long_as_it_may_and_no_longer(leader: Replica) -> None:
    response = await ask(leader, fetch(max_wait_ms=1, high_watermark=3))
    assert bytes(response.responses[0].partitions[0].records) == b""


def snapshot_fetch(
    *, offset: int = 3, position: int = 0, topic: str = TOPIC, epoch: int = 1
) -> FetchSnapshotRequest:
    partition = FetchSnapshotRequest.PartitionSnapshot(
        current_leader_epoch=epoch,
        snapshot_id=FetchSnapshotRequest.SnapshotId(offset, 1),
        position=position,
    )
    topics = [FetchSnapshotRequest.TopicSnapshot(topic, [partition])]
    return FetchSnapshotRequest(CLUSTER_ID, 7, 100, topics)


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({}, ErrorCode.NONE),
        ({"offset": 2}, ErrorCode.SNAPSHOT_NOT_FOUND),
        ({"position": -1}, ErrorCode.POSITION_OUT_OF_RANGE),
        ({"position": 1 << 40}, ErrorCode.POSITION_OUT_OF_RANGE),
        ({"epoch": 0}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"epoch": 2}, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ({"topic": "other"}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
async def test_fetch_snapshot(leader: Replica, fields: dict[str, Any], error: ErrorCode) -> None:
    await leader.snapshot(3, [b"a", b"b"])
    response = await ask(leader, snapshot_fetch(**fields))
    partition = response.topics[0].partitions[0]
    assert (response.error_code, partition.error_code) == (0, error)
    assert len(partition.unaligned_records or b"") == (100 if error == ErrorCode.NONE else 0)


def describe(topic: str = TOPIC) -> DescribeQuorumRequest:
    partition = DescribeQuorumRequest.PartitionData()
    return DescribeQuorumRequest([DescribeQuorumRequest.TopicData(topic, [partition])])


@pytest.mark.parametrize("version", [0, 1, 2])
async def test_describe_quorum(leader: Replica, version: int) -> None:
    await ask(leader, fetch(fetch_offset=1, last_fetched_epoch=1))
    response = await ask(leader, describe(), version)
    partition = response.topics[0].partitions[0]
    assert (partition.error_code, partition.leader_id, partition.high_watermark) == (0, 1, 3)
    assert [voter.replica_id for voter in partition.current_voters] == [1]
    assert [(one.replica_id, one.log_end_offset) for one in partition.observers] == [(7, 1)]
    assert len(response.nodes) == (1 if version == 2 else 0)


async def test_describe_quorum_of_another_topic_and_by_a_replica_that_does_not_lead(
    leader: Replica, lab: Lab
) -> None:
    response = await ask(leader, describe("other"))
    assert response.topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    observer = lab.observer(7, leader.server)
    await observer.start()
    response = await ask(observer, describe())
    assert response.topics[0].partitions[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


class PlayedPeer(PeerConnection):
    """A leader that accepts every voter, and knows AddRaftVoter up to one version."""

    def __init__(self, version: int) -> None:
        self._version = version
        self.asked: list[Message] = []

    def version_for(self, message: type[Message]) -> int:
        return min(self._version, message.MAX_VERSION)

    async def request(self, message: Message, kind: type[Response], *, timeout_ms: int) -> Response:
        assert timeout_ms == SETTINGS.raft.request_timeout_ms
        self.asked.append(message)
        answer = AddRaftVoterResponse()
        assert isinstance(answer, kind)
        return answer


def joining(*, acks_when_committed: bool) -> core.AddRaftVoterRequest:
    return core.AddRaftVoterRequest(
        key_of(2), (endpoint_of(2),), acks_when_committed=acks_when_committed
    )


async def test_who_joins_by_itself_does_not_ask_a_leader_that_answers_at_the_commit() -> None:
    """It does not fetch until the response comes, and the commit may need its fetch."""
    peer = PlayedPeer(version=0)
    with pytest.raises(NoCommonVersionError, match="joins by itself"):
        await ask_about_voters(peer, joining(acks_when_committed=False), settings=SETTINGS)
    assert peer.asked == []


@pytest.mark.parametrize(("version", "acks_when_committed"), [(1, False), (1, True), (0, True)])
async def test_other_requests_are_sent(version: int, acks_when_committed: bool) -> None:
    peer = PlayedPeer(version)
    request = joining(acks_when_committed=acks_when_committed)
    response = await ask_about_voters(peer, request, settings=SETTINGS)
    assert isinstance(response, core.AddRaftVoterResponse)
    assert response.error is core.Error.NONE
    [asked] = peer.asked
    assert isinstance(asked, AddRaftVoterRequest)
    assert asked.ack_when_committed == acks_when_committed


def wanting(value: str | None) -> MetadataImage:
    return MetadataImage().apply(ConfigRecord(BROKER, "", TARGET_VOTERS, value), 0, 0)


def answer(api: RaftApi[Message], image: MetadataImage, request: Message) -> tuple[int, str] | None:
    """Return the error and message of the refusal, None where the replica gets the request."""
    assert api.admit is not None
    response = api.admit(image, request)
    if response is None:
        return None
    assert isinstance(response, AddRaftVoterResponse | RemoveRaftVoterResponse)
    return response.error_code, response.error_message or ""


def adding(value: str | None, node_id: int, directory_id: bytes = DISK) -> tuple[int, str] | None:
    request = AddRaftVoterRequest(voter_id=node_id, voter_directory_id=directory_id)
    return answer(add_raft_voter.API, wanting(value), request)


def removing(value: str | None, node_id: int, directory_id: bytes = DISK) -> tuple[int, str] | None:
    request = RemoveRaftVoterRequest(voter_id=node_id, voter_directory_id=directory_id)
    return answer(remove_raft_voter.API, wanting(value), request)


@pytest.mark.parametrize("value", [None, "", "four", "4,4", "9" * 5_000])
def test_without_a_target_that_can_be_read_every_change_is_let_through(value: str | None) -> None:
    assert adding(value, 7) is None
    assert removing(value, 4) is None


def test_a_target_may_be_added_by_hand_and_no_other() -> None:
    assert adding("4,5", 4) is None
    text = f"Voter 6:{DISK_TEXT} is none of {TARGETS_TEXT}"
    assert adding("4,5", 6) == (ErrorCode.REASSIGNMENT_IN_PROGRESS, text)


def test_any_voter_may_be_removed_by_hand_but_no_target() -> None:
    assert removing("4,5", 6) is None
    text = f"Voter 5:{DISK_TEXT} is one of {TARGETS_TEXT}"
    assert removing("4,5", 5) == (ErrorCode.REASSIGNMENT_IN_PROGRESS, text)


def test_a_target_with_its_directory_is_not_another_directory_of_that_node() -> None:
    value = f"4:{DISK_TEXT},5"
    assert adding(value, 4) is None
    assert removing(value, 4) is not None
    assert adding(value, 4, OTHER_DISK) is not None
    assert removing(value, 4, OTHER_DISK) is None


def test_a_request_without_a_directory_is_refused_by_the_id_alone() -> None:
    refused = adding("4,5", 6, ZERO_UUID)
    assert refused is not None
    assert refused[1].startswith("Voter 6 is none of ")


def test_a_stray_value_of_a_single_broker_refuses_nothing() -> None:
    image = MetadataImage().apply(ConfigRecord(BROKER, "1", TARGET_VOTERS, "4"), 0, 0)
    request = AddRaftVoterRequest(voter_id=6, voter_directory_id=DISK)
    assert answer(add_raft_voter.API, image, request) is None
