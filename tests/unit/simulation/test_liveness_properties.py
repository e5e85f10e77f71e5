"""Each property about time is broken once, and noticed."""

from __future__ import annotations

import pytest
from tests.unit.simulation.observed import CLUSTER_ID, Quorum, key_of

from kvorum.node.raft.translation import fetch
from kvorum.raft import messages as core
from kvorum.raft.basics import OffsetAndEpoch
from kvorum.raft.roles import Unattached
from kvorum.simulation.properties.checks import PropertyViolatedError
from kvorum.wire.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from kvorum.wire.messages.fetch import FetchRequest


def _broken(property_id: str) -> pytest.RaisesExc[PropertyViolatedError]:
    return pytest.RaisesExc(PropertyViolatedError, match=rf"^{property_id} \(")


def _look(quorum: Quorum, now_ms: float) -> None:
    quorum.now_ms = now_ms
    quorum.properties.liveness.look(now_ms, list(quorum.nodes.values()))


def _begin(quorum: Quorum) -> None:
    quorum.properties.liveness.begin(quorum.now_ms, list(quorum.nodes.values()))


def _end(quorum: Quorum) -> None:
    quorum.properties.liveness.end(list(quorum.nodes.values()))


def _calm_quorum() -> Quorum:
    quorum = Quorum()
    _begin(quorum)
    quorum.led_by(1)
    for now_ms in (100.0, 200.0, 7_000.0):
        _look(quorum, now_ms)
    assert quorum.properties.liveness.is_calm
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
    _end(quorum)
    for checked in ("L1", "L2", "L3", "L5", "L8"):
        assert quorum.count(checked) > 0, checked


def test_l1_no_leader() -> None:
    quorum = Quorum()
    _begin(quorum)
    _look(quorum, 11_000.0)
    with _broken("L1"):
        _look(quorum, 13_000.0)


def test_l1_too_many_epochs() -> None:
    quorum = Quorum()
    _begin(quorum)
    quorum.led_by(1, epoch=30)
    with _broken("L1"):
        _look(quorum, 100.0)


def test_l2_a_node_that_does_not_catch_up() -> None:
    quorum = Quorum()
    quorum.led_by(1)
    quorum.replicate(b"a", on=(1, 2))
    quorum[1].commit(2)
    quorum[1].look()
    _begin(quorum)
    _look(quorum, 100.0)
    _look(quorum, 5_000.0)
    with _broken("L2"):
        _look(quorum, 8_000.0)


def test_l8_a_node_that_does_not_find_the_leader() -> None:
    quorum = Quorum()
    quorum.led_by(1)
    quorum[3].be(Unattached(1, election_deadline=0.0))
    _begin(quorum)
    _look(quorum, 100.0)
    with _broken("L8"):
        _look(quorum, 8_000.0)


def test_l3_nothing_is_committed_any_more() -> None:
    quorum = _calm_quorum()
    with _broken("L3"):
        _end(quorum)


def test_l3_too_few_snapshots() -> None:
    quorum = _calm_quorum()
    quorum.properties.liveness.check_snapshots(made=1, expected=1)
    with _broken("L3"):
        quorum.properties.liveness.check_snapshots(made=0, expected=1)


def test_l5_a_leader_that_is_replaced_for_no_reason() -> None:
    quorum = _calm_quorum()
    quorum[1].follow(2, 2)
    quorum[2].lead(2, start=1)
    quorum[2].commit(2)
    with _broken("L5"):
        _look(quorum, 7_400.0)


def test_l5_a_leader_that_gives_up_for_no_reason() -> None:
    quorum = _calm_quorum()
    quorum[1].be(Unattached(2, election_deadline=0.0))
    with _broken("L5"):
        _look(quorum, 7_400.0)


def test_a_leader_that_is_sent_away_may_be_replaced() -> None:
    quorum = _calm_quorum()
    quorum.properties.liveness.expect_new_leader(7_300.0)
    quorum[1].be(Unattached(2, election_deadline=0.0))
    _look(quorum, 7_400.0)
    assert not quorum.properties.liveness.is_calm


def _fetch_request(replica: int) -> FetchRequest:
    asked = core.FetchRequest(
        replica=key_of(replica),
        epoch=1,
        position=OffsetAndEpoch(0, 0),
        max_wait_ms=0,
        bytes_max=100,
        high_watermark=None,
    )
    return fetch.write_request(asked, cluster_id=CLUSTER_ID, version=17)


def test_l4_a_leader_that_nobody_fetches_from() -> None:
    quorum = Quorum()
    quorum.led_by(1)
    for now_ms in (2_000.0, 4_000.0, 6_000.0):
        quorum.now_ms = now_ms
        quorum.properties.request_arrives(quorum[1], _fetch_request(2), 17)
        quorum[1].look()
    assert quorum.count("L4") > 0
    quorum.now_ms = 9_000.0
    quorum[1].look()
    quorum.now_ms = 9_600.0
    with _broken("L4"):
        quorum[1].look()


def test_l6_a_node_that_takes_turn_after_turn() -> None:
    quorum = Quorum()
    quorum.now_ms = 5.0
    for _ in range(1_000):
        quorum[1].look()
    with _broken("L6"):
        for _ in range(10):
            quorum[1].look()


def test_l7_a_change_of_voters_that_nobody_hears_of() -> None:
    quorum = Quorum()
    request = AddRaftVoterRequest()
    quorum.properties.request_arrives(quorum[1], request, 0)
    quorum.now_ms = 4_000.0
    quorum.properties.response_leaves(quorum[1], request, 0, AddRaftVoterResponse())
    quorum.properties.request_arrives(quorum[1], request, 0)
    quorum.now_ms = 9_000.0
    with _broken("L7"):
        quorum.properties.response_leaves(quorum[1], request, 0, AddRaftVoterResponse())
