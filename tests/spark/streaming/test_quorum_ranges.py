"""Places in a leader's log, ranges of it, and snapshots: from scripted controllers."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random

import pytest
from tests.spark.streaming.fake_controllers import FakeController
from tests.spark.streaming.scripted_log import CLUSTER, ScriptedLog

from kvorum.log_files.damage import Damage
from kvorum.metadata.address import Address
from kvorum.quorum_client.client import QuorumClient, QuorumPlan
from kvorum.quorum_client.errors import QuorumError
from kvorum.quorum_client.snapshot_copy import copy_snapshot
from kvorum.spark.errors import OptionError
from kvorum.spark.streaming.options import Starting
from kvorum.spark.streaming.quorum_planner import BEGINNING, QuorumOffset, QuorumPlanner
from kvorum.spark.streaming.quorum_ranges import read_log
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from kvorum.wire.offset_and_epoch import OffsetAndEpoch
from kvorum.wire.primitives import Message


@pytest.fixture
def log() -> ScriptedLog:
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


def end_of(log: ScriptedLog) -> OffsetAndEpoch:
    return OffsetAndEpoch(log.end, log.batches[-1].partition_leader_epoch)


def test_a_stream_begins_where_its_options_say(client: QuorumClient, log: ScriptedLog) -> None:
    planner = QuorumPlanner(client, offsets_max=None)
    assert planner.first(Starting.EARLIEST) == QuorumOffset(CLUSTER, BEGINNING)
    assert planner.first(Starting.LATEST).end == end_of(log)
    assert planner.first(log.end).end == end_of(log)
    for index, batch in enumerate(log.batches):
        # Any offset of a batch means the batch.
        for offset in {batch.base_offset, batch.last_offset}:
            assert planner.first(offset).end == log.place(index)
    with pytest.raises(OptionError, match=f"committed up to {log.end} only"):
        planner.first(log.end + 1)


def test_the_latest_place_is_known_right_after_a_snapshot(
    client: QuorumClient, log: ScriptedLog
) -> None:
    snapshot = log.delete_before(7)
    log.batches.clear()
    log.high_watermark = snapshot.offset
    assert QuorumPlanner(client, offsets_max=None).first(Starting.LATEST).end == snapshot


def test_an_end_has_the_epoch_of_the_record_before(client: QuorumClient, log: ScriptedLog) -> None:
    planner = QuorumPlanner(client, offsets_max=None)
    begin = planner.first(Starting.EARLIEST)
    end = planner.next_end(begin)
    assert end == QuorumOffset(CLUSTER, end_of(log))
    assert planner.next_end(end) == end
    assert QuorumOffset.from_checkpoint(end.to_checkpoint()) == end
    log.high_watermark = log.batches[3].next_offset
    assert planner.next_end(begin).end == log.place(4)


def test_a_bound_ends_a_micro_batch_with_a_batch(client: QuorumClient, log: ScriptedLog) -> None:
    planner = QuorumPlanner(client, offsets_max=1)
    found = [planner.first(Starting.EARLIEST)]
    while found[-1].end.offset < log.end:
        found.append(planner.next_end(found[-1]))
    places = [log.place(index) for index in range(len(log.batches))]
    assert [each.end for each in found] == [*places, end_of(log)]


def test_the_voters_are_asked_for_at_first_and_with_news(
    client: QuorumClient, log: ScriptedLog
) -> None:
    first, later = Address("first", 1), Address("later", 2)
    planner = QuorumPlanner(client, offsets_max=None)
    end = QuorumOffset(CLUSTER, end_of(log))
    log.voters = [first]
    assert planner.next_end(end) == end
    assert first in client.plan.addresses
    log.voters = [later]
    assert planner.next_end(end) == end
    assert later not in client.plan.addresses
    log.append(Random(3), count=1)
    planner.next_end(end)
    assert {first, later} < {*client.plan.addresses}


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


def test_records_that_the_log_lost_meanwhile_are_reported(
    client: QuorumClient, log: ScriptedLog
) -> None:
    start, end = log.place(2), end_of(log)
    snapshot = log.delete_before(5)
    (damage,) = read_log(client, start, end.offset, path="log")
    assert isinstance(damage, Damage)
    assert (damage.first_offset, damage.last_offset) == (start.offset, end.offset - 1)
    assert f"no records before {snapshot.offset} any more" in damage.text


def test_a_log_that_begins_later_begins_with_its_snapshot(
    client: QuorumClient, log: ScriptedLog, tmp_path: Path
) -> None:
    begin = QuorumOffset(CLUSTER, log.place(2))
    snapshot = log.delete_before(5)
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


@pytest.mark.parametrize("is_writing_refusals", [True, False])
def test_a_snapshot_that_another_one_replaced_is_not_there(
    client: QuorumClient, log: ScriptedLog, tmp_path: Path, is_writing_refusals: bool
) -> None:
    log.is_writing_refusals = is_writing_refusals
    log.delete_before(5)
    assert not copy_snapshot(client, OffsetAndEpoch(1, 1), tmp_path / "copy")


def test_the_latest_snapshot_that_cannot_be_read_is_an_error(
    leader: FakeController, client: QuorumClient, log: ScriptedLog, tmp_path: Path
) -> None:
    snapshot = log.delete_before(5)

    def answer(request: Message) -> Message | None:
        if isinstance(request, FetchSnapshotRequest):
            return FetchSnapshotResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
        return log(request)

    leader.answers = answer
    with pytest.raises(QuorumError, match="FetchSnapshot: UNKNOWN_SERVER_ERROR"):
        copy_snapshot(client, snapshot, tmp_path / "copy")


@pytest.mark.parametrize("is_writing_refusals", [True, False])
@pytest.mark.parametrize("size", [20, 5000], ids=["shorter", "longer"])
def test_a_snapshot_of_a_new_leader_is_copied_from_its_begin(
    client: QuorumClient,
    leader: FakeController,
    log: ScriptedLog,
    tmp_path: Path,
    *,
    size: int,
    is_writing_refusals: bool,
) -> None:
    snapshot = log.delete_before(5)
    log.is_writing_refusals = is_writing_refusals
    log.snapshot_bytes, log.chunk_bytes = bytes(100), 30

    def answer(request: Message) -> Message | None:
        is_second = isinstance(request, FetchSnapshotRequest) and len(leader.requests) == 2
        if is_second and log.epoch == 3:
            log.epoch, log.snapshot_bytes = 4, b"x" * size
        return log(request)

    leader.answers = answer
    with closing(QuorumClient(client.plan._replace(retry_timeout_s=30.0))) as patient:
        assert copy_snapshot(patient, snapshot, tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b"x" * size


def test_a_checkpoint_of_something_else_is_an_error() -> None:
    with pytest.raises(QuorumError, match="is not one of a quorum"):
        QuorumOffset.from_checkpoint({"logs": {}})
