"""Who stands for election besides the voters: who the latest record removes, while it may fail."""

from __future__ import annotations

from random import Random

import pytest
from tests.unit.raft.driven_leader import CONFIG, LISTENER, endpoints_of, key_of, voter_of

from kvorum.raft import (
    BOOTSTRAP_SNAPSHOT_ID,
    ElectionRecord,
    EpochStart,
    Identity,
    LogView,
    OffsetAndEpoch,
    RaftCore,
    ReplicaKey,
    VoterHistory,
    VoterSet,
)
from kvorum.raft import messages as msg
from kvorum.raft.effects import Send

BOTH = VoterSet.of(map(voter_of, (1, 2)))
ONLY_ONE = VoterSet.of([voter_of(1)])
REMOVED_AT = 3


def removed_node(*, can_vote: bool = True, node_id: int = 2, snapshot_end: int = 0) -> RaftCore:
    """Return node 2 after a start; the last record of its log removes it from the voters 1, 2."""
    history = VoterHistory()
    log = LogView(0, REMOVED_AT + 1, REMOVED_AT + 1, [EpochStart(1, 0)], [BOOTSTRAP_SNAPSHOT_ID])
    if snapshot_end:
        snapshot_id = OffsetAndEpoch(snapshot_end, 1)
        log.snapshots.append(snapshot_id)
    history.start_from_snapshot(BOOTSTRAP_SNAPSHOT_ID, voters=BOTH, kraft_version=1)
    history.add_voters(REMOVED_AT, ONLY_ONE)
    identity = Identity(
        key=key_of(node_id),
        endpoints=endpoints_of(node_id),
        listener_name=LISTENER,
        can_vote=can_vote,
        bootstrap=(),
    )
    return RaftCore(identity, config=CONFIG, log=log, history=history, random=Random(1))


def stands(core: RaftCore, *, stored: ElectionRecord) -> bool:
    """Tell whether a node that hears from nobody asks for pre-votes before long."""
    core.start(0.0, stored=stored)
    for now in range(0, 5 * CONFIG.election_timeout_ms, 100):
        effects = core.tick(float(now))
        for effect in (*effects.at_once, *effects.after_write):
            if isinstance(effect, Send) and isinstance(effect.request, msg.VoteRequest):
                return True
    return False


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


def test_the_voters_before_the_last_record() -> None:
    history = VoterHistory(static=ONLY_ONE)
    assert history.previous_voters == ONLY_ONE
    history.add_voters(5, BOTH)
    assert history.previous_voters == ONLY_ONE
    history.add_voters(9, ONLY_ONE)
    assert history.previous_voters == BOTH
    history.truncate_to(9)
    assert history.previous_voters == ONLY_ONE
