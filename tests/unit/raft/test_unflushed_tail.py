"""A replica that no longer leads, with records that are not durable yet."""

from tests.unit.raft.core_builder import LISTENER, build_core

from kvorum.raft import Destination, Endpoint, LogView, RaftCore, ReplicaKey, Voter, VoterSet
from kvorum.raft import effects as fx
from kvorum.raft import messages as msg
from kvorum.raft.basics import ElectionRecord
from kvorum.wire.offset_and_epoch import OffsetAndEpoch


def unattached_with_tail() -> RaftCore:
    """Return a replica that knows no leader; the last of its two records may still be lost."""
    voters = VoterSet.of(
        Voter(ReplicaKey(i), (Endpoint(LISTENER, "host", 9000 + i),)) for i in (1, 2, 3)
    )
    log = LogView()
    log.append(epoch=1, count=2)
    log.became_durable(1)
    return build_core(
        ReplicaKey(1, b"\x01" * 16),
        endpoints=(Endpoint(LISTENER, "host", 9001),),
        bootstrap=(Destination(2, "host", 9002), Destination(3, "host", 9003)),
        log=log,
        history=voters,
    )


def fetches_in(effects: fx.Effects) -> list[msg.FetchRequest]:
    sends = (one for one in (*effects.at_once, *effects.after_write) if isinstance(one, fx.Send))
    return [send.request for send in sends if isinstance(send.request, msg.FetchRequest)]


def test_no_node_hears_of_records_that_may_still_be_lost() -> None:
    core = unattached_with_tail()
    assert fetches_in(core.start(0.0, stored=ElectionRecord(2))) == []
    assert fetches_in(core.tick(1.0)) == []
    (fetch,) = fetches_in(core.log_durable(2.0, 2))
    assert fetch.position == OffsetAndEpoch(2, 1)
