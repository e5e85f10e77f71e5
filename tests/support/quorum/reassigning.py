"""A client of a quorum that says which voters it wants, and looks how far that has come."""

from __future__ import annotations

from collections.abc import Sequence

from tests.support.quorum.controller_processes import Quorum
from tests.support.raw_client import RawClient

from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsRequestReassignablePartition,
    AlterPartitionReassignmentsRequestReassignableTopic,
    AlterPartitionReassignmentsResponse,
)
from kvorum.wire.messages.describe_quorum import DescribeQuorumResponsePartitionData
from kvorum.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsResponseOngoingPartitionReassignment,
)

METADATA_TOPIC = "__cluster_metadata"
Ongoing = ListPartitionReassignmentsResponseOngoingPartitionReassignment


def alter(address: str, replicas: Sequence[int] | None) -> tuple[int, str | None]:
    """Ask one controller for these voters, or cancel with None; return its error and message."""
    partition = AlterPartitionReassignmentsRequestReassignablePartition(
        partition_index=0, replicas=None if replicas is None else list(replicas)
    )
    topic = AlterPartitionReassignmentsRequestReassignableTopic(METADATA_TOPIC, [partition])
    request = AlterPartitionReassignmentsRequest(timeout_ms=10_000, topics=[topic])
    with RawClient(address) as client:
        response = client.ask(request, AlterPartitionReassignmentsResponse, 1)
    if response.error_code != ErrorCode.NONE:
        return response.error_code, response.error_message
    (answered,) = response.responses[0].partitions
    return answered.error_code, answered.error_message


def alter_at_controller(quorum: Quorum, replicas: Sequence[int] | None) -> tuple[int, str | None]:
    """Ask the active controller, whichever it comes to be."""

    def answer() -> tuple[int, str | None] | None:
        found = alter(quorum.wait_for_leader().address, replicas)
        return None if found[0] == ErrorCode.NOT_CONTROLLER else found

    return quorum.wait_for(answer, "a controller is active")


def ongoing(address: str) -> Ongoing | None:
    """Return the reassignment of the quorum that a controller lists, None where there is none."""
    with RawClient(address) as client:
        response = client.ask(
            ListPartitionReassignmentsRequest(topics=None), ListPartitionReassignmentsResponse, 0
        )
    assert response.error_code == ErrorCode.NONE
    found = [topic for topic in response.topics if topic.name == METADATA_TOPIC]
    return found[0].partitions[0] if found else None


def want(quorum: Quorum, replicas: Sequence[int]) -> None:
    """Say which voters are wanted, at whoever comes to lead, until that is acknowledged."""

    def is_written() -> bool | None:
        leader = quorum.leader()
        if leader is None:
            return None
        try:
            code, _ = alter(quorum.members[leader.leader_id].address, replicas)
        except (OSError, AssertionError):
            return None
        return True if code == ErrorCode.NONE else None

    quorum.wait_for(is_written, "the wish is written")


def wait_until_reached(
    quorum: Quorum, replicas: Sequence[int]
) -> DescribeQuorumResponsePartitionData:
    """Return what the leader says once exactly these are voters and the wish is cleared."""

    def find() -> DescribeQuorumResponsePartitionData | None:
        found = quorum.leader()
        if found is None or {one.replica_id for one in found.current_voters} != set(replicas):
            return None
        try:
            wish = ongoing(quorum.members[found.leader_id].address)
        except (OSError, AssertionError):
            return None
        return None if wish is not None else found

    return quorum.wait_for(find, f"the voters are {replicas}, and nothing more is wanted")


def wait_until_all_have_all(quorum: Quorum) -> int:
    """Return the end of the log once every replica, voter or not, has it, and all is committed."""

    def find() -> int | None:
        found = quorum.leader()
        if found is None:
            return None
        states = {one.replica_id: one for one in (*found.observers, *found.current_voters)}
        ends = {
            states[node_id].log_end_offset if node_id in states else -1
            for node_id in quorum.members
        }
        return found.high_watermark if ends == {found.high_watermark} else None

    return quorum.wait_for(find, "the logs of all replicas come to the same end")


def kill_the_leader_of_each_step(quorum: Quorum, replicas: Sequence[int]) -> int:
    """Work towards `replicas`: kill whoever leads after each change of the voters.

    A killed controller is started again at once. Returns how many were killed.
    """
    before: set[int] | None = None
    killed = 0
    want(quorum, replicas)

    def is_reached() -> bool | None:
        nonlocal before, killed
        found = quorum.leader()
        if found is None:
            return None
        voters = {one.replica_id for one in found.current_voters}
        if voters != before:
            before = voters
            leader = quorum.members[found.leader_id]
            quorum.kill(leader)
            quorum.start(leader)
            killed += 1
            return None
        return True if voters == set(replicas) else None

    quorum.wait_for(is_reached, f"the voters are {replicas}")
    wait_until_reached(quorum, replicas)
    return killed
