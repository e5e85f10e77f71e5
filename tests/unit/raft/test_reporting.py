"""The reports of a replica: to its leader, as a voter and to become one, and as metrics."""

import pytest
from tests.unit.raft.core_builder import (
    CAN_ALL,
    CONFIG,
    LISTENER,
    DrivenLeader,
    build_core,
    endpoints_of,
    history_of,
    key_of,
    static_voters_of,
    voters_of,
)

from kvorum.raft import (
    Effects,
    Endpoint,
    LogView,
    OffsetAndEpoch,
    RaftConfig,
    ReplicaKey,
    Voter,
    VoterSet,
)
from kvorum.raft import effects as fx
from kvorum.raft import messages as msg
from kvorum.raft.messages import Error

VOTER_REQUESTS = (msg.UpdateRaftVoterRequest, msg.AddRaftVoterRequest, msg.RemoveRaftVoterRequest)
PERIOD_MS = RaftConfig().voter_update_ms
HERE = Endpoint(LISTENER, "here", 1)
THERE = Endpoint("OTHER", "there", 2)
ONLY_LEADERS = {
    "duplicate-voter-ids",
    "number-of-observers",
    "number-of-offline-voters",
    "pending-add-voter",
    "pending-remove-voter",
    "uncommitted-voter-change",
}
ALWAYS = {
    "current-state",
    "current-leader",
    "current-vote",
    "current-vote-directory-id",
    "current-epoch",
    "high-watermark",
    "log-end-offset",
    "log-end-epoch",
    "number-unknown-voter-connections",
    "number-of-voters",
    "is-observer",
    "ignored-static-voters",
}


class ReportingFollower:
    """Node 2 following node 1 in epoch 1; fetches are answered whenever the test asks for more."""

    def __init__(
        self,
        voters: VoterSet,
        *,
        kraft_version: int = 1,
        key: ReplicaKey | None = None,
        endpoints: tuple[Endpoint, ...] = (),
        auto_join: bool = False,
        can_vote: bool = True,
    ) -> None:
        self.now = 0.0
        self.log = LogView()
        self.history = history_of(voters, self.log, kraft_version)
        self.sent: dict[int, fx.Send] = {}
        self.refused: list[fx.PeerRefused] = []
        self.core = build_core(
            key or key_of(2),
            endpoints=endpoints or endpoints_of(2),
            can_vote=can_vote,
            # Elections must not come in between.
            config=RaftConfig(auto_join=auto_join, election_timeout_ms=10**9),
            log=self.log,
            history=self.history,
        )
        self.take(self.core.start(self.now, stored=None))
        self.follow(1)

    def follow(self, epoch: int) -> None:
        """Follow node 1 in an epoch; what was asked before does not count any more."""
        self.sent.clear()
        request = msg.BeginQuorumEpochRequest(epoch, 1, None, endpoints_of(1))
        self.take(self.core.receive(self.now, token=1, request=request))

    @property
    def leader(self) -> msg.KnownLeader:
        return msg.KnownLeader(self.core.role.epoch, 1, endpoints_of(1))

    def take(self, effects: Effects) -> None:
        for effect in (*effects.at_once, *effects.after_write):
            if isinstance(effect, fx.Send):
                self.sent[effect.number] = effect
            elif isinstance(effect, fx.PeerRefused):
                self.refused.append(effect)
        if self.log.durable_end_offset < self.log.end_offset:
            self.take(self.core.log_durable(self.now, self.log.end_offset))

    def told(self) -> msg.Request | None:
        """Return what the leader is being told, if it is not only asked for records."""
        found = [one.request for one in self.sent.values()]
        ours = [request for request in found if isinstance(request, VOTER_REQUESTS)]
        assert len(found) <= 1
        return ours[0] if ours else None

    def answer(self, response: msg.Response | msg.RequestFailed) -> None:
        ((number, _),) = self.sent.items()
        del self.sent[number]
        self.take(self.core.receive_response(self.now, number=number, response=response))

    def answer_fetch(self, *batches: msg.BatchSummary, high_watermark: int = 0) -> None:
        self.answer(
            msg.FetchResponse(
                Error.NONE, self.leader, high_watermark=high_watermark, batches=batches
            )
        )

    def wait(self, elapsed_ms: float) -> msg.Request | None:
        """Let time pass, with fetches answered every half second; stop at something to tell."""
        end = self.now + elapsed_ms
        while self.now < end and self.told() is None:
            self.now = min(end, self.now + 500)
            self.take(self.core.tick(self.now))
            if self.sent and self.told() is None:
                self.answer_fetch()
        return self.told()

    def append_voters(self, voters: VoterSet) -> None:
        end = self.log.end_offset
        batch = msg.BatchSummary(end, end, 1, voters=((end, voters),))
        self.answer_fetch(batch, high_watermark=end + 1)


RECORDED, STATIC = voters_of(1, 2, 3), static_voters_of(1, 2, 3)


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


def test_a_leader_counts_voters_observers_and_changes(leader: DrivenLeader) -> None:
    named = leader.core.metrics(leader.now).named()
    assert set(named) == ALWAYS | ONLY_LEADERS
    assert named["current-state"] == "leader"
    assert (named["current-leader"], named["current-vote"]) == (1, 1)
    assert named["current-vote-directory-id"] == "AQEBAQEBAQEBAQEBAQEBAQ"
    assert named["high-watermark"] == named["log-end-offset"] == leader.log.end_offset
    assert named["log-end-epoch"] == named["current-epoch"] == leader.epoch
    assert (named["number-of-voters"], named["number-of-observers"]) == (3, 0)
    assert named["uncommitted-voter-change"] == 0
    leader.add(4)
    named = leader.core.metrics(leader.now).named()
    assert (named["number-of-observers"], named["uncommitted-voter-change"]) == (1, 1)
    assert (named["pending-add-voter"], named["pending-remove-voter"]) == (1, 0)
    leader.answer_probe(CAN_ALL)
    leader.commit()
    named = leader.core.metrics(leader.now).named()
    assert (named["number-of-voters"], named["number-of-observers"]) == (4, 0)
    assert named["uncommitted-voter-change"] == 0


def test_a_leader_on_its_way_out_is_an_observer(leader: DrivenLeader) -> None:
    leader.remove(1)
    named = leader.core.metrics(leader.now).named()
    assert (named["number-of-voters"], named["number-of-observers"]) == (2, 1)
    assert (named["pending-add-voter"], named["pending-remove-voter"]) == (0, 1)
    assert named["is-observer"] == 1
    leader.commit()
    named = leader.core.metrics(leader.now).named()
    assert named["current-state"] == "unattached"
    assert not ONLY_LEADERS & set(named)


def test_a_follower_is_a_voter_or_an_observer() -> None:
    assert ReportingFollower(RECORDED).core.metrics(0.0).named()["current-state"] == "follower"
    other = ReportingFollower(RECORDED, key=key_of(2, 99)).core.metrics(0.0).named()
    assert (other["current-state"], other["is-observer"]) == ("observer", 1)
    assert (other["current-vote"], other["current-leader"]) == (-1, 1)
    assert other["current-vote-directory-id"] == "AAAAAAAAAAAAAAAAAAAAAA"
    assert not ONLY_LEADERS & set(other)


def test_static_voters_are_ignored_once_the_log_names_some() -> None:
    one = ReportingFollower(STATIC, kraft_version=0)
    assert one.core.metrics(0.0).named()["ignored-static-voters"] == 0
    one.append_voters(RECORDED)
    assert one.core.metrics(0.0).named()["ignored-static-voters"] == 1


def test_an_id_is_there_twice_once_a_node_with_another_directory_fetches() -> None:
    leader = DrivenLeader()
    leader.commit()
    assert leader.core.metrics(leader.now).named()["duplicate-voter-ids"] == 0
    leader.fetch(key_of(4), offset=0)
    assert leader.core.metrics(leader.now).named()["duplicate-voter-ids"] == 0
    leader.fetch(key_of(2, 99), offset=0)
    leader.fetch(key_of(2, 98), offset=0)
    named = leader.core.metrics(leader.now).named()
    assert (named["duplicate-voter-ids"], named["number-of-observers"]) == (1, 3)


def test_a_broker_is_not_an_observing_controller() -> None:
    broker = ReportingFollower(RECORDED, key=key_of(9), can_vote=False)
    assert broker.core.metrics(0.0).named()["is-observer"] == 0


def test_who_asks_for_votes_is_prospective(leader: DrivenLeader) -> None:
    leader.advance(CONFIG.check_quorum_ms)
    leader.advance(5 * CONFIG.election_timeout_ms)
    assert leader.core.metrics(leader.now).named()["current-state"] in {"prospective", "unattached"}


def test_a_voter_is_offline_once_it_has_not_fetched_for_the_fetch_timeout() -> None:
    leader = DrivenLeader()
    leader.commit()
    assert leader.core.metrics(leader.now).named()["number-of-offline-voters"] == 0
    later = leader.core.metrics(leader.now + CONFIG.fetch_timeout_ms + 1).named()
    assert later["number-of-offline-voters"] == 2
