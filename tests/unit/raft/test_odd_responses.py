"""A leader's responses that a replica must not follow, and what it hears of its leader."""

from itertools import product

import pytest
from tests.unit.raft.core_builder import (
    EPOCH,
    LEADER,
    LEADER_ID,
    DrivenFollower,
    DrivenLeader,
    key_of,
    vote_request,
)

from kvorum.raft import (
    Endpoint,
    IllegalMoveError,
    LogView,
    NotLeaderError,
    OffsetAndEpoch,
    ReplicaKey,
)
from kvorum.raft import effects as fx
from kvorum.raft import messages as msg
from kvorum.raft.election_record import EPOCH_MAX
from kvorum.raft.leader_contact import CONTACT_MOVES, ContactEvent, LeaderContact, contact_after
from kvorum.raft.messages import VoteRequest
from kvorum.raft.roles import Follower, RoleName
from kvorum.wire.valid_offset_and_epoch import ValidityKind

SNAPSHOT = OffsetAndEpoch(20, 2)
ENDPOINTS = (Endpoint("CONTROLLER", "host", 9093),)
ILLEGAL = {
    *product(set(LeaderContact) - {LeaderContact.GONE}, [ContactEvent.YIELDED]),
    *product([LeaderContact.GONE, LeaderContact.YIELDED], [ContactEvent.ENDED]),
}


def batch(base_offset: int, *, epoch: int = EPOCH, count: int = 1) -> msg.BatchSummary:
    return msg.BatchSummary(base_offset, base_offset + count - 1, epoch)


def test_what_continues_the_log_is_appended_and_known_to_be_committed() -> None:
    follower = DrivenFollower(end_offset=5)
    follower.get(batch(5), batch(6, count=2), high_watermark=7)
    assert follower.log.end_offset == 8
    assert follower.core.high_watermark == 7


@pytest.mark.parametrize(
    "wrong",
    [batch(7), batch(4), batch(6, count=0), batch(6, epoch=EPOCH + 1), batch(6, epoch=0)],
    ids=["a gap", "an overlap", "nothing in it", "an epoch ahead", "an epoch gone back"],
)
def test_what_does_not_continue_the_log_is_left_out(wrong: msg.BatchSummary) -> None:
    follower = DrivenFollower(end_offset=5)
    follower.get(batch(5), wrong, batch(wrong.last_offset + 1))
    assert follower.log.end_offset == 6
    assert [append.batch_count for append in follower.found(fx.AppendFetched)] == [1]
    assert len(follower.found(fx.PeerRefused)) == 1


def test_a_lower_high_watermark_is_not_taken_over() -> None:
    follower = DrivenFollower(end_offset=5)
    follower.get(batch(5), high_watermark=4)
    follower.get(high_watermark=2)
    assert follower.core.high_watermark == 4
    assert follower.found(fx.Committed) == []


@pytest.mark.parametrize(("offset", "is_cut"), [(3, False), (4, True), (5, True)])
def test_nothing_committed_is_cut_off(offset: int, is_cut: bool) -> None:
    follower = DrivenFollower(end_offset=6)
    follower.get(high_watermark=4)
    follower.get(diverging=OffsetAndEpoch(offset, 1))
    assert follower.log.end_offset == (offset if is_cut else 6)
    assert len(follower.found(fx.TruncateLog)) == is_cut
    assert len(follower.found(fx.PeerRefused)) == (not is_cut)


def test_a_snapshot_does_not_replace_what_is_committed_beyond_it() -> None:
    follower = DrivenFollower(end_offset=6)
    follower.get(high_watermark=6)
    follower.get(snapshot_id=OffsetAndEpoch(5, 1))
    assert follower.found(fx.BeginDownload) == []
    assert len(follower.found(fx.PeerRefused)) == 1


def test_a_part_of_a_snapshot_that_was_not_asked_for_ends_the_download() -> None:
    follower = DrivenFollower()
    follower.get(snapshot_id=SNAPSHOT)
    follower.get_part(SNAPSHOT, position=0)
    _, wanted = follower.asked(msg.FetchSnapshotRequest)
    assert wanted.position == 1
    follower.get_part(SNAPSHOT, position=5)
    assert follower.found(fx.AppendDownload) == []
    assert len(follower.found(fx.DropDownload)) == 1


def test_who_asks_for_a_snapshot_that_is_gone_fetches_again() -> None:
    follower = DrivenFollower()
    follower.get(snapshot_id=SNAPSHOT)
    gone = msg.FetchSnapshotResponse(
        msg.Error.SNAPSHOT_NOT_FOUND, follower.leader(), snapshot_id=SNAPSHOT
    )
    follower.respond(gone)
    assert len(follower.found(fx.DropDownload)) == 1
    follower.asked(msg.FetchRequest)


def test_no_election_begins_while_a_snapshot_is_being_installed() -> None:
    follower = DrivenFollower()
    follower.get(snapshot_id=SNAPSHOT)
    follower.get_part(SNAPSHOT, position=0, size=1)
    assert len(follower.found(fx.InstallDownload)) == 1
    for _ in range(10):
        follower.advance(5_000)
        assert follower.core.role.name is RoleName.FOLLOWER


def test_the_newest_of_several_snapshots_is_named() -> None:
    log = LogView(start_offset=10, end_offset=30, durable_end_offset=30)
    log.snapshots = [OffsetAndEpoch(10, 1), SNAPSHOT]
    verdict, snapshot_id = log.judge(OffsetAndEpoch(3, 1))
    assert (verdict, snapshot_id) == (ValidityKind.SNAPSHOT, SNAPSHOT)


def test_an_observer_goes_back_to_its_leader_once_that_answers() -> None:
    observer = DrivenFollower(4)
    observer.advance(2_001)
    send, _ = observer.asked(msg.FetchRequest)
    assert send.destination.id < 0
    # By now the leader, which did not answer in time, has been left alone for long enough.
    observer.now += 100
    observer.get()
    send, _ = observer.asked(msg.FetchRequest)
    assert send.destination.id == LEADER_ID


def test_an_epoch_that_leaves_none_for_an_election_is_not_entered() -> None:
    follower, epoch = DrivenFollower(), EPOCH_MAX + 1
    follower.respond(
        msg.FetchResponse(error=msg.Error.FENCED_LEADER_EPOCH, leader=follower.leader(epoch))
    )
    assert follower.core.role.epoch == EPOCH
    follower.advance(21)
    follower.asked(msg.FetchRequest)


def test_a_vote_waits_to_be_stored_before_it_is_reported() -> None:
    effects = DrivenFollower().core.receive(0.0, token=9, request=vote_request(3, epoch=EPOCH + 1))
    assert effects.write is not None
    assert effects.write.record.epoch == EPOCH + 1
    assert effects.write.record.voted == key_of(3)
    assert not any(isinstance(effect, fx.SendResponse) for effect in effects.at_once)
    (answer,) = (effect for effect in effects.after_write if isinstance(effect, fx.SendResponse))
    assert isinstance(answer.response, msg.VoteResponse)
    assert answer.response.is_granted


def test_a_leader_takes_it_as_it_is_when_a_replicas_offset_goes_back(leader: DrivenLeader) -> None:
    leader.propose()
    leader.fetch(key_of(2))
    committed = leader.core.high_watermark
    leader.fetch(key_of(2), 0)
    assert leader.core.high_watermark == committed
    answer = leader.answered(msg.DescribeQuorumRequest(), msg.DescribeQuorumResponse)
    assert next(one.log_end_offset for one in answer.voters if one.key.id == 2) == 0


def test_a_leader_that_is_not_a_voter_does_not_count_itself_among_those_it_hears_from() -> None:
    leader = DrivenLeader()
    leader.remove(1)
    for _ in range(10):
        leader.advance(400)
        if leader.role == "leader":
            leader.fetch(key_of(2))
    assert leader.role == "resigned"


def test_a_leader_that_hears_from_all_voters_there_are_leads_on(leader: DrivenLeader) -> None:
    leader.remove(1)
    for _ in range(10):
        leader.advance(400)
        leader.fetch(key_of(2))
        leader.fetch(key_of(3), 1)
    assert leader.role == "leader"


def follower_in(contact: LeaderContact) -> Follower:
    """Return a follower that has come to a state the usual way."""
    follower = Follower(1, leader_id=2, leader_endpoints=ENDPOINTS, fetch_deadline=0.0)
    ways = {
        LeaderContact.UNHEARD: [],
        LeaderContact.ALIVE: [ContactEvent.ANSWERED],
        LeaderContact.RESIGNED: [ContactEvent.ANSWERED, ContactEvent.HANDED_OVER],
        LeaderContact.SILENT: [ContactEvent.TIMED_OUT],
        LeaderContact.GONE: [ContactEvent.ENDED],
        LeaderContact.YIELDED: [ContactEvent.ENDED, ContactEvent.YIELDED],
    }
    for event in ways[contact]:
        follower.note(event)
    assert follower.contact is contact
    return follower


@pytest.mark.parametrize(("contact", "event"), [*product(LeaderContact, ContactEvent)])
def test_what_can_happen_leads_to_a_state_and_nothing_else_does(
    contact: LeaderContact, event: ContactEvent
) -> None:
    follower = follower_in(contact)
    if (contact, event) in ILLEGAL:
        with pytest.raises(IllegalMoveError):
            follower.note(event)
        assert follower.contact is contact
    else:
        follower.note(event)
        assert follower.contact is CONTACT_MOVES[contact][event]


@pytest.mark.parametrize("contact", LeaderContact)
def test_an_answer_shows_that_the_leader_is_there(contact: LeaderContact) -> None:
    assert contact_after(contact, ContactEvent.ANSWERED) is LeaderContact.ALIVE


@pytest.mark.parametrize("contact", LeaderContact)
def test_no_event_but_an_answer_makes_a_leader_alive(contact: LeaderContact) -> None:
    others = {event for event, to in CONTACT_MOVES[contact].items() if to is LeaderContact.ALIVE}
    assert others == {ContactEvent.ANSWERED}


@pytest.mark.parametrize("contact", LeaderContact)
def test_only_a_living_leader_is_a_reason_to_refuse_a_pre_vote(contact: LeaderContact) -> None:
    request = VoteRequest(1, ReplicaKey(3, b"3" * 16), None, OffsetAndEpoch(0, 0), is_pre_vote=True)
    is_refused = contact is LeaderContact.ALIVE
    follower = follower_in(contact)
    assert follower.would_grant(request, is_up_to_date=True) is not is_refused
    assert not follower.would_grant(request, is_up_to_date=False)
    assert not follower.would_grant(request._replace(is_pre_vote=False), is_up_to_date=True)


@pytest.mark.parametrize("contact", LeaderContact)
def test_a_leader_that_is_gone_is_known_to_be(contact: LeaderContact) -> None:
    is_gone = contact in {LeaderContact.GONE, LeaderContact.YIELDED}
    assert follower_in(contact).is_leader_gone is is_gone


def test_a_follower_names_its_leader_and_epoch() -> None:
    follower = DrivenFollower()
    text = "^Append failed because the replica is not the current leader$"
    with pytest.raises(NotLeaderError, match=text) as refused:
        follower.core.propose(follower.now, epoch=EPOCH, count=1)
    assert (refused.value.leader_id, refused.value.epoch) == (LEADER_ID, EPOCH)


def test_a_leader_of_another_epoch_names_its_own(leader: DrivenLeader) -> None:
    stale = leader.epoch - 1
    text = f"the given epoch {stale} is stale. Current leader epoch is {leader.epoch}"
    with pytest.raises(NotLeaderError, match=text) as refused:
        leader.core.propose(leader.now, epoch=stale, count=1)
    assert (refused.value.leader_id, refused.value.epoch) == (LEADER, leader.epoch)


def test_who_resigned_is_known_to_have_led(leader: DrivenLeader) -> None:
    epoch = leader.epoch
    leader.take(leader.core.resign(leader.now, epoch=epoch))
    with pytest.raises(NotLeaderError) as refused:
        leader.core.propose(leader.now, epoch=epoch, count=1)
    assert (refused.value.leader_id, refused.value.epoch) == (LEADER, epoch)
