"""Two static voters, one ours and one real Kafka's: they elect each other and keep one log."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.interop.mixed_quorum import OURS, REAL, both_kinds
from tests.support.kafka.java import Java
from tests.support.node import Node
from tests.support.quorum.quorum import Described, Quorum

from kvorum.wire.records import read_batches

ROUNDS_MAX = 6


@pytest.fixture
def voters(tmp_path: Path, java: Java) -> Iterator[Quorum]:
    """Both voters, formatted and not started."""
    with both_kinds(tmp_path, java) as made:
        made.configure(made.static_voters(OURS, REAL))
        made.form(None)
        yield made


def leader_of(voters: Quorum) -> Node:
    """Wait until one leads and the other has all that is committed; return who leads."""
    found = voters.until("one leads and the other follows", has_a_follower)
    return voters.members[found.leader_id]


def has_a_follower(found: Described) -> bool:
    ends = [state.log_end_offset for state in found.current_voters]
    return min(ends) >= found.high_watermark > 0


@pytest.mark.slow
def test_leadership_goes_back_and_forth_and_the_logs_are_the_same(voters: Quorum) -> None:
    voters.start()
    has_led: set[int] = set()
    for _ in range(ROUNDS_MAX):
        leader = leader_of(voters)
        has_led.add(leader.node_id)
        if has_led == {OURS, REAL}:
            break
        leader.stop()
        voters.start(leader.node_id)
    assert has_led == {OURS, REAL}
    last = leader_of(voters)
    follower = voters.members[REAL if last.node_id == OURS else OURS]
    follower.stop()
    last.stop()
    logs = [voter.first_segment.read_bytes() for voter in voters.members.values()]
    shared = min(map(len, logs))
    assert logs[0][:shared] == logs[1][:shared]
    epochs = [batch.partition_leader_epoch for batch in read_batches(logs[0][:shared])]
    assert len(set(epochs)) >= 2
