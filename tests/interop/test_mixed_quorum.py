"""Two static voters, one ours and one real Kafka's: they elect each other and keep one log."""

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
from kvorum.wire.records import read_batches
from kvorum.wire.uuid_text import ZERO_UUID

ROUNDS_MAX = 6


@pytest.fixture
def voters(tmp_path: Path, java: Java) -> Iterator[Quorum]:
    """Both voters, formatted and not started."""
    with both_kinds(tmp_path, java) as made:
        made.configure(made.static_voters(OURS, REAL))
        made.form(None)
        yield made


def leader_of(voters: Quorum) -> Node:
    """Wait until one leads and the other has all that is committed; return who leads."""
    return voters.members[voters.until("one leads and the other follows", has_a_follower).leader_id]


def has_a_follower(found: Described) -> bool:
    return min(state.log_end_offset for state in found.current_voters) >= found.high_watermark > 0


@pytest.mark.slow
def test_leadership_goes_back_and_forth_and_the_logs_are_the_same(voters: Quorum) -> None:
    voters.start()
    has_led: set[int] = set()
    for _ in range(ROUNDS_MAX):
        leader = leader_of(voters)
        has_led.add(leader.node_id)
        if has_led == {OURS, REAL}:
            break
        leader.stop()
        voters.start(leader.node_id)
    assert has_led == {OURS, REAL}
    last = leader_of(voters)
    voters.members[REAL if last.node_id == OURS else OURS].stop()
    last.stop()
    logs = [voter.first_segment.read_bytes() for voter in voters.members.values()]
    shared = min(map(len, logs))
    assert logs[0][:shared] == logs[1][:shared]
    assert len({batch.partition_leader_epoch for batch in read_batches(logs[0][:shared])}) >= 2


NOT_YET = ("because not all of the voters support it", "has not registered")
NEVER_MS = 600_000


@pytest.fixture
def controllers(tmp_path: Path, java: Java) -> Iterator[Quorum]:
    """One controller of ours and a real one, neither formatted nor started."""
    with both_kinds(tmp_path, java) as made:
        yield made


def form(controllers: Quorum, *, first: int) -> None:
    """Format `first` as a quorum of its own, the other to join by itself; start both."""
    controllers.configure({"controller.quorum.auto.join.enable": "true"})
    for node_id in controllers.members:
        controllers.format(node_id, *(STANDALONE if node_id == first else NO_VOTERS))
    controllers.start()


def form_static(controllers: Quorum, *, leader: int) -> None:
    """Format and start both as static voters, of which only `leader` stands for election in time.

    Restarting the other until it loses would not do: of two voters either may win each time.
    """
    for node_id in controllers.members:
        wait_ms = 1000 if node_id == leader else NEVER_MS
        wait = {"controller.quorum.election.timeout.ms": str(wait_ms)}
        controllers.configure({**controllers.static_voters(OURS, REAL), **wait}, node_id)
    controllers.form(None)
    controllers.start()


def until_complete(controllers: Quorum) -> Described:
    return controllers.until("both vote and have all that is committed", is_complete)


def is_complete(found: Described) -> bool:
    """Tell whether both vote, and have all that is committed."""
    ends = [state.log_end_offset for state in found.current_voters]
    return voter_ids(found) == {OURS, REAL} and min(ends) >= found.high_watermark > 0


def assert_logs_agree(controllers: Quorum) -> None:
    logs = [voter.first_segment.read_bytes() for voter in controllers.members.values()]
    shared = min(map(len, logs))
    assert shared > 0
    assert logs[0][:shared] == logs[1][:shared]


@pytest.mark.slow
@pytest.mark.parametrize("first", [OURS, REAL], ids=["ours-first", "real-first"])
def test_one_joins_the_other_and_stays_when_that_is_removed(
    controllers: Quorum, first: int
) -> None:
    form(controllers, first=first)
    found = until_complete(controllers)
    assert found.leader_id == first
    key = next(
        (state.replica_id, state.replica_directory_id)
        for state in found.current_voters
        if state.replica_id == first
    )
    # It must not join again, so it stops as soon as it has answered. The join may not be over yet.
    request = RemoveRaftVoterRequest(CLUSTER_ID, *key)

    def answered() -> RemoveRaftVoterResponse | None:
        with RawClient(controllers.members[first].address) as client:
            answer = client.ask(request, RemoveRaftVoterResponse, 0)
        return None if answer.error_code == ErrorCode.REQUEST_TIMED_OUT else answer

    removed = controllers.wait_for(answered, f"{first} answers its removal")
    assert (removed.error_code, removed.error_message) == (ErrorCode.NONE, None)
    controllers.members[first].stop()
    other = OURS if first == REAL else REAL
    controllers.until(
        f"{other} leads alone",
        lambda found: voter_ids(found) == {other} and found.leader_id == other,
    )
    controllers.members[other].stop()
    assert_logs_agree(controllers)


@pytest.mark.slow
@pytest.mark.parametrize("wanted", [OURS, REAL], ids=["ours-leads", "real-leads"])
def test_static_voters_of_both_kinds_are_upgraded(controllers: Quorum, wanted: int) -> None:
    form_static(controllers, leader=wanted)
    found = until_complete(controllers)
    assert found.leader_id == wanted
    assert {state.replica_directory_id for state in found.current_voters} == {ZERO_UUID}
    upgrade(controllers.members[wanted])
    found = until_complete(controllers)
    assert ZERO_UUID not in {state.replica_directory_id for state in found.current_voters}
    for voter in controllers.members.values():
        voter.stop()
    assert_logs_agree(controllers)


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
