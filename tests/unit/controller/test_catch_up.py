"""Rounds of replication: when a replica is close enough to the end of the log to become a voter."""

from dataclasses import dataclass, field

import pytest
from tests.unit.controller.quorums import described, key

from kvorum.controller.quorum_description import ReplicaState
from kvorum.controller.quorum_reassignment.pursuit import CatchUp
from kvorum.metadata.voter_key import VoterKey

TIMEOUT_MS = 1_000
TARGET, OTHER, NEW_DISK = key(4), key(5), key(4, disk=1)


@dataclass
class Watch:
    """Looks at one replica again and again."""

    catch_up: CatchUp = field(default_factory=lambda: CatchUp(election_timeout_ms=TIMEOUT_MS))
    key: VoterKey = TARGET

    def look(
        self, now_ms: float, *, at: int | None, of: int, fetched_ms_ago: float | None = 0
    ) -> bool:
        """Return whether the replica has caught up: it is `at` one offset `of` the leader's end."""
        state = ReplicaState(self.key, at, fetched_ms_ago)
        self.catch_up.observe(described(1, [], [state], log_end_offset=of), [self.key], now_ms)
        return self.catch_up.has_caught_up(self.key, now_ms)


@pytest.fixture
def watch() -> Watch:
    return Watch()


def test_a_replica_at_the_end_of_the_log_has_caught_up_at_once(watch: Watch) -> None:
    assert watch.look(0, at=100, of=100)


def test_a_replica_that_was_never_seen_has_not_caught_up(watch: Watch) -> None:
    assert not watch.catch_up.has_caught_up(TARGET, 0)
    assert not watch.look(0, at=None, of=100, fetched_ms_ago=None)
    assert watch.catch_up.describe(TARGET, 0) == "it does not fetch"


def test_a_round_lasts_until_all_is_there_that_was_there_when_it_began(watch: Watch) -> None:
    assert not watch.look(0, at=0, of=100)
    assert not watch.look(500, at=99, of=200)
    assert watch.look(TIMEOUT_MS - 1, at=100, of=300)


def test_a_round_that_takes_an_election_timeout_is_too_long(watch: Watch) -> None:
    assert not watch.look(0, at=0, of=100)
    assert not watch.look(TIMEOUT_MS, at=100, of=300)
    assert not watch.look(2 * TIMEOUT_MS, at=300, of=500)
    assert watch.look(2 * TIMEOUT_MS + 100, at=500, of=501)


def test_a_round_begins_with_the_end_of_the_log_as_it_is_then(watch: Watch) -> None:
    assert not watch.look(0, at=0, of=100)
    assert watch.look(100, at=100, of=1_000_000)
    # The next one has the rest of the log to fetch.
    assert watch.look(200, at=999_999, of=1_000_000)
    assert not watch.look(100 + TIMEOUT_MS, at=999_999, of=1_000_000)


def test_a_replica_that_stops_in_the_next_round_has_not_caught_up(watch: Watch) -> None:
    assert watch.look(0, at=100, of=100)
    assert watch.look(10, at=100, of=101)
    assert watch.look(20, at=101, of=102)
    assert watch.look(19 + TIMEOUT_MS, at=101, of=900, fetched_ms_ago=TIMEOUT_MS - 1)
    assert not watch.look(20 + TIMEOUT_MS, at=101, of=900, fetched_ms_ago=TIMEOUT_MS)
    assert watch.catch_up.describe(TARGET, 1_520) == (
        "round 4 of its replication takes 1500 ms so far"
    )


def test_what_counts_is_when_the_replica_fetched(watch: Watch) -> None:
    """A look that comes late does not make the round longer."""
    assert not watch.look(0, at=0, of=100)
    assert watch.look(TIMEOUT_MS + 100, at=100, of=100, fetched_ms_ago=200)


def test_a_replica_that_is_not_followed_any_more_begins_again(watch: Watch) -> None:
    assert watch.look(0, at=100, of=100)
    assert Watch(watch.catch_up, OTHER).look(10, at=100, of=100)
    assert not watch.catch_up.has_caught_up(TARGET, 10)


def test_a_replica_that_the_leader_has_forgotten_begins_again(watch: Watch) -> None:
    assert watch.look(0, at=100, of=100)
    assert not watch.look(10, at=None, of=100, fetched_ms_ago=None)
    assert not watch.look(20, at=50, of=100)


def test_a_node_with_another_disk_is_another_replica(watch: Watch) -> None:
    assert watch.look(0, at=100, of=100)
    assert not Watch(watch.catch_up, NEW_DISK).look(10, at=0, of=100)
