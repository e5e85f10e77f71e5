"""A client of a quorum that says which voters it wants, and looks how far that has come."""

from collections.abc import Sequence

from tests.support.quorum.quorum import Described, Quorum, voter_ids
from tests.support.raw_client import RawClient

from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from kvorum.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

METADATA_TOPIC = "__cluster_metadata"
Ongoing = ListPartitionReassignmentsResponse.OngoingPartitionReassignment


def alter(address: str, replicas: Sequence[int] | None) -> tuple[int, str | None]:
    """Ask one controller for these voters, or cancel with None; return its error and message."""
    partition = AlterPartitionReassignmentsRequest.ReassignablePartition(
        partition_index=0, replicas=None if replicas is None else list(replicas)
    )
    topic = AlterPartitionReassignmentsRequest.ReassignableTopic(METADATA_TOPIC, [partition])
    request = AlterPartitionReassignmentsRequest(timeout_ms=10_000, topics=[topic])
    with RawClient(address) as client:
        response = client.ask(request, AlterPartitionReassignmentsResponse, 1)
    if response.error_code != ErrorCode.NONE:
        return response.error_code, response.error_message
    (answered,) = response.responses[0].partitions
    return answered.error_code, answered.error_message


def ongoing(address: str) -> Ongoing | None:
    """Return the reassignment of the quorum that a controller lists, None without one."""
    with RawClient(address) as client:
        response = client.ask(
            ListPartitionReassignmentsRequest(topics=None), ListPartitionReassignmentsResponse, 0
        )
    assert response.error_code == ErrorCode.NONE
    found = [topic for topic in response.topics if topic.name == METADATA_TOPIC]
    return found[0].partitions[0] if found else None


def want(quorum: Quorum, replicas: Sequence[int]) -> None:
    """State the target voters at the node that comes to lead, until that is acknowledged."""

    def is_written(found: Described) -> bool:
        try:
            code, _ = alter(quorum.members[found.leader_id].address, replicas)
        except (OSError, AssertionError):
            return False
        return code == ErrorCode.NONE

    quorum.until("the target voters are written", is_written)


def wait_until_reached(quorum: Quorum, replicas: Sequence[int]) -> Described:
    """Return what the leader says once exactly these are voters and the targets are cleared."""

    def is_so(found: Described) -> bool:
        try:
            targets = ongoing(quorum.members[found.leader_id].address)
        except (OSError, AssertionError):
            return False
        return voter_ids(found) == {*replicas} and targets is None

    return quorum.until(f"the voters are {replicas}, and nothing more is wanted", is_so)


def kill_the_leader_of_each_step(quorum: Quorum, replicas: Sequence[int]) -> list[int]:
    """Kill the leader after each change of the voters, until they are `replicas`.

    A killed controller is started again at once. Returns who was killed.
    """
    seen = list[set[int]]()
    killed = list[int]()

    def are_voters(found: Described) -> bool:
        voters = voter_ids(found)
        if voters in seen[-1:]:
            return voters == {*replicas}
        seen.append(voters)
        killed.append(found.leader_id)
        quorum.kill(found.leader_id)
        quorum.start(found.leader_id)
        return False

    quorum.until(f"the voters are {replicas}", are_voters)
    return killed
