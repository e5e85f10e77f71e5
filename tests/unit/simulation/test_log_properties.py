"""Each property about logs, snapshots, watermarks and clients is broken once, and noticed."""

import pytest
from tests.support.batch_maker import make_batch, make_snapshot
from tests.support.pretended_quorum import (
    FETCH_VERSION,
    HERE,
    PretendedQuorum,
    broken,
    fetch_request,
)

from kvorum.node.raft.listener import CommittedBatch, LoadedSnapshot, RaftListener
from kvorum.node.raft.translation import fetch
from kvorum.raft import messages as core
from kvorum.raft.log_view import LogView
from kvorum.simulation.disk_faults import FileKind
from kvorum.simulation.properties.callbacks import Ledger
from kvorum.simulation.properties.catalogue import Checks
from kvorum.wire.offset_and_epoch import BOOTSTRAP_SNAPSHOT_ID, OffsetAndEpoch


def test_p4_two_logs_with_different_records_of_one_epoch(quorum: PretendedQuorum) -> None:
    quorum[1].follow(1, 3)
    quorum[2].follow(1, 3)
    quorum[1].append(b"one")
    quorum[1].look()
    quorum[2].append(b"two")
    quorum[2].breaks("P4")


def test_p4_one_record_behind_different_ones(quorum: PretendedQuorum) -> None:
    for node_id, first in ((1, 1), (2, 2)):
        node = quorum[node_id]
        node.follow(3, 3)
        node.append(b"first", epoch=first)
        node.append(b"second", epoch=3)
    quorum[1].look()
    quorum[2].breaks("P4")


def test_p4_an_epoch_that_begins_in_two_places(quorum: PretendedQuorum) -> None:
    for node_id, count in ((1, 1), (2, 2)):
        node = quorum[node_id]
        node.follow(3, 3)
        for _ in range(count):
            node.append(b"first", epoch=1)
        node.append(b"second", epoch=3)
    quorum[1].look()
    quorum[2].breaks("P4")


def test_p13_a_gap_in_the_offsets(quorum: PretendedQuorum) -> None:
    quorum[1].follow(1, 3)
    quorum[1].append(b"a")
    handle = quorum[1].files.open(HERE / "00000000000000000000.log")
    handle.write_at(handle.size(), make_batch(5))
    quorum[1].breaks("P13")


def test_p6_something_taken_for_durable_that_was_not_synced(quorum: PretendedQuorum) -> None:
    quorum[1].follow(1, 3)
    quorum[1].append(b"a", flush=False)
    quorum[1].own_core.shown_log.became_durable(1)
    quorum[1].breaks("P6")


def test_p6_something_committed_that_a_majority_has_not(quorum: PretendedQuorum) -> None:
    quorum[1].lead(1)
    quorum[1].append(b"a")
    quorum[1].commit(1)
    quorum[1].breaks("P6")


def test_p6_a_follower_that_fetches_behind_what_it_has_durably(quorum: PretendedQuorum) -> None:
    quorum[2].follow(1, 1)
    quorum[2].append(b"a", flush=False)
    request = fetch_request(2, position=OffsetAndEpoch(1, 1))
    with broken("P6"):
        quorum.properties.request_sent(quorum[2], request)


def test_p7_a_leader_that_shows_what_its_epoch_has_not_committed(led: PretendedQuorum) -> None:
    led[2].lead(2, start=1)
    led[2].commit(1)
    led[2].breaks("P7")


def test_p9_a_snapshot_of_what_is_not_committed(led: PretendedQuorum) -> None:
    led.replicate(b"a")
    led[1].snapshot(OffsetAndEpoch(2, 1), make_snapshot(epoch=1))
    led[1].breaks("P9")


def test_p9_a_snapshot_that_ends_within_a_batch(led: PretendedQuorum) -> None:
    led.replicate(b"a", b"b")
    led[1].commit(3)
    led[1].look()
    led[1].snapshot(OffsetAndEpoch(2, 1), make_snapshot(epoch=1))
    led[1].breaks("P9")


def test_p9_a_snapshot_under_the_name_of_another_epoch(quorum: PretendedQuorum) -> None:
    quorum.led_by(1, epoch=2)
    quorum[1].snapshot(OffsetAndEpoch(1, 1), make_snapshot(epoch=1))
    quorum[1].breaks("P9")


def test_p9_a_snapshot_that_cannot_be_read(led: PretendedQuorum) -> None:
    led[1].snapshot(OffsetAndEpoch(1, 1), make_snapshot(epoch=1)[:-5])
    led[1].breaks("P9")


def test_p9_two_snapshots_of_one_name(led: PretendedQuorum) -> None:
    led[1].snapshot(OffsetAndEpoch(1, 1), make_snapshot(epoch=1, value_count=3))
    led[1].look()
    led[2].snapshot(OffsetAndEpoch(1, 1), make_snapshot(epoch=1, value_count=4))
    led[2].breaks("P9")


def test_what_a_node_was_formatted_with_is_known_after_its_file_is_damaged() -> None:
    quorum = PretendedQuorum()
    node, facts = quorum[1], quorum.properties.snapshots
    node.snapshot(BOOTSTRAP_SNAPSHOT_ID, make_snapshot(epoch=0))
    node.own_core.shown_log = LogView(snapshots=[BOOTSTRAP_SNAPSHOT_ID])
    node.look()
    memory = quorum.properties.memory_of(node)
    content = facts.controls_of_latest(memory)
    assert content is not None
    assert node.disk.flip_bit(FileKind.SNAPSHOT) is not None
    assert facts.controls_of_latest(memory) == content


def test_p9_a_log_that_starts_behind_its_snapshots(led: PretendedQuorum) -> None:
    led[1].own_log.local_log.truncate_fully_and_start_at(1, now_ms=0)
    led[1].breaks("P9")


def test_p22_damaged_records_that_are_served(led: PretendedQuorum) -> None:
    batch = bytearray(make_batch(0, values=(b"start",)))
    _serve(led, bytes(batch))
    batch[-3] ^= 1
    with broken("P22"):
        _serve(led, bytes(batch))
    with broken("P22"):
        _serve(led, make_batch(0, values=(b"never written",)))


def test_p23_more_than_was_asked_for(led: PretendedQuorum) -> None:
    led.replicate(b"a" * 100)
    both = make_batch(0, values=(b"start",)) + make_batch(1, values=(b"a" * 100,))
    _serve(led, both, bytes_max=1_000)
    with broken("P23"):
        _serve(led, both, bytes_max=150)


def _serve(quorum: PretendedQuorum, records: bytes, *, bytes_max: int = 1_000) -> None:
    """Let node 1 answer a fetch of node 2 with these records."""
    request = fetch_request(2, bytes_max=bytes_max)
    answer = core.FetchResponse(core.Error.NONE, core.KnownLeader(1, 1), high_watermark=1)
    response = fetch.write_answer(
        answer, version=FETCH_VERSION, listener_name="CONTROLLER", records=memoryview(records)
    )
    quorum.properties.response_leaves(quorum[1], request, response)


def test_p24_another_record_where_one_is_committed(led: PretendedQuorum) -> None:
    led[3].own_log.local_log.truncate_to(0, now_ms=0)
    led[3].own_core.shown_log.truncate_to(0)
    led.properties.memory_of(led[3]).high_watermark = 0
    led[3].follow(2, 2)
    led[3].append(b"other", epoch=2)
    led[3].breaks("P24")


def test_p26_a_high_watermark_that_falls(led: PretendedQuorum) -> None:
    led.replicate(b"a")
    led[2].commit(2)
    led[2].look()
    led[2].commit(1)
    led[2].breaks("P26")


def test_p26_a_new_leader_below_the_old_one(led: PretendedQuorum) -> None:
    led.replicate(b"a")
    led.replicate(b"b")
    led[1].commit(3)
    led[1].look()
    led[2].commit(None)
    led[2].lead(2, start=1)
    led[2].commit(2)
    led[2].breaks("P26")


def test_p27_a_log_that_is_cut_below_its_high_watermark(led: PretendedQuorum) -> None:
    led[2].own_log.local_log.truncate_to(0, now_ms=0)
    led[2].breaks("P27")


class Deaf:
    """A state machine that does nothing."""

    def on_snapshot(self, snapshot: LoadedSnapshot) -> None: ...
    def on_commit(self, batches: object) -> None: ...
    def on_leadership_gained(self, epoch: int) -> None: ...
    def on_leadership_lost(self, epoch: int) -> None: ...
    def on_leader_change(self, leader_id: int | None, epoch: int) -> None: ...
    def on_failure(self, error: Exception) -> None: ...


def _batch(base_offset: int, *values: bytes) -> CommittedBatch:
    return CommittedBatch(
        base_offset=base_offset,
        last_offset=base_offset + len(values) - 1,
        epoch=1,
        append_timestamp_ms=0,
        values=values,
        is_control=False,
        size_bytes=10,
    )


def _snapshot(end_offset: int) -> LoadedSnapshot:
    return LoadedSnapshot(
        end_offset=end_offset, epoch=1, last_contained_log_timestamp_ms=0, values=iter(())
    )


def _listener(quorum: PretendedQuorum, node_id: int = 1, *, committed: int = 100) -> RaftListener:
    quorum.properties.memory_of(quorum[node_id]).high_watermark = committed
    return quorum.properties.listener_for(quorum[node_id], Deaf())


@pytest.mark.parametrize(("base_offset", "value"), [(0, b"a"), (2, b"c")])
def test_p17_records_that_come_twice_or_are_left_out(base_offset: int, value: bytes) -> None:
    listener = _listener(PretendedQuorum())
    listener.on_commit([_batch(0, b"a")])
    with broken("P17"):
        listener.on_commit([_batch(base_offset, value)])


def test_p17_a_first_record_without_the_snapshot_before_it() -> None:
    listener = _listener(PretendedQuorum())
    with broken("P17"):
        listener.on_commit([_batch(7, b"a")])


def test_p17_a_snapshot_that_goes_back() -> None:
    listener = _listener(PretendedQuorum())
    listener.on_snapshot(_snapshot(7))
    listener.on_commit([_batch(7, b"a")])
    with broken("P17"):
        listener.on_snapshot(_snapshot(7))


def test_p17_a_leader_that_has_not_heard_its_first_record(quorum: PretendedQuorum) -> None:
    listener = _listener(quorum)
    quorum[1].lead(4, start=3)
    listener.on_commit([_batch(0, b"a", b"b", b"c")])
    with broken("P17"):
        listener.on_leadership_gained(4)


def test_p17_a_leadership_that_is_gained_twice_or_lost_unheard() -> None:
    listener = _listener(PretendedQuorum())
    with broken("P17"):
        listener.on_leadership_lost(3)
    listener.on_leadership_gained(4)
    with broken("P17"):
        listener.on_leadership_gained(5)


def test_p17_an_epoch_of_long_ago() -> None:
    listener = _listener(PretendedQuorum())
    listener.on_leader_change(1, 5)
    with broken("P17"):
        listener.on_leader_change(2, 4)


def test_p7_a_state_machine_that_hears_what_is_not_committed() -> None:
    listener = _listener(PretendedQuorum(), committed=1)
    with broken("P7"):
        listener.on_commit([_batch(0, b"a", b"b")])


def test_p22_state_machines_that_hear_different_things(quorum: PretendedQuorum) -> None:
    _listener(quorum, 1).on_commit([_batch(0, b"a")])
    with broken("P22"):
        _listener(quorum, 2).on_commit([_batch(0, b"b")])


def test_p25_a_write_that_is_lost(quorum: PretendedQuorum) -> None:
    ledger = quorum.properties.ledger
    ledger.invoked(b"a", 1.0)
    ledger.acknowledged(b"a", 0, 2.0)
    with broken("P25"):
        _listener(quorum).on_commit([_batch(0, b"other")])


def test_p25_a_write_that_is_acknowledged_where_something_else_is(quorum: PretendedQuorum) -> None:
    ledger = quorum.properties.ledger
    ledger.invoked(b"a", 1.0)
    ledger.invoked(b"b", 1.0)
    _listener(quorum).on_commit([_batch(0, b"b")])
    with broken("P25"):
        ledger.acknowledged(b"a", 0, 2.0)


def test_p25_a_write_that_is_doubled(quorum: PretendedQuorum) -> None:
    quorum.properties.ledger.invoked(b"a", 1.0)
    with broken("P25"):
        _listener(quorum).on_commit([_batch(0, b"a"), _batch(1, b"a")])


def test_p25_two_writes_at_one_place() -> None:
    ledger = Ledger(Checks())
    ledger.invoked(b"a", 1.0)
    ledger.invoked(b"b", 1.0)
    ledger.acknowledged(b"a", 4, 2.0)
    with broken("P25"):
        ledger.acknowledged(b"b", 4, 3.0)


def test_p25_a_later_write_that_comes_first() -> None:
    ledger = Ledger(Checks())
    ledger.invoked(b"a", 1.0)
    ledger.acknowledged(b"a", 4, 2.0)
    ledger.invoked(b"b", 3.0)
    with broken("P25"):
        ledger.acknowledged(b"b", 3, 4.0)


def test_writes_at_the_same_time_may_come_in_any_order() -> None:
    ledger = Ledger(Checks())
    ledger.invoked(b"a", 1.0)
    ledger.invoked(b"b", 1.5)
    ledger.acknowledged(b"a", 4, 2.0)
    ledger.acknowledged(b"b", 3, 2.5)
    assert ledger.acknowledged_count == 2


def test_p25_a_state_machine_without_an_acknowledged_write() -> None:
    ledger = Ledger(Checks())
    ledger.invoked(b"a", 1.0)
    ledger.acknowledged(b"a", 4, 2.0)
    ledger.check_state("node 1", {}, 4)
    ledger.check_state("node 1", {4: b"a"}, 5)
    with broken("P25"):
        ledger.check_state("node 1", {}, 5)
