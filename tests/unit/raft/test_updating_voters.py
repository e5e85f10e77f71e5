"""UpdateRaftVoter, as far as the leader goes, and the upgrade that rests on it."""

from typing import Any

import pytest
from tests.unit.raft.core_builder import (
    CAN_ALL,
    CONFIG,
    LISTENER,
    DrivenLeader,
    endpoints_of,
    key_of,
    voters_of,
)

from kvorum.raft import Destination, Endpoint, KRaftVersionUpgradeError, NotLeaderError, ReplicaKey
from kvorum.raft import messages as msg
from kvorum.raft.messages import Error, UpdateRaftVoterRequest, UpdateRaftVoterResponse
from kvorum.raft.roles import Leader

ELSEWHERE = (Endpoint(LISTENER, "elsewhere", 1),)


def error_of(leader: DrivenLeader, request: UpdateRaftVoterRequest) -> Error:
    """Return what an update comes to; a voter that is asked can do what it claims."""
    token = begun(leader, request)
    if token not in leader.answers:
        claimed = (request.kraft_version_min, request.kraft_version_max)
        leader.answer_probe(msg.ApiVersionsResponse(claimed))
    return error_at(leader, token)


def begun(leader: DrivenLeader, request: UpdateRaftVoterRequest) -> int:
    """Put an update to a leader that waits for nothing; return the token of the answer."""
    leader.acknowledge()
    return leader.ask(request)


def error_at(leader: DrivenLeader, token: int) -> Error:
    answer = leader.answer_at(token, UpdateRaftVoterResponse)
    assert answer.leader == leader.core_leader()
    return answer.error


@pytest.mark.parametrize("kraft_version", [0, 1])
def test_a_voter_is_asked_where_it_says_that_it_is_before_that_is_noted(kraft_version: int) -> None:
    leader = DrivenLeader(kraft_version=kraft_version)
    before = (leader.core.role, leader.log.end_offset, leader.history.voters)
    token = begun(leader, leader.update_of(key_of(2), ELSEWHERE))
    ((_, send),) = leader.probes()
    assert send.destination == Destination(2, "elsewhere", 1)
    assert token not in leader.answers
    assert (leader.core.role, leader.log.end_offset, leader.history.voters) == before
    leader.answer_probe(CAN_ALL)
    assert error_at(leader, token) is Error.NONE


FAILURES: list[tuple[Error, msg.ApiVersionsResponse | msg.RequestFailed]] = [
    (Error.REQUEST_TIMED_OUT, msg.RequestFailed("nobody listens", is_peer_gone=True)),
    (Error.REQUEST_TIMED_OUT, msg.RequestFailed("older than that", lacks_version=True)),
    (Error.REQUEST_TIMED_OUT, msg.ApiVersionsResponse(error_name="UNKNOWN_SERVER_ERROR")),
    (Error.INVALID_REQUEST, msg.ApiVersionsResponse()),
    (Error.INVALID_REQUEST, msg.ApiVersionsResponse((0, 2))),
    (Error.INVALID_REQUEST, msg.ApiVersionsResponse((1, 1))),
]


@pytest.mark.parametrize("kraft_version", [0, 1])
@pytest.mark.parametrize(("error", "response"), FAILURES)
def test_what_the_voter_does_not_answer_itself_changes_nothing(
    error: Error, response: msg.ApiVersionsResponse | msg.RequestFailed, kraft_version: int
) -> None:
    leader = DrivenLeader(kraft_version=kraft_version)
    role, end = leader.core.role, leader.log.end_offset
    assert isinstance(role, Leader)
    known = (leader.history.voters, role.volatile_voters)
    token = begun(leader, leader.update_of(key_of(2), ELSEWHERE))
    leader.answer_probe(response)
    assert error_at(leader, token) is error
    assert (leader.history.voters, role.volatile_voters) == known
    assert (leader.log.end_offset, leader.appended) == (end, [])
    leader.advance(CONFIG.retry_backoff_ms)
    assert error_of(leader, leader.update_of(key_of(2), ELSEWHERE)) is Error.NONE, (
        "it may try again"
    )


def test_a_voter_has_its_answer_before_it_gives_up_its_request_or_its_leader() -> None:
    leader = DrivenLeader()
    token = begun(leader, leader.update_of(key_of(2), ELSEWHERE))
    leader.advance(min(CONFIG.request_timeout_ms, CONFIG.fetch_timeout_ms) / 2)
    assert error_at(leader, token) is Error.REQUEST_TIMED_OUT
    leader.answer_probe(CAN_ALL)
    assert not leader.appended, "that was too late"


def test_a_voter_that_is_being_asked_something_else_has_to_try_again(leader: DrivenLeader) -> None:
    assert [send.destination.id for send in leader.sent.values()] == [2, 3]
    token = leader.ask(leader.update_of(key_of(2), ELSEWHERE))
    assert error_at(leader, token) is Error.REQUEST_TIMED_OUT
    assert not leader.probes()


def test_a_leader_that_gives_way_answers_who_waits(leader: DrivenLeader) -> None:
    token = begun(leader, leader.update_of(key_of(2), ELSEWHERE))
    leader.resign()
    assert error_at(leader, token) is Error.NOT_LEADER_OR_FOLLOWER


def test_an_upgrade_comes_between_an_update_and_its_answer() -> None:
    """The record of the new version is not committed yet."""
    leader = DrivenLeader(kraft_version=0)
    tell_of_all(leader)
    token = begun(leader, leader.update_of(key_of(2), ELSEWHERE))
    assert leader.upgrade()
    leader.answer_probe(CAN_ALL)
    assert error_at(leader, token) is Error.REQUEST_TIMED_OUT
    assert leader.history.voters.endpoints_of(2) == endpoints_of(2)


def test_no_other_update_while_a_voter_is_being_asked(leader: DrivenLeader) -> None:
    begun(leader, leader.update_of(key_of(2), ELSEWHERE))
    token = begun(leader, leader.update_of(key_of(3), ELSEWHERE))
    assert error_at(leader, token) is Error.REQUEST_TIMED_OUT


def test_an_update_is_a_record_at_version_1(leader: DrivenLeader) -> None:
    assert error_of(leader, leader.update_of(key_of(2), ELSEWHERE)) is Error.NONE
    ((appended),) = leader.appended
    assert appended.voters.endpoints_of(2) == ELSEWHERE
    assert leader.history.voters.endpoints_of(2) == ELSEWHERE
    assert leader.voter_ids == (1, 2, 3)


def test_updates_come_one_after_the_other_is_committed(leader: DrivenLeader) -> None:
    assert error_of(leader, leader.update_of(key_of(2), ELSEWHERE)) is Error.NONE
    assert error_of(leader, leader.update_of(key_of(3), ELSEWHERE)) is Error.REQUEST_TIMED_OUT
    leader.commit()
    assert error_of(leader, leader.update_of(key_of(3), ELSEWHERE)) is Error.NONE


def test_an_update_of_what_is_known_is_a_record_all_the_same(leader: DrivenLeader) -> None:
    assert error_of(leader, leader.update_of(key_of(2), endpoints_of(2))) is Error.NONE
    assert len(leader.appended) == 1


def test_below_version_1_it_is_only_remembered() -> None:
    leader = DrivenLeader(kraft_version=0)
    end = leader.log.end_offset
    assert error_of(leader, leader.update_of(key_of(2, 99), ELSEWHERE)) is Error.NONE
    assert (leader.log.end_offset, leader.appended) == (end, [])
    assert leader.history.voters.endpoints_of(2) == endpoints_of(2)


def test_an_update_counts_as_word_from_the_voter() -> None:
    leader = DrivenLeader([1, 2])
    leader.advance(CONFIG.check_quorum_ms - 1)
    assert error_of(leader, leader.update_of(key_of(2), ELSEWHERE)) is Error.NONE
    leader.advance(CONFIG.check_quorum_ms - 1)
    assert leader.role == "leader"
    leader.advance(1)
    assert leader.role == "resigned"


@pytest.mark.parametrize("kraft_version", [0, 1])
@pytest.mark.parametrize(
    ("error", "key", "changes"),
    [
        (Error.INCONSISTENT_CLUSTER_ID, None, {"epoch": 0, "is_for_this_cluster": False}),
        (Error.FENCED_LEADER_EPOCH, None, {"epoch": 0}),
        (Error.UNKNOWN_LEADER_EPOCH, None, {"epoch": 2}),
        (Error.INVALID_REQUEST, None, {}),
        (Error.INVALID_REQUEST, ReplicaKey(2), {}),
        (Error.INVALID_REQUEST, key_of(2), {"endpoints": ()}),
        (Error.INVALID_REQUEST, key_of(2), {"kraft_version_min": -1}),
        (Error.INVALID_REQUEST, key_of(2), {"kraft_version_min": 1, "kraft_version_max": 0}),
    ],
)
def test_what_cannot_be_is_refused_before_it_is_asked_whether_now_is_the_time(
    error: Error, key: ReplicaKey | None, changes: dict[str, Any], kraft_version: int
) -> None:
    for is_committed in (False, True):
        leader = DrivenLeader(kraft_version=kraft_version, is_committed=is_committed)
        assert leader.epoch == 1
        assert error_of(leader, leader.update_of(key, ELSEWHERE)._replace(**changes)) is error
        assert not leader.appended


def test_who_does_not_lead_says_who_does(leader: DrivenLeader) -> None:
    leader.resign()
    assert error_of(leader, leader.update_of(None, ELSEWHERE)) is Error.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize("kraft_version", [0, 1])
def test_a_leader_must_have_committed_something(kraft_version: int) -> None:
    leader = DrivenLeader(kraft_version=kraft_version, is_committed=False)
    assert error_of(leader, impossible_update(leader)) is Error.REQUEST_TIMED_OUT


def test_no_update_while_a_voter_is_being_added(leader: DrivenLeader) -> None:
    leader.add(4)
    assert error_of(leader, impossible_update(leader)) is Error.REQUEST_TIMED_OUT


def impossible_update(leader: DrivenLeader) -> UpdateRaftVoterRequest:
    return leader.update_of(key_of(9), ELSEWHERE, versions=(5, 6))


@pytest.mark.parametrize(("kraft_version", "versions"), [(0, (1, 1)), (1, (0, 0)), (1, (2, 2))])
def test_the_level_in_force_must_be_possible(kraft_version: int, versions: tuple[int, int]) -> None:
    leader = DrivenLeader(kraft_version=kraft_version)
    request = leader.update_of(key_of(9), ELSEWHERE, versions=versions)
    assert error_of(leader, request) is Error.INVALID_REQUEST


@pytest.mark.parametrize(
    ("kraft_version", "key"), [(0, key_of(9)), (1, key_of(9)), (1, key_of(2, 99))]
)
def test_only_voters_are_updated(kraft_version: int, key: ReplicaKey) -> None:
    leader = DrivenLeader(kraft_version=kraft_version)
    assert error_of(leader, leader.update_of(key, ELSEWHERE)) is Error.VOTER_NOT_FOUND


def tell_of_all(leader: DrivenLeader) -> None:
    for node_id in (2, 3):
        request = leader.update_of(key_of(node_id), endpoints_of(node_id))
        assert error_of(leader, request) is Error.NONE


def test_an_upgrade_is_one_batch_with_what_every_voter_has_told() -> None:
    leader = DrivenLeader(kraft_version=0)
    tell_of_all(leader)
    end = leader.log.end_offset
    assert leader.upgrade()
    ((appended),) = leader.appended
    assert (appended.base_offset, appended.kraft_version) == (end, 1)
    assert appended.voters == voters_of(1, 2, 3)
    assert leader.log.end_offset == end + 2
    assert (leader.history.kraft_version, leader.history.voters_offset) == (1, end + 1)
    assert not leader.upgrade(), "it is in force"
    assert len(leader.appended) == 1


def test_what_was_known_of_voters_by_their_ids_is_known_of_them_with_directories() -> None:
    leader = DrivenLeader(kraft_version=0)
    tell_of_all(leader)
    leader.upgrade()
    answer = leader.answered(msg.DescribeQuorumRequest(), msg.DescribeQuorumResponse)
    assert [one.key for one in answer.voters] == [key_of(1), key_of(2), key_of(3)]
    assert None not in [one.log_end_offset for one in answer.voters]
    assert not answer.observers
    leader.commit()
    assert leader.core.high_watermark == leader.log.end_offset
    assert leader.add(4) not in leader.answers


def test_a_dry_run_changes_nothing() -> None:
    leader = DrivenLeader(kraft_version=0)
    tell_of_all(leader)
    assert leader.upgrade(validate_only=True)
    assert (leader.appended, leader.history.kraft_version) == ([], 0)


def test_all_voters_must_have_told_that_they_can() -> None:
    leader = DrivenLeader(kraft_version=0)
    text = "Invalid upgrade of kraft.version to 1 because not all of the voters support it"
    with pytest.raises(KRaftVersionUpgradeError, match=f"^{text}$"):
        leader.upgrade()
    tell_of_all(leader)
    error_of(leader, leader.update_of(key_of(3), ELSEWHERE, versions=(0, 0)))
    with pytest.raises(KRaftVersionUpgradeError, match=f"^{text}$"):
        leader.upgrade()


@pytest.mark.parametrize(
    ("version", "reason"), [(0, " because the new version is a downgrade"), (2, "")]
)
def test_there_is_no_way_back_or_further(version: int, reason: str) -> None:
    text = f"Invalid upgrade of kraft.version from version 1 to {version}{reason}"
    with pytest.raises(KRaftVersionUpgradeError, match=f"^{text}$"):
        DrivenLeader().upgrade(version)


@pytest.mark.parametrize("step", [-1, 1])
def test_an_upgrade_belongs_to_an_epoch(leader: DrivenLeader, step: int) -> None:
    with pytest.raises(NotLeaderError):
        leader.core.upgrade_kraft_version(
            leader.now, epoch=leader.epoch + step, kraft_version=1, validate_only=False
        )


def test_only_a_leader_upgrades() -> None:
    leader = DrivenLeader(kraft_version=0)
    leader.resign()
    with pytest.raises(NotLeaderError, match="the replica is not the current leader"):
        leader.upgrade()


def test_a_voter_that_was_added_has_told_what_it_can(leader: DrivenLeader) -> None:
    leader.add(4)
    leader.answer_probe(CAN_ALL)
    assert leader.history.voters == voters_of(1, 2, 3, 4)
