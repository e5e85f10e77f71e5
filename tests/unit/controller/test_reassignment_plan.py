"""The plan of a reassignment of the quorum: every step of `next_step`, on a description alone."""

from collections.abc import Collection

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.controller.quorums import LOG_END_OFFSET, described, key

from kvorum.controller.quorum_description import QuorumDescription, ReplicaState
from kvorum.controller.quorum_reassignment.next_step import BlockReason
from kvorum.controller.quorum_reassignment.plan import Plan, assumed_circumstances, planned_steps
from kvorum.metadata.voter_key import VoterKey

FETCH_TIMEOUT_MS = 2000


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
