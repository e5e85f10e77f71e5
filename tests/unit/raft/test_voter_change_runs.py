"""Every short run of voter changes, commits and silences that a leader can see."""

from collections.abc import Callable
from itertools import pairwise, product

import pytest
from tests.unit.raft.core_builder import CONFIG, endpoints_of, key_of
from tests.unit.raft.driven_leader import CAN_ALL, DrivenLeader

from kvorum.raft import messages as msg
from kvorum.raft.messages import Error

MOVES_AFTER_THE_FIRST = 3


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
    others = list(product(STEPS, repeat=MOVES_AFTER_THE_FIRST))
    for moves in others:
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
