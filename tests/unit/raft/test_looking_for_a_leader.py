"""Replicas without a leader, or one that is gone with its snapshot, and observers."""

from collections import Counter

import pytest
from tests.unit.raft.core_builder import (
    CONFIG,
    EPOCH,
    DrivenFollower,
    build_core,
    destination_of,
    endpoints_of,
    key_of,
    observer,
    sends_in,
    static_voters_of,
    vote_request,
)

from kvorum.raft import Effects, LogView, OffsetAndEpoch, RaftCore
from kvorum.raft import effects as fx
from kvorum.raft import messages as msg
from kvorum.raft.election_record import ElectionRecord

SERVERS = (-2, -3, -4, -5)
TIMED_OUT = msg.RequestFailed("no response in time")
NOBODY_LEADS = msg.FetchResponse(msg.Error.NOT_LEADER_OR_FOLLOWER, msg.KnownLeader(0))
LEADER = msg.KnownLeader(4, 2)
TOLD_OF_A_CANDIDATE = (
    msg.FetchResponse(msg.Error.FENCED_LEADER_EPOCH, msg.KnownLeader(9)),
    # No leader can say that it does not know of itself; nothing in it counts.
    msg.FetchResponse(msg.Error.NONE, msg.KnownLeader(9), high_watermark=7),
    msg.FetchResponse(msg.Error.NONE, msg.KnownLeader(9), diverging=OffsetAndEpoch(0, 0)),
)


def _ask_for(
    duration_ms: float,
    *,
    silent: set[int],
    seed: int,
    answer: msg.FetchResponse = NOBODY_LEADS,
    gives_up_first: bool = False,
) -> list[tuple[float, int]]:
    """Return when an observer asks which server; those that are not silent all say the same."""
    core = observer(SERVERS, seed=seed)
    asked: list[tuple[float, int]] = []
    now = 0.0
    effects = core.start(now, stored=None)
    while now < duration_ms:
        sent = next(iter(sends_in(effects)), None)
        if sent is not None:
            asked.append((now, sent.destination.id))
        if sent is not None and sent.destination.id not in silent:
            now += 1
            effects = core.receive_response(now, number=sent.number, response=answer)
        elif sent is not None and gives_up_first:
            # The sender of requests notices that time is up just before the core does.
            now += CONFIG.request_timeout_ms - 1
            effects = core.receive_response(now, number=sent.number, response=TIMED_OUT)
        else:
            now = max(core.next_deadline, now)
            effects = core.tick(now)
    return asked


@pytest.mark.parametrize("gives_up_first", [True, False])
@pytest.mark.parametrize("seed", range(20))
def test_all_that_answer_are_asked_between_two_that_are_silent(
    seed: int, *, gives_up_first: bool
) -> None:
    duration_ms = 40 * CONFIG.request_timeout_ms
    asked = _ask_for(duration_ms, silent={-2, -3}, seed=seed, gives_up_first=gives_up_first)
    since_silent: set[int] = set()
    first_try = {-2, -3}
    for _, server in asked:
        if server in first_try:
            # No node can know before.
            first_try.remove(server)
        elif server in {-2, -3}:
            assert since_silent == {-4, -5}
            since_silent = set()
        else:
            since_silent.add(server)
    assert not first_try


def test_who_was_silent_is_asked_again_soon() -> None:
    # As where a partition left only a replica itself among those that answer.
    asked = _ask_for(4 * CONFIG.request_timeout_ms, silent={-2, -3, -4}, seed=1)
    assert {server for _, server in asked} == set(SERVERS)
    asked = _ask_for(10 * CONFIG.request_timeout_ms, silent={-2, -3, -4}, seed=1)
    count = Counter(server for _, server in asked)
    assert min(count[-2], count[-3], count[-4]) >= 3


def test_who_is_left_is_asked_though_all_are_silent() -> None:
    assert len(_ask_for(10 * CONFIG.request_timeout_ms, silent=set(SERVERS), seed=1)) >= 9


def test_a_silent_leader_that_others_name_is_asked_again_soon() -> None:
    leader = msg.KnownLeader(1, 1, endpoints_of(-2))
    named = msg.FetchResponse(msg.Error.NOT_LEADER_OR_FOLLOWER, leader)
    asked = _ask_for(5 * CONFIG.request_timeout_ms, silent={-2, 1}, seed=1, answer=named)
    assert sum(server in {-2, 1} for _, server in asked) >= 3


def only_send(effects: fx.Effects) -> fx.Send:
    (send,) = sends_in(effects)
    return send


def restarted_observer() -> tuple[RaftCore, fx.Send]:
    """Return an observer with an empty log, and how it asks node 2 for a snapshot."""
    bootstrap = tuple(map(destination_of, (2, 3)))
    core = build_core(
        key_of(1), can_vote=False, bootstrap=bootstrap, history=static_voters_of(2, 3)
    )
    fetch = only_send(core.start(0.0, stored=ElectionRecord(4, 2)))
    snapshot = msg.FetchResponse(msg.Error.NONE, LEADER, snapshot_id=OffsetAndEpoch(15, 4))
    return core, only_send(core.receive_response(1.0, number=fetch.number, response=snapshot))


def test_an_observer_does_not_ask_a_dead_leader_for_the_rest_of_a_snapshot_for_ever() -> None:
    core, asked = restarted_observer()
    now, fetched_from = 1.0, set[int]()
    while now < 3_000:
        if isinstance(asked.request, msg.FetchRequest):
            fetched_from.add(asked.destination.id)
        failed = core.receive_response(
            now, number=asked.number, response=msg.RequestFailed("nobody listens")
        )
        sends = sends_in(failed)
        while not sends:
            now = core.next_deadline
            sends = sends_in(core.tick(now))
        asked = sends[0]
    assert fetched_from == {2, 3}


def test_the_rest_of_the_snapshot_is_fetched_where_the_leader_comes_back() -> None:
    core, asked = restarted_observer()
    part = msg.FetchSnapshotResponse(
        msg.Error.NONE, LEADER, OffsetAndEpoch(15, 4), position=0, size=20, part_size=8
    )
    asked = only_send(core.receive_response(2.0, number=asked.number, response=part))
    other = only_send(
        core.receive_response(3.0, number=asked.number, response=msg.RequestFailed("lost"))
    )
    assert isinstance(other.request, msg.FetchRequest)
    refused = msg.FetchResponse(msg.Error.NOT_LEADER_OR_FOLLOWER, LEADER)
    core.receive_response(4.0, number=other.number, response=refused)
    again = only_send(core.tick(core.next_deadline))
    assert isinstance(again.request, msg.FetchSnapshotRequest)
    assert (again.destination.id, again.request.position) == (2, 8)


def unattached_with_tail() -> RaftCore:
    """Return a replica that knows no leader; the last of its two records may still be lost."""
    log = LogView()
    log.append(epoch=1, count=2)
    log.became_durable(1)
    return build_core(
        key_of(1),
        endpoints=endpoints_of(1),
        bootstrap=tuple(map(destination_of, (2, 3))),
        log=log,
        history=static_voters_of(1, 2, 3),
    )


def fetches_in(effects: fx.Effects) -> list[msg.FetchRequest]:
    requests = (send.request for send in sends_in(effects))
    return [request for request in requests if isinstance(request, msg.FetchRequest)]


def test_no_node_hears_of_records_that_may_still_be_lost() -> None:
    core = unattached_with_tail()
    assert fetches_in(core.start(0.0, stored=ElectionRecord(2))) == []
    assert fetches_in(core.tick(1.0)) == []
    (fetch,) = fetches_in(core.log_durable(2.0, 2))
    assert fetch.position == OffsetAndEpoch(2, 1)


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
