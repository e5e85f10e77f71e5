"""The duties of an observer: it enters epochs that are led, and lets candidates pass."""

import pytest
from tests.unit.raft.core_builder import (
    CONFIG,
    endpoints_of,
    key_of,
    observer,
    sends_in,
    vote_request,
)
from tests.unit.raft.driven_follower import EPOCH, DrivenFollower

from kvorum.raft import Effects, RaftCore
from kvorum.raft import messages as msg
from kvorum.wire.offset_and_epoch import OffsetAndEpoch

TOLD_OF_A_CANDIDATE = (
    msg.FetchResponse(msg.Error.FENCED_LEADER_EPOCH, msg.KnownLeader(9)),
    # No leader can say that it does not know of itself; nothing in it counts.
    msg.FetchResponse(msg.Error.NONE, msg.KnownLeader(9), high_watermark=7),
    msg.FetchResponse(msg.Error.NONE, msg.KnownLeader(9), diverging=OffsetAndEpoch(0, 0)),
)


def _observer() -> tuple[RaftCore, Effects]:
    core = observer((-3, -4))
    return core, core.start(0.0, stored=None)


def _answer(core: RaftCore, effects: Effects, response: msg.FetchResponse) -> Effects:
    return core.receive_response(1.0, number=sends_in(effects)[0].number, response=response)


def _who_leads(epoch: int, leader_id: int, node_id: int) -> msg.FetchResponse:
    leader = msg.KnownLeader(epoch, leader_id, endpoints_of(node_id))
    return msg.FetchResponse(msg.Error.FENCED_LEADER_EPOCH, leader)


@pytest.mark.parametrize("told", TOLD_OF_A_CANDIDATE)
def test_a_candidate_that_no_other_node_knows_does_not_keep_it_from_the_leader(
    told: msg.FetchResponse,
) -> None:
    core, effects = _observer()
    effects = _answer(core, effects, told)
    assert (core.role.epoch, core.role.leader_id) == (0, None)
    assert core.high_watermark is None
    _answer(core, effects, _who_leads(2, 1, node_id=3))
    assert (core.role.epoch, core.role.leader_id) == (2, 1)


def test_a_follower_looks_elsewhere_when_its_leader_knows_of_a_later_epoch() -> None:
    core, effects = _observer()
    effects = _answer(core, effects, _who_leads(2, 1, node_id=3))
    effects = _answer(core, effects, TOLD_OF_A_CANDIDATE[0])
    assert (core.role.epoch, core.role.leader_id) == (2, 1)
    _answer(core, effects, _who_leads(10, 4, node_id=4))
    assert (core.role.epoch, core.role.leader_id) == (10, 4)


def test_an_observer_lets_pass_once_its_leader_is_silent() -> None:
    """Its leader may have made it a voter, in a record that the leader is lost with."""
    node = DrivenFollower(own_id=4)
    node.get()
    ask = vote_request(2, epoch=EPOCH, is_pre_vote=True)
    assert not node.answered(ask, msg.VoteResponse).is_granted
    node.advance(CONFIG.fetch_timeout_ms - 1)
    assert not node.answered(ask, msg.VoteResponse).is_granted
    node.advance(1)
    assert node.answered(ask, msg.VoteResponse).is_granted


def test_an_observer_outlives_the_resignation_of_a_leader_that_names_no_successors() -> None:
    """Only voters have turns: a leader that came back from a restart names none."""
    core, effects = _observer()
    leader = msg.KnownLeader(2, 1, endpoints_of(3))
    effects = _answer(core, effects, msg.FetchResponse(msg.Error.FENCED_LEADER_EPOCH, leader))
    _answer(core, effects, msg.FetchResponse(msg.Error.NONE, leader, high_watermark=0))
    resignation = msg.EndQuorumEpochRequest(
        epoch=2, leader_id=1, preferred=(), endpoints=endpoints_of(3)
    )
    core.receive(2.0, token=1, request=resignation)
    assert (core.role.epoch, core.role.leader_id) == (2, 1)
    assert core.next_deadline == 2.0 + CONFIG.election_backoff_ms_max


@pytest.mark.parametrize("voter_id", [None, 4, 5])
def test_a_candidate_that_it_refuses_does_not_take_it_from_its_leader(voter_id: int | None) -> None:
    """A voter that was removed and does not know calls elections among former voters alone."""
    node = DrivenFollower(own_id=4, end_offset=5)
    voter = None if voter_id is None else key_of(voter_id)
    ask = vote_request(5, epoch=EPOCH + 100, log_end=OffsetAndEpoch(4, 1), voter=voter)
    error = msg.Error.INVALID_VOTER_KEY if voter_id == 5 else msg.Error.NONE
    assert node.answered(ask, msg.VoteResponse) == msg.VoteResponse(error, node.leader())
    assert (node.core.role.epoch, node.core.role.leader_id) == (EPOCH, 1)


def test_it_still_votes_for_a_log_as_long_as_its_own() -> None:
    """It may be a voter without knowing it yet."""
    node = DrivenFollower(own_id=4, end_offset=5)
    ask = vote_request(2, epoch=EPOCH + 1, log_end=OffsetAndEpoch(5, 1))
    assert node.answered(ask, msg.VoteResponse).is_granted
    assert (node.core.role.epoch, node.core.role.voted) == (EPOCH + 1, ask.replica)
