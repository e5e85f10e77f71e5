"""Snapshots of the metadata: which records one says it holds, and when one is due."""

from collections.abc import Iterable, Sequence
from random import Random
from types import SimpleNamespace
from typing import cast

import pytest

from kvorum.metadata.metadata_version import METADATA_VERSION_FEATURE, MetadataVersion
from kvorum.metadata.record_frame import encode_record
from kvorum.node.config import NodeConfig
from kvorum.node.coroutines import Signal
from kvorum.node.metadata_loader import MetadataLoader, SnapshotGenerator
from kvorum.node.raft import CommittedBatch, RaftNode
from kvorum.simulation.events import Events, NodeClock
from kvorum.simulation.runtime import SimulatedRuntime
from kvorum.wire.messages.feature_level_record import FeatureLevelRecord
from kvorum.wire.messages.producer_ids_record import ProducerIdsRecord
from kvorum.wire.primitives import Message

AFTER_BYTES = 100
EPOCH = 7


class PlayedReplica:
    """A replica that notes the snapshots it is given, and writes them when the test says."""

    snapshot_bytes = 1

    def __init__(self, runtime: SimulatedRuntime) -> None:
        self.may_write = Signal(runtime)
        self.may_write.set()
        self.given: list[tuple[int, int, int]] = []
        """End offset, epoch, and time of the last record."""

    async def create_snapshot(
        self,
        *,
        end_offset: int,
        epoch: int,
        last_contained_log_timestamp_ms: int,
        values: Iterable[Sequence[bytes]],
    ) -> bool:
        assert any(values)
        self.given.append((end_offset, epoch, last_contained_log_timestamp_ms))
        return await self.may_write.wait()


class World:
    """A loader, and a generator whose replica is played."""

    def __init__(self) -> None:
        self.events = Events()
        runtime = SimulatedRuntime(
            self.events, NodeClock(self.events), Random(1), turn=lambda callback: callback()
        )
        self.loader = MetadataLoader(runtime)
        self.replica = PlayedReplica(runtime)
        settings = SimpleNamespace(snapshot_after_bytes=AFTER_BYTES, snapshot_after_ms=0)
        SnapshotGenerator(
            cast("NodeConfig", SimpleNamespace(metadata_log=settings)),
            raft=cast("RaftNode", self.replica),
            loader=self.loader,
            runtime=runtime,
        )

    def commit(self, *records: Message, size_bytes: int = AFTER_BYTES) -> None:
        """Commit records in one batch, whose time is its first offset, and let others run."""
        offset = self.loader.last_offset + 1
        batch = CommittedBatch(
            base_offset=offset,
            last_offset=offset + len(records) - 1,
            epoch=EPOCH,
            append_timestamp_ms=offset,
            values=tuple(encode_record(record, 0) for record in records),
            is_control=False,
            size_bytes=size_bytes,
        )
        self.loader.commit([batch])
        while (callback := self.events.take_next(self.events.now_ms)) is not None:
            callback()


LEVEL = FeatureLevelRecord(METADATA_VERSION_FEATURE, int(MetadataVersion.V4_3_IV0))
RECORD = ProducerIdsRecord(1, 1, next_producer_id=1)


@pytest.fixture
def world() -> World:
    return World()


def test_a_snapshot_ends_after_its_last_record(world: World) -> None:
    """KAFKA-14618."""
    world.commit(LEVEL, RECORD, RECORD)
    world.commit(RECORD)
    assert world.replica.given == [(3, EPOCH, 0), (4, EPOCH, 3)]


def test_a_snapshot_is_due_after_so_many_bytes(world: World) -> None:
    world.commit(LEVEL, size_bytes=AFTER_BYTES - 1)
    assert world.replica.given == []
    world.commit(RECORD, size_bytes=1)
    world.commit(RECORD, size_bytes=1)
    assert [end_offset for end_offset, _, _ in world.replica.given] == [2]


def test_metadata_without_a_version_gets_no_snapshot(world: World) -> None:
    world.commit(RECORD)
    assert world.replica.given == []


def test_one_snapshot_is_written_at_a_time(world: World) -> None:
    world.replica.may_write.clear()
    world.commit(LEVEL)
    world.commit(RECORD)
    assert [end_offset for end_offset, _, _ in world.replica.given] == [1]
    world.replica.may_write.set()
    world.commit(RECORD)
    world.commit(RECORD)
    assert [end_offset for end_offset, _, _ in world.replica.given] == [1, 4]
