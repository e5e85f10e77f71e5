"""The listener gets the log piece by piece."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from kvorum.node.raft.applier import Applier, committed_batch
from kvorum.node.raft.listener import CommittedBatch, LoadedSnapshot
from kvorum.raft.effects import Committed, LeaderChanged
from kvorum.storage.files import RealFileSystem
from kvorum.storage.log.log_config import LogConfig
from kvorum.storage.metadata_log.metadata_log import MetadataLog
from kvorum.wire.records import build_data_batch, read_batches


class Hearing:
    """Notes the offsets it hears of."""

    def __init__(self) -> None:
        self.offsets: list[tuple[int, int]] = []

    def on_commit(self, batches: Sequence[CommittedBatch]) -> Iterator[None] | None:
        self.offsets += [(batch.base_offset, batch.last_offset) for batch in batches]
        return None

    def on_snapshot(self, snapshot: LoadedSnapshot) -> None:
        raise AssertionError(snapshot)

    def on_leadership_gained(self, epoch: int) -> None:
        raise AssertionError(epoch)

    def on_leadership_lost(self, epoch: int) -> None:
        raise AssertionError(epoch)

    def on_leader_change(self, leader_id: int | None, epoch: int) -> None:
        raise AssertionError((leader_id, epoch))

    def on_failure(self, error: Exception) -> None:
        raise AssertionError(error)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[MetadataLog]:
    log = MetadataLog.open(
        tmp_path / "__cluster_metadata-0", files=RealFileSystem(), config=LogConfig(), now_ms=1
    )
    yield log
    log.local_log.close()


def append(log: MetadataLog, base_offset: int, *values: bytes) -> None:
    data = build_data_batch(list(values), base_offset=base_offset, epoch=1, timestamp_ms=1)
    log.local_log.append(data)


@pytest.mark.parametrize("is_own", [False, True])
def test_a_high_watermark_within_a_batch_waits_for_the_rest_of_it(
    log: MetadataLog, *, is_own: bool
) -> None:
    """Only on the word of a liar; it must not stop a replica, nor show what is not committed."""
    for base_offset in (0, 3):
        append(log, base_offset, b"a", b"b", b"c")
    hearing = Hearing()
    applier = Applier(log, hearing)
    for found in read_batches(log.local_log.read(0, 1000)) if is_own else ():
        applier.remember(committed_batch(found))
    for high_watermark in (1, 4, 5, 6):
        applier.add(Committed(high_watermark))
        while applier.has_work:
            applier.step()
        assert applier.next_offset == high_watermark // 3 * 3
    assert hearing.offsets == [(0, 2), (3, 5)]


class SlowHearing(Hearing):
    """Takes three steps over each commit."""

    def on_commit(self, batches: Sequence[CommittedBatch]) -> Iterator[None]:
        yield
        yield
        super().on_commit(batches)

    def on_leader_change(self, leader_id: int | None, epoch: int) -> None:
        del leader_id
        self.offsets.append((-1, epoch))


def test_nothing_is_handed_on_before_the_last_piece_of_the_one_before(log: MetadataLog) -> None:
    append(log, 0, b"a", b"b")
    hearing = SlowHearing()
    applier = Applier(log, hearing)
    applier.add(Committed(2))
    applier.add(LeaderChanged(leader_id=1, epoch=4))
    heard: list[int] = []
    while applier.has_work:
        assert (applier.next_offset == 2) is bool(hearing.offsets)
        applier.step()
        heard.append(len(hearing.offsets))
    assert heard == [0, 0, 1, 2]
    assert hearing.offsets == [(0, 1), (-1, 4)]


def test_a_stop_leaves_the_pieces_that_are_left_undone(log: MetadataLog) -> None:
    append(log, 0, b"a", b"b")
    hearing = SlowHearing()
    applier = Applier(log, hearing)
    applier.add(Committed(2))
    applier.step()
    applier.stop()
    assert not applier.has_work
    assert hearing.offsets == []
