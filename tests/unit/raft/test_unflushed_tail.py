"""A replica that no longer leads, with records that are not durable yet."""

from tests.unit.raft.core_builder import (
    build_core,
    destination_of,
    endpoints_of,
    key_of,
    sends_in,
    static_voters_of,
)

from kvorum.raft import LogView, RaftCore
from kvorum.raft import effects as fx
from kvorum.raft import messages as msg
from kvorum.raft.basics import ElectionRecord
from kvorum.wire.offset_and_epoch import OffsetAndEpoch


def unattached_with_tail() -> RaftCore:
    """Return a replica that knows no leader; the last of its two records may still be lost."""
    log = LogView()
    log.append(epoch=1, count=2)
    log.became_durable(1)
    return build_core(
        key_of(1),
        endpoints=endpoints_of(1),
        bootstrap=tuple(map(destination_of, (2, 3))),
        log=log,
        history=static_voters_of(1, 2, 3),
    )


def fetches_in(effects: fx.Effects) -> list[msg.FetchRequest]:
    requests = (send.request for send in sends_in(effects))
    return [request for request in requests if isinstance(request, msg.FetchRequest)]


def test_no_node_hears_of_records_that_may_still_be_lost() -> None:
    core = unattached_with_tail()
    assert fetches_in(core.start(0.0, stored=ElectionRecord(2))) == []
    assert fetches_in(core.tick(1.0)) == []
    (fetch,) = fetches_in(core.log_durable(2.0, 2))
    assert fetch.position == OffsetAndEpoch(2, 1)
