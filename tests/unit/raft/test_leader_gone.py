"""A voter hears that its leader's process has ended, or stands though its removal is not final."""

from itertools import pairwise

import pytest
from tests.unit.raft.core_builder import (
    CONFIG,
    EMPTY_LOG,
    EPOCH,
    LEADER_ID,
    DrivenFollower,
    build_core,
    endpoints_of,
    history_of,
    key_of,
    sends_in,
    static_voters_of,
    vote_request,
    voters_of,
)

from kvorum.raft import (
    Effects,
    ElectionRecord,
    EpochStart,
    LogView,
    OffsetAndEpoch,
    RaftCore,
    ReplicaKey,
    VoterSetHistory,
)
from kvorum.raft import effects as fx
from kvorum.raft import messages as msg
from kvorum.raft.effects import Send
from kvorum.raft.roles import RoleName

GONE = msg.RequestFailed("refused", is_peer_gone=True)
LOST = msg.RequestFailed("lost")
BOTH, ONLY_ONE = voters_of(1, 2), voters_of(1)
REMOVED_AT = 3


class DrivenVoter(DrivenFollower):
    """A follower of node 1 that may call an election."""

    def __init__(self, own_id: int, *, voter_count: int = 3, seed: int = 1) -> None:
        self.sent: list[fx.Send] = []
        super().__init__(own_id, voter_count=voter_count, seed=seed)

    def take(self, effects: Effects) -> None:
        super().take(effects)
        self.sent += sends_in(effects)

    def respond(self, response: msg.Response | msg.RequestFailed) -> None:
        number = self.sent[-1].number
        self.take(self.core.receive_response(self.now, number=number, response=response))

    def grant_all(self) -> None:
        leader = msg.KnownLeader(self.core.role.epoch, None, ())
        granted = msg.VoteResponse(error=msg.Error.NONE, leader=leader, is_granted=True)
        for send in list(self.sent):
            if isinstance(send.request, msg.VoteRequest):
                number = send.number
                self.take(self.core.receive_response(self.now, number=number, response=granted))

    def fetch_something(self, *batches: msg.BatchSummary) -> None:
        self.respond(
            msg.FetchResponse(
                error=msg.Error.NONE, leader=self.leader(), high_watermark=0, batches=batches
            )
        )

    def until_campaign(self) -> float:
        """Let time pass up to the election, without listeners; return how much that was."""
        started = self.now
        while self.core.role.name is RoleName.FOLLOWER:
            sent_count = len(self.sent)
            self.advance(self.core.next_deadline - self.now)
            if self.core.role.name is RoleName.FOLLOWER and len(self.sent) > sent_count:
                self.respond(GONE)
        return self.now - started

    def role_name(self) -> RoleName:
        return self.core.role.name

    def gives_pre_vote(self, candidate_id: int = 3, *, log_end: OffsetAndEpoch = EMPTY_LOG) -> bool:
        request = vote_request(candidate_id, epoch=EPOCH, log_end=log_end, is_pre_vote=True)
        return self.answered(request, msg.VoteResponse).is_granted


def follower(own_id: int, *, voter_count: int = 3, seed: int = 1) -> DrivenVoter:
    """Return a voter, or an observer, whose leader has answered a fetch."""
    one = DrivenVoter(own_id, voter_count=voter_count, seed=seed)
    one.fetch_something()
    return one


def without_leader(own_id: int, *, voter_count: int = 3, seed: int = 1) -> DrivenVoter:
    """Return one whose leader has gone since."""
    one = follower(own_id, voter_count=voter_count, seed=seed)
    one.respond(GONE)
    return one


@pytest.mark.parametrize("seed", range(20))
def test_the_successors_begin_soon_and_one_after_the_other(seed: int) -> None:
    waits: list[float] = []
    for own_id in (2, 3, 4, 5):
        one = without_leader(own_id, voter_count=5, seed=seed * 10 + own_id)
        waits.append(one.until_campaign())
        assert one.core.role.epoch == EPOCH
    gaps = [after - before for before, after in pairwise(waits)]
    assert waits[0] < CONFIG.succession_step_ms
    assert min(gaps) >= CONFIG.succession_step_ms / 2 - 1
    assert waits[-1] < CONFIG.fetch_timeout_ms / 10


def test_a_connection_that_only_broke_changes_nothing() -> None:
    one = follower(2)
    one.respond(LOST)
    assert not one.gives_pre_vote()
    one.advance(CONFIG.retry_backoff_ms)
    one.fetch_something()
    one.advance(CONFIG.fetch_timeout_ms - 1)
    assert one.role_name() is RoleName.FOLLOWER


def test_pre_votes_are_given_once_the_leader_is_gone() -> None:
    one = follower(2)
    assert not one.gives_pre_vote()
    one.respond(GONE)
    assert one.gives_pre_vote()


def test_a_leader_that_answers_again_is_followed_on() -> None:
    one = without_leader(3)
    one.advance(CONFIG.retry_backoff_ms)
    one.fetch_something()
    assert not one.gives_pre_vote()
    one.advance(CONFIG.fetch_timeout_ms - 1)
    assert one.role_name() is RoleName.FOLLOWER


def test_a_leader_may_go_twice() -> None:
    one = without_leader(3)
    one.advance(CONFIG.retry_backoff_ms)
    one.fetch_something()
    one.respond(GONE)
    assert one.until_campaign() < 2 * CONFIG.succession_step_ms


def test_who_gave_a_pre_vote_lets_the_other_try_but_once() -> None:
    one = without_leader(2)
    assert one.gives_pre_vote()
    one.advance(CONFIG.precedence_ms - 1)
    assert one.role_name() is RoleName.FOLLOWER
    assert one.gives_pre_vote()
    one.advance(1)
    assert one.role_name() is RoleName.PROSPECTIVE


def test_of_two_that_begin_together_the_lower_id_goes_first() -> None:
    one = without_leader(4, voter_count=5)
    one.until_campaign()
    assert one.gives_pre_vote(2)
    one.grant_all()
    assert one.role_name() is RoleName.PROSPECTIVE
    assert one.gives_pre_vote(2)
    one.advance(CONFIG.precedence_ms)
    assert one.role_name() is RoleName.CANDIDATE


def test_of_two_that_begin_together_the_higher_id_is_not_waited_for() -> None:
    one = without_leader(4, voter_count=5)
    one.until_campaign()
    assert one.gives_pre_vote(5)
    one.grant_all()
    assert one.role_name() is RoleName.CANDIDATE


def test_it_sleeps_while_its_log_is_not_durable() -> None:
    one = DrivenVoter(4, voter_count=5)
    one.fetch_something(msg.BatchSummary(base_offset=0, last_offset=0, epoch=EPOCH))
    one.until_campaign()
    assert one.gives_pre_vote(2, log_end=OffsetAndEpoch(1, EPOCH))
    one.grant_all()
    one.advance(CONFIG.precedence_ms)
    assert one.role_name() is RoleName.PROSPECTIVE
    assert one.core.next_deadline > one.now


def test_letting_pass_does_not_hold_up_a_round_that_is_lost() -> None:
    one = without_leader(4, voter_count=5)
    one.until_campaign()
    assert one.gives_pre_vote(2)
    one.advance(CONFIG.precedence_ms)
    assert one.core.next_deadline > one.now
    one.grant_all()
    assert one.role_name() is RoleName.CANDIDATE


def test_a_process_that_stood_still_does_not_blame_its_leader() -> None:
    one = follower(2)
    one.core.stood_still(1500)
    roles: list[RoleName] = []
    for delay_ms in (CONFIG.fetch_timeout_ms, 1499, 1):
        one.advance(delay_ms)
        roles.append(one.core.role.name)
    assert roles == [RoleName.FOLLOWER, RoleName.FOLLOWER, RoleName.PROSPECTIVE]


def test_a_leader_that_is_gone_is_not_waited_for_because_of_that() -> None:
    one = without_leader(2)
    one.core.stood_still(1500)
    assert one.until_campaign() < CONFIG.succession_step_ms


def test_a_pre_vote_that_others_refuse_is_tried_again_by_chance() -> None:
    waits: set[float] = set()
    for seed in range(10):
        one = without_leader(2, seed=seed)
        one.until_campaign()
        for send in one.sent[-2:]:
            response = msg.VoteResponse(
                error=msg.Error.NONE, leader=msg.KnownLeader(EPOCH, LEADER_ID, ()), is_granted=False
            )
            one.take(one.core.receive_response(one.now, number=send.number, response=response))
        assert one.role_name() is RoleName.FOLLOWER
        one.respond(GONE)
        waits.add(one.until_campaign())
    assert min(waits) >= CONFIG.succession_step_ms
    assert max(waits) <= 3 * CONFIG.succession_step_ms + 1
    assert len(waits) > 5


def test_another_server_that_is_gone_means_nothing() -> None:
    one = follower(2)
    one.respond(LOST)
    assert one.sent[-1].destination.id == -2
    one.respond(GONE)
    assert not one.gives_pre_vote()


def test_an_observer_only_looks_for_another_leader() -> None:
    one = without_leader(9)
    assert one.role_name() is RoleName.FOLLOWER
    assert one.sent[-1].destination.id == -2


def not_leading(epoch: int = EPOCH) -> msg.FetchResponse:
    return msg.FetchResponse(
        error=msg.Error.NOT_LEADER_OR_FOLLOWER,
        leader=msg.KnownLeader(epoch, LEADER_ID, endpoints_of(LEADER_ID)),
    )


def resignation(*preferred: int) -> msg.EndQuorumEpochRequest:
    return msg.EndQuorumEpochRequest(
        epoch=EPOCH,
        leader_id=LEADER_ID,
        preferred=tuple(ReplicaKey(each) for each in preferred),
        endpoints=endpoints_of(LEADER_ID),
    )


def until_prospective(voter: DrivenVoter) -> float:
    """Let time pass up to the election, every request left without an answer."""
    started = voter.now
    while voter.role_name() is RoleName.FOLLOWER:
        voter.advance(voter.core.next_deadline - voter.now)
    return voter.now - started


def test_a_leader_that_came_back_without_its_office_is_replaced_at_once() -> None:
    """Both were killed: the follower asks the leader of its record, which has resigned."""
    voter = DrivenVoter(2)
    voter.respond(not_leading())
    assert voter.gives_pre_vote()
    # A voter that gives a pre-vote lets the other one try first.
    assert until_prospective(voter) <= CONFIG.precedence_ms
    quicker = DrivenVoter(2)
    quicker.respond(not_leading())
    assert until_prospective(quicker) <= 3 * CONFIG.succession_step_ms


def test_a_leader_that_came_back_quickly_names_no_order() -> None:
    voter = follower(2)
    voter.take(voter.core.receive(voter.now, token=2, request=resignation()))
    assert until_prospective(voter) <= CONFIG.succession_step_ms


def test_the_order_of_a_leader_that_resigns_is_kept_to() -> None:
    """Requests that are under way at the leader when it resigns get the same answer."""
    voter = follower(2)
    voter.respond(not_leading())
    voter.take(voter.core.receive(voter.now, token=2, request=resignation(3, 2)))
    voter.respond(not_leading())
    assert until_prospective(voter) >= CONFIG.election_backoff_ms_max / 2


def test_a_fetch_that_was_under_way_while_the_leader_resigned_changes_nothing() -> None:
    voter = follower(2)
    voter.respond(not_leading())
    assert not voter.gives_pre_vote()
    assert until_prospective(voter) > CONFIG.fetch_timeout_ms / 2


@pytest.mark.parametrize("epoch", [EPOCH - 1, EPOCH + 1])
def test_only_the_leader_of_this_epoch_can_have_resigned_in_it(epoch: int) -> None:
    voter = DrivenVoter(2)
    voter.respond(not_leading(epoch))
    assert voter.role_name() is RoleName.FOLLOWER
    assert until_prospective(voter) > CONFIG.fetch_timeout_ms / 2


def test_a_restarted_leader_stands_where_another_lacks_its_records() -> None:
    """It waits for a successor, and of the two that are there only it can be elected."""
    old = DrivenVoter(1)
    log = LogView(end_offset=5, durable_end_offset=5, epochs=[EpochStart(EPOCH, start_offset=0)])
    old.core = build_core(key_of(1), endpoints=endpoints_of(1), log=log, history=old.core.history)
    old.take(old.core.start(0, stored=ElectionRecord(EPOCH, LEADER_ID, None)))
    assert old.role_name() is RoleName.RESIGNED
    assert old.core.next_deadline > CONFIG.succession_step_ms
    assert not old.gives_pre_vote(log_end=OffsetAndEpoch(4, EPOCH))
    old.advance(CONFIG.succession_step_ms)
    assert (old.role_name(), old.core.role.epoch) == (RoleName.PROSPECTIVE, EPOCH + 1)


def removed_node(*, can_vote: bool = True, node_id: int = 2, snapshot_end: int = 0) -> RaftCore:
    """Return node 2 after a start; the last record of its log removes it from the voters 1, 2."""
    log = LogView(0, REMOVED_AT + 1, REMOVED_AT + 1, [EpochStart(1, 0)])
    history = history_of(BOTH, log, kraft_version=1)
    history.add_voters(REMOVED_AT, ONLY_ONE)
    if snapshot_end:
        log.snapshots.append(OffsetAndEpoch(snapshot_end, 1))
    endpoints = endpoints_of(node_id)
    return build_core(
        key_of(node_id), endpoints=endpoints, can_vote=can_vote, log=log, history=history
    )


def stands(core: RaftCore, *, stored: ElectionRecord) -> bool:
    """Tell whether a node that hears from no other asks for pre-votes before long."""
    core.start(0.0, stored=stored)
    times = range(0, 5 * CONFIG.election_timeout_ms, 100)
    return any(votes_asked_for(core.tick(float(now))) for now in times)


def votes_asked_for(effects: Effects) -> list[tuple[Send, msg.VoteRequest]]:
    return [
        (send, send.request)
        for send in sends_in(effects)
        if isinstance(send.request, msg.VoteRequest)
    ]


RECORDS = [
    ElectionRecord(1),
    ElectionRecord(1, leader_id=2),
    ElectionRecord(1, leader_id=1),
    ElectionRecord(2, voted=key_of(2)),
]


@pytest.mark.parametrize("stored", RECORDS)
def test_who_may_not_be_removed_yet_stands(stored: ElectionRecord) -> None:
    core = removed_node()
    assert not core.is_voter
    assert stands(core, stored=stored)


@pytest.mark.parametrize("stored", RECORDS)
def test_who_is_removed_for_certain_does_not(stored: ElectionRecord) -> None:
    assert not stands(removed_node(snapshot_end=REMOVED_AT + 1), stored=stored)


def test_a_snapshot_from_before_the_record_says_nothing() -> None:
    assert stands(removed_node(snapshot_end=REMOVED_AT), stored=ElectionRecord(1))


def test_who_was_no_voter_before_does_not() -> None:
    assert not stands(removed_node(node_id=3), stored=ElectionRecord(1))
    assert not stands(removed_node(can_vote=False), stored=ElectionRecord(1))


def test_its_own_vote_does_not_count() -> None:
    core = removed_node()
    core.start(0.0, stored=ElectionRecord(1))
    core.tick(5.0 * CONFIG.election_timeout_ms)
    assert core.role.name.value == "prospective", "a voter of one would lead by now"


def test_a_leader_that_is_out_and_restarts_does_not_wait_for_ever() -> None:
    core = removed_node(snapshot_end=REMOVED_AT + 1)
    core.start(0.0, stored=ElectionRecord(1, leader_id=2))
    assert core.role.name.value == "resigned"
    core.tick(2.0 * CONFIG.election_timeout_ms)
    assert (core.role.name.value, core.role.epoch) == ("unattached", 2)


@pytest.mark.parametrize(
    ("voted", "role"),
    [
        (key_of(2), "candidate"),
        # The form that belongs to kraft.version 0 has no directory ids.
        (ReplicaKey(2), "candidate"),
        (key_of(2, 99), "unattached"),
        (key_of(1), "unattached"),
    ],
)
def test_who_has_voted_for_itself_comes_back_as_a_candidate(voted: ReplicaKey, role: str) -> None:
    core = removed_node()
    core.start(0.0, stored=ElectionRecord(2, voted=voted))
    assert core.role.name.value == role


UPGRADED_AT = 2


def replaced_node(directory: int) -> RaftCore:
    """Return node 1 after a start; the configuration and then the log name it among 1, 2, 3."""
    history = VoterSetHistory(static=static_voters_of(1, 2, 3))
    history.add_kraft_version(UPGRADED_AT - 1, 1)
    history.add_voters(UPGRADED_AT, voters_of(1, 2, 3))
    log = LogView(0, UPGRADED_AT + 1, UPGRADED_AT + 1, [EpochStart(1, 0)], [])
    key, endpoints = key_of(1, directory), endpoints_of(1)
    return build_core(key, endpoints=endpoints, log=log, history=history)


def role_after_one_grant(core: RaftCore) -> str:
    """Return what a core is that node 2 has voted for, and no other."""
    core.start(0.0, stored=ElectionRecord(1))
    now = 2.0 * CONFIG.election_timeout_ms
    effects = core.tick(now)
    for _ in range(2):
        for send, request in votes_asked_for(effects):
            if send.destination.id == 2:
                leader = msg.KnownLeader(request.epoch)
                answer = msg.VoteResponse(msg.Error.NONE, leader, is_granted=True)
                effects = core.receive_response(now, number=send.number, response=answer)
    return core.role.name.value


def test_one_grant_of_three_elects_a_voter_and_not_a_node_with_only_its_id() -> None:
    assert role_after_one_grant(replaced_node(directory=1)) == "leader"
    assert role_after_one_grant(replaced_node(directory=9)) == "unattached"


def test_a_new_disk_does_not_stand_for_the_voter_of_the_old_one() -> None:
    """It was a voter by its id, before the record; the record removes no voter."""
    core = replaced_node(directory=9)
    assert not core.is_voter
    assert not core.may_stand
    for stored in (ElectionRecord(1), ElectionRecord(1, leader_id=2)):
        assert not stands(replaced_node(directory=9), stored=stored)


def test_the_voters_before_the_last_record() -> None:
    history = VoterSetHistory(static=ONLY_ONE)
    assert history.previous_voters == ONLY_ONE
    history.add_voters(5, BOTH)
    assert history.previous_voters == ONLY_ONE
    history.add_voters(9, ONLY_ONE)
    assert history.previous_voters == BOTH
    history.truncate_to(9)
    assert history.previous_voters == ONLY_ONE
