"""``kvorum quorum`` as a command: what describe prints, and its client beside odd nodes."""

import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest
from tests.support.fake_node import Answer, FakeNode, client_of
from tests.support.ports import free_ports

from kvorum.cli import INTERRUPTED, main
from kvorum.cli.admin.client import AdminClient
from kvorum.cli.admin.cluster_calls import describe_cluster
from kvorum.cli.admin.errors import AdminError, CallFailedError
from kvorum.cli.admin.nodes import AdminSettings
from kvorum.cli.admin.quorum_calls import (
    DESCRIBE_QUORUM,
    QuorumInfo,
    VoterEndpoint,
    add_voter_call,
    remove_voter_call,
)
from kvorum.cli.quorum_tool.describe import print_replication, print_status
from kvorum.metadata.address import Address
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from kvorum.wire.messages.describe_cluster import DescribeClusterResponse
from kvorum.wire.messages.describe_quorum import DescribeQuorumResponse
from kvorum.wire.messages.remove_raft_voter import RemoveRaftVoterResponse
from kvorum.wire.own_messages.quorum_reassignment import QuorumReassignment
from kvorum.wire.primitives import Message
from kvorum.wire.quorum_reassignment_tag import add_reassignment
from kvorum.wire.uuid_text import ZERO_UUID, uuid_to_text

Replica = DescribeQuorumResponse.ReplicaState
Target = QuorumReassignment.Target
DIRECTORY = bytes(range(16))
NAME = uuid_to_text(DIRECTORY)
NOBODY = uuid_to_text(ZERO_UUID)
REMOVE = ("remove-controller", "-i", "1", "-d", "JEXY6aqzQY-32P5TStzaFg")
REASSIGN = ("quorum", "--bootstrap-server", "127.0.0.1:1", "reassign")
ERRORS = "org.apache.kafka.common.errors"
TOPIC = "__cluster_metadata"


def quorum(
    voters: list[Replica],
    observers: list[Replica],
    *,
    leader_id: int = 1,
    reassignment: QuorumReassignment | None = None,
) -> DescribeQuorumResponse:
    partition = DescribeQuorumResponse.PartitionData(
        leader_id=leader_id,
        leader_epoch=7,
        high_watermark=95,
        current_voters=voters,
        observers=observers,
    )
    if reassignment is not None:
        add_reassignment(partition, reassignment)
    listeners = [
        DescribeQuorumResponse.Listener("CONTROLLER", "::1", 9093),
        DescribeQuorumResponse.Listener("OTHER", "two", 9094),
    ]
    return DescribeQuorumResponse(
        topics=[DescribeQuorumResponse.TopicData("__cluster_metadata", [partition])],
        nodes=[DescribeQuorumResponse.Node(1, listeners), DescribeQuorumResponse.Node(2, [])],
    )


async def status_of(response: DescribeQuorumResponse) -> None:
    async with (
        FakeNode(DescribeQuorum=lambda _: response) as node,
        client_of(node.settings(asks_controllers=True)) as client,
    ):
        await print_status(client)


async def table_of(response: DescribeQuorumResponse, *, is_human_readable: bool = False) -> None:
    async with (
        FakeNode(DescribeQuorum=lambda _: response) as node,
        client_of(node.settings()) as client,
    ):
        await print_replication(client, is_human_readable=is_human_readable)


async def test_the_status(capsys: pytest.CaptureFixture[str]) -> None:
    leader = Replica(1, DIRECTORY, 100, 2000, 2000)
    await status_of(
        quorum([Replica(2, DIRECTORY, 90, 1900, 1500), leader], [Replica(3, ZERO_UUID, 100)])
    )
    assert capsys.readouterr().out.splitlines() == [
        "ClusterId:              cluster",
        "LeaderId:               1",
        "LeaderEpoch:            7",
        "HighWatermark:          95",
        "MaxFollowerLag:         10",
        "MaxFollowerLagTimeMs:   500",
        (
            f'CurrentVoters:          [{{"id": 2, "directoryId": "{NAME}"}}, '
            f'{{"id": 1, "directoryId": "{NAME}", '
            '"endpoints": ["CONTROLLER://[::1]:9093", "OTHER://two:9094"]}]'
        ),
        'CurrentObservers:       [{"id": 3}]',
    ]


@pytest.mark.parametrize(
    ("follower", "lag"), [(Replica(2, DIRECTORY, 100), "0"), (Replica(2, DIRECTORY, 99), "-1")]
)
async def test_the_time_a_follower_is_behind(
    follower: Replica, lag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    await status_of(quorum([Replica(1, DIRECTORY, 100, 2000, 2000), follower], []))
    assert f"\nMaxFollowerLagTimeMs:   {lag}\n" in capsys.readouterr().out


async def test_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    voters = [Replica(20, DIRECTORY, 90, 1900, 1500), Replica(1, DIRECTORY, 100, 2000, 2000)]
    await table_of(quorum(voters, [Replica(3, ZERO_UUID, 0)]))
    assert capsys.readouterr().out == (
        "NodeId\tDirectoryId           \tLogEndOffset\tLag\tLastFetchTimestamp\t"
        "LastCaughtUpTimestamp\tStatus  \t\n"
        f"1     \t{NAME}\t100         \t0  \t2000              \t"
        "2000                 \tLeader  \t\n"
        f"20    \t{NAME}\t90          \t10 \t1900              \t"
        "1500                 \tFollower\t\n"
        f"3     \t{NOBODY}\t0           \t100\t-1                \t"
        "-1                   \tObserver\t\n"
    )


TARGETS = [Target(1, DIRECTORY, 100), Target(3, DIRECTORY, 90, 1900), Target(4)]


LEADER, OBSERVER = Replica(1, DIRECTORY, 100, 2000, 2000), Replica(3, DIRECTORY, 90, 1900, 1500)


@pytest.mark.parametrize(
    ("text", "after"),
    [("", []), ("target 4 is silent", ["ReassignmentWaitsFor:   target 4 is silent"])],
)
async def test_target_voters_are_shown_below_the_output_of_kafkas_tool(
    text: str, after: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    await status_of(quorum([LEADER], [OBSERVER]))
    usual = capsys.readouterr().out.splitlines()
    assert len(usual) == 8
    await status_of(quorum([LEADER], [OBSERVER], reassignment=QuorumReassignment(TARGETS, 3, text)))
    assert capsys.readouterr().out.splitlines() == [
        *usual,
        (
            f'TargetVoters:           [{{"id": 1, "directoryId": "{NAME}", '
            '"endpoints": ["CONTROLLER://[::1]:9093", "OTHER://two:9094"]}, '
            f'{{"id": 3, "directoryId": "{NAME}"}}, {{"id": 4}}]'
        ),
        *after,
    ]


async def test_targets_in_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    """An observer that is to become a voter is a target, and so is a node that is not there yet."""
    other = Replica(5, DIRECTORY, 80)
    await table_of(
        quorum([LEADER], [OBSERVER, other], reassignment=QuorumReassignment(TARGETS, 3, "silent"))
    )
    rows = [
        [cell.strip() for cell in line.split("\t")]
        for line in capsys.readouterr().out.splitlines()[1:]
    ]
    assert [[row[0], row[1], row[2], row[3], row[6]] for row in rows] == [
        ["1", NAME, "100", "0", "Leader"],
        ["3", NAME, "90", "10", "Target"],
        ["5", NAME, "80", "20", "Observer"],
        ["4", NOBODY, "-1", "101", "Target"],
    ]


async def test_times_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    before_ms = int(time.time() * 1000) - 5000
    await table_of(
        quorum([Replica(1, DIRECTORY, 100, before_ms, before_ms)], []), is_human_readable=True
    )
    number, *words = capsys.readouterr().out.splitlines()[1].split("\t")[4].split()
    assert words == ["ms", "ago"]
    assert 5000 <= int(number) < 60_000


async def test_clocks_that_differ() -> None:
    later_ms = int(time.time() * 1000) + 3_600_000
    response = quorum([Replica(1, DIRECTORY, 100, later_ms, later_ms)], [])
    with pytest.raises(AdminError, match=r"possible drift in system clock\.\nCurrent timestamp is"):
        await table_of(response, is_human_readable=True)


async def test_a_leader_that_is_not_a_voter() -> None:
    with pytest.raises(AdminError, match=r"^No value present$"):
        await status_of(quorum([Replica(1, DIRECTORY, 100)], [], leader_id=2))


def test_options_before_the_sub_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["quorum", "--bootstrap-server", "127.0.0.1:1", *REMOVE, "--dry-run"]) == 0
    assert capsys.readouterr().out == (
        "DRY RUN of removing KRaft controller 1 with directory id JEXY6aqzQY-32P5TStzaFg\n"
    )


def test_help_is_that_of_the_tool(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["quorum", "-h"]) == 0
    assert "--bootstrap-controller" in capsys.readouterr().out
    assert main(["quorum", "remove-controller", "-h"]) == 0
    assert "--controller-directory-id" in capsys.readouterr().out


def test_wrong_usage_ends_with_one_as_kafkas_tool_does(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["quorum", "describe"]) == 1
    assert capsys.readouterr().err.endswith(
        "kvorum quorum: error: one of the arguments --bootstrap-server --bootstrap-controller is "
        "required\n"
    )


def test_a_cause_is_a_second_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["quorum", "--bootstrap-server", "x", "describe", "--status"]) == 1
    assert capsys.readouterr().err == (
        "Failed to create new KafkaAdminClient\n"
        "Caused by: org.apache.kafka.common.config.ConfigException: "
        "Invalid url in bootstrap.servers: x\n"
    )


def test_a_mechanism_that_only_kafkas_clients_have_is_refused(
    tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path_factory.mktemp("settings") / "client.properties"
    file.write_text(
        "security.protocol=sasl_plaintext\nsasl.mechanism=GSSAPI\nsasl.jaas.config=x required;\n"
    )
    arguments = ["--command-config", str(file), "--bootstrap-server", "127.0.0.1:1", "describe"]
    assert main(["quorum", *arguments, "--status"]) == 1
    assert "sasl.mechanism is GSSAPI, but kvorum's clients log in by PLAIN, SCRAM-SHA-256" in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ((), "one of --voters, --cancel, --status and --wait is required"),
        (("--voters", "4,x"), "'x' is no target voter"),
        (("--voters", "4,4"), "list node 4 twice"),
        (("--voters", "4:short"), "is no directory id of node 4"),
        (("--voters", "4", "--cancel"), "not allowed with argument --voters"),
        (("--status", "--dry-run"), "--dry-run goes with --voters alone"),
        (("--voters", "4", "--dry-run", "--wait"), "--dry-run goes with --voters alone"),
        (("--cancel", "--wait"), "--wait goes with --voters, or alone"),
        (("--bogus",), "unrecognized arguments: --bogus"),
    ],
)
def test_wrong_usage_of_reassign_ends_with_two(
    options: tuple[str, ...], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*REASSIGN, *options]) == 2
    assert problem in capsys.readouterr().err


def test_help_of_reassign_names_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*REASSIGN, "-h"]) == 0
    told = capsys.readouterr().out
    assert all(f"--{name}" in told for name in ("voters", "cancel", "status", "dry-run", "wait"))


def test_an_interrupted_wait_says_that_the_reassignment_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def interrupt(*_: object, **__: object) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr("kvorum.cli.quorum.follow_reassignment", interrupt)
    assert main([*REASSIGN, "--wait"]) == INTERRUPTED
    assert capsys.readouterr().err == (
        "kvorum quorum: interrupted: the reassignment goes on without this command; "
        "--cancel stops it\n"
    )


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
    (port,) = free_ports(1)
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
