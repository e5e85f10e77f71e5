"""Streams over controllers whose log has moved its start behind what was to be read."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.interop.stream_rows import QuotaWriter, records_of, stream_over, users_in
from tests.interop.trimmed_metadata_log import SETTINGS, move_start
from tests.support.quorum.quorum import MakeQuorum
from tests.support.spark.small_logs import LOG_FOLDER
from tests.support.spark.streaming_reads import MicroBatches
from tests.support.waiting import wait_for

from kvorum.spark.errors import DamagedFileError
from kvorum.testing import AsyncCluster
from kvorum.wire.records import RecordBatch, read_batches

COLUMNS = ("path", "file_kind", "offset", "epoch", "json", "damage")
SNAPSHOT_BYTES = "metadata.log.max.record.bytes.between.snapshots"
NO_RECORDS = "the controllers have no records before {start} any more"
NO_SNAPSHOT = "the controllers have no such snapshot any more"
Placed = tuple[str, int, int, str]
"""A record: the kind of its file, offset, epoch, and JSON form."""


@dataclass(frozen=True)
class Controller:
    """A lone controller; `trim` returns where its log starts once that has moved.

    `restart` has it lead in another epoch.
    """

    address: str
    folder: Path
    trim: Callable[[], int]
    restart: Callable[[], None]

    @property
    def snapshots(self) -> list[Path]:
        """The snapshots of records, the oldest first; a log has one of offset 0 when it is new."""
        found = (self.folder / LOG_FOLDER).glob("*.checkpoint")
        return sorted(path for path in found if int(path.name[:20]) > 0)

    def batches_from(self, start: int) -> list[RecordBatch]:
        """Return what the log has from an offset on."""
        segments = sorted((self.folder / LOG_FOLDER).glob("*.log"))
        batches = [batch for path in segments for batch in read_batches(path.read_bytes())]
        return [batch for batch in batches if batch.base_offset >= start]

    def has_latest_snapshot(self) -> bool:
        """Tell whether too few bytes lie after the latest snapshot for one to be under way."""
        return self.bytes_behind_snapshot() < int(SETTINGS[SNAPSHOT_BYTES])

    def bytes_behind_snapshot(self) -> int:
        """Return the size of what the log has from the end of the latest snapshot on."""
        return sum(batch.size for batch in self.batches_from(int(self.snapshots[-1].name[:20])))

    def records(self, start: int) -> list[Placed]:
        """Return the records of the latest snapshot, and of the log from its end on."""
        snapshot = read_batches(self.snapshots[-1].read_bytes())
        files = ("snapshot", snapshot), ("segment", self.batches_from(start))
        return [
            (kind, *record)
            for kind, batches in files
            for batch in batches
            for record in records_of(batch)
        ]


def placed(rows: list[dict[str, Any]]) -> list[Placed]:
    assert [row["damage"] for row in rows if row["damage"] is not None] == []
    return [(row["file_kind"], row["offset"], row["epoch"], row["json"]) for row in rows]


def read_around_a_trim(controller: Controller) -> None:
    """Begin streams before the log's start moves, and go on, or begin others, after that."""
    options = {"controllers": controller.address, "mode": "failfast"}
    stopped, without_records, without_snapshot = (stream_over(options, COLUMNS) for _ in range(3))
    assert without_records.plan()
    read_before = placed(stopped.advance())
    assert [row[:2] for row in read_before] == [
        ("segment", offset) for offset in range(len(read_before))
    ]
    stopped.stop()
    with QuotaWriter(lambda: [controller.address]) as writer:
        wait_for(lambda: controller.snapshots, "there is a snapshot")
        assert without_snapshot.plan()
        writer.wait_for_more(100)
    wait_for(controller.has_latest_snapshot, "the last snapshot is there")
    if controller.bytes_behind_snapshot() == 0:
        writer.write_one_more()
    start = controller.trim()
    assert [int(path.name[:20]) for path in controller.snapshots] == [start]
    expected = controller.records(start)
    behind = [offset for kind, offset, _, _ in expected if kind == "segment"]
    assert behind == list(range(start, start + len(behind)))
    assert behind
    assert users_in([row[1:] for row in expected]) == set(writer.acknowledged)

    name = f"/{LOG_FOLDER}/{controller.snapshots[-1].name}"
    for begin in ("earliest", "0", str(start - 1)):
        stream = stream_over({**options, "startingOffsets": begin}, COLUMNS)
        assert placed(stream.advance()) == expected
        assert stream.advance() == []
        stream.stop()
        (path,) = {row["path"] for row in stream.rows if row["file_kind"] == "snapshot"}
        assert path.endswith(name)
    assert len(read_before) < start
    stopped.restart()
    assert placed(stopped.advance()) == expected
    assert stopped.advance() == []
    stopped.stop()
    lost(without_records, options, NO_RECORDS.format(start=start), expected)
    lost(without_snapshot, options, NO_SNAPSHOT, expected)
    planned = stream_over(options, COLUMNS)
    assert planned.plan()
    controller.restart()
    assert placed(planned.advance()) == expected
    planned.stop()


def lost(stream: MicroBatches, options: dict[str, str], said: str, expected: list[Placed]) -> None:
    """Carry out a micro-batch whose records are gone, then the one after it."""
    with pytest.raises(DamagedFileError, match=said):
        stream.read()
    options["mode"] = "permissive"
    stream.restart()
    rows = stream.advance()
    assert rows
    assert all(row["damage"] for row in rows)
    assert any(said in row["damage"] for row in rows)
    options["mode"] = "failfast"
    stream.restart()
    assert placed(stream.advance()) == expected
    stream.stop()


async def test_no_record_is_passed_over_in_silence_on_ours() -> None:
    async with AsyncCluster(controllers=1, brokers=0, overrides=SETTINGS) as cluster:
        (node_id,) = cluster.node_ids
        loop = asyncio.get_running_loop()

        def trim() -> int:
            node = cluster.node(node_id)
            return asyncio.run_coroutine_threadsafe(move_start(node), loop).result()

        def restart() -> None:
            asyncio.run_coroutine_threadsafe(cluster.restart(node_id), loop).result()

        folder = next(cluster.folder.rglob(LOG_FOLDER)).parent
        controller = Controller(cluster.controller_servers, folder, trim, restart)
        await asyncio.to_thread(read_around_a_trim, controller)


@pytest.mark.slow
def test_no_record_is_passed_over_in_silence_on_kafkas(make_quorum: MakeQuorum) -> None:
    """Kafka cleans a log once a minute, and no setting changes that."""
    with make_quorum("kafka", 1, SETTINGS) as quorum:
        quorum.form([1])
        quorum.start()
        quorum.settled(quorum.keys(1))

        def cleaned() -> int | None:
            is_there = (controller.folder / LOG_FOLDER / f"{0:020}.log").exists()
            names = [path.name for path in controller.snapshots]
            return None if is_there or len(names) != 1 else int(names[0][:20])

        def trim() -> int:
            return quorum.wait_for(cleaned, "the log is cleaned")

        def restart() -> None:
            quorum.members[1].stop()
            quorum.start(1)

        controller = Controller(quorum.addresses, quorum.members[1].data, trim, restart)
        read_around_a_trim(controller)
