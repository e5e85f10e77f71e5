"""The admin client against nodes that refuse, hang up, are no controller, or answer nonsense."""

import re
import socket
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest
from tests.support.fake_node import Answer, FakeNode, client_of

from kvorum.cli.admin.client import AdminClient
from kvorum.cli.admin.cluster_calls import describe_cluster
from kvorum.cli.admin.errors import CallFailedError
from kvorum.cli.admin.nodes import AdminSettings
from kvorum.cli.admin.quorum_calls import (
    DESCRIBE_QUORUM,
    QuorumInfo,
    VoterEndpoint,
    add_voter_call,
    remove_voter_call,
)
from kvorum.metadata.address import Address
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from kvorum.wire.messages.describe_cluster import DescribeClusterResponse
from kvorum.wire.messages.describe_quorum import DescribeQuorumResponse
from kvorum.wire.messages.remove_raft_voter import RemoveRaftVoterResponse
from kvorum.wire.primitives import Message

ERRORS = "org.apache.kafka.common.errors"
TOPIC = "__cluster_metadata"


def described(error: ErrorCode = ErrorCode.NONE, *, partition_index: int = 0) -> Message:
    partition = DescribeQuorumResponse.PartitionData(
        partition_index=partition_index,
        error_code=error,
        error_message=None,
        leader_id=1,
        leader_epoch=3,
        high_watermark=5,
        current_voters=[DescribeQuorumResponse.ReplicaState(1, log_end_offset=6)],
    )
    return DescribeQuorumResponse(topics=[DescribeQuorumResponse.TopicData(TOPIC, [partition])])


def in_turn(*answers: Message | None) -> Answer:
    """Answer with each of these once, and with the last from then on."""
    left = list(answers)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


async def describe(settings: AdminSettings, warnings: list[str] | None = None) -> QuorumInfo:
    async with client_of(settings, warnings) as client:
        return await client.call(DESCRIBE_QUORUM)


async def failure_of(settings: AdminSettings) -> CallFailedError:
    with pytest.raises(CallFailedError) as caught:
        await describe(settings)
    return caught.value


async def test_a_leader_in_the_making_is_waited_for() -> None:
    busy = described(ErrorCode.LEADER_NOT_AVAILABLE)
    async with FakeNode(DescribeQuorum=in_turn(busy, busy, described())) as node:
        info = await describe(node.settings())
    assert (info.leader_id, info.leader_epoch, info.high_watermark) == (1, 3, 5)
    assert node.times_asked("DescribeQuorum") == 3


@pytest.mark.parametrize("error", [ErrorCode.NOT_CONTROLLER, ErrorCode.NOT_LEADER_OR_FOLLOWER])
async def test_the_controller_is_looked_for_again_where_it_is_not(error: ErrorCode) -> None:
    async with FakeNode(DescribeQuorum=in_turn(described(error), described())) as node:
        await describe(node.settings(asks_controllers=True))
    assert node.times_asked("DescribeCluster") == 2


async def test_no_controller_is_asked_until_there_is_one() -> None:
    async with FakeNode(DescribeQuorum=in_turn(described())) as node:
        nobody = node.described_cluster(controller_id=-1)
        node.answer("DescribeCluster", in_turn(nobody, nobody, node.described_cluster()))
        await describe(node.settings(asks_controllers=True))
    assert node.times_asked("DescribeCluster") == 3


async def test_a_node_that_hangs_up_is_asked_again() -> None:
    async with FakeNode(DescribeQuorum=in_turn(None, described())) as node:
        info = await describe(node.settings())
    assert info.leader_id == 1


async def test_what_is_not_worth_another_try_is_reported_at_once() -> None:
    refused = described(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    async with FakeNode(DescribeQuorum=in_turn(refused)) as node:
        failure = await failure_of(node.settings())
    text = ErrorCode.CLUSTER_AUTHORIZATION_FAILED.default_message
    assert str(failure) == f"{ERRORS}.ClusterAuthorizationException: {text}"
    assert node.times_asked("DescribeQuorum") == 1


async def test_retries_have_an_end() -> None:
    async with FakeNode(DescribeQuorum=in_turn(described(ErrorCode.LEADER_NOT_AVAILABLE))) as node:
        failure = await failure_of(node.settings(retries_max=2))
    assert node.times_asked("DescribeQuorum") == 3
    assert re.fullmatch(
        rf"{ERRORS}\.TimeoutException: Call\(callName=describeMetadataQuorum, deadlineMs=\d{{13}}, "
        r"tries=3, nextAllowedTryMs=\d{13}\) timed out at \d{13} after 3 attempt\(s\)",
        str(failure),
    )
    assert failure.cause.startswith(f"{ERRORS}.LeaderNotAvailableException: ")


async def test_time_runs_out_between_two_tries() -> None:
    async with FakeNode(DescribeQuorum=in_turn(described(ErrorCode.LEADER_NOT_AVAILABLE))) as node:
        with pytest.raises(CallFailedError, match=r"TimeoutException: "):
            await describe(node.settings(api_timeout_ms=50))


async def test_the_first_try_to_reach_each_node_is_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    warnings: list[str] = []
    async with FakeNode(DescribeQuorum=in_turn(described())) as node:
        nobody = (Address("127.0.0.1", port),)
        settings = replace(node.settings(api_timeout_ms=100), addresses=nobody)
        with pytest.raises(CallFailedError, match="Timed out waiting for a node assignment"):
            await describe(settings, warnings)
    assert warnings == [
        (
            "[AdminClient clientId=adminclient-1] Connection to node -1 "
            f"(/127.0.0.1:{port}) could not be established. Node may not be available."
        )
    ]


async def test_a_controller_that_speaks_for_brokers_is_refused() -> None:
    wrong = DescribeClusterResponse(endpoint_type=1)
    async with FakeNode(DescribeCluster=in_turn(wrong), DescribeQuorum=in_turn(None)) as node:
        failure = await failure_of(node.settings(asks_controllers=True))
    assert str(failure) == (
        f"{ERRORS}.MismatchedEndpointTypeException: Expected response from CONTROLLER endpoint, "
        "but got response from endpoint type 1"
    )


async def test_what_a_node_does_not_offer_is_named() -> None:
    async with FakeNode() as node:
        failure = await failure_of(node.settings())
    expected = f"{ERRORS}.UnsupportedVersionException: The node does not support DESCRIBE_QUORUM"
    assert str(failure) == expected


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (DescribeQuorumResponse(), "0 topics when 1 was expected"),
        (
            DescribeQuorumResponse(topics=[DescribeQuorumResponse.TopicData("other")]),
            f"a topic with name other when {TOPIC} was expected",
        ),
        (
            DescribeQuorumResponse(topics=[DescribeQuorumResponse.TopicData(TOPIC)]),
            f"a topic {TOPIC} with 0 partitions when 1 was expected",
        ),
        (described(partition_index=4), "a single partition with index 4 when 0 was expected"),
    ],
)
async def test_answers_to_other_questions(answer: Message, problem: str) -> None:
    async with FakeNode(DescribeQuorum=in_turn(answer)) as node:
        failure = await failure_of(node.settings())
    expected = f"{ERRORS}.UnknownServerException: DescribeMetadataQuorum received {problem}"
    assert str(failure) == expected


async def add(client: AdminClient) -> None:
    endpoint = VoterEndpoint("CONTROLLER", "::1", 9)
    await client.call(add_voter_call(voter_id=4, directory_id=bytes(16), endpoints=[endpoint]))


async def remove(client: AdminClient) -> None:
    await client.call(remove_voter_call(voter_id=4, directory_id=bytes(16)))


@pytest.mark.parametrize(
    ("change", "name", "answer"),
    [
        (add, "AddRaftVoter", AddRaftVoterResponse),
        (remove, "RemoveRaftVoter", RemoveRaftVoterResponse),
    ],
)
async def test_a_refused_change_is_tried_again_only_at_another_controller(
    change: Callable[[AdminClient], Awaitable[None]],
    name: str,
    answer: type[AddRaftVoterResponse | RemoveRaftVoterResponse],
) -> None:
    moved = answer(error_code=ErrorCode.NOT_CONTROLLER, error_message=None)
    late = answer(error_code=ErrorCode.REQUEST_TIMED_OUT, error_message="too late")
    async with (
        FakeNode(**{name: in_turn(moved, late)}) as node,
        client_of(node.settings()) as client,
    ):
        with pytest.raises(CallFailedError) as caught:
            await change(client)
    assert str(caught.value) == f"{ERRORS}.TimeoutException: too late"
    assert node.times_asked(name) == 2


async def test_a_voter_is_added_as_it_is_described() -> None:
    async with (
        FakeNode(AddRaftVoter=in_turn(AddRaftVoterResponse(error_message=None))) as node,
        client_of(node.settings(request_timeout_ms=900)) as client,
    ):
        await add(client)
    sent = node.asked[-1]
    assert isinstance(sent, AddRaftVoterRequest)
    assert (sent.cluster_id, sent.voter_id, sent.voter_directory_id) == (None, 4, bytes(16))
    assert [(one.name, one.host, one.port) for one in sent.listeners] == [("CONTROLLER", "::1", 9)]
    assert 0 < sent.timeout_ms <= 900


async def test_the_clusters_id() -> None:
    async with FakeNode() as node, client_of(node.settings(asks_controllers=True)) as client:
        assert (await describe_cluster(client)).cluster_id == "cluster"
