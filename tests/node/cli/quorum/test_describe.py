"""The output of ``kvorum quorum describe`` about a quorum."""

import time

import pytest
from tests.support.fake_node import FakeNode, client_of

from kvorum.cli.admin.errors import AdminError
from kvorum.cli.quorum_tool.describe import print_replication, print_status
from kvorum.wire.messages.describe_quorum import DescribeQuorumResponse
from kvorum.wire.own_messages.quorum_reassignment import QuorumReassignment
from kvorum.wire.quorum_reassignment_tag import add_reassignment
from kvorum.wire.uuid_text import ZERO_UUID, uuid_to_text

Replica = DescribeQuorumResponse.ReplicaState
Target = QuorumReassignment.Target
DIRECTORY = bytes(range(16))
NAME = uuid_to_text(DIRECTORY)
NOBODY = uuid_to_text(ZERO_UUID)


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
    async with FakeNode(DescribeQuorum=lambda _: response) as node:
        settings = node.settings(asks_controllers=True)
        async with client_of(settings) as client:
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
    ago = capsys.readouterr().out.splitlines()[1].split("\t")[4]
    number, *words = ago.split()
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
