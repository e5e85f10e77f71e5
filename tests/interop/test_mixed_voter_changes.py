"""Ours and real Kafka's controllers make each other voters, remove each other, and upgrade."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import pytest
from tests.interop.mixed_quorum import (
    OURS,
    REAL,
    Described,
    both_kinds,
    last_words,
    until,
    voter_ids,
)
from tests.support.kafka.java import Java
from tests.support.node import CLUSTER_ID, NO_VOTERS, STANDALONE, Node
from tests.support.waiting import wait_for

from kvorum.node.outbound.client_connection import ClientConnection, ClientConnectionError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from kvorum.wire.messages.update_features import (
    UpdateFeaturesRequest,
    UpdateFeaturesRequestFeatureUpdateKey,
    UpdateFeaturesResponse,
)
from kvorum.wire.primitives import Message
from kvorum.wire.uuid_text import ZERO_UUID

pytestmark = pytest.mark.slow
NOT_YET = ("because not all of the voters support it", "has not registered")
NEVER_MS = 600_000
_Response = TypeVar("_Response", bound=Message)


@pytest.fixture
def voters(tmp_path: Path, java: Java) -> Iterator[dict[int, Node]]:
    """One controller of ours and a real one, neither formatted nor started."""
    made = both_kinds(tmp_path, java)
    yield made
    for voter in made.values():
        voter.kill()


def form(voters: dict[int, Node], *, first: int) -> None:
    """Format `first` as a quorum of its own, the other to join by itself; start both."""
    servers = ",".join(voter.address for voter in voters.values())
    for voter in voters.values():
        voter.configure(
            {
                "controller.quorum.bootstrap.servers": servers,
                "controller.quorum.auto.join.enable": "true",
            }
        )
        voter.format(STANDALONE if voter.node_id == first else NO_VOTERS)
        voter.launch()


def form_static(voters: dict[int, Node], *, leader: int) -> None:
    """Format and start both as static voters, of which only `leader` stands for election in time.

    Restarting the other until it loses would not do: of two voters either may win each time.
    """
    quorum = ",".join(f"{voter.node_id}@{voter.address}" for voter in voters.values())
    for voter in voters.values():
        wait_ms = 1000 if voter.node_id == leader else NEVER_MS
        voter.configure(
            {
                "controller.quorum.voters": quorum,
                "controller.quorum.election.timeout.ms": str(wait_ms),
            }
        )
        voter.format(())
        voter.launch()


def ask(voter: Node, request: Message, kind: type[_Response]) -> _Response:
    """Put a request to a controller."""

    async def exchange() -> _Response:
        connection = await ClientConnection.open(
            host="127.0.0.1", port=voter.controller_port, client_id="test", timeout_ms=10_000
        )
        try:
            return await connection.request(request, kind, timeout_ms=10_000)
        finally:
            await connection.close()

    return asyncio.run(exchange())


def until_complete(voters: dict[int, Node]) -> Described:
    return until(voters, "both vote and have all that is committed", is_complete)


def is_complete(found: Described) -> bool:
    """Tell whether both vote, and have all that is committed."""
    ends = [state.log_end_offset for state in found.current_voters]
    return voter_ids(found) == {OURS, REAL} and min(ends) >= found.high_watermark > 0


def assert_logs_agree(voters: dict[int, Node]) -> None:
    logs = [voter.first_segment.read_bytes() for voter in voters.values()]
    shared = min(map(len, logs))
    assert shared > 0
    assert logs[0][:shared] == logs[1][:shared]


@pytest.mark.parametrize("first", [OURS, REAL], ids=["ours-first", "real-first"])
def test_one_joins_the_other_and_stays_when_that_is_removed(
    voters: dict[int, Node], first: int
) -> None:
    form(voters, first=first)
    found = until_complete(voters)
    assert found.leader_id == first
    key = next(
        (state.replica_id, state.replica_directory_id)
        for state in found.current_voters
        if state.replica_id == first
    )
    # It must not join again, so it stops as soon as it has answered. The join may not be over yet.
    request = RemoveRaftVoterRequest(CLUSTER_ID, *key)

    def answered() -> RemoveRaftVoterResponse | None:
        answer = ask(voters[first], request, RemoveRaftVoterResponse)
        return None if answer.error_code == ErrorCode.REQUEST_TIMED_OUT else answer

    removed = wait_for(
        answered, f"{first} answers its removal", otherwise=lambda: last_words(voters)
    )
    assert (removed.error_code, removed.error_message) == (ErrorCode.NONE, None)
    voters[first].stop()
    other = OURS if first == REAL else REAL
    until(
        voters,
        f"{other} leads alone",
        lambda found: voter_ids(found) == {other} and found.leader_id == other,
    )
    voters[other].stop()
    assert_logs_agree(voters)


@pytest.mark.parametrize("wanted", [OURS, REAL], ids=["ours-leads", "real-leads"])
def test_static_voters_of_both_kinds_are_upgraded(voters: dict[int, Node], wanted: int) -> None:
    form_static(voters, leader=wanted)
    found = until_complete(voters)
    assert found.leader_id == wanted
    assert {state.replica_directory_id for state in found.current_voters} == {ZERO_UUID}
    upgrade(voters[wanted])
    found = until_complete(voters)
    assert ZERO_UUID not in {state.replica_directory_id for state in found.current_voters}
    for voter in voters.values():
        voter.stop()
    assert_logs_agree(voters)


def upgrade(leader: Node) -> None:
    """Raise kraft.version as soon as the leader has heard from both voters that they can."""
    key = UpdateFeaturesRequestFeatureUpdateKey(
        feature="kraft.version", max_version_level=1, upgrade_type=1
    )
    request = UpdateFeaturesRequest(timeout_ms=5000, feature_updates=[key])

    def is_raised() -> bool:
        try:
            answer = ask(leader, request, UpdateFeaturesResponse)
        except ClientConnectionError as error:
            raise AssertionError("the leader does not answer") from error
        if answer.error_code == ErrorCode.NONE:
            return True
        assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
        assert any(reason in (answer.error_message or "") for reason in NOT_YET)
        return False

    wait_for(is_raised, "kraft.version is 1", otherwise=leader.process.last_words)
