"""A reassignment of the quorum: its plan, the conditions of each step, and whose turn it is."""

from collections.abc import Collection
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from immutables import Map
from tests.unit.controller.quorums import LOG_END_OFFSET, described, directory, key

from kvorum.controller.quorum_description import QuorumDescription, ReplicaState
from kvorum.controller.quorum_reassignment.next_step import (
    AddVoter,
    Blocked,
    BlockReason,
    Reached,
    RemoveVoter,
    next_step,
)
from kvorum.controller.quorum_reassignment.plan import Plan, assumed_circumstances, planned_steps
from kvorum.controller.quorum_reassignment.pursuit import CatchUp, Situation, Turn, live_controllers
from kvorum.controller.quorum_reassignment.requests import refusal_of, refusal_to_clear, request_of
from kvorum.metadata.cluster_image import ControllerRegistration, Endpoint
from kvorum.metadata.voters import VoterKey, parse_target_voters
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from kvorum.wire.messages.incremental_alter_configs import IncrementalAlterConfigsResponse
from kvorum.wire.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from kvorum.wire.uuid_text import ZERO_UUID

FETCH_TIMEOUT_MS = 2000
REGISTRATION = ControllerRegistration(
    id=4,
    incarnation_id=ZERO_UUID,
    is_zk_migration_ready=False,
    listeners=(Endpoint("CONTROLLER", "c4", 9093, 0),),
    supported_features=Map(),
)
DELAY_MS = 500
LIVE = (1, 3, 4)
TIMEOUT_MS = 1_000
TARGET, OTHER, NEW_DISK = key(4), key(5), key(4, disk=1)


def state(replica: VoterKey, *, is_silent: bool = False) -> ReplicaState:
    return ReplicaState(replica, LOG_END_OFFSET - replica.id, 60_000.0 if is_silent else 5.0)


def quorum(
    *voters: int, observers: Collection[VoterKey] = (), silent: Collection[int] = ()
) -> QuorumDescription:
    """Return a quorum that its first voter leads."""
    return described(
        voters[0],
        (state(key(one), is_silent=one in silent) for one in voters),
        (state(one, is_silent=one.id in silent) for one in observers),
    )


def planned(found: QuorumDescription, *targets: int | VoterKey) -> Plan:
    wanted = tuple(
        VoterKey(one) if isinstance(one, int) else VoterKey(one.id, one.directory_id)
        for one in targets
    )
    return planned_steps(
        wanted, found, assumed_circumstances(found, fetch_timeout_ms=FETCH_TIMEOUT_MS)
    )


def told(plan: Plan) -> list[tuple[str, int, int]]:
    return [(str(one.step), one.voter_count, one.tolerated_failures) for one in plan.steps]


def test_three_are_replaced_by_three_others() -> None:
    plan = planned(quorum(1, 2, 3, observers=(key(4), key(5), key(6))), 4, 5, 6)
    assert plan.blocked is None
    assert told(plan) == [
        (f"add voter {key(4)}", 4, 1),
        (f"remove voter {key(3)}", 3, 1),
        (f"add voter {key(5)}", 4, 1),
        (f"remove voter {key(2)}", 3, 1),
        (f"add voter {key(6)}", 4, 1),
        ("hand over the leadership", 4, 1),
        (f"remove voter {key(1)}", 3, 1),
    ]


def test_nothing_is_to_be_done_where_the_targets_are_the_voters() -> None:
    assert planned(quorum(1, 2, 3), 1, 2, 3) == Plan((), None)


def test_a_lost_disk_is_replaced_by_its_new_directory() -> None:
    new = key(3, disk=1)
    plan = planned(quorum(1, 2, 3, observers=(new,), silent=()), 1, 2, new)
    assert told(plan) == [(f"remove voter {key(3)}", 2, 0), (f"add voter {new}", 3, 1)]


def test_a_plan_stops_where_a_target_does_not_fetch() -> None:
    plan = planned(quorum(1, observers=(key(4), key(5)), silent=(5,)), 1, 4, 5)
    assert told(plan) == [(f"add voter {key(4)}", 2, 0)]
    assert plan.blocked is not None
    assert plan.blocked.reason is BlockReason.TARGET_UNKNOWN


def test_a_plan_stops_before_the_majority_is_lost() -> None:
    plan = planned(quorum(1, 2, 3, silent=(3,)), 2, 3)
    assert told(plan) == []
    assert plan.blocked is not None
    assert plan.blocked.reason is BlockReason.MAJORITY_MISSING


def test_a_voter_that_does_not_fetch_is_not_a_failure_that_may_still_come() -> None:
    (step,) = planned(quorum(1, 2, 3, 4, 5, silent=(5,)), 1, 2, 3, 5).steps
    assert (step.voter_count, step.silent_count, step.tolerated_failures) == (4, 1, 0)


@given(
    voters=st.lists(st.integers(1, 7), min_size=1, max_size=5, unique=True),
    targets=st.sets(st.integers(1, 7), min_size=1, max_size=5),
)
def test_every_target_that_fetches_is_reached_and_a_majority_is_never_lost(
    voters: list[int], targets: set[int]
) -> None:
    others = tuple(key(one) for one in range(1, 8) if one not in voters)
    plan = planned(quorum(*voters, observers=others), *sorted(targets))
    assert plan.blocked is None
    assert all(step.tolerated_failures >= 0 for step in plan.steps)
    if plan.steps:
        assert plan.steps[-1].voter_count == len(targets)
    floor = min(len(voters), len(targets))
    assert all(step.voter_count >= floor for step in plan.steps)


@pytest.mark.parametrize("targets", ["1,2,3", "1,2,3,4", "1,2"], ids=["end", "add", "remove"])
def test_nothing_is_done_before_the_last_change_is_committed(targets: str) -> None:
    """The end of the targets waits as well: a change that is lost with its leader is done again."""
    now = quorum(1, 2, 3, observers=[key(4)])
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
    now = quorum(1, 2, 3, observers=[key(4)], silent=silent)
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


def voters(*node_ids: int) -> frozenset[VoterKey]:
    return frozenset(map(key, node_ids))


def situation(
    *node_ids: int, text: str = "4,5,6", epoch: int = 1, waits_for: BlockReason | None = None
) -> Situation:
    return Situation(text, epoch, voters(*node_ids), waits_for)


NOW = situation(1, 2, 3)


@pytest.mark.parametrize(("node_id", "wait_ms"), [(1, 500), (3, 1000), (4, 1500), (9, 2000)])
def test_each_waits_longer_than_those_with_lower_ids(node_id: int, wait_ms: int) -> None:
    turn = Turn(node_id, delay_ms=DELAY_MS)
    assert not turn.has_come(NOW, LIVE, 0)
    assert not turn.has_come(NOW, LIVE, wait_ms - 1)
    assert turn.has_come(NOW, LIVE, wait_ms)


@pytest.mark.parametrize(
    "other",
    [
        situation(1, 2, 3, 4),
        situation(1, 2, 3, text="4,5"),
        situation(1, 2, 3, epoch=2),
        situation(1, 2, 3, waits_for=BlockReason.TARGET_LAGGING),
    ],
    ids=["voters", "target voters", "leader", "hindrance"],
)
def test_the_wait_begins_again_when_something_changes(other: Situation) -> None:
    turn = Turn(1, delay_ms=DELAY_MS)
    assert not turn.has_come(NOW, LIVE, 0)
    assert not turn.has_come(other, LIVE, 499)
    assert not turn.has_come(other, LIVE, 998)
    assert turn.has_come(other, LIVE, 999)


def test_time_in_which_nothing_could_be_done_does_not_count() -> None:
    waiting = situation(1, 2, 3, waits_for=BlockReason.TARGET_LAGGING)
    for turn in [Turn(node_id, delay_ms=DELAY_MS) for node_id in LIVE]:
        turn.has_come(waiting, LIVE, 0)
        assert turn.has_come(waiting, LIVE, 60_000)
        assert not turn.has_come(NOW, LIVE, 60_001)


def test_who_made_the_latest_change_goes_on_at_once() -> None:
    turn = Turn(4, delay_ms=DELAY_MS)
    turn.changed_voters(NOW, voters(1, 2, 3, 4))
    assert turn.has_come(situation(1, 2, 3, 4), LIVE, 0)
    assert turn.has_come(situation(1, 2, 3, 4, waits_for=BlockReason.TARGET_LAGGING), LIVE, 0)
    assert not turn.has_come(situation(1, 2, 4), LIVE, 0)
    assert not turn.has_come(situation(1, 2, 3, 4, text="4,5"), LIVE, 0)
    # A leader that is one of ours says so only a moment after its election.
    assert not turn.has_come(situation(1, 2, 3, 4, epoch=2), LIVE, 0)


def test_who_has_missed_waits_as_everybody_does() -> None:
    turn = Turn(1, delay_ms=DELAY_MS)
    turn.changed_voters(situation(1, 2), voters(1, 2, 3))
    assert turn.has_come(NOW, LIVE, 0)
    turn.missed()
    assert not turn.has_come(NOW, LIVE, 1000)
    assert turn.has_come(NOW, LIVE, 1500)


def test_live_are_the_controllers_that_fetch_and_not_the_leader() -> None:
    def state(node_id: int, age_ms: float | None) -> ReplicaState:
        return ReplicaState(key(node_id), 9, age_ms)

    quorum = described(
        2,
        voters=[state(1, 10), state(2, 0), state(3, 2000)],
        observers=[state(4, 1999), state(5, None), state(100, 10)],
    )
    assert live_controllers(quorum, range(1, 7), fetch_timeout_ms=2000) == {1, 4}


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
