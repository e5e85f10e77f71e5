"""RemoveRaftVoter, as far as the leader goes, and every short run of changes of the voters."""

from collections.abc import Callable
from itertools import pairwise, product

import pytest
from tests.unit.raft.core_builder import CAN_ALL, CONFIG, DrivenLeader, endpoints_of, key_of

from kvorum.raft import ReplicaKey
from kvorum.raft import messages as msg
from kvorum.raft.messages import Error, RemoveRaftVoterRequest, RemoveRaftVoterResponse
from kvorum.raft.roles import Resigned

DONE = RemoveRaftVoterResponse(Error.NONE, None)
ONE = "ReplicaKey(id=1, directoryId=AQEBAQEBAQEBAQEBAQEBAQ)"
TWO = "ReplicaKey(id=2, directoryId=AgICAgICAgICAgICAgICAg)"
MOVES_AFTER_THE_FIRST = 3


def refused(leader: DrivenLeader, key: ReplicaKey | None) -> tuple[Error, str | None]:
    answer = leader.answered(RemoveRaftVoterRequest(key), RemoveRaftVoterResponse)
    return answer.error, answer.message


def test_a_voter_goes_with_the_commit_by_those_who_stay(leader: DrivenLeader) -> None:
    token = leader.remove(3)
    assert leader.voter_ids == (1, 2)
    leader.fetch(key_of(3))
    assert token not in leader.answers, "who is removed does not count any more"
    leader.fetch(key_of(2))
    assert leader.answers[token] == DONE
    assert leader.role == "leader"


def test_who_was_removed_is_listed_as_an_observer_if_it_was_ever_heard_from() -> None:
    leader = DrivenLeader([1, 2, 3], is_committed=False)
    leader.fetch(key_of(2))
    leader.remove(3)
    leader.fetch(key_of(2))
    assert not leader.answered(msg.DescribeQuorumRequest(), msg.DescribeQuorumResponse).observers
    leader = DrivenLeader()
    leader.remove(3)
    after = leader.answered(msg.DescribeQuorumRequest(), msg.DescribeQuorumResponse)
    assert [one.key for one in after.observers] == [key_of(3)]


def test_who_does_not_lead_has_no_text(leader: DrivenLeader) -> None:
    leader.resign()
    assert refused(leader, None) == (Error.NOT_LEADER_OR_FOLLOWER, "")


def test_a_leader_that_hands_over_does_not_lead_any_more(leader: DrivenLeader) -> None:
    leader.take(leader.core.shutdown(leader.now))
    assert refused(leader, None) == (Error.NOT_LEADER_OR_FOLLOWER, "")


def test_a_leader_that_is_the_last_to_shut_down_is_not_available() -> None:
    leader = DrivenLeader([1])
    leader.take(leader.core.shutdown(leader.now))
    assert refused(leader, None) == (Error.BROKER_NOT_AVAILABLE, "")


@pytest.mark.parametrize("key", [None, ReplicaKey(4)])
def test_a_voter_needs_an_id_and_a_directory(leader: DrivenLeader, key: ReplicaKey | None) -> None:
    leader.remove(3)
    assert refused(leader, key) == (
        Error.INVALID_REQUEST,
        "Remove voter request didn't include a valid voter",
    )


def test_one_change_at_a_time(leader: DrivenLeader) -> None:
    leader.add(4)
    assert refused(leader, key_of(3)) == (
        Error.REQUEST_TIMED_OUT,
        "Request timed out waiting for leader to handle previous voter change request",
    )


@pytest.mark.parametrize("kraft_version", [0, 1])
def test_a_leader_must_have_committed_something(kraft_version: int) -> None:
    assert refused(DrivenLeader(kraft_version=kraft_version, is_committed=False), key_of(3)) == (
        Error.REQUEST_TIMED_OUT,
        "Request timed out waiting for leader to establish HWM and fence previous voter changes",
    )


def test_static_voters_do_not_change() -> None:
    assert refused(DrivenLeader(kraft_version=0), key_of(3)) == (
        Error.UNSUPPORTED_VERSION,
        "Cluster doesn't support removing voter because the kraft.version feature is 0",
    )


def test_the_voters_must_be_committed(leader: DrivenLeader) -> None:
    token = leader.remove(3)
    assert leader.history.voters_offset == leader.appended[-1].base_offset
    leader.advance(CONFIG.request_timeout_ms)
    assert leader.answers[token] == RemoveRaftVoterResponse(
        Error.REQUEST_TIMED_OUT, "The request timed out."
    )
    assert refused(leader, key_of(9)) == (Error.REQUEST_TIMED_OUT, leader.uncommitted_text())


@pytest.mark.parametrize(
    ("key", "name"),
    [
        (key_of(9), "ReplicaKey(id=9, directoryId=CQkJCQkJCQkJCQkJCQkJCQ)"),
        (key_of(2, 99), "ReplicaKey(id=2, directoryId=Y2NjY2NjY2NjY2NjY2NjYw)"),
    ],
)
def test_only_who_votes_under_this_directory_can_go(key: ReplicaKey, name: str) -> None:
    assert refused(DrivenLeader([1, 2]), key) == (
        Error.VOTER_NOT_FOUND,
        f"Cannot remove voter {name} from the set of voters [{ONE}, {TWO}]",
    )


def test_the_last_voter_stays() -> None:
    assert refused(DrivenLeader([1]), key_of(1)) == (
        Error.VOTER_NOT_FOUND,
        f"Cannot remove voter {ONE} from the set of voters [{ONE}]",
    )


def test_a_leader_removes_itself_and_resigns_when_that_is_committed(leader: DrivenLeader) -> None:
    high_watermark = leader.core.high_watermark
    token = leader.remove(1)
    assert leader.voter_ids == (2, 3)
    assert leader.core.high_watermark == high_watermark, "it does not count itself any more"
    leader.fetch(key_of(2))
    assert leader.core.high_watermark == high_watermark
    assert leader.role == "leader"
    leader.propose()
    leader.fetch(key_of(3))
    assert leader.answers[token] == DONE
    role = leader.core.role
    assert isinstance(role, Resigned)
    assert role.preferred == (key_of(3), key_of(2)), "the longest log comes first"
    told = {
        send.destination.id
        for send in leader.sent.values()
        if type(send.request) is msg.EndQuorumEpochRequest
    }
    assert told == {2, 3}
    leader.advance(2 * CONFIG.election_timeout_ms)
    assert (leader.role, leader.epoch) == ("unattached", role.epoch + 1)
    leader.advance(20 * CONFIG.election_timeout_ms)
    assert leader.role == "unattached", "who is no voter holds no elections"


def test_a_leader_removes_itself_from_two() -> None:
    leader = DrivenLeader([1, 2])
    token = leader.remove(1)
    assert leader.role == "leader"
    leader.fetch(key_of(2))
    assert leader.answers[token] == DONE
    assert leader.role == "resigned"


def test_a_leader_that_is_out_goes_even_if_no_client_waits_for_it(leader: DrivenLeader) -> None:
    leader.remove(1)
    leader.advance(CONFIG.request_timeout_ms)
    leader.commit()
    assert leader.role == "resigned"


def test_word_from_a_voter_that_is_gone_does_not_keep_a_leader() -> None:
    leader = DrivenLeader([1, 2, 3, 4, 5])
    leader.advance(CONFIG.begin_quorum_ms)
    leader.fetch(key_of(5))
    leader.remove(5)
    leader.fetch(key_of(2))
    # Two of the four besides itself are needed: only one of them was heard from.
    leader.advance(CONFIG.check_quorum_ms - CONFIG.begin_quorum_ms)
    assert leader.role == "resigned"


def test_a_removal_that_shrinks_the_majority_never_moves_the_high_watermark_back() -> None:
    leader = DrivenLeader([1, 2, 3, 4, 5])
    leader.propose()
    leader.fetch(key_of(2))
    leader.fetch(key_of(3))
    reached = leader.core.high_watermark
    assert reached == leader.log.end_offset
    leader.remove(2)
    assert leader.core.high_watermark == reached


def test_a_leader_that_resigns_before_the_commit_says_so(leader: DrivenLeader) -> None:
    token = leader.remove(3)
    leader.resign()
    assert leader.answer_at(token, RemoveRaftVoterResponse).error is Error.NOT_LEADER_OR_FOLLOWER


def answer_if_asked(leader: DrivenLeader, response: msg.ApiVersionsResponse) -> None:
    for number, _ in leader.probes():
        leader.respond(number, response)


STEPS: dict[str, Callable[[DrivenLeader], object]] = {
    "add 3": lambda leader: leader.add(3),
    "add 4 quickly": lambda leader: leader.add(4, acks_when_committed=False),
    "remove 1": lambda leader: leader.remove(1),
    "remove 2": lambda leader: leader.remove(2),
    "update 2": lambda leader: leader.ask(leader.update_of(key_of(2), endpoints_of(2))),
    "can": lambda leader: answer_if_asked(leader, CAN_ALL),
    "2 fetches": lambda leader: leader.fetch(key_of(2)),
    "all fetch": lambda leader: leader.commit(),
    "time out": lambda leader: leader.advance(CONFIG.request_timeout_ms),
}


class Watch:
    """The properties of every state that a run goes through."""

    def __init__(self, leader: DrivenLeader) -> None:
        self.leader = leader
        self.high_watermark = leader.core.high_watermark or 0

    def look(self) -> None:
        leader = self.leader
        self._look_at_high_watermark()
        known = [change.voters for change in leader.appended]
        for before, after in pairwise(known):
            assert before.overlaps_safely(after)
        if leader.role == "leader":
            uncommitted = [
                change for change in leader.appended if change.base_offset >= self.high_watermark
            ]
            assert len(uncommitted) <= 1
            assert leader.history.voters == (known[-1] if known else leader.history.voters)

    def _look_at_high_watermark(self) -> None:
        now = self.leader.core.high_watermark
        if now is None:
            return
        assert now >= self.high_watermark
        self.high_watermark = now


@pytest.mark.parametrize("first", STEPS)
def test_no_run_breaks_what_must_hold(first: str) -> None:
    for moves in product(STEPS, repeat=MOVES_AFTER_THE_FIRST):
        leader = DrivenLeader([1, 2])
        watch = Watch(leader)
        for name in (first, *moves):
            if leader.role != "leader":
                break
            STEPS[name](leader)
            watch.look()
        finish(leader)
        watch.look()


def finish(leader: DrivenLeader) -> None:
    """Let everything come to its end; each request has been answered by then, once."""
    for _ in range(2):
        if leader.role == "leader":
            leader.commit()
    if leader.role == "leader":
        leader.advance(CONFIG.request_timeout_ms)
    if leader.role == "leader":
        leader.resign()
    assert sorted(leader.answers) == list(range(1, max(leader.answers) + 1))
    for answer in leader.answers.values():
        if isinstance(answer, msg.AddRaftVoterResponse | msg.RemoveRaftVoterResponse):
            assert (answer.error is Error.NONE) == (answer.message is None)
