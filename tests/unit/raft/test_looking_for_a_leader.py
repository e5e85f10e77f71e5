"""A replica without a leader asks others, of which some keep silent."""

from collections import Counter

import pytest
from tests.unit.raft.core_builder import CONFIG, endpoints_of, observer, sends_in

from kvorum.raft import messages as msg

SERVERS = (-2, -3, -4, -5)
TIMED_OUT = msg.RequestFailed("no response in time")
NOBODY_LEADS = msg.FetchResponse(msg.Error.NOT_LEADER_OR_FOLLOWER, msg.KnownLeader(0))


def _ask_for(
    duration_ms: float,
    *,
    silent: set[int],
    seed: int,
    answer: msg.FetchResponse = NOBODY_LEADS,
    gives_up_first: bool = False,
) -> list[tuple[float, int]]:
    """Return when an observer asks which server; those that are not silent all say the same."""
    core = observer(SERVERS, seed=seed)
    asked: list[tuple[float, int]] = []
    now = 0.0
    effects = core.start(now, stored=None)
    while now < duration_ms:
        sent = next(iter(sends_in(effects)), None)
        if sent is not None:
            asked.append((now, sent.destination.id))
        if sent is not None and sent.destination.id not in silent:
            now += 1
            effects = core.receive_response(now, number=sent.number, response=answer)
        elif sent is not None and gives_up_first:
            # The sender of requests notices that time is up just before the core does.
            now += CONFIG.request_timeout_ms - 1
            effects = core.receive_response(now, number=sent.number, response=TIMED_OUT)
        else:
            now = max(core.next_deadline, now)
            effects = core.tick(now)
    return asked


@pytest.mark.parametrize("gives_up_first", [True, False])
@pytest.mark.parametrize("seed", range(20))
def test_all_that_answer_are_asked_between_two_that_are_silent(
    seed: int, *, gives_up_first: bool
) -> None:
    duration_ms = 40 * CONFIG.request_timeout_ms
    asked = _ask_for(duration_ms, silent={-2, -3}, seed=seed, gives_up_first=gives_up_first)
    since_silent: set[int] = set()
    first_try = {-2, -3}
    for _, server in asked:
        if server in first_try:
            # No node can know before.
            first_try.remove(server)
        elif server in {-2, -3}:
            assert since_silent == {-4, -5}
            since_silent = set()
        else:
            since_silent.add(server)
    assert not first_try


def test_who_was_silent_is_asked_again_soon() -> None:
    # As where a partition left only a replica itself among those that answer.
    asked = _ask_for(4 * CONFIG.request_timeout_ms, silent={-2, -3, -4}, seed=1)
    assert {server for _, server in asked} == set(SERVERS)
    asked = _ask_for(10 * CONFIG.request_timeout_ms, silent={-2, -3, -4}, seed=1)
    count = Counter(server for _, server in asked)
    assert min(count[-2], count[-3], count[-4]) >= 3


def test_who_is_left_is_asked_though_all_are_silent() -> None:
    asked = _ask_for(10 * CONFIG.request_timeout_ms, silent=set(SERVERS), seed=1)
    assert len(asked) >= 9


def test_a_silent_leader_that_others_name_is_asked_again_soon() -> None:
    leader = msg.KnownLeader(1, 1, endpoints_of(-2))
    named = msg.FetchResponse(msg.Error.NOT_LEADER_OR_FOLLOWER, leader)
    duration_ms = 5 * CONFIG.request_timeout_ms
    asked = _ask_for(duration_ms, silent={-2, 1}, seed=1, answer=named)
    assert sum(server in {-2, 1} for _, server in asked) >= 3
