"""Places in a leader's log, ranges of it, and snapshots: from scripted controllers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from tests.unit.spark.small_logs import START_MS, control, random_batch
from tests.unit.spark.streaming.fake_controllers import FakeController
from tests.unit.spark.streaming.scripted_log import CLUSTER, ScriptedLog

from kvorum.spark.errors import OptionError, QuorumError
from kvorum.spark.files.damage import Damage
from kvorum.spark.streaming.log_range import read_log
from kvorum.spark.streaming.options import Starting
from kvorum.spark.streaming.quorum_client import QuorumClient, QuorumPlan
from kvorum.spark.streaming.quorum_offset import BEGINNING, QuorumOffset
from kvorum.spark.streaming.quorum_planner import QuorumPlanner
from kvorum.spark.streaming.snapshot_copy import copy_snapshot
from kvorum.wire.messages.fetch_snapshot import FetchSnapshotRequest
from kvorum.wire.messages.snapshot_footer_record import SnapshotFooterRecord
from kvorum.wire.messages.snapshot_header_record import SnapshotHeaderRecord
from kvorum.wire.offset_and_epoch import OffsetAndEpoch
from kvorum.wire.primitives import Message
from kvorum.wire.records import ControlRecordType


@pytest.fixture
def log() -> ScriptedLog:
    """A log of two epochs."""
    found = ScriptedLog()
    found.append(Random(1), count=6, epoch=2)
    found.append(Random(2), count=6)
    return found


@pytest.fixture
def leader(log: ScriptedLog) -> Iterator[FakeController]:
    with FakeController(log) as controller:
        yield controller


@pytest.fixture
def client(leader: FakeController) -> Iterator[QuorumClient]:
    found = QuorumClient(QuorumPlan((leader.address,), None, 0, 0.0, None))
    # Without a time limit a wrong answer ends a test at once, so the epoch must be known.
    found.leader_epoch = 3
    yield found
    found.close()


def place(log: ScriptedLog, index: int) -> OffsetAndEpoch:
    """Return the place before a batch."""
    epoch = log.batches[index - 1].partition_leader_epoch if index else 0
    return OffsetAndEpoch(log.batches[index].base_offset, epoch)


def end_of(log: ScriptedLog) -> OffsetAndEpoch:
    return OffsetAndEpoch(log.end, log.batches[-1].partition_leader_epoch)


def with_snapshot(log: ScriptedLog, index: int) -> OffsetAndEpoch:
    """Let a snapshot take the place of the batches before one."""
    snapshot = log.snapshot = place(log, index)
    log.start = snapshot.offset
    del log.batches[:index]
    header = control(ControlRecordType.SNAPSHOT_HEADER, SnapshotHeaderRecord(), offset=0, epoch=2)
    body = random_batch(Random(7), offset=1, epoch=2, time=START_MS)
    footer = control(ControlRecordType.SNAPSHOT_FOOTER, SnapshotFooterRecord(), offset=9, epoch=2)
    log.snapshot_bytes = header + body + footer
    return snapshot


def test_a_stream_begins_where_it_is_told_to(client: QuorumClient, log: ScriptedLog) -> None:
    planner = QuorumPlanner(client, offsets_max=None)
    assert planner.first(Starting.EARLIEST) == QuorumOffset(CLUSTER, BEGINNING)
    assert planner.first(Starting.LATEST).end == end_of(log)
    assert planner.first(log.end).end == end_of(log)
    for index, batch in enumerate(log.batches):
        # Any offset of a batch means the batch.
        for offset in {batch.base_offset, batch.last_offset}:
            assert planner.first(offset).end == place(log, index)
    with pytest.raises(OptionError, match=f"committed up to {log.end} only"):
        planner.first(log.end + 1)


def test_the_latest_place_is_known_right_behind_a_snapshot(
    client: QuorumClient, log: ScriptedLog
) -> None:
    snapshot = with_snapshot(log, 7)
    log.batches.clear()
    log.high_watermark = snapshot.offset
    planner = QuorumPlanner(client, offsets_max=None)
    assert planner.first(Starting.LATEST).end == snapshot


def test_an_end_has_the_epoch_of_the_record_before(client: QuorumClient, log: ScriptedLog) -> None:
    planner = QuorumPlanner(client, offsets_max=None)
    begin = planner.first(Starting.EARLIEST)
    end = planner.next_end(begin)
    assert end == QuorumOffset(CLUSTER, end_of(log))
    assert planner.next_end(end) == end
    assert QuorumOffset.from_checkpoint(end.to_checkpoint()) == end
    log.high_watermark = log.batches[3].next_offset
    assert planner.next_end(begin).end == place(log, 4)


def test_a_bound_ends_a_micro_batch_with_a_batch(client: QuorumClient, log: ScriptedLog) -> None:
    planner = QuorumPlanner(client, offsets_max=1)
    found = [planner.first(Starting.EARLIEST)]
    while found[-1].end.offset < log.end:
        found.append(planner.next_end(found[-1]))
    places = [place(log, index) for index in range(len(log.batches))]
    assert [each.end for each in found] == [*places, end_of(log)]


def test_a_range_is_read_whole_and_by_its_parts(client: QuorumClient, log: ScriptedLog) -> None:
    whole = [batch.base_offset for batch in log.batches]
    assert bases(client, BEGINNING, log.end) == whole
    parts = [(start, start + 1) for start in range(log.end)]
    found = [base for start, end in parts for base in bases(client, OffsetAndEpoch(start, 3), end)]
    assert found == whole


def bases(client: QuorumClient, start: OffsetAndEpoch, end: int) -> list[int]:
    items = list(read_log(client, start, end, path="log"))
    assert not [item for item in items if isinstance(item, Damage)]
    return [item.base_offset for item in items if not isinstance(item, Damage)]


def test_records_that_the_log_lost_meanwhile_are_told(
    client: QuorumClient, log: ScriptedLog
) -> None:
    start, end = place(log, 2), end_of(log)
    snapshot = with_snapshot(log, 5)
    (damage,) = read_log(client, start, end.offset, path="log")
    assert isinstance(damage, Damage)
    assert (damage.first_offset, damage.last_offset) == (start.offset, end.offset - 1)
    assert f"no records before {snapshot.offset} any more" in damage.text


def test_a_log_that_begins_later_begins_with_its_snapshot(
    client: QuorumClient, log: ScriptedLog, tmp_path: Path
) -> None:
    begin = QuorumOffset(CLUSTER, place(log, 2))
    snapshot = with_snapshot(log, 5)
    planner = QuorumPlanner(client, offsets_max=None)
    end = planner.next_end(begin)
    assert end == QuorumOffset(CLUSTER, end_of(log), snapshot)
    assert QuorumOffset.from_checkpoint(end.to_checkpoint()) == end
    # The next micro-batch does not begin with the snapshot again.
    assert planner.next_end(end) == end
    log.append(Random(3), count=1)
    assert planner.next_end(end) == QuorumOffset(CLUSTER, end_of(log))
    assert copy_snapshot(client, snapshot, tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == log.snapshot_bytes
    assert not copy_snapshot(client, OffsetAndEpoch(1, 1), tmp_path / "copy")


@pytest.mark.parametrize("size", [20, 5000], ids=["shorter", "longer"])
def test_a_snapshot_of_a_new_leader_is_copied_from_its_begin(
    client: QuorumClient, leader: FakeController, log: ScriptedLog, tmp_path: Path, size: int
) -> None:
    snapshot = with_snapshot(log, 5)
    log.snapshot_bytes, log.chunk_bytes = bytes(100), 30
    log_before = log.__call__

    def answer(request: Message) -> Message | None:
        is_second = isinstance(request, FetchSnapshotRequest) and len(leader.requests) == 2
        if is_second and log.epoch == 3:
            log.epoch, log.snapshot_bytes = 4, b"x" * size
        return log_before(request)

    leader.answers = answer
    client = QuorumClient(client.plan._replace(retry_timeout_s=30.0))
    try:
        assert copy_snapshot(client, snapshot, tmp_path / "copy")
    finally:
        client.close()
    assert (tmp_path / "copy").read_bytes() == b"x" * size


def test_a_checkpoint_of_something_else_is_an_error() -> None:
    with pytest.raises(QuorumError, match="is not one of a quorum"):
        QuorumOffset.from_checkpoint({"logs": {}})
