"""Ours and real Kafka's controllers make each other voters, remove each other, and upgrade."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest
from tests.interop.kafka.java import Java
from tests.interop.kafka.server import free_ports
from tests.interop.kvorum_node import run_kvorum
from tests.interop.test_mixed_quorum import LOG, OURS, PATIENCE_S, REAL, Voter, described

from kvorum.node.outbound.client_connection import ClientConnection, ClientConnectionError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.describe_quorum import DescribeQuorumResponsePartitionData
from kvorum.wire.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from kvorum.wire.messages.update_features import (
    UpdateFeaturesRequest,
    UpdateFeaturesRequestFeatureUpdateKey,
    UpdateFeaturesResponse,
)
from kvorum.wire.primitives import Message
from kvorum.wire.uuid_text import ZERO_UUID

pytestmark = [pytest.mark.interop, pytest.mark.slow]
NOT_YET = ("because not all of the voters support it", "has not registered")
NOTHING_NEW_SECONDS = 0.1
NEVER_MS = 600_000
_Response = TypeVar("_Response", bound=Message)
Described = DescribeQuorumResponsePartitionData


@pytest.fixture
def voters(tmp_path: Path, java: Java) -> Iterator[dict[int, Voter]]:
    """One controller of ours and a real one, neither formatted nor started."""
    ports = free_ports(2)
    made = {
        node_id: Voter(node_id, port, tmp_path / str(node_id))
        for node_id, port in zip((OURS, REAL), ports, strict=True)
    }
    ours, real = made[OURS], made[REAL]
    ours.command = [sys.executable, "-m", "kvorum.cli", "server", str(ours.properties)]
    real.command = java.command("kafka.Kafka", str(real.properties), heap_mb=384, log_level="INFO")
    yield made
    for voter in made.values():
        if voter.process is not None:
            voter.process.kill()
            voter.process.wait()


def write_settings(voter: Voter, **quorum: str) -> None:
    settings = {
        "process.roles": "controller",
        "node.id": str(voter.node_id),
        "controller.listener.names": "CONTROLLER",
        "listeners": f"CONTROLLER://127.0.0.1:{voter.port}",
        "log.dirs": str(voter.data),
    }
    settings |= {f"controller.quorum.{name}": value for name, value in quorum.items()}
    voter.folder.mkdir()
    text = "".join(f"{key}={value}\n" for key, value in settings.items())
    voter.properties.write_text(text, encoding="utf-8")


def form(voters: dict[int, Voter], *, first: int) -> str:
    """Format `first` as a quorum of its own, the other to join by itself; start both."""
    cluster_id = run_kvorum("storage", "random-uuid").strip()
    servers = ",".join(f"127.0.0.1:{voter.port}" for voter in voters.values())
    for voter in voters.values():
        write_settings(voter, **{"bootstrap.servers": servers, "auto.join.enable": "true"})
        start = "--standalone" if voter.node_id == first else "--no-initial-controllers"
        arguments = ("--cluster-id", cluster_id, "--config", str(voter.properties), start)
        run_kvorum("storage", "format", *arguments)
        voter.start()
    return cluster_id


def form_static(voters: dict[int, Voter], *, leader: int) -> None:
    """Format and start both as static voters, of which only `leader` stands for election in time.

    Restarting the other until it loses would not do: of two voters either may win each time.
    """
    cluster_id = run_kvorum("storage", "random-uuid").strip()
    quorum = ",".join(f"{voter.node_id}@127.0.0.1:{voter.port}" for voter in voters.values())
    for voter in voters.values():
        wait_ms = 1000 if voter.node_id == leader else NEVER_MS
        write_settings(voter, **{"voters": quorum, "election.timeout.ms": str(wait_ms)})
        arguments = ("--cluster-id", cluster_id, "--config", str(voter.properties))
        run_kvorum("storage", "format", *arguments)
        voter.start()


def ask(voter: Voter, request: Message, kind: type[_Response]) -> _Response:
    """Put a request to a controller."""

    async def exchange() -> _Response:
        connection = await ClientConnection.open(
            host="127.0.0.1", port=voter.port, client_id="test", timeout_ms=10_000
        )
        try:
            return await connection.request(request, kind, timeout_ms=10_000)
        finally:
            await connection.close()

    return asyncio.run(exchange())


def until(
    voters: dict[int, Voter],
    holds: Callable[[Described], bool],
    *,
    pause_seconds: float = NOTHING_NEW_SECONDS,
) -> Described:
    """Return what a leader says of the quorum once that `holds`."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        for voter in voters.values():
            found = described(voter.port)
            if found is not None and found.error_code == ErrorCode.NONE and holds(found):
                return found
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(pause_seconds)


def voter_ids(found: Described) -> set[int]:
    return {state.replica_id for state in found.current_voters}


def is_complete(found: Described) -> bool:
    """Tell whether both vote, and have all that is committed."""
    ends = [state.log_end_offset for state in found.current_voters]
    return voter_ids(found) == {OURS, REAL} and min(ends) >= found.high_watermark > 0


def assert_logs_agree(voters: dict[int, Voter]) -> None:
    logs = [(voter.data / LOG).read_bytes() for voter in voters.values()]
    shared = min(map(len, logs))
    assert shared > 0
    assert logs[0][:shared] == logs[1][:shared]


@pytest.mark.parametrize("first", [OURS, REAL], ids=["ours-first", "real-first"])
def test_one_joins_the_other_and_stays_when_that_is_removed(
    voters: dict[int, Voter], first: int
) -> None:
    cluster_id = form(voters, first=first)
    found = until(voters, is_complete)
    assert found.leader_id == first
    key = next(
        (state.replica_id, state.replica_directory_id)
        for state in found.current_voters
        if state.replica_id == first
    )
    # It must not join again, so it stops as soon as it has answered. The join may not be over yet.
    request = RemoveRaftVoterRequest(cluster_id, *key)
    removed = ask(voters[first], request, RemoveRaftVoterResponse)
    while removed.error_code == ErrorCode.REQUEST_TIMED_OUT:
        removed = ask(voters[first], request, RemoveRaftVoterResponse)
    assert (removed.error_code, removed.error_message) == (ErrorCode.NONE, None)
    voters[first].stop()
    other = OURS if first == REAL else REAL
    until(voters, lambda found: voter_ids(found) == {other} and found.leader_id == other)
    voters[other].stop()
    assert_logs_agree(voters)


@pytest.mark.parametrize("wanted", [OURS, REAL], ids=["ours-leads", "real-leads"])
def test_static_voters_of_both_kinds_are_upgraded(voters: dict[int, Voter], wanted: int) -> None:
    form_static(voters, leader=wanted)
    found = until(voters, is_complete)
    assert found.leader_id == wanted
    assert {state.replica_directory_id for state in found.current_voters} == {ZERO_UUID}
    upgrade(voters[wanted])
    found = until(voters, is_complete)
    assert ZERO_UUID not in {state.replica_directory_id for state in found.current_voters}
    for voter in voters.values():
        voter.stop()
    assert_logs_agree(voters)


def upgrade(leader: Voter) -> None:
    """Raise kraft.version as soon as the leader has heard from both voters that they can."""
    key = UpdateFeaturesRequestFeatureUpdateKey(
        feature="kraft.version", max_version_level=1, upgrade_type=1
    )
    request = UpdateFeaturesRequest(timeout_ms=5000, feature_updates=[key])
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            answer = ask(leader, request, UpdateFeaturesResponse)
        except ClientConnectionError as error:
            raise AssertionError("the leader does not answer") from error
        if answer.error_code == ErrorCode.NONE:
            return
        assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
        assert any(reason in (answer.error_message or "") for reason in NOT_YET)
        assert time.monotonic() < deadline
        time.sleep(NOTHING_NEW_SECONDS)
