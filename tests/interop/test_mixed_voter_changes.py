"""Ours and real Kafka's controllers make each other voters, remove each other, and upgrade."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.interop.mixed_quorum import OURS, REAL, both_kinds
from tests.support.kafka.java import Java
from tests.support.node import CLUSTER_ID, NO_VOTERS, STANDALONE, Node
from tests.support.quorum.quorum import Described, Quorum, voter_ids
from tests.support.raw_client import RawClient
from tests.support.waiting import wait_for

from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from kvorum.wire.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse
from kvorum.wire.uuid_text import ZERO_UUID

pytestmark = pytest.mark.slow
NOT_YET = ("because not all of the voters support it", "has not registered")
NEVER_MS = 600_000


@pytest.fixture
def voters(tmp_path: Path, java: Java) -> Iterator[Quorum]:
    """One controller of ours and a real one, neither formatted nor started."""
    with both_kinds(tmp_path, java) as made:
        yield made


def form(voters: Quorum, *, first: int) -> None:
    """Format `first` as a quorum of its own, the other to join by itself; start both."""
    voters.configure({"controller.quorum.auto.join.enable": "true"})
    for node_id in voters.members:
        voters.format(node_id, *(STANDALONE if node_id == first else NO_VOTERS))
    voters.start()


def form_static(voters: Quorum, *, leader: int) -> None:
    """Format and start both as static voters, of which only `leader` stands for election in time.

    Restarting the other until it loses would not do: of two voters either may win each time.
    """
    for node_id in voters.members:
        wait_ms = 1000 if node_id == leader else NEVER_MS
        wait = {"controller.quorum.election.timeout.ms": str(wait_ms)}
        voters.configure({**voters.static_voters(OURS, REAL), **wait}, node_id)
    voters.form(None)
    voters.start()


def until_complete(voters: Quorum) -> Described:
    return voters.until("both vote and have all that is committed", is_complete)


def is_complete(found: Described) -> bool:
    """Tell whether both vote, and have all that is committed."""
    ends = [state.log_end_offset for state in found.current_voters]
    return voter_ids(found) == {OURS, REAL} and min(ends) >= found.high_watermark > 0


def assert_logs_agree(voters: Quorum) -> None:
    logs = [voter.first_segment.read_bytes() for voter in voters.members.values()]
    shared = min(map(len, logs))
    assert shared > 0
    assert logs[0][:shared] == logs[1][:shared]


@pytest.mark.parametrize("first", [OURS, REAL], ids=["ours-first", "real-first"])
def test_one_joins_the_other_and_stays_when_that_is_removed(voters: Quorum, first: int) -> None:
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
        with RawClient(voters.members[first].address) as client:
            answer = client.ask(request, RemoveRaftVoterResponse, 0)
        return None if answer.error_code == ErrorCode.REQUEST_TIMED_OUT else answer

    removed = voters.wait_for(answered, f"{first} answers its removal")
    assert (removed.error_code, removed.error_message) == (ErrorCode.NONE, None)
    voters.members[first].stop()
    other = OURS if first == REAL else REAL
    voters.until(
        f"{other} leads alone",
        lambda found: voter_ids(found) == {other} and found.leader_id == other,
    )
    voters.members[other].stop()
    assert_logs_agree(voters)


@pytest.mark.parametrize("wanted", [OURS, REAL], ids=["ours-leads", "real-leads"])
def test_static_voters_of_both_kinds_are_upgraded(voters: Quorum, wanted: int) -> None:
    form_static(voters, leader=wanted)
    found = until_complete(voters)
    assert found.leader_id == wanted
    assert {state.replica_directory_id for state in found.current_voters} == {ZERO_UUID}
    upgrade(voters.members[wanted])
    found = until_complete(voters)
    assert ZERO_UUID not in {state.replica_directory_id for state in found.current_voters}
    for voter in voters.members.values():
        voter.stop()
    assert_logs_agree(voters)


def upgrade(leader: Node) -> None:
    """Raise kraft.version as soon as the leader has heard from both voters that they can."""
    key = UpdateFeaturesRequest.FeatureUpdateKey(
        feature="kraft.version", max_version_level=1, upgrade_type=1
    )
    request = UpdateFeaturesRequest(timeout_ms=5000, feature_updates=[key])

    def is_raised() -> bool:
        with RawClient(leader.address) as client:
            answer = client.ask(request, UpdateFeaturesResponse, 1)
        if answer.error_code == ErrorCode.NONE:
            return True
        assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
        assert any(reason in (answer.error_message or "") for reason in NOT_YET)
        return False

    wait_for(is_raised, "kraft.version is 1", otherwise=leader.process.last_words)
