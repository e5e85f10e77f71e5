"""A voter that the latest record removes stands for election while the record may fail."""

import pytest
from tests.unit.raft.core_builder import (
    CONFIG,
    build_core,
    endpoints_of,
    history_of,
    key_of,
    sends_in,
    static_voters_of,
    voters_of,
)

from kvorum.raft import (
    ElectionRecord,
    EpochStart,
    LogView,
    OffsetAndEpoch,
    RaftCore,
    ReplicaKey,
    VoterSetHistory,
)
from kvorum.raft import messages as msg
from kvorum.raft.effects import Effects, Send

BOTH, ONLY_ONE = voters_of(1, 2), voters_of(1)
REMOVED_AT = 3


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
