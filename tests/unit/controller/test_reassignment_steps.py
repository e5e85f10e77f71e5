"""A step of a reassignment: its conditions, its request, and its refusals."""

from dataclasses import replace

import pytest
from immutables import Map
from tests.unit.controller.quorums import described, directory, key

from kvorum.controller.quorum_description import QuorumDescription, ReplicaState
from kvorum.controller.quorum_reassignment.next_step import (
    AddVoter,
    Blocked,
    BlockReason,
    Reached,
    RemoveVoter,
    next_step,
)
from kvorum.controller.quorum_reassignment.plan import assumed_circumstances
from kvorum.controller.quorum_reassignment.requests import refusal_of, refusal_to_clear, request_of
from kvorum.metadata.cluster_image import ControllerRegistration, Endpoint
from kvorum.metadata.target_voters import parse_target_voters
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from kvorum.wire.messages.incremental_alter_configs import IncrementalAlterConfigsResponse
from kvorum.wire.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from kvorum.wire.uuid_text import ZERO_UUID

FETCH_TIMEOUT_MS = 2000
SILENT_MS = 60_000


def quorum(*voter_ids: int, silent: tuple[int, ...] = ()) -> QuorumDescription:
    """Return a quorum that the first voter leads, and that node 4 observes."""

    def state(node_id: int) -> ReplicaState:
        return ReplicaState(key(node_id), 9, SILENT_MS if node_id in silent else 10)

    return described(voter_ids[0], map(state, voter_ids), [state(4)])


REGISTRATION = ControllerRegistration(
    id=4,
    incarnation_id=ZERO_UUID,
    is_zk_migration_ready=False,
    listeners=(Endpoint("CONTROLLER", "c4", 9093, 0),),
    supported_features=Map(),
)


@pytest.mark.parametrize("targets", ["1,2,3", "1,2,3,4", "1,2"], ids=["end", "add", "remove"])
def test_nothing_is_done_before_the_last_change_is_committed(targets: str) -> None:
    """The end of the targets waits as well: a change that is lost with its leader is done again."""
    now = quorum(1, 2, 3)
    circumstances = assumed_circumstances(now, fetch_timeout_ms=FETCH_TIMEOUT_MS)
    wanted = parse_target_voters(targets)
    assert not isinstance(next_step(wanted, now, circumstances), Blocked)
    step = next_step(wanted, replace(now, may_change=False), circumstances)
    assert isinstance(step, Blocked)
    assert step.reason is BlockReason.VOTER_CHANGE_UNDER_WAY


@pytest.mark.parametrize(
    ("targets", "silent", "text"),
    [
        ("1,3", (3,), f"without voter {key(2)} no majority would be fetching: {key(3)} does not"),
        (
            "1,2,3,4",
            (2, 3),
            f"even with voter {key(4)} no majority would be fetching: {key(2)}, {key(3)} do not",
        ),
    ],
)
def test_who_does_not_fetch_is_named(targets: str, silent: tuple[int, ...], text: str) -> None:
    now = quorum(1, 2, 3, silent=silent)
    circumstances = assumed_circumstances(now, fetch_timeout_ms=FETCH_TIMEOUT_MS)
    assert next_step(parse_target_voters(targets), now, circumstances) == Blocked(
        BlockReason.MAJORITY_MISSING, text
    )


def test_a_step_is_asked_for_with_id_directory_and_addresses() -> None:
    listener = AddRaftVoterRequest.Listener("CONTROLLER", "c4", 9093)
    assert request_of(AddVoter(key(4), REGISTRATION), cluster_id="c") == AddRaftVoterRequest(
        cluster_id="c", voter_id=4, voter_directory_id=directory(4), listeners=[listener]
    )
    assert request_of(RemoveVoter(key(3)), cluster_id="c") == RemoveRaftVoterRequest(
        "c", 3, directory(3)
    )


@pytest.mark.parametrize(
    ("code", "message", "why"),
    [
        (ErrorCode.REQUEST_TIMED_OUT, None, "error 7"),
        (ErrorCode.DUPLICATE_VOTER, "it is one", "it is one"),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, None, "error 6"),
    ],
)
def test_an_error_is_a_refusal(code: ErrorCode, message: str | None, why: str) -> None:
    add, remove = AddVoter(key(4), REGISTRATION), RemoveVoter(key(3))
    assert refusal_of(add, AddRaftVoterResponse(error_code=code, error_message=message)) == Blocked(
        BlockReason.REFUSED, f"the leader refuses to add voter {key(4)}: {why}"
    )
    removed = RemoveRaftVoterResponse(error_code=code, error_message=message)
    assert refusal_of(remove, removed) == Blocked(
        BlockReason.REFUSED, f"the leader refuses to remove voter {key(3)}: {why}"
    )
    assert refusal_of(add, AddRaftVoterResponse()) is None


@pytest.mark.parametrize("code", [ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.NOT_CONTROLLER])
def test_target_voters_that_are_not_cleared_are_a_refusal(code: ErrorCode) -> None:
    def cleared(error_code: int) -> IncrementalAlterConfigsResponse:
        of_resource = IncrementalAlterConfigsResponse.AlterConfigsResourceResponse
        return IncrementalAlterConfigsResponse(responses=[of_resource(error_code, None, 4, "")])

    refusal = refusal_to_clear(Reached(), cleared(code))
    assert refusal is not None
    assert refusal.text.startswith("the leader refuses to clear the target voters")
    assert refusal_to_clear(Reached(), cleared(ErrorCode.NONE)) is None
