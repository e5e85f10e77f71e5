"""The declared layouts against the readers that nodes use: values, and verdicts on damaged files.

Both read the same bytes without knowing of each other, so a mistake in one of them shows. Where a
layout is stricter on purpose (a small file is only right as Kafka writes it), that is said.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from tests.support.damaged_files import Vandal, read_contents

from kvorum.inspection.layouts.kinds import (
    OFFSET_ENTRY,
    PRODUCER_SNAPSHOT,
    TIME_ENTRY,
    TRANSACTION_ENTRY,
    layout_of,
)
from kvorum.inspection.layouts.reading import EntryReading, Reading, read_layout, read_log
from kvorum.inspection.layouts.reading import read_records as read_records_by_layout
from kvorum.inspection.layouts.record_batch import MAGIC, Layout
from kvorum.inspection.reading import offset_entries, time_entries
from kvorum.storage.errors import StorageError
from kvorum.storage.files import RealFileSystem
from kvorum.storage.log.epochs import EpochCheckpoint
from kvorum.storage.log.producer_snapshot import decode_producer_snapshot
from kvorum.storage.log.transaction_index import TransactionIndex
from kvorum.storage.metadata_log.flushed_offset import FlushedOffsetFile
from kvorum.storage.small_files.clean_shutdown import CLEAN_SHUTDOWN_FILE
from kvorum.storage.small_files.meta_properties import META_PROPERTIES_FILE
from kvorum.storage.small_files.offset_checkpoint_file import OffsetCheckpointFile
from kvorum.storage.small_files.partition_metadata import read_partition_metadata
from kvorum.storage.small_files.quorum_state import decode_quorum_state
from kvorum.wire.errors import WireError
from kvorum.wire.records import Record, RecordBatch, decode_control_record
from kvorum.wire.records.legacy import Entry, LegacyMessage, read_entries

DAMAGES_OF_A_SET: Final = int(os.environ.get("KVORUM_LAYOUT_DAMAGES", "60"))
SETS: Final = ("dynamic-4.3.1", "ladder-4.3.1", "standalone-4.3.1", "static-3.9.1")
LOGS: Final = (".log", ".checkpoint")
FILES: Final = RealFileSystem()


class Found(NamedTuple):
    """The result of a reader: a value for each entry up to the first that is not sound."""

    entries: list[object]
    problem_at: int | None


def by_reader(data: bytes) -> Found:
    found: list[object] = []
    position = 0
    try:
        for entry in read_entries(data):
            position = entry.position
            if not entry.is_valid:
                return Found(found, position)
            found.append(facts_of(entry))
            position += entry.size
    except WireError:
        return Found(found, position)
    return Found(found, None)


def facts_of(entry: Entry) -> object:
    """Return what an entry holds; may raise WireError."""
    if isinstance(entry, LegacyMessage):
        # The wrapped messages have the same layout, which the layouts do not unpack.
        values = (entry.offset, entry.crc, entry.magic, entry.attributes)
        return entry.position, *values, entry.key, entry.value
    records = list(entry.records())
    if entry.is_control:
        for record in records:
            decode_control_record(record)
    header = (entry.position, entry.base_offset, entry.partition_leader_epoch, entry.crc)
    producer = (entry.producer_id, entry.producer_epoch, entry.base_sequence)
    times = (entry.base_timestamp, entry.max_timestamp)
    return header, producer, times, [record_facts(entry, record) for record in records]


def record_facts(batch: RecordBatch, record: Record) -> object:
    time = None if batch.is_log_append_time else record.timestamp - batch.base_timestamp
    return record.offset - batch.base_offset, time, record.key, record.value, list(record.headers)


def by_layouts(data: bytes) -> Found:
    found: list[object] = []
    for entry in read_log(data):
        facts = None if entry.reading.problem is not None else facts_by_layout(entry)
        if facts is None:
            return Found(found, entry.position)
        found.append(facts)
    return Found(found, None)


def facts_by_layout(entry: EntryReading) -> object | None:
    """Return what an entry holds; None where its records are not in their layout."""
    reading = entry.reading
    if reading.number("magic") < MAGIC:
        values = [reading.value(name) for name in ("offset", "crc", "magic", "attributes")]
        return entry.position, *values, reading.value("key"), reading.value("value")
    records = read_records_by_layout(reading)
    if records.problem is not None:
        return None
    number = reading.number
    header = (entry.position, *map(number, ("base_offset", "partition_leader_epoch", "crc")))
    producer = (number("producer_id"), number("producer_epoch"), number("base_sequence"))
    times = (number("base_timestamp"), number("max_timestamp"))
    is_stamped = bool(number("attributes") & 0x08)
    return header, producer, times, list(records_by_layout(records, is_stamped=is_stamped))


def records_by_layout(records: Reading, *, is_stamped: bool) -> Iterator[object]:
    """Yield the facts of each record; its headers come behind its other fields."""
    found: list[dict[str, object]] = []
    headers: list[list[tuple[str, object]]] = []
    for field in records.fields:
        name = field.path.removeprefix("records.")
        if name == "length":
            found.append({})
            headers.append([])
        elif name == "headers.key":
            assert isinstance(field.value, bytes)
            headers[-1].append((field.value.decode(), None))
        elif name == "headers.value":
            headers[-1][-1] = (headers[-1][-1][0], field.value)
        elif found and "." not in name:
            found[-1][name] = field.value
    for values, own_headers in zip(found, headers, strict=True):
        time = None if is_stamped else values["timestamp_delta"]
        yield values["offset_delta"], time, values["key"], values["value"], own_headers


def small_file_is_sound(path: Path) -> bool:
    name = path.name
    readers: dict[str, Callable[[], object]] = {
        "leader-epoch-checkpoint": lambda: EpochCheckpoint(path.parent, FILES).read(),
        "quorum-state": lambda: decode_quorum_state(path.read_bytes(), path),
        "partition.metadata": lambda: read_partition_metadata(path.parent, FILES),
        "kvorum-flushed-offset": lambda: FlushedOffsetFile(path.parent, FILES).read(),
        "-offset-checkpoint": lambda: OffsetCheckpointFile(path, FILES, advice="").read(),
        ".snapshot": lambda: decode_producer_snapshot(path.read_bytes(), path),
    }
    (reader,) = [each for ending, each in readers.items() if name.endswith(ending)]
    try:
        reader()
    except (StorageError, ValueError):
        return False
    return True


def small_file_is_in_layout(path: Path) -> bool:
    layout = layout_of(path.name)
    assert layout is not None
    data = path.read_bytes()
    if layout.text is not None:
        return layout.text(data).problem is None
    assert layout.layout is not None
    return read_layout(layout.layout, data).problem is None


def is_small(name: str) -> bool:
    """Return whether a file has a layout as a whole that its reader demands as well.

    The reader of a clean shutdown takes anything. Which properties belong into meta.properties is
    no question of its layout.
    """
    file = Path(name).name
    layout = layout_of(file)
    if layout is None or layout.entry_size or file.endswith(LOGS):
        return False
    return file not in {CLEAN_SHUTDOWN_FILE, META_PROPERTIES_FILE}


@pytest.mark.parametrize("golden_set", [*SETS, "legacy-formats"])
def test_every_entry_and_record_of_a_log(golden_sets: Path, golden_set: str) -> None:
    logs = [path for path in (golden_sets / golden_set).rglob("*") if path.suffix in LOGS]
    assert logs
    for path in logs:
        data = path.read_bytes()
        assert by_layouts(data) == by_reader(data), path


@pytest.mark.parametrize("golden_set", SETS)
def test_indexes_and_snapshots(golden_sets: Path, golden_set: str) -> None:
    def entries(layout: Layout, data: bytes, size: int) -> list[list[object]]:
        return [
            [field.value for field in read_layout(layout, data, place).fields]
            for place in range(0, len(data) - len(data) % size, size)
        ]

    for path in (golden_sets / golden_set).rglob("*"):
        data = path.read_bytes() if path.is_file() else b""
        if path.suffix == ".index":
            found = [[entry.offset, entry.position] for entry in offset_entries(data, 0)]
            assert entries(OFFSET_ENTRY, data, 8) == found, path
        elif path.suffix == ".timeindex":
            assert entries(TIME_ENTRY, data, 12) == [[*one] for one in time_entries(data, 0)], path
        elif path.suffix == ".txnindex":
            aborted = TransactionIndex(path, 0, files=FILES).entries
            assert entries(TRANSACTION_ENTRY, data, 34) == [[0, *one] for one in aborted], path
        elif path.suffix == ".snapshot":
            reading = read_layout(PRODUCER_SNAPSHOT, data)
            assert reading.problem is None
            ids = [f.value for f in reading.fields if f.path == "producer_entries.producer_id"]
            assert ids == [*decode_producer_snapshot(data, path)]


@pytest.mark.timeout(60 + DAMAGES_OF_A_SET)
@pytest.mark.parametrize("golden_set", SETS)
def test_verdicts_on_damaged_logs(golden_sets: Path, golden_set: str) -> None:
    contents = {
        name: data
        for name, data in read_contents(golden_sets / golden_set).items()
        if name.endswith(LOGS) and len(data) < 200_000
    }
    damaged = 0
    for damage in Vandal(len(golden_set)).damages(contents, DAMAGES_OF_A_SET):
        data = damage.after.get(damage.file, b"")
        assert by_layouts(data) == by_reader(data), (damage.file, damage.how)
        damaged += by_reader(data).problem_at is not None
    assert damaged > DAMAGES_OF_A_SET / 4


@pytest.mark.parametrize("golden_set", SETS)
def test_verdicts_on_damaged_small_files(
    golden_sets: Path, tmp_path: Path, golden_set: str
) -> None:
    """A layout takes only what Kafka writes, so it may refuse what a reader forgives."""
    contents = {
        name: data
        for name, data in read_contents(golden_sets / golden_set).items()
        if is_small(name) and data
    }
    verdicts: list[tuple[bool, bool]] = []
    for number, damage in enumerate(Vandal(len(golden_set)).damages(contents, DAMAGES_OF_A_SET)):
        path = tmp_path / str(number) / Path(damage.file).name
        path.parent.mkdir()
        path.write_bytes(damage.after.get(damage.file, contents[damage.file]))
        verdict = small_file_is_in_layout(path), small_file_is_sound(path)
        assert verdict != (True, False), (damage.file, damage.how)
        verdicts.append(verdict)
    assert (False, False) in verdicts
    assert (True, True) in verdicts
