"""Two static voters, one ours and one real Kafka's: they elect each other and keep one log."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.interop.mixed_quorum import OURS, REAL, both_kinds, described, last_words
from tests.support.kafka.java import Java
from tests.support.node import Node
from tests.support.waiting import wait_for

from kvorum.wire.records import read_batches

ROUNDS_MAX = 6


@pytest.fixture
def voters(tmp_path: Path, java: Java) -> Iterator[dict[int, Node]]:
    """Both voters, formatted and not started."""
    made = both_kinds(tmp_path, java)
    quorum = ",".join(f"{voter.node_id}@{voter.address}" for voter in made.values())
    for voter in made.values():
        voter.configure({"controller.quorum.voters": quorum})
        voter.format(())
    yield made
    for voter in made.values():
        voter.kill()


def leader_with_a_follower(voters: dict[int, Node]) -> Node | None:
    """Return who leads, once the other has all that is committed."""
    for voter in voters.values():
        found = described(voter.controller_port)
        if found is not None and found.error_code == 0 and found.high_watermark > 0:
            ends = [state.log_end_offset for state in found.current_voters]
            if min(ends) >= found.high_watermark:
                return voters[found.leader_id]
    return None


def leader_of(voters: dict[int, Node]) -> Node:
    """Wait until one leads and the other has all that is committed; return who leads."""
    return wait_for(
        lambda: leader_with_a_follower(voters),
        "one leads and the other follows",
        otherwise=lambda: last_words(voters),
    )


@pytest.mark.slow
def test_leadership_goes_back_and_forth_and_the_logs_are_the_same(
    voters: dict[int, Node],
) -> None:
    for voter in voters.values():
        voter.launch()
    has_led: set[int] = set()
    for _ in range(ROUNDS_MAX):
        leader = leader_of(voters)
        has_led.add(leader.node_id)
        if has_led == {OURS, REAL}:
            break
        leader.stop()
        leader.launch()
    assert has_led == {OURS, REAL}
    last = leader_of(voters)
    follower = voters[REAL if last.node_id == OURS else OURS]
    follower.stop()
    last.stop()
    logs = [voter.first_segment.read_bytes() for voter in voters.values()]
    shared = min(map(len, logs))
    assert logs[0][:shared] == logs[1][:shared]
    epochs = [batch.partition_leader_epoch for batch in read_batches(logs[0][:shared])]
    assert len(set(epochs)) >= 2
