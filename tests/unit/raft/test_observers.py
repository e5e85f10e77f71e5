"""The duties of an observer: it enters epochs that are led, and lets candidates pass."""

import pytest
from tests.unit.raft.core_builder import CONFIG, endpoints_of, observer
from tests.unit.raft.driven_follower import EPOCH, DrivenFollower

from kvorum.raft import Effects, RaftCore, ReplicaKey
from kvorum.raft import effects as fx
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
    told = (*effects.at_once, *effects.after_write)
    sent = next(one for one in told if isinstance(one, fx.Send))
    return core.receive_response(1.0, number=sent.number, response=response)


@pytest.mark.parametrize("told", TOLD_OF_A_CANDIDATE)
def test_a_candidate_that_no_other_node_knows_does_not_keep_it_from_the_leader(
    told: msg.FetchResponse,
) -> None:
    core, effects = _observer()
    effects = _answer(core, effects, told)
    assert (core.role.epoch, core.role.leader_id) == (0, None)
    assert core.high_watermark is None
    leads = msg.FetchResponse(msg.Error.FENCED_LEADER_EPOCH, msg.KnownLeader(2, 1, endpoints_of(3)))
    effects = _answer(core, effects, leads)
    assert (core.role.epoch, core.role.leader_id) == (2, 1)


def test_a_follower_looks_elsewhere_when_its_leader_knows_of_a_later_epoch() -> None:
    core, effects = _observer()
    leads = msg.FetchResponse(msg.Error.FENCED_LEADER_EPOCH, msg.KnownLeader(2, 1, endpoints_of(3)))
    effects = _answer(core, effects, leads)
    effects = _answer(core, effects, TOLD_OF_A_CANDIDATE[0])
    assert (core.role.epoch, core.role.leader_id) == (2, 1)
    next_leads = msg.FetchResponse(
        msg.Error.FENCED_LEADER_EPOCH, msg.KnownLeader(10, 4, endpoints_of(4))
    )
    _answer(core, effects, next_leads)
    assert (core.role.epoch, core.role.leader_id) == (10, 4)


def test_an_observer_lets_pass_once_its_leader_is_silent() -> None:
    """Its leader may have made it a voter, in a record that the leader is lost with."""
    node = DrivenFollower(own_id=4)
    fetched = msg.FetchResponse(msg.Error.NONE, node.leader())
    (sent,) = node.found(fx.Send)
    node.take(node.core.receive_response(1.0, number=sent.number, response=fetched))
    ask = msg.VoteRequest(
        epoch=EPOCH,
        replica=ReplicaKey(2, b"\x02" * 16),
        voter=None,
        log_end=OffsetAndEpoch(0, 0),
        is_pre_vote=True,
    )

    def is_granted(now: float) -> bool:
        node.take(node.core.receive(now, token=2, request=ask))
        (reply,) = node.found(fx.SendResponse)
        assert isinstance(reply.response, msg.VoteResponse)
        return reply.response.is_granted

    assert not is_granted(2.0)
    silent_from = 1.0 + CONFIG.fetch_timeout_ms
    node.take(node.core.tick(silent_from - 1))
    assert not is_granted(silent_from - 1)
    node.take(node.core.tick(silent_from))
    assert is_granted(silent_from)


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
    ask = msg.VoteRequest(
        epoch=EPOCH + 100,
        replica=ReplicaKey(5, b"\x05" * 16),
        voter=None if voter_id is None else ReplicaKey(voter_id, bytes([voter_id]) * 16),
        log_end=OffsetAndEpoch(4, 1),
        is_pre_vote=False,
    )
    node.take(node.core.receive(1.0, token=2, request=ask))
    (reply,) = node.found(fx.SendResponse)
    error = msg.Error.INVALID_VOTER_KEY if voter_id == 5 else msg.Error.NONE
    assert reply.response == msg.VoteResponse(error=error, leader=node.leader())
    assert (node.core.role.epoch, node.core.role.leader_id) == (EPOCH, 1)


def test_it_still_votes_for_a_log_as_long_as_its_own() -> None:
    """It may be a voter without knowing it yet."""
    node = DrivenFollower(own_id=4, end_offset=5)
    ask = msg.VoteRequest(
        epoch=EPOCH + 1,
        replica=ReplicaKey(2, b"\x02" * 16),
        voter=None,
        log_end=OffsetAndEpoch(5, 1),
        is_pre_vote=False,
    )
    node.take(node.core.receive(1.0, token=2, request=ask))
    (reply,) = node.found(fx.SendResponse)
    assert isinstance(reply.response, msg.VoteResponse)
    assert reply.response.is_granted
    assert (node.core.role.epoch, node.core.role.voted) == (EPOCH + 1, ask.replica)
