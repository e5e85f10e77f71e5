"""A snapshot half fetched, and the leader that it comes from gone for good."""

from tests.unit.raft.core_builder import (
    build_core,
    destination_of,
    key_of,
    sends_in,
    static_voters_of,
)

from kvorum.raft import OffsetAndEpoch, RaftCore
from kvorum.raft import effects as fx
from kvorum.raft import messages as msg
from kvorum.raft.basics import ElectionRecord

LEADER = msg.KnownLeader(4, 2)


def only_send(effects: fx.Effects) -> fx.Send:
    (send,) = sends_in(effects)
    return send


def restarted_observer() -> tuple[RaftCore, fx.Send]:
    """Return an observer with an empty log, and how it asks node 2 for a snapshot."""
    bootstrap = tuple(map(destination_of, (2, 3)))
    core = build_core(
        key_of(1), can_vote=False, bootstrap=bootstrap, history=static_voters_of(2, 3)
    )
    fetch = only_send(core.start(0.0, stored=ElectionRecord(4, 2)))
    snapshot = msg.FetchResponse(msg.Error.NONE, LEADER, snapshot_id=OffsetAndEpoch(15, 4))
    return core, only_send(core.receive_response(1.0, number=fetch.number, response=snapshot))


def test_an_observer_does_not_ask_a_dead_leader_for_the_rest_of_a_snapshot_for_ever() -> None:
    core, asked = restarted_observer()
    now, fetched_from = 1.0, set[int]()
    while now < 3_000:
        if isinstance(asked.request, msg.FetchRequest):
            fetched_from.add(asked.destination.id)
        failed = core.receive_response(
            now, number=asked.number, response=msg.RequestFailed("nobody listens")
        )
        sends = sends_in(failed)
        while not sends:
            now = core.next_deadline
            sends = sends_in(core.tick(now))
        asked = sends[0]
    assert fetched_from == {2, 3}


def test_the_rest_of_the_snapshot_is_fetched_where_the_leader_comes_back() -> None:
    core, asked = restarted_observer()
    part = msg.FetchSnapshotResponse(
        msg.Error.NONE, LEADER, OffsetAndEpoch(15, 4), position=0, size=20, part_size=8
    )
    asked = only_send(core.receive_response(2.0, number=asked.number, response=part))
    other = only_send(
        core.receive_response(3.0, number=asked.number, response=msg.RequestFailed("lost"))
    )
    assert isinstance(other.request, msg.FetchRequest)
    refused = msg.FetchResponse(msg.Error.NOT_LEADER_OR_FOLLOWER, LEADER)
    core.receive_response(4.0, number=other.number, response=refused)
    again = only_send(core.tick(core.next_deadline))
    assert isinstance(again.request, msg.FetchSnapshotRequest)
    assert (again.destination.id, again.request.position) == (2, 8)
