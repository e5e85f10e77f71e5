"""Voter changes that run out of time while their record is not committed (KAFKA-20740).

The leader answers that the time is over, and the record stays in the log. Until the record is
committed, or cut off by another leader, every other change is refused: two uncommitted voter sets
may have majorities without a common voter.
"""

from dataclasses import dataclass

import pytest
from tests.unit.raft.core_builder import (
    CAN_ALL,
    CONFIG,
    LEADER,
    LISTENER,
    DrivenLeader,
    endpoints_of,
    key_of,
)

from kvorum.raft import Endpoint, Endpoints, OffsetAndEpoch, ReplicaKey
from kvorum.raft import messages as msg
from kvorum.raft.messages import Error

ELSEWHERE = (Endpoint(LISTENER, "elsewhere", 1),)
OUT_OF_TIME = "The request timed out."
CHANGING = "Request timed out waiting for leader to handle previous voter change request"
NOTHING_COMMITTED = (
    "Request timed out waiting for leader to establish HWM and fence previous voter changes"
)


@dataclass(frozen=True, slots=True)
class Change:
    """A change of one voter as a request; the new voter, or the updated one, is sent a probe."""

    kind: str
    key: ReplicaKey
    endpoints: Endpoints = ELSEWHERE

    def request(self, leader: DrivenLeader) -> int:
        leader.acknowledge()
        if self.kind == "remove":
            return leader.ask(msg.RemoveRaftVoterRequest(self.key))
        if self.kind == "add":
            leader.fetch(self.key)
            return leader.ask(msg.AddRaftVoterRequest(self.key, self.endpoints))
        return leader.ask(leader.update_of(self.key, self.endpoints))

    def append(self, leader: DrivenLeader) -> int:
        """Ask for the change, and have its record appended; return the token of the answer."""
        count = len(leader.appended)
        token = self.request(leader)
        if self.kind != "remove":
            leader.answer_probe(CAN_ALL)
        assert len(leader.appended) == count + 1, leader.answers.get(token)
        return token


ADD_4 = Change("add", key_of(4))
REMOVE_3 = Change("remove", key_of(3))
UPDATE_2 = Change("update", key_of(2))
FIRST = (ADD_4, REMOVE_3, UPDATE_2)
SECOND = (Change("add", key_of(5)), Change("remove", key_of(2)), Change("update", key_of(2)))
pairs = pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(first, second, id=f"{first.kind} then {second.kind}")
        for first in FIRST
        for second in SECOND
    ],
)


def out_of_time(first: Change) -> DrivenLeader:
    """Return a leader whose change is over, with its record uncommitted."""
    leader = DrivenLeader()
    token = first.append(leader)
    leader.advance(CONFIG.request_timeout_ms)
    error = Error.NONE if first.kind == "update" else Error.REQUEST_TIMED_OUT
    assert outcome(leader, token).error is error
    assert leader.role == "leader"
    assert not leader.core.are_voters_committed
    return leader


def outcome(
    leader: DrivenLeader, token: int
) -> msg.AddRaftVoterResponse | msg.RemoveRaftVoterResponse | msg.UpdateRaftVoterResponse:
    answer = leader.answers.get(token)
    assert answer is not None, "the change is neither refused nor over"
    assert isinstance(
        answer, msg.AddRaftVoterResponse | msg.RemoveRaftVoterResponse | msg.UpdateRaftVoterResponse
    )
    return answer


def is_refused(leader: DrivenLeader, change: Change, text: str) -> None:
    """Demand that a change is refused at once, with Kafka's text, and leaves no trace."""
    before = (len(leader.appended), leader.history.voters, len(leader.probes()))
    answer = outcome(leader, change.request(leader))
    assert answer.error is Error.REQUEST_TIMED_OUT
    if not isinstance(answer, msg.UpdateRaftVoterResponse):
        assert answer.message == text
    assert (len(leader.appended), leader.history.voters, len(leader.probes())) == before


def become_free(leader: DrivenLeader) -> None:
    """Let the pauses after requests that found no answer be over."""
    leader.advance(CONFIG.retry_backoff_ms)
    leader.acknowledge()


@pairs
def test_the_next_change_waits_until_the_record_is_committed(first: Change, second: Change) -> None:
    leader = out_of_time(first)
    is_refused(leader, second, leader.uncommitted_text())
    become_free(leader)
    is_refused(leader, second, leader.uncommitted_text())
    leader.commit()
    assert leader.core.are_voters_committed
    second.append(leader)
    one, other = leader.appended
    assert one.voters.overlaps_safely(other.voters)


@pairs
def test_the_next_change_begins_from_the_voters_before_once_the_record_is_cut_off(
    first: Change, second: Change
) -> None:
    leader = out_of_time(first)
    before = leader.history.previous_voters
    follow_another(leader, cut_at=leader.appended[-1].base_offset)
    assert leader.history.voters == before
    leader.win()
    is_refused(leader, second, NOTHING_COMMITTED)
    leader.commit()
    become_free(leader)
    second.append(leader)
    assert before.overlaps_safely(leader.appended[-1].voters)


@pytest.mark.parametrize("second", SECOND, ids=lambda change: change.kind)
def test_an_addition_that_was_answered_before_its_commit_holds_back_the_next_change(
    leader: DrivenLeader, second: Change
) -> None:
    token = leader.add(4, acks_when_committed=False)
    leader.answer_probe(CAN_ALL)
    assert outcome(leader, token).error is Error.NONE
    is_refused(leader, second, CHANGING)
    leader.advance(CONFIG.request_timeout_ms)
    is_refused(leader, second, leader.uncommitted_text())


def follow_another(leader: DrivenLeader, *, cut_at: int) -> None:
    """Have another voter lead, whose log lacks everything from an offset on."""
    epoch = leader.epoch
    leader.ask(
        msg.BeginQuorumEpochRequest(
            epoch=epoch + 1, leader_id=2, voter=key_of(LEADER), endpoints=endpoints_of(2)
        )
    )
    ((number, _),) = [
        one for one in leader.sent.items() if isinstance(one[1].request, msg.FetchRequest)
    ]
    known = leader.core_leader()
    diverging = OffsetAndEpoch(cut_at, epoch)
    leader.respond(number, msg.FetchResponse(Error.NONE, known, diverging=diverging))
    assert leader.log.end_offset == cut_at


PROBED = (ADD_4, UPDATE_2)
LATE: dict[str, tuple[Change, Change]] = {
    "the same addition": (ADD_4, ADD_4),
    "an addition with another directory": (ADD_4, Change("add", key_of(4, 99))),
    "an addition with another endpoint": (ADD_4, Change("add", key_of(4), endpoints_of(4))),
    "an addition of another node": (ADD_4, Change("add", key_of(5))),
    "an update after an addition": (ADD_4, UPDATE_2),
    "the same update": (UPDATE_2, UPDATE_2),
    "an update with another endpoint": (UPDATE_2, Change("update", key_of(2), endpoints_of(2))),
    "an update of another node": (UPDATE_2, Change("update", key_of(3))),
    "an addition after an update": (UPDATE_2, ADD_4),
}


@pytest.mark.parametrize(("first", "second"), LATE.values(), ids=LATE)
def test_a_late_response_to_a_probe_is_not_taken_for_that_of_the_next_change(
    leader: DrivenLeader, first: Change, second: Change
) -> None:
    token = first.request(leader)
    ((late, _),) = leader.probes()
    patience_ms = CONFIG.request_timeout_ms if first is ADD_4 else CONFIG.voter_probe_ms
    leader.advance(patience_ms)
    assert outcome(leader, token).error is Error.REQUEST_TIMED_OUT
    if first.key.id == second.key.id:
        # The node is free for another probe only when its response would be too late.
        leader.advance(CONFIG.request_timeout_ms - patience_ms)
        leader.fetch(key_of(3))
    become_free(leader)
    token = second.request(leader)
    assert token not in leader.answers
    leader.respond(late, CAN_ALL)
    assert not leader.appended
    assert token not in leader.answers, "it still waits for its own probe"
    leader.answer_probe(CAN_ALL)
    ((appended),) = leader.appended
    voter = appended.voters.by_id(second.key.id)
    assert voter is not None
    assert (voter.key, voter.endpoints) == (second.key, second.endpoints)


@pytest.mark.parametrize("first", PROBED, ids=lambda change: change.kind)
def test_a_late_response_to_the_probe_of_a_change_that_is_over_changes_nothing(
    leader: DrivenLeader, first: Change
) -> None:
    first.request(leader)
    leader.advance(CONFIG.request_timeout_ms)
    before = leader.history.voters
    leader.answer_probe(CAN_ALL)
    assert (leader.appended, leader.history.voters) == ([], before)
    REMOVE_3.append(leader)


OF_AN_OPERATOR = tuple(change for change in SECOND if change.kind != "update")


@pytest.mark.parametrize("second", SECOND, ids=lambda change: change.kind)
def test_another_change_is_refused_during_the_probe_of_an_addition(second: Change) -> None:
    leader = DrivenLeader()
    ADD_4.request(leader)
    is_refused(leader, second, CHANGING)


def test_another_update_is_refused_during_the_probe_of_an_update(leader: DrivenLeader) -> None:
    UPDATE_2.request(leader)
    is_refused(leader, Change("update", key_of(3)), CHANGING)


@pytest.mark.parametrize("second", OF_AN_OPERATOR, ids=lambda change: change.kind)
def test_an_operators_change_ends_the_probe_of_an_update(
    leader: DrivenLeader, second: Change
) -> None:
    updated = Change("update", key_of(3))
    token = updated.request(leader)
    ((late, _),) = leader.probes()
    asked = second.request(leader)
    assert outcome(leader, token).error is Error.REQUEST_TIMED_OUT
    assert asked not in leader.answers
    leader.respond(late, CAN_ALL)
    if second.kind == "add":
        leader.answer_probe(CAN_ALL)
    ((appended),) = leader.appended
    assert appended.voters.endpoints_of(3) == endpoints_of(3), "the update is not recorded"
    leader.commit()
    assert outcome(leader, asked).error is Error.NONE


def report(leader: DrivenLeader) -> None:
    """Have all voters tell the leader what they can work at."""
    for node_id in (2, 3):
        Change("update", key_of(node_id), endpoints_of(node_id)).request(leader)
        leader.answer_probe(CAN_ALL)


@pytest.mark.parametrize("second", SECOND, ids=lambda change: change.kind)
def test_a_change_waits_until_an_upgrade_of_kraft_version_is_committed(second: Change) -> None:
    leader = DrivenLeader(kraft_version=0)
    report(leader)
    leader.upgrade()
    is_refused(leader, second, leader.uncommitted_text())
    leader.commit()
    become_free(leader)
    second.append(leader)
    one, other = leader.appended
    assert one.voters.overlaps_safely(other.voters)


def test_voters_do_not_change_once_an_upgrade_of_kraft_version_is_cut_off() -> None:
    leader = DrivenLeader(kraft_version=0)
    report(leader)
    leader.upgrade()
    follow_another(leader, cut_at=leader.appended[-1].base_offset)
    leader.win()
    leader.commit()
    assert leader.history.kraft_version == 0
    for change in (ADD_4, REMOVE_3):
        assert outcome(leader, change.request(leader)).error is Error.UNSUPPORTED_VERSION


@pytest.mark.parametrize("is_committed", [False, True])
def test_an_update_begun_before_an_upgrade_of_kraft_version_waits_for_its_commit(
    *, is_committed: bool
) -> None:
    leader = DrivenLeader(kraft_version=0)
    report(leader)
    token = UPDATE_2.request(leader)
    leader.upgrade()
    if is_committed:
        leader.commit()
    leader.answer_probe(CAN_ALL)
    assert outcome(leader, token).error is (Error.NONE if is_committed else Error.REQUEST_TIMED_OUT)
    assert len(leader.appended) == 1 + is_committed


def test_a_voter_is_removed_during_an_upgrade_of_a_feature(leader: DrivenLeader) -> None:
    """The record of the feature and that of the voters are committed by the voters who stay."""
    leader.propose()
    feature_offset = leader.log.end_offset - 1
    token = REMOVE_3.append(leader)
    leader.fetch(key_of(3))
    assert (leader.core.high_watermark or 0) <= feature_offset, "node 3 is no voter any more"
    leader.advance(CONFIG.request_timeout_ms)
    assert outcome(leader, token).error is Error.REQUEST_TIMED_OUT
    is_refused(leader, Change("remove", key_of(2)), leader.uncommitted_text())
    leader.fetch(key_of(2))
    assert leader.core.high_watermark == leader.log.end_offset
