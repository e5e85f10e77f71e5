"""The rows of a snapshot that a stream over a quorum begins with: from a scripted controller."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from random import Random

import pytest
from tests.spark.streaming.fake_controllers import FakeController
from tests.spark.streaming.scripted_log import ScriptedLog
from tests.support.spark.streaming_reads import MicroBatches

from kvorum.spark.errors import DamagedFileError
from kvorum.spark.metadata_source.columns import columns_named
from kvorum.spark.metadata_source.quorum_stream import QuorumStreamReader
from kvorum.spark.streaming.options import quorum_options, stream_options
from kvorum.wire.records import read_batches

CRC_POSITION = 17
COLUMNS = ("file_kind", "offset", "damage")


@pytest.fixture
def log() -> ScriptedLog:
    found = ScriptedLog()
    found.append(Random(1), count=6)
    found.delete_before(3)
    return found


@pytest.fixture
def leader(log: ScriptedLog) -> Iterator[FakeController]:
    with FakeController(log) as controller:
        yield controller


@contextmanager
def stream_over(leader: FakeController, mode: str = "failfast") -> Generator[MicroBatches]:
    options = {"controllers": str(leader.address), "mode": mode}
    stream = MicroBatches(
        lambda: QuorumStreamReader(
            stream_options(options), quorum_options(options), columns_named(COLUMNS)
        )
    )
    try:
        yield stream
    finally:
        stream.stop()


def in_order(log: ScriptedLog) -> list[tuple[str, int]]:
    snapshot = [record for batch in read_batches(log.snapshot_bytes) for record in batch.records()]
    behind = [record for batch in log.batches for record in batch.records()]
    return [
        *(("snapshot", record.offset) for record in snapshot),
        *(("segment", record.offset) for record in behind),
    ]


def test_the_snapshot_comes_before_the_log(leader: FakeController, log: ScriptedLog) -> None:
    with stream_over(leader) as stream:
        rows = stream.advance()
    assert [(row["file_kind"], row["offset"]) for row in rows] == in_order(log)


@pytest.mark.parametrize("index", [0, 1, 2], ids=["header", "records", "footer"])
def test_a_batch_of_it_whose_checksum_alone_is_wrong_is_damage(
    leader: FakeController, log: ScriptedLog, index: int
) -> None:
    data = bytearray(log.snapshot_bytes)
    batch = list(read_batches(log.snapshot_bytes))[index]
    data[batch.position + CRC_POSITION] ^= 1
    whole = in_order(log)
    log.snapshot_bytes = bytes(data)
    with stream_over(leader) as stream, pytest.raises(DamagedFileError, match="checksum"):
        stream.advance()
    with stream_over(leader, "permissive") as stream:
        rows = stream.advance()
    assert any("checksum" in row["damage"] for row in rows if row["damage"])
    found = {(row["file_kind"], row["offset"]) for row in rows if not row["damage"]}
    lost = {("snapshot", offset) for offset in range(batch.base_offset, batch.next_offset)}
    assert found == {*whole} - lost
