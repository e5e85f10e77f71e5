"""AddRaftVoter, as far as the leader goes: the order of the checks, Kafka's texts, the steps."""

import pytest
from tests.unit.raft.core_builder import CAN_ALL, CONFIG, DrivenLeader, endpoints_of, key_of

from kvorum.raft import Endpoint, ReplicaKey
from kvorum.raft import messages as msg
from kvorum.raft.messages import AddRaftVoterRequest, AddRaftVoterResponse, Error

FOUR = AddRaftVoterRequest(key_of(4), endpoints_of(4))
DONE = AddRaftVoterResponse(Error.NONE, None)
OUT_OF_TIME = AddRaftVoterResponse(Error.REQUEST_TIMED_OUT, "The request timed out.")
FOUR_TEXT = "ReplicaKey(id=4, directoryId=BAQEBAQEBAQEBAQEBAQEBA)"


def refused(leader: DrivenLeader, request: AddRaftVoterRequest) -> tuple[Error, str | None]:
    answer = leader.answered(request, AddRaftVoterResponse)
    return answer.error, answer.message


def test_a_voter_is_asked_then_recorded_then_answered_for(leader: DrivenLeader) -> None:
    token = leader.add(4)
    ((_, send),) = leader.probes()
    assert (send.destination.id, send.destination.host) == (4, "host4")
    assert 4 not in leader.voter_ids
    leader.answer_probe(CAN_ALL)
    assert leader.voter_ids == (1, 2, 3, 4)
    ((appended),) = leader.appended
    assert appended.kraft_version is None
    assert appended.voters.ids == (1, 2, 3, 4)
    assert token not in leader.answers
    leader.fetch(key_of(2))
    assert token not in leader.answers, "two of four are no majority"
    leader.fetch(key_of(3))
    assert leader.answers[token] == DONE


def test_the_new_voter_itself_counts_for_its_own_record() -> None:
    leader = DrivenLeader([1])
    token = leader.add(2)
    leader.answer_probe(CAN_ALL)
    assert token not in leader.answers
    leader.fetch(key_of(2))
    assert leader.answers[token] == DONE


def test_without_waiting_for_the_commit_the_record_is_enough(leader: DrivenLeader) -> None:
    token = leader.add(4, acks_when_committed=False)
    assert token not in leader.answers
    leader.answer_probe(CAN_ALL)
    assert leader.answers[token] == DONE
    # The change is under way all the same.
    error, _ = refused(leader, AddRaftVoterRequest(key_of(5), endpoints_of(5)))
    assert error is Error.REQUEST_TIMED_OUT
    leader.commit()
    assert leader.add(5) not in leader.answers


def test_a_replica_that_does_not_lead_sends_an_empty_text(leader: DrivenLeader) -> None:
    leader.resign()
    assert refused(leader, AddRaftVoterRequest(None, ())) == (Error.NOT_LEADER_OR_FOLLOWER, "")


@pytest.mark.parametrize("key", [None, ReplicaKey(4)])
def test_a_voter_needs_an_id_and_a_directory(leader: DrivenLeader, key: ReplicaKey | None) -> None:
    leader.remove(3)
    assert refused(leader, AddRaftVoterRequest(key, ())) == (
        Error.INVALID_REQUEST,
        "Add voter request didn't include a valid voter",
    )


def test_the_listener_that_replicas_use_must_be_there(leader: DrivenLeader) -> None:
    leader.remove(3)
    error, text = refused(leader, AddRaftVoterRequest(key_of(4), (Endpoint("OTHER", "host", 1),)))
    assert error is Error.INVALID_REQUEST
    assert text == (
        "Add voter request didn't include the endpoint (Endpoints(endpoints={ListenerName(OTHER)="
        "host/<unresolved>:1})) for the default listener ListenerName(CONTROLLER)"
    )


def test_one_change_at_a_time(leader: DrivenLeader) -> None:
    leader.remove(3)
    assert refused(leader, FOUR) == (
        Error.REQUEST_TIMED_OUT,
        "Request timed out waiting for leader to handle previous voter change request",
    )


@pytest.mark.parametrize("kraft_version", [0, 1])
def test_a_leader_must_have_committed_something(kraft_version: int) -> None:
    assert refused(DrivenLeader(kraft_version=kraft_version, is_committed=False), FOUR) == (
        Error.REQUEST_TIMED_OUT,
        "Request timed out waiting for leader to establish HWM and fence previous voter changes",
    )


def test_static_voters_do_not_change() -> None:
    assert refused(DrivenLeader(kraft_version=0), FOUR) == (
        Error.UNSUPPORTED_VERSION,
        "Cluster doesn't support adding voter because the kraft.version feature is 0",
    )


def test_the_voters_must_be_committed(leader: DrivenLeader) -> None:
    token = leader.remove(3)
    assert leader.history.voters_offset == leader.appended[-1].base_offset
    leader.advance(CONFIG.request_timeout_ms)
    assert leader.answers[token] == msg.RemoveRaftVoterResponse(
        Error.REQUEST_TIMED_OUT, "The request timed out."
    )
    # Even one that is a voter already would have to wait.
    assert refused(leader, AddRaftVoterRequest(key_of(2), endpoints_of(2))) == (
        Error.REQUEST_TIMED_OUT,
        leader.uncommitted_text(),
    )


def test_a_node_has_one_entry_whatever_its_directory() -> None:
    error, text = refused(DrivenLeader([1, 2]), AddRaftVoterRequest(key_of(2, 99), endpoints_of(2)))
    assert error is Error.DUPLICATE_VOTER
    assert text == (
        "The voter id for ReplicaKey(id=2, directoryId=Y2NjY2NjY2NjY2NjY2NjYw) is already part of "
        "the set of voters [ReplicaKey(id=1, directoryId=AQEBAQEBAQEBAQEBAQEBAQ), "
        "ReplicaKey(id=2, directoryId=AgICAgICAgICAgICAgICAg)]."
    )


def test_a_node_that_is_being_asked_already_is_busy() -> None:
    leader = DrivenLeader([1, 2])
    token = leader.add(4)
    leader.answer_probe(msg.RequestFailed("refused"))
    assert leader.answers[token] == AddRaftVoterResponse(
        Error.REQUEST_TIMED_OUT,
        "Aborted add voter operation for since API_VERSIONS returned an error BROKER_NOT_AVAILABLE",
    )
    assert refused(leader, FOUR) == (
        Error.REQUEST_TIMED_OUT,
        f"New voter {FOUR_TEXT} is not ready to receive requests",
    )
    leader.advance(CONFIG.retry_backoff_ms)
    assert leader.add(4) not in leader.answers


@pytest.mark.parametrize(
    ("response", "name"),
    [
        (msg.RequestFailed("old", lacks_version=True), "UNSUPPORTED_VERSION"),
        (msg.ApiVersionsResponse(error_name="INVALID_REQUEST"), "INVALID_REQUEST"),
    ],
)
def test_a_node_that_cannot_say_what_it_can_do_is_not_added(
    leader: DrivenLeader, response: msg.ApiVersionsResponse | msg.RequestFailed, name: str
) -> None:
    token = leader.add(4)
    leader.answer_probe(response)
    assert leader.answers[token] == AddRaftVoterResponse(
        Error.REQUEST_TIMED_OUT,
        f"Aborted add voter operation for since API_VERSIONS returned an error {name}",
    )
    assert leader.voter_ids == (1, 2, 3)


@pytest.mark.parametrize(
    ("versions", "text"),
    [(None, "(min: 0, max: 0)"), ((0, 0), "(min: 0, max: 0"), ((2, 3), "(min: 2, max: 3")],
)
def test_a_node_must_be_able_to_work_at_the_level_in_force(
    leader: DrivenLeader, versions: tuple[int, int] | None, text: str
) -> None:
    # That it lags is not even looked at.
    token = leader.ask(FOUR)
    leader.answer_probe(msg.ApiVersionsResponse(versions))
    assert leader.answers[token] == AddRaftVoterResponse(
        Error.INVALID_REQUEST,
        f"Aborted add voter operation for {FOUR_TEXT} since the kraft.version range {text} "
        "doesn't support the finalized version 1",
    )
    assert leader.voter_ids == (1, 2, 3)


LAGGING = AddRaftVoterResponse(
    Error.REQUEST_TIMED_OUT,
    f"Aborted add voter operation for {FOUR_TEXT} since it is lagging behind",
)


def added(leader: DrivenLeader) -> bool:
    """Tell whether node 4 is added as things are; nothing else may refuse it."""
    token = leader.ask(FOUR)
    leader.answer_probe(CAN_ALL)
    assert leader.answers.get(token) in {None, LAGGING}
    return token not in leader.answers


def test_who_never_fetched_lags() -> None:
    assert not added(DrivenLeader())


def test_who_never_had_everything_lags(leader: DrivenLeader) -> None:
    leader.propose()
    leader.fetch(key_of(4), 0)
    assert not added(leader)


def test_who_had_everything_a_fetch_ago_has_caught_up(leader: DrivenLeader) -> None:
    leader.fetch(key_of(4), 0)
    end = leader.log.end_offset
    leader.propose()
    leader.fetch(key_of(4), end)
    assert added(leader)


def test_another_directory_of_the_node_does_not_count(leader: DrivenLeader) -> None:
    leader.fetch(key_of(4, 99))
    assert not added(leader)


@pytest.mark.parametrize(("waits_ms", "is_added"), [(-1, True), (0, False)])
def test_who_has_not_fetched_for_an_hour_lags(waits_ms: int, *, is_added: bool) -> None:
    leader = DrivenLeader([1])
    leader.fetch(key_of(4))
    leader.advance(CONFIG.caught_up_window_ms + waits_ms)
    assert added(leader) is is_added


def test_a_lone_voter_that_adds_another_has_time_to_hear_from_it() -> None:
    leader = DrivenLeader([1])
    leader.advance(10 * CONFIG.check_quorum_ms)
    leader.add(2)
    leader.answer_probe(CAN_ALL)
    leader.advance(CONFIG.check_quorum_ms - 1)
    assert leader.role == "leader"
    leader.advance(1)
    assert leader.role == "resigned"


def test_who_does_not_say_its_directory_is_not_taken_for_a_voter_when_the_set_changes() -> None:
    leader = DrivenLeader([1, 2, 3], is_committed=False)
    leader.fetch(key_of(2))
    leader.propose()
    before = leader.core.high_watermark
    # Node 3 is a voter in another directory than this one may be in.
    leader.fetch(ReplicaKey(3))
    assert leader.core.high_watermark == before
    leader.add(4)
    leader.answer_probe(CAN_ALL)
    leader.fetch(key_of(4))
    assert leader.core.high_watermark == before, "two of four have it for certain"
    described = leader.answered(msg.DescribeQuorumRequest(), msg.DescribeQuorumResponse)
    assert [one.key for one in described.observers] == [ReplicaKey(3)]


def test_an_addition_gives_up_when_the_node_is_silent(leader: DrivenLeader) -> None:
    token = leader.add(4)
    leader.fetch(key_of(2))
    leader.advance(CONFIG.request_timeout_ms)
    assert leader.answers[token] == OUT_OF_TIME
    leader.answer_probe(CAN_ALL)
    assert leader.voter_ids == (1, 2, 3), "what comes too late changes nothing"


def test_an_addition_that_is_not_committed_in_time_may_be_yet(leader: DrivenLeader) -> None:
    token = leader.add(4)
    leader.answer_probe(CAN_ALL)
    leader.advance(CONFIG.request_timeout_ms)
    assert leader.answers[token] == OUT_OF_TIME
    assert leader.voter_ids == (1, 2, 3, 4)
    leader.commit()
    assert leader.core.history.voters.ids == (1, 2, 3, 4)
    assert leader.add(5) not in leader.answers


@pytest.mark.parametrize("is_recorded", [False, True])
def test_a_leader_that_goes_says_so(leader: DrivenLeader, *, is_recorded: bool) -> None:
    token = leader.add(4)
    if is_recorded:
        leader.answer_probe(CAN_ALL)
    leader.resign()
    assert leader.answers[token] == AddRaftVoterResponse(
        Error.NOT_LEADER_OR_FOLLOWER,
        "For requests intended only for the leader, this error indicates that the broker is not "
        "the current leader. For requests intended for any replica, this error indicates that the "
        "broker is not a replica of the topic partition.",
    )


def test_the_answer_of_a_node_comes_too_late_for_a_leader_that_has_gone() -> None:
    leader = DrivenLeader()
    leader.add(4)
    leader.resign()
    leader.answer_probe(CAN_ALL)
    assert leader.voter_ids == (1, 2, 3)
    assert not leader.appended


def test_what_one_node_answers_does_not_add_another() -> None:
    leader = DrivenLeader([1, 2])
    leader.add(4)
    ((first, _),) = leader.probes()
    leader.advance(CONFIG.request_timeout_ms)
    leader.fetch(key_of(2))
    leader.add(5)
    leader.respond(first, CAN_ALL)
    assert leader.voter_ids == (1, 2)
