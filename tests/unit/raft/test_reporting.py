"""The reports of a follower to its leader: as a voter, and to become one."""

import pytest
from tests.unit.raft.core_builder import LISTENER, endpoints_of, key_of, static_voters_of, voters_of
from tests.unit.raft.reporting_follower import RECORDED, STATIC, ReportingFollower

from kvorum.raft import Endpoint, OffsetAndEpoch, RaftConfig, Voter
from kvorum.raft import messages as msg
from kvorum.raft.messages import Error

PERIOD_MS = RaftConfig().voter_update_ms
HERE = Endpoint(LISTENER, "here", 1)
THERE = Endpoint("OTHER", "there", 2)


def test_a_static_voter_tells_each_leader_once() -> None:
    one = ReportingFollower(STATIC, kraft_version=0)
    assert one.wait(PERIOD_MS - 1) is None
    assert one.wait(1) == msg.UpdateRaftVoterRequest(
        epoch=1,
        voter=key_of(2),
        endpoints=endpoints_of(2),
        kraft_version_min=0,
        kraft_version_max=1,
    )
    one.answer(msg.UpdateRaftVoterResponse(Error.NONE, one.leader))
    assert one.wait(5 * PERIOD_MS) is None
    one.follow(2)
    assert one.wait(PERIOD_MS) is not None


def test_a_leader_that_is_too_old_for_it_is_left_alone() -> None:
    for response in (
        msg.UpdateRaftVoterResponse(Error.UNSUPPORTED_VERSION, msg.KnownLeader(1, 1)),
        msg.RequestFailed("unknown", lacks_version=True),
    ):
        one = ReportingFollower(STATIC, kraft_version=0)
        one.wait(PERIOD_MS)
        one.answer(response)
        assert not one.refused
        assert one.wait(5 * PERIOD_MS) is None


def test_a_leader_that_is_busy_with_another_voter_hears_it_again_before_long() -> None:
    one = ReportingFollower(STATIC, kraft_version=0)
    one.wait(PERIOD_MS)
    one.answer(msg.UpdateRaftVoterResponse(Error.REQUEST_TIMED_OUT, one.leader))
    assert one.told() is None
    assert one.wait(PERIOD_MS / 4) is not None


def test_a_leader_that_could_not_reach_this_one_hears_it_again_after_a_period() -> None:
    one = ReportingFollower(STATIC, kraft_version=0)
    one.wait(PERIOD_MS)
    one.now += PERIOD_MS / 2
    one.answer(msg.UpdateRaftVoterResponse(Error.REQUEST_TIMED_OUT, one.leader))
    assert one.wait(PERIOD_MS / 2 - 1) is None
    assert one.wait(2) is not None


def test_telling_the_leader_shows_that_it_lives() -> None:
    one = ReportingFollower(STATIC, kraft_version=0)
    one.wait(PERIOD_MS)
    one.now += 1000
    one.answer(msg.UpdateRaftVoterResponse(Error.NONE, one.leader))
    assert one.core.role.deadline == one.now + RaftConfig().fetch_timeout_ms


def test_a_recorded_voter_has_nothing_to_tell_while_the_record_is_right() -> None:
    assert ReportingFollower(RECORDED).wait(5 * PERIOD_MS) is None


def test_the_order_of_endpoints_is_nothing_to_tell() -> None:
    voters = RECORDED.with_voter(Voter(key_of(2), (HERE, THERE), 0, 1))
    assert ReportingFollower(voters, endpoints=(THERE, HERE)).wait(5 * PERIOD_MS) is None
    assert ReportingFollower(voters, endpoints=(HERE,)).wait(PERIOD_MS) is not None


def test_a_recorded_voter_tells_what_has_changed_until_it_is_recorded() -> None:
    one = ReportingFollower(RECORDED, endpoints=(HERE,))
    for _ in range(2):
        told = one.wait(PERIOD_MS)
        assert isinstance(told, msg.UpdateRaftVoterRequest)
        assert told.endpoints == (HERE,)
        one.answer(msg.UpdateRaftVoterResponse(Error.NONE, one.leader))
    one.take(one.core.tick(one.now))
    one.append_voters(RECORDED.with_voter(Voter(key_of(2), (HERE,), 0, 1)))
    assert one.wait(5 * PERIOD_MS) is None


JOINER = voters_of(1, 3)


def joiner(*, can_vote: bool = True) -> ReportingFollower:
    return ReportingFollower(JOINER, auto_join=True, can_vote=can_vote)


def test_a_controller_joins_by_itself_a_period_after_it_follows() -> None:
    one = joiner()
    assert one.wait(PERIOD_MS - 1) is None
    assert one.wait(1) == msg.AddRaftVoterRequest(
        key_of(2), endpoints_of(2), acks_when_committed=False
    )
    one.answer(msg.AddRaftVoterResponse(Error.NONE))
    one.take(one.core.tick(one.now))
    one.append_voters(RECORDED)
    assert one.core.is_voter
    assert one.wait(5 * PERIOD_MS) is None


def test_the_entry_of_its_former_directory_goes_first() -> None:
    one = ReportingFollower(RECORDED, key=key_of(2, 99), auto_join=True)
    assert one.wait(PERIOD_MS) == msg.RemoveRaftVoterRequest(key_of(2))
    one.answer(msg.RemoveRaftVoterResponse(Error.NONE))
    one.take(one.core.tick(one.now))
    one.append_voters(JOINER)
    told = one.wait(PERIOD_MS)
    assert isinstance(told, msg.AddRaftVoterRequest)
    assert told.voter == key_of(2, 99)


@pytest.mark.parametrize(
    ("error", "is_failure"),
    [
        (Error.NONE, False),
        (Error.REQUEST_TIMED_OUT, False),
        (Error.DUPLICATE_VOTER, False),
        (Error.NOT_LEADER_OR_FOLLOWER, True),
        (Error.VOTER_NOT_FOUND, True),
        (Error.INVALID_REQUEST, True),
    ],
)
def test_after_an_answer_it_waits_a_period(error: Error, *, is_failure: bool) -> None:
    one = joiner()
    one.wait(PERIOD_MS)
    one.answer(msg.AddRaftVoterResponse(error))
    assert bool(one.refused) is is_failure
    assert one.wait(PERIOD_MS - 1) is None
    assert isinstance(one.wait(2), msg.AddRaftVoterRequest)


def test_who_was_removed_stays_away() -> None:
    one = ReportingFollower(RECORDED, auto_join=True)
    one.append_voters(RECORDED)
    one.append_voters(JOINER)
    assert not one.core.is_voter
    assert one.wait(5 * PERIOD_MS) is None


def test_who_was_added_in_vain_tries_again() -> None:
    one = joiner()
    one.wait(PERIOD_MS)
    one.answer(msg.AddRaftVoterResponse(Error.NONE))
    one.take(one.core.tick(one.now))
    end = one.log.end_offset
    one.answer_fetch(
        msg.BatchSummary(end, end, 1),
        msg.BatchSummary(end + 1, end + 1, 1, voters=((end + 1, RECORDED),)),
        high_watermark=end + 1,
    )
    assert one.core.is_voter
    # Another leader does not have that record.
    one.follow(2)
    diverging = msg.FetchResponse(
        Error.NONE, one.leader, high_watermark=end + 1, diverging=OffsetAndEpoch(end + 1, 1)
    )
    one.answer(diverging)
    assert not one.core.is_voter
    assert isinstance(one.wait(2 * PERIOD_MS), msg.AddRaftVoterRequest)


def test_who_is_not_meant_to_vote_does_not_join() -> None:
    assert joiner(can_vote=False).wait(5 * PERIOD_MS) is None
    assert ReportingFollower(JOINER).wait(5 * PERIOD_MS) is None
    static = ReportingFollower(static_voters_of(1, 3), kraft_version=0, auto_join=True)
    assert static.wait(5 * PERIOD_MS) is None


def test_who_shuts_down_tells_nothing() -> None:
    one = joiner()
    one.take(one.core.shutdown(one.now))
    assert one.wait(2 * PERIOD_MS) is None
