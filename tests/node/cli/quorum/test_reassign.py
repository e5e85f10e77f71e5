"""``kvorum quorum reassign``: what it asks for, what it prints, and how it ends."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TypeVar

import pytest
from tests.support.fake_node import FakeNode, client_of

from kvorum.cli.admin.errors import AdminError
from kvorum.cli.quorum_tool.reassign import (
    cancel_reassignment,
    follow_reassignment,
    print_plan,
    print_reassignment,
    start_reassignment,
)
from kvorum.metadata.voters import parse_target_voters
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from kvorum.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from kvorum.wire.messages.describe_quorum import DescribeQuorumResponse
from kvorum.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kvorum.wire.messages.list_partition_reassignments import ListPartitionReassignmentsResponse
from kvorum.wire.own_messages.quorum_reassignment import QuorumReassignment
from kvorum.wire.primitives import Message
from kvorum.wire.quorum_reassignment_tag import add_reassignment
from kvorum.wire.uuid_text import ZERO_UUID, uuid_to_text

METADATA = "__cluster_metadata"
FETCH_TIMEOUT = "controller.quorum.fetch.timeout.ms"
NOW_MS = 1_000_000
Found = TypeVar("Found")


def directory(node_id: int) -> bytes:
    return bytes([node_id]) * 16


def named(*node_ids: int) -> str:
    return ",".join(f"{one}:{uuid_to_text(directory(one))}" for one in node_ids)


def replica(
    node_id: int, *, is_silent: bool = False, directory_id: bytes | None = None
) -> DescribeQuorumResponse.ReplicaState:
    if directory_id is None:
        directory_id = directory(node_id)
    age_ms = 0 if node_id == 1 else 60_000 if is_silent else 10
    return DescribeQuorumResponse.ReplicaState(node_id, directory_id, 100, NOW_MS - age_ms, -1)


def quorum(
    voters: Sequence[DescribeQuorumResponse.ReplicaState],
    observers: Sequence[DescribeQuorumResponse.ReplicaState] = (),
    reassignment: QuorumReassignment | None = None,
) -> DescribeQuorumResponse:
    partition = DescribeQuorumResponse.PartitionData(
        leader_id=voters[0].replica_id, current_voters=list(voters), observers=list(observers)
    )
    if reassignment is not None:
        add_reassignment(partition, reassignment)
    return DescribeQuorumResponse(topics=[DescribeQuorumResponse.TopicData(METADATA, [partition])])


def going_to(
    *node_ids: int, reason: int = 0, text: str = "", unknown: Sequence[int] = ()
) -> QuorumReassignment:
    targets = [QuorumReassignment.Target(one, directory(one), 100, NOW_MS) for one in node_ids]
    targets += [QuorumReassignment.Target(one) for one in unknown]
    return QuorumReassignment(targets, reason, text)


def altered(code: ErrorCode = ErrorCode.NONE, message: str | None = None) -> Message:
    partition = AlterPartitionReassignmentsResponse.ReassignablePartitionResponse(0, code, message)
    topic = AlterPartitionReassignmentsResponse.ReassignableTopicResponse(METADATA, [partition])
    return AlterPartitionReassignmentsResponse(error_message=None, responses=[topic])


def configured(code: ErrorCode = ErrorCode.NONE, message: str | None = None) -> Message:
    response = IncrementalAlterConfigsResponse.AlterConfigsResourceResponse(code, message, 4, "")
    return IncrementalAlterConfigsResponse(responses=[response])


def listed(*, is_wanted: bool) -> Message:
    topic = ListPartitionReassignmentsResponse.OngoingTopicReassignment(METADATA, [])
    topics = [topic] if is_wanted else []
    return ListPartitionReassignmentsResponse(error_message=None, topics=topics)


@dataclass(frozen=True)
class Targets:
    """The target voters in the answer of DescribeConfigs: their text, None if it is hidden."""

    is_there: bool = True
    value: str | None = None


NO_TARGETS = Targets(is_there=False)


def recorded(targets: Targets, code: ErrorCode = ErrorCode.NONE) -> Message:
    config = DescribeConfigsResponse.DescribeConfigsResourceResult(
        "kvorum.quorum.target.voters", targets.value, is_sensitive=targets.value is None
    )
    result = DescribeConfigsResponse.DescribeConfigsResult(
        code, None, 4, "", [config] if targets.is_there else []
    )
    return DescribeConfigsResponse(results=[result])


class Leader(FakeNode):
    """A leader that describes one quorum after the other, and stays with the last."""

    def __init__(
        self,
        *described: DescribeQuorumResponse,
        wanted: Sequence[bool] = (False,),
        recorded_targets: Sequence[Targets] = (NO_TARGETS,),
    ):
        self.described = list(described)
        self.recorded_targets = list(recorded_targets)
        self.wanted = list(wanted)
        super().__init__(
            DescribeQuorum=lambda _: self._following(self.described),
            ListPartitionReassignments=lambda _: listed(is_wanted=self._following(self.wanted)),
            AlterPartitionReassignments=lambda _: altered(),
            IncrementalAlterConfigs=lambda _: configured(),
            DescribeConfigs=lambda _: recorded(self._following(self.recorded_targets)),
        )

    def _following(self, told: list[Found]) -> Found:
        return told.pop(0) if len(told) > 1 else told[0]


async def start(node: Leader, targets: str, *, asks_controllers: bool = False) -> None:
    async with node, client_of(node.settings(asks_controllers=asks_controllers)) as client:
        await start_reassignment(client, parse_target_voters(targets))


async def plan(node: Leader, targets: str, *, asks_controllers: bool = False) -> None:
    async with node, client_of(node.settings(asks_controllers=asks_controllers)) as client:
        await print_plan(client, parse_target_voters(targets))


async def cancel(node: Leader) -> None:
    async with node, client_of(node.settings()) as client:
        await cancel_reassignment(client)


async def show(node: Leader) -> None:
    async with node, client_of(node.settings()) as client:
        await print_reassignment(client)


async def follow(node: Leader, targets: str | None) -> bool:
    voters = None if targets is None else parse_target_voters(targets)
    async with node, client_of(node.settings()) as client:
        return await follow_reassignment(client, voters, pause_seconds=0)


@pytest.mark.parametrize("asks_controllers", [False, True])
async def test_voters_by_ids_are_a_reassignment_of_the_partition(
    asks_controllers: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    node = Leader(quorum([replica(1)]))
    await start(node, "6,4,5", asks_controllers=asks_controllers)
    request = node.asked[-1]
    assert isinstance(request, AlterPartitionReassignmentsRequest)
    (topic,) = request.topics
    assert (topic.name, topic.partitions[0].replicas) == (METADATA, [4, 5, 6])
    assert capsys.readouterr().out == "The quorum is being reassigned to voters 4,5,6.\n"


async def test_voters_with_a_directory_are_a_configuration() -> None:
    node = Leader(quorum([replica(1)]))
    await start(node, f"4,{named(5)}")
    request = node.asked[-1]
    assert isinstance(request, IncrementalAlterConfigsRequest)
    assert not request.validate_only
    (resource,) = request.resources
    assert (resource.resource_type, resource.resource_name) == (4, "")
    (config,) = resource.configs
    assert (config.name, config.config_operation) == ("kvorum.quorum.target.voters", 0)
    assert config.value == f"4,{named(5)}"


async def test_a_refusal_is_one_line() -> None:
    text = "Node 9 is neither a voter nor a registered controller."
    node = Leader(quorum([replica(1)]))
    node.answer(
        "AlterPartitionReassignments", lambda _: altered(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)
    )
    with pytest.raises(AdminError, match=rf"InvalidReplicaAssignmentException: {text}$"):
        await start(node, "9")


async def test_cancelling_wants_no_replicas(capsys: pytest.CaptureFixture[str]) -> None:
    node = Leader(quorum([replica(1), replica(4)]))
    await cancel(node)
    request = node.asked[1]
    assert isinstance(request, AlterPartitionReassignmentsRequest)
    assert request.topics[0].partitions[0].replicas is None
    assert capsys.readouterr().out == (
        f"The reassignment of the quorum is cancelled. The voters are {named(1, 4)}.\n"
    )


async def test_the_status_names_what_is_to_come_and_to_go(
    capsys: pytest.CaptureFixture[str],
) -> None:
    told = going_to(4, 2, reason=3, text="target 5 is silent", unknown=(5,))
    await show(Leader(quorum([replica(1), replica(2)], [replica(4)], told)))
    assert capsys.readouterr().out.splitlines() == [
        f"TargetVoters:           {named(4, 2)},5",
        f"CurrentVoters:          {named(1, 2)}",
        f"Adding:                 {named(4)},5",
        f"Removing:               {named(1)}",
        "WaitsFor:               target 5 is silent",
    ]


async def test_the_status_without_a_reassignment(capsys: pytest.CaptureFixture[str]) -> None:
    await show(Leader(quorum([replica(1)])))
    assert capsys.readouterr().out == "No reassignment of the quorum is under way.\n"


async def test_a_dry_run_prints_every_step_and_only_has_it_checked(
    capsys: pytest.CaptureFixture[str],
) -> None:
    node = Leader(quorum([replica(1), replica(2), replica(3, is_silent=True)], [replica(4)]))
    await plan(node, "2,4")
    asked = [request.NAME for request in node.asked]
    checked = next(one for one in node.asked if isinstance(one, IncrementalAlterConfigsRequest))
    assert checked.validate_only
    assert "AlterPartitionReassignmentsRequest" not in asked
    assert capsys.readouterr().out.splitlines() == [
        f"1. remove voter {named(3)}: 2 voters, 0 may fail",
        f"2. add voter {named(4)}: 3 voters, 1 may fail",
        "3. hand over the leadership: 3 voters, 1 may fail",
        f"4. remove voter {named(1)}: 2 voters, 0 may fail",
    ]


async def test_a_dry_run_refuses_what_would_stop_on_the_way(
    capsys: pytest.CaptureFixture[str],
) -> None:
    node = Leader(quorum([replica(1)], [replica(4), replica(5, is_silent=True)]))
    problem = "The reassignment would stop after step 1: target 5:.* does not fetch"
    with pytest.raises(AdminError, match=problem):
        await plan(node, "1,4,5")
    assert capsys.readouterr().out == f"1. add voter {named(4)}: 2 voters, 0 may fail\n"


async def test_a_dry_run_refuses_to_lose_the_majority() -> None:
    node = Leader(quorum([replica(1), replica(2), replica(3, is_silent=True)]))
    problem = "The reassignment would not begin: without voter 1.* no majority"
    with pytest.raises(AdminError, match=problem):
        await plan(node, "2,3")


def fetch_timeout(text: str | None) -> Message:
    """Return what a leader says of its own configuration."""
    config = DescribeConfigsResponse.DescribeConfigsResourceResult(FETCH_TIMEOUT, text)
    result = DescribeConfigsResponse.DescribeConfigsResult(0, None, 4, "1", [config])
    return DescribeConfigsResponse(results=[result])


REFUSED = recorded(NO_TARGETS, ErrorCode.INVALID_REQUEST)


@pytest.mark.parametrize(
    ("told", "asks_controllers", "counts_as_down"),
    [
        (fetch_timeout("60000"), True, True),
        (fetch_timeout("60001"), True, False),
        (fetch_timeout(None), True, True),
        (fetch_timeout("soon"), True, True),
        (REFUSED, True, True),
        (fetch_timeout("60001"), False, True),
    ],
    ids=["short", "long", "hidden", "no-number", "refused", "by-brokers"],
)
async def test_a_dry_run_takes_the_same_nodes_for_down_as_the_leader(
    told: Message, asks_controllers: bool, counts_as_down: bool
) -> None:
    node = Leader(quorum([replica(1), replica(2), replica(3, is_silent=True)]))
    node.answer("DescribeConfigs", lambda _: told)
    with pytest.raises(AdminError, match="no majority") if counts_as_down else nullcontext():
        await plan(node, "2,3", asks_controllers=asks_controllers)
    named = [
        (one.resource_type, one.resource_name)
        for asked in node.asked
        if isinstance(asked, DescribeConfigsRequest)
        for one in asked.resources
    ]
    assert named == ([(4, "1")] if asks_controllers else [])


async def test_a_dry_run_of_static_voters_is_refused() -> None:
    node = Leader(quorum([replica(1, directory_id=ZERO_UUID)], [replica(4)]))
    with pytest.raises(AdminError, match="would not begin: the voters are static"):
        await plan(node, "4")


async def test_a_dry_run_is_refused_by_the_leaders_check() -> None:
    text = "Node 9 is neither a voter nor a registered controller."
    node = Leader(quorum([replica(1)]))
    node.answer("IncrementalAlterConfigs", lambda _: configured(ErrorCode.INVALID_CONFIG, text))
    with pytest.raises(AdminError, match=text):
        await plan(node, "9")


async def test_waiting_tells_each_change_and_ends_with_the_targets(
    capsys: pytest.CaptureFixture[str],
) -> None:
    blocked = going_to(4, reason=5, text="target 4 is 9 records behind")
    later = going_to(4, reason=5, text="target 4 is 3 records behind")
    node = Leader(
        quorum([replica(1)], [replica(4)], blocked),
        quorum([replica(1)], [replica(4)], later),
        quorum([replica(1), replica(4)], [], going_to(4)),
        # A new leader whose controller is not active yet does not describe it.
        quorum([replica(1), replica(4)], []),
        quorum([replica(1), replica(4)], []),
        quorum([replica(4)]),
        wanted=(True, True, False),
    )
    assert await follow(node, "4")
    assert capsys.readouterr().out.splitlines() == [
        f"Voters: {named(1)}",
        "Waits: target 4 is 9 records behind",
        f"Voters: {named(1, 4)}",
        f"Voters: {named(4)}",
        "The quorum has the target voters.",
    ]


async def test_waiting_for_what_is_cancelled_fails() -> None:
    node = Leader(
        quorum([replica(1)], [replica(4)], going_to(1, 4)), quorum([replica(1)], [replica(4)])
    )
    with pytest.raises(AdminError, match=r"has ended with voters 1:.* it was cancelled"):
        await follow(node, None)


async def test_there_may_be_nothing_to_wait_for() -> None:
    assert not await follow(Leader(quorum([replica(1)])), None)


# -- under a leader that is none of kvorum's ----------------------------------------------------


LEADER_TEXT = (
    "A reassignment of the quorum is wanted, and the leader, node 1, is not one of kvorum's and "
    "takes no step by itself. A controller of kvorum, if one runs, has it take them; its log says "
    "what it waits for."
)


@pytest.mark.parametrize(
    ("targets", "shown"),
    [(Targets(), "hidden by the node that was asked"), (Targets(value="4,5"), "4,5")],
)
async def test_the_status_shows_target_voters_that_the_leader_does_not_know(
    targets: Targets, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    await show(Leader(quorum([replica(1), replica(2)], [replica(4)]), recorded_targets=[targets]))
    assert capsys.readouterr().out.splitlines() == [
        LEADER_TEXT,
        f"TargetVoters:           {shown}",
        f"CurrentVoters:          {named(1, 2)}",
    ]


async def test_target_voters_recorded_once_and_then_described_are_the_leaders(
    capsys: pytest.CaptureFixture[str],
) -> None:
    node = Leader(
        quorum([replica(1)]), quorum([replica(1)], [], going_to(1)), recorded_targets=[Targets()]
    )
    await show(node)
    assert capsys.readouterr().out.startswith("TargetVoters:           1:")


async def test_without_the_right_to_configurations_no_target_voters_show(
    capsys: pytest.CaptureFixture[str],
) -> None:
    node = Leader(quorum([replica(1)]))
    refused = recorded(NO_TARGETS, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    node.answer("DescribeConfigs", lambda _: refused)
    await show(node)
    assert capsys.readouterr().out == "No reassignment of the quorum is under way.\n"


async def test_waiting_goes_on_where_the_server_has_not_read_the_target_voters_yet(
    capsys: pytest.CaptureFixture[str],
) -> None:
    node = Leader(
        *[quorum([replica(1)], [replica(4)])] * 4,
        quorum([replica(4)]),
        recorded_targets=[NO_TARGETS, NO_TARGETS, Targets(), Targets(), NO_TARGETS],
    )
    assert await follow(node, "4")
    assert capsys.readouterr().out.splitlines()[-1] == "The quorum has the target voters."


@pytest.mark.parametrize("targets", ["4", None])
async def test_waiting_lasts_as_long_as_target_voters_are_recorded(
    targets: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    node = Leader(
        *[quorum([replica(1)], [replica(4)])] * 2,
        *[quorum([replica(1), replica(4)])] * 2,
        quorum([replica(4)]),
        recorded_targets=[Targets(), Targets(), Targets(), Targets(), NO_TARGETS],
    )
    assert await follow(node, targets)
    end = "The quorum has the target voters."
    if targets is None:
        end = f"The reassignment has ended with voters {named(4)}."
    assert capsys.readouterr().out.splitlines() == [
        f"Voters: {named(1)}",
        LEADER_TEXT,
        f"Voters: {named(1, 4)}",
        f"Voters: {named(4)}",
        end,
    ]


async def test_a_leader_without_reassignments_is_given_a_configuration(
    capsys: pytest.CaptureFixture[str],
) -> None:
    node = Leader(quorum([replica(1)]))
    node.answer(
        "AlterPartitionReassignments", lambda _: altered(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    )
    await start(node, "4,5")
    await cancel(node)
    asked = [one for one in node.asked if isinstance(one, IncrementalAlterConfigsRequest)]
    configs = [one.resources[0].configs[0] for one in asked]
    assert [(one.config_operation, one.value) for one in configs] == [(0, "4,5"), (1, None)]
    assert "are recorded as a configuration, and not checked" in capsys.readouterr().out
