"""Each property about time is broken once, and noticed."""

from contextlib import nullcontext

import pytest
from tests.support.pretended_quorum import PretendedQuorum, broken, fetch_request, key_of, voters_of

from kvorum.raft.roles import Download, Follower, Unattached
from kvorum.raft.voter_set_history import VoterSetHistory
from kvorum.simulation.properties.liveness import CALM_MS_MIN, DOWNLOADS_MAX
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from kvorum.wire.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from kvorum.wire.offset_and_epoch import OffsetAndEpoch

ANOTHER_CHANGE = "Request timed out waiting for leader to handle previous voter change request"


def _look(quorum: PretendedQuorum, now_ms: float) -> None:
    quorum.now_ms = now_ms
    quorum.properties.liveness.look(now_ms, list(quorum.nodes.values()))


def _begin(quorum: PretendedQuorum) -> None:
    quorum.properties.liveness.begin(quorum.now_ms, list(quorum.nodes.values()))


def _end(quorum: PretendedQuorum) -> None:
    quorum.properties.liveness.end(quorum.now_ms, list(quorum.nodes.values()))


def _calm_quorum() -> PretendedQuorum:
    quorum = PretendedQuorum()
    _begin(quorum)
    quorum.led_by(1)
    for now_ms in (100.0, 200.0, 7_000.0):
        _look(quorum, now_ms)
    assert quorum.count("L5") == 0
    _look(quorum, 7_100.0)
    assert quorum.count("L5") > 0, "L5 is checked from the moment of calm on"
    return quorum


def test_a_calm_quorum_breaks_nothing() -> None:
    quorum = _calm_quorum()
    quorum.now_ms = 200.0
    ledger = quorum.properties.ledger
    ledger.invoked(b"a", 7_300.0)
    quorum.replicate(b"a")
    for node in quorum.nodes.values():
        node.commit(2)
        node.look()
    ledger.acknowledged(b"a", 1, 7_400.0)
    _look(quorum, 7_500.0)
    quorum.now_ms = 14_000.0
    _end(quorum)
    for checked in ("L1", "L2", "L3", "L5", "L8"):
        assert quorum.count(checked) > 0, checked


def test_l1_no_leader(quorum: PretendedQuorum) -> None:
    _begin(quorum)
    _look(quorum, 11_000.0)
    with broken("L1"):
        _look(quorum, 13_000.0)


@pytest.mark.parametrize(
    ("is_voter", "voted_id", "is_held"), [(False, 4, True), (False, 2, False), (True, 4, False)]
)
def test_l8_a_former_voter_ahead_of_the_leader_by_its_own_elections_may_be_lost(
    is_voter: bool, voted_id: int, is_held: bool
) -> None:
    quorum = PretendedQuorum((1, 2, 3, 4))
    _begin(quorum)
    quorum.led_by(1)
    if not is_voter:
        quorum[1].own_core.shown_history = VoterSetHistory(static=voters_of((1, 2, 3)))
    quorum[4].be(Unattached(9, election_deadline=0.0, voted=key_of(voted_id)))
    _look(quorum, 100.0)
    with nullcontext() if is_held else broken("L8"):
        _look(quorum, 7_200.0)


def test_l1_too_many_epochs(quorum: PretendedQuorum) -> None:
    _begin(quorum)
    quorum.led_by(1, epoch=30)
    with broken("L1"):
        _look(quorum, 100.0)


def _quorum_with_one_behind(*, record_count: int = 1) -> PretendedQuorum:
    """Return a led quorum in which node 3 lacks committed records, at the time 100."""
    quorum = PretendedQuorum()
    quorum.led_by(1)
    quorum.replicate(*[b"a"] * record_count, on=(1, 2))
    for node_id in (1, 2):
        quorum[node_id].commit(record_count + 1)
        quorum[node_id].look()
    _begin(quorum)
    _look(quorum, 100.0)
    return quorum


def _download_of(quorum: PretendedQuorum, node_id: int, snapshot_end: int) -> Download:
    """Let a node begin to fetch a snapshot, and return its download."""
    role = quorum[node_id].own_core.role
    assert isinstance(role, Follower)
    role.download = Download(OffsetAndEpoch(snapshot_end, 1))
    return role.download


def test_l2_a_node_that_does_not_catch_up() -> None:
    quorum = _quorum_with_one_behind()
    _look(quorum, 7_000.0)
    with broken("L2"):
        _look(quorum, 7_200.0)


def test_a_node_that_fetches_slowly_is_not_late() -> None:
    quorum = _quorum_with_one_behind()
    download = _download_of(quorum, 3, 2)
    for second in range(1, 120):
        download.position += 500
        _look(quorum, second * 1_000.0)
    _end(quorum)
    quorum[3].append(b"a")
    quorum[3].commit(2)
    _look(quorum, 120_000.0)
    assert quorum.count("L5") == 0, "there was no calm before"
    _look(quorum, 120_100.0)
    assert quorum.count("L5") > 0


def test_l2_a_node_that_stops_in_the_middle_of_a_snapshot() -> None:
    quorum = _quorum_with_one_behind()
    download = _download_of(quorum, 3, 2)
    for second in range(1, 20):
        download.position += 500
        _look(quorum, second * 1_000.0)
    _look(quorum, 26_000.0)
    with broken("L2"):
        _look(quorum, 26_100.0)


def test_l2_a_node_that_fetches_the_same_bytes_again_gets_no_further() -> None:
    quorum = _quorum_with_one_behind()

    def fetch_all(from_ms: float) -> None:
        download = _download_of(quorum, 3, 2)
        for position in range(1, 41):
            download.position = position * 500
            _look(quorum, from_ms + position * 100.0)

    fetch_all(0.0)
    fetch_all(4_000.0)
    with broken("L2"):
        fetch_all(8_000.0)


def test_l2_a_node_that_begins_its_download_again_and_again() -> None:
    """Each attempt comes a byte further than all before it; that is not what moving means."""
    quorum = _quorum_with_one_behind()
    with broken("L2"):
        for attempt in range(1, 100):
            _download_of(quorum, 3, attempt).position = 500 + attempt
            _look(quorum, attempt * 1_000.0)
    assert quorum.now_ms == (DOWNLOADS_MAX + 1) * 1_000.0


def test_a_snapshot_that_follows_another_one_is_fetched_from_its_beginning() -> None:
    quorum = _quorum_with_one_behind(record_count=99)
    for count in range(1, 50):
        download = _download_of(quorum, 3, count)
        for position in (1, 2, 3):
            download.position = position * 500
            _look(quorum, (3 * count + position) * 1_000.0)
        quorum[3].append(b"a")


def test_l2_nodes_that_leave_their_leader_in_turn_are_late_though_their_logs_grow() -> None:
    quorum = PretendedQuorum()
    quorum.led_by(1)
    _begin(quorum)
    _look(quorum, 100.0)
    with broken("L2"):
        for second in range(1, 10):
            for node in quorum.nodes.values():
                node.append(b"a")
                node.commit(second + 1)
            quorum[2 + second % 2].be(Unattached(1, election_deadline=0.0))
            quorum[3 - second % 2].follow(1, 1)
            _look(quorum, second * 1_000.0)
    assert quorum.now_ms == 8_000.0


def test_l1_a_leader_that_waits_for_a_slow_majority_is_not_late(led: PretendedQuorum) -> None:
    led[1].commit(None)
    _begin(led)
    download = _download_of(led, 2, 1)
    for second in range(1, 60):
        download.position += 500
        _look(led, second * 1_000.0)
    with broken("L1"):
        _look(led, 75_000.0)


def test_l8_a_node_that_does_not_find_the_leader(led: PretendedQuorum) -> None:
    led[3].be(Unattached(1, election_deadline=0.0))
    _begin(led)
    _look(led, 100.0)
    with broken("L8"):
        _look(led, 8_000.0)


def test_l3_nothing_is_committed_any_more() -> None:
    quorum = _calm_quorum()
    quorum.now_ms += CALM_MS_MIN
    with broken("L3"):
        _end(quorum)


def test_calm_that_came_late_need_not_show_that_writes_go_on() -> None:
    quorum = _calm_quorum()
    quorum.now_ms += CALM_MS_MIN / 2
    _end(quorum)


def test_l5_a_leader_that_is_replaced_for_no_reason() -> None:
    quorum = _calm_quorum()
    quorum[1].follow(2, 2)
    quorum[2].lead(2, start=1)
    quorum[2].commit(2)
    with broken("L5"):
        _look(quorum, 7_400.0)


def test_l5_a_leader_that_gives_up_for_no_reason() -> None:
    quorum = _calm_quorum()
    quorum[1].be(Unattached(2, election_deadline=0.0))
    with broken("L5"):
        _look(quorum, 7_400.0)


def test_l4_a_leader_that_no_node_fetches_from(led: PretendedQuorum) -> None:
    for now_ms in (2_000.0, 4_000.0, 6_000.0):
        led.now_ms = now_ms
        led.properties.request_arrives(led[1], fetch_request(2))
        led[1].look()
    assert led.count("L4") > 0
    led.now_ms = 9_000.0
    led[1].look()
    led.now_ms = 9_600.0
    led[1].breaks("L4")


def test_l6_a_node_that_takes_turn_after_turn(quorum: PretendedQuorum) -> None:
    quorum.now_ms = 5.0
    for _ in range(1_000):
        quorum[1].look()
    with broken("L6"):
        for _ in range(10):
            quorum[1].look()


def test_l7_a_change_of_voters_that_no_node_hears_of(quorum: PretendedQuorum) -> None:
    request = AddRaftVoterRequest()
    quorum.properties.request_arrives(quorum[1], request)
    quorum.now_ms = 4_000.0
    quorum.properties.response_leaves(quorum[1], request, AddRaftVoterResponse())
    quorum.properties.request_arrives(quorum[1], request)
    quorum.now_ms = 9_000.0
    with broken("L7"):
        quorum.properties.response_leaves(quorum[1], request, AddRaftVoterResponse())


def _remove(quorum: PretendedQuorum) -> RemoveRaftVoterRequest:
    """Ask node 1 to remove a voter."""
    request = RemoveRaftVoterRequest()
    quorum.properties.request_arrives(quorum[1], request)
    return request


def _refuse_for_another(quorum: PretendedQuorum, request: RemoveRaftVoterRequest) -> None:
    refusal = RemoveRaftVoterResponse(
        error_code=ErrorCode.REQUEST_TIMED_OUT, error_message=ANOTHER_CHANGE
    )
    quorum.properties.response_leaves(quorum[1], request, refusal)


def test_l7_a_change_of_voters_that_waits_for_none_of_an_operator(quorum: PretendedQuorum) -> None:
    request = _remove(quorum)
    with broken("L7"):
        _refuse_for_another(quorum, request)


def test_l7_a_change_of_voters_may_be_refused_while_an_operators_is_under_way(
    quorum: PretendedQuorum,
) -> None:
    earlier = _remove(quorum)
    _refuse_for_another(quorum, _remove(quorum))
    quorum.properties.response_leaves(quorum[1], earlier, RemoveRaftVoterResponse())
    request = _remove(quorum)
    with broken("L7"):
        _refuse_for_another(quorum, request)


def test_l7_a_change_that_a_paused_leader_began_is_under_way_still(quorum: PretendedQuorum) -> None:
    _remove(quorum)
    quorum.properties.node_paused(quorum[1])
    quorum.properties.node_resumed(quorum[1])
    _refuse_for_another(quorum, _remove(quorum))


def test_l7_a_change_of_voters_may_be_refused_before_the_last_one_is_committed(
    quorum: PretendedQuorum,
) -> None:
    quorum[1].own_core.are_shown_voters_committed = False
    _refuse_for_another(quorum, _remove(quorum))
