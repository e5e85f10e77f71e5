"""Rows of topics' segments are what the codec and kafka-dump-log say of the same files."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.spark.spark_filters import (
    EVERY_COLUMN,
    after_one_flipped_bit,
    milliseconds,
    rows_of,
    size,
    with_checksum,
)

from kvorum.log_files.file_systems import LocalFiles
from kvorum.log_files.find import find_files
from kvorum.log_files.ranges import FileRange, plan_ranges
from kvorum.spark.columnar import record_places
from kvorum.spark.damage_modes import Mode
from kvorum.spark.errors import DamagedFileError
from kvorum.spark.log_source.range_rows import Reading, range_rows
from kvorum.storage.names import SWAP_SUFFIX, offset_name
from kvorum.wire.messages.end_txn_marker import EndTxnMarker
from kvorum.wire.records import (
    BatchOptions,
    Compression,
    ControlRecord,
    ControlRecordType,
    RecordBatch,
    RecordData,
    build_batch,
    encode_control_record,
    read_batches,
)

DUMPED = re.compile(
    r"\| offset: (?P<offset>\d+) (?P<kind>CreateTime|LogAppendTime): (?P<time>-?\d+) "
    r"keySize: (?P<key>-?\d+) valueSize: (?P<value>-?\d+) sequence: (?P<sequence>-?\d+) "
    r"headerKeys: \[(?P<headers>[^\]]*)\]"
)
BATCH = re.compile(
    r"baseOffset: .* producerId: (?P<producer>-?\d+) producerEpoch: (?P<epoch>-?\d+) .*"
    r"isTransactional: (?P<transactional>\w+) .* compresscodec: (?P<codec>\w+) "
)
END_OF_TRANSACTION = re.compile(r"endTxnMarker: (?P<type>COMMIT|ABORT)")
DAMAGES = 150


def partitions(golden_sets: Path) -> list[Path]:
    found = sorted({path.parent for path in golden_sets.glob("*/data/*/*.log")})
    assert len(found) > 30
    return found


def stored_batches(partition: Path) -> Iterator[RecordBatch]:
    for path in sorted(partition.glob("*.log")):
        yield from read_batches(path.read_bytes())


def is_of_format_2(partition: Path) -> bool:
    return all(path.read_bytes()[16:17] in (b"\x02", b"") for path in partition.glob("*.log"))


def test_every_record_of_real_kafka_is_the_one_that_the_codec_reads(golden_sets: Path) -> None:
    codecs: set[str] = set()
    for partition in filter(is_of_format_2, partitions(golden_sets)):
        rows = iter(rows_of([partition]))
        for batch in stored_batches(partition):
            for record in batch.records():
                row = next(rows)
                given = row["offset"], row["key"], row["value"]
                assert given == (record.offset, record.key, record.value)
                assert tuple((one["key"], one["value"]) for one in row["headers"]) == record.headers
                assert row["leader_epoch"] == batch.partition_leader_epoch
                assert milliseconds(row["timestamp"]) == record.timestamp
                assert row["compression"] == batch.compression.name.lower()
                codecs.add(row["compression"])
        assert next(rows, None) is None
    assert codecs == {"none", "gzip", "snappy", "lz4", "zstd"}


def test_every_record_of_real_kafka_is_the_one_that_its_dump_shows(golden_sets: Path) -> None:
    kinds: Counter[str] = Counter()
    for text in sorted(golden_sets.glob("*/data/*/dumps/*.log.*.txt")):
        segment = text.parent.parent / f"{text.name.partition('.')[0]}.log"
        if not is_of_format_2(segment.parent):
            continue
        rows = iter(rows_of([segment]))
        batch: dict[str, str] = {}
        for line in text.read_text().splitlines():
            if start := BATCH.match(line):
                batch = start.groupdict()
            found = DUMPED.match(line)
            if found is None:
                continue
            row = next(rows)
            end = END_OF_TRANSACTION.search(line)
            kinds[(end and end["type"]) or batch["codec"]] += 1
            assert row["offset"] == int(found["offset"])
            assert row["timestamp_type"] == found["kind"]
            assert size(row["key"]) == int(found["key"])
            assert size(row["value"]) == int(found["value"])
            assert known(row["sequence"]) == int(found["sequence"])
            assert ",".join(one["key"] for one in row["headers"]) == found["headers"]
            assert row["control_type"] == (end and end["type"])
            assert known(row["producer_id"]) == int(batch["producer"])
            assert known(row["producer_epoch"]) == int(batch["epoch"])
            assert (row["transaction"] is not None) == (batch["transactional"] == "true")
            assert row["compression"] == batch["codec"]
        assert next(rows, None) is None
    assert {"none", "COMMIT", "ABORT"} <= kinds.keys()
    assert kinds.total() > 500, kinds


def known(number: int | None) -> int:
    return -1 if number is None else number


def test_transactions_end_as_their_markers_say(golden_sets: Path) -> None:
    seen: set[str | None] = set()
    for partition in filter(is_of_format_2, partitions(golden_sets)):
        batches = list(stored_batches(partition))
        expected = {
            batch.base_offset: outcome(batches, index) for index, batch in enumerate(batches)
        }
        for row in rows_of([partition], columns=("offset", "transaction")):
            base = max(offset for offset in expected if offset <= row["offset"])
            assert row["transaction"] == expected[base]
            seen.add(row["transaction"])
    assert {"committed", "aborted", None} <= seen


def outcome(batches: list[RecordBatch], index: int) -> str | None:
    """Return how the transaction of a batch ends, by the first marker of its producer."""
    batch = batches[index]
    if not batch.is_transactional:
        return None
    for later in batches[index:]:
        if later.is_control and later.producer_id == batch.producer_id:
            (record,) = later.records()
            return "committed" if record.key == b"\x00\x00\x00\x01" else "aborted"
    return "open"


@pytest.mark.parametrize("range_bytes", [1, 500, 4000])
def test_ranges_of_a_file_have_the_rows_of_the_file(golden_sets: Path, range_bytes: int) -> None:
    for partition in filter(is_of_format_2, partitions(golden_sets)):
        assert rows_of([partition], range_bytes=range_bytes) == rows_of([partition])


def test_any_choice_of_columns_has_the_values_of_all(golden_sets: Path) -> None:
    random = Random(4)
    for partition in filter(is_of_format_2, partitions(golden_sets)):
        whole = rows_of([partition])
        columns = tuple(random.sample(EVERY_COLUMN, random.randint(1, len(EVERY_COLUMN))))
        expected = [{name: row[name] for name in columns} for row in whole]
        assert rows_of([partition], columns=columns) == expected


class Log:
    """A partition's directory, written batch by batch."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir()
        self.segment = directory / offset_name(0, ".log")
        self._offset = 0

    def add(self, *values: bytes, producer_id: int = -1, is_transactional: bool = False) -> None:
        self._write(
            [RecordData(value) for value in values],
            BatchOptions(
                base_offset=self._offset,
                producer_id=producer_id,
                producer_epoch=0,
                base_sequence=0 if producer_id >= 0 else -1,
                is_transactional=is_transactional,
            ),
        )

    def end(self, producer_id: int, kind: ControlRecordType) -> None:
        marker = encode_control_record(ControlRecord(kind, EndTxnMarker(coordinator_epoch=1)), 5)
        options = BatchOptions(
            base_offset=self._offset,
            producer_id=producer_id,
            producer_epoch=0,
            is_transactional=True,
            is_control=True,
        )
        self._write([marker], options)

    def roll(self) -> None:
        self.segment = self.directory / offset_name(self._offset, ".log")

    def _write(self, records: list[RecordData], options: BatchOptions) -> None:
        with self.segment.open("ab") as file:
            file.write(build_batch(records, options))
        self._offset += len(records)


def states(log: Log, **options: Any) -> dict[bytes, str | None]:
    rows = rows_of([log.directory], columns=("value", "transaction", "control_type"), **options)
    return {row["value"]: row["transaction"] for row in rows if row["control_type"] is None}


def states_in(unit: FileRange) -> dict[bytes, str | None]:
    """Return the states of what is in a range that was planned before."""
    batches = range_rows(unit, Reading(("value", "transaction", "control_type"), Mode.FAILFAST))
    rows = [row for batch in batches for row in batch.to_pylist()]
    return {row["value"]: row["transaction"] for row in rows if row["control_type"] is None}


@pytest.mark.parametrize("range_bytes", [1, 1 << 20])
def test_a_transaction_may_end_in_a_later_segment_or_never(
    tmp_path: Path, range_bytes: int
) -> None:
    log = Log(tmp_path / "orders-0")
    log.add(b"plain")
    log.add(b"one", producer_id=1, is_transactional=True)
    log.add(b"two", producer_id=2, is_transactional=True)
    log.roll()
    log.add(b"more of two", producer_id=2, is_transactional=True)
    log.end(2, ControlRecordType.ABORT)
    log.add(b"two again", producer_id=2, is_transactional=True)
    log.roll()
    log.end(1, ControlRecordType.COMMIT)
    log.add(b"one again", producer_id=1, is_transactional=True)
    log.roll()
    log.end(2, ControlRecordType.COMMIT)
    assert states(log, range_bytes=range_bytes) == {
        b"plain": None,
        b"one": "committed",
        b"two": "aborted",
        b"more of two": "aborted",
        b"two again": "committed",
        b"one again": "open",
    }


def test_a_transaction_may_end_in_a_segment_whose_swap_was_interrupted(tmp_path: Path) -> None:
    log = Log(tmp_path / "orders-0")
    log.add(b"one", producer_id=1, is_transactional=True)
    log.roll()
    log.end(1, ControlRecordType.ABORT)
    log.segment.rename(f"{log.segment}{SWAP_SUFFIX}")
    assert states(log) == {b"one": "aborted"}


def test_after_a_damaged_place_the_end_of_a_transaction_is_not_known(tmp_path: Path) -> None:
    log = Log(tmp_path / "orders-0")
    log.add(b"first", producer_id=1, is_transactional=True)
    log.end(1, ControlRecordType.COMMIT)
    log.add(b"second", producer_id=1, is_transactional=True)
    log.end(1, ControlRecordType.ABORT)
    log.add(b"third", producer_id=1, is_transactional=True)
    log.end(1, ControlRecordType.COMMIT)
    with_wrong_format(log.segment, 3)
    rows = rows_of([log.directory], mode=Mode.PERMISSIVE, columns=("value", "transaction"))
    found = {row["value"]: row["transaction"] for row in rows}
    assert (found[b"first"], found[b"second"], found[b"third"]) == ("committed", None, "committed")


def with_wrong_format(segment: Path, number: int) -> None:
    """Make a batch of a segment one of no format that there is."""
    data = bytearray(segment.read_bytes())
    damaged = list(read_batches(bytes(data)))[number]
    data[damaged.position + 16] = 9
    segment.write_bytes(data)


def test_damage_at_the_begin_of_a_later_segment_hides_the_end_of_a_transaction(
    tmp_path: Path,
) -> None:
    log = Log(tmp_path / "orders-0")
    log.add(b"plain")
    log.add(b"first", producer_id=1, is_transactional=True)
    log.roll()
    log.end(1, ControlRecordType.ABORT)
    log.add(b"second", producer_id=1, is_transactional=True)
    log.end(1, ControlRecordType.COMMIT)
    with_wrong_format(log.segment, 0)
    found = states(log, mode=Mode.PERMISSIVE)
    assert (found[b"first"], found[b"second"]) == (None, "committed")


def test_a_segment_that_goes_meanwhile_hides_the_ends_of_transactions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Log(tmp_path / "orders-0")
    log.add(b"one", producer_id=1, is_transactional=True)
    log.add(b"two", producer_id=2, is_transactional=True)
    log.end(2, ControlRecordType.COMMIT)
    log.roll()
    log.end(1, ControlRecordType.ABORT)
    (unit, _) = plan_ranges(find_files([str(log.directory)]), has_gaps=True)
    listed = LocalFiles().list_below(str(log.directory))

    def listed_before(_files: LocalFiles, _path: str) -> dict[str, int]:
        return listed

    monkeypatch.setattr(LocalFiles, "list_below", listed_before)
    log.segment.unlink()
    assert states_in(unit) == {b"one": None, b"two": "committed"}


TORN_ENDS = {"half of a batch": build_batch([RecordData(b"lost")])[:40], "zeros": bytes(5000)}


@pytest.mark.parametrize("torn", TORN_ENDS.values(), ids=TORN_ENDS)
def test_a_transaction_before_the_unwritten_end_of_a_log_is_open(
    tmp_path: Path, torn: bytes
) -> None:
    log = Log(tmp_path / "orders-0")
    log.add(b"one", producer_id=1, is_transactional=True)
    with log.segment.open("ab") as file:
        file.write(torn)
    assert states(log) == {b"one": "open"}
    assert states(log, range_bytes=1) == {b"one": "open"}
    log.roll()
    log.add(b"two")
    found = states(log, mode=Mode.PERMISSIVE)
    assert found[b"one"] is None, "only the last segment has an unwritten end"


def test_a_transaction_may_end_in_a_batch_that_is_not_whole_when_the_work_is_planned(
    tmp_path: Path,
) -> None:
    log = Log(tmp_path / "orders-0")
    log.add(b"one", producer_id=1, is_transactional=True)
    written = log.segment.read_bytes()
    log.end(1, ControlRecordType.ABORT)
    whole = log.segment.read_bytes()
    log.segment.write_bytes(whole[: len(written) + 40])
    (unit,) = plan_ranges(find_files([str(log.directory)]), has_gaps=True)
    log.segment.write_bytes(whole)
    assert states_in(unit) == {b"one": "aborted"}


def one_record(offset: int) -> bytes:
    return build_batch([RecordData(b"at %d" % offset)], BatchOptions(base_offset=offset))


def written(folder: Path, *batches: bytes) -> Path:
    path = folder / "orders-0" / offset_name(0, ".log")
    path.parent.mkdir()
    path.write_bytes(b"".join(batches))
    return path


@pytest.mark.parametrize("compression", [Compression.NONE, Compression.GZIP, Compression.ZSTD])
def test_a_batch_with_a_right_checksum_and_wrong_records_is_damage(
    tmp_path: Path, compression: Compression
) -> None:
    wrong = bytearray(
        build_batch(
            [RecordData(b"one"), RecordData(b"two")],
            BatchOptions(base_offset=1, compression=compression),
        )
    )
    # One record more than there is.
    wrong[57:61] = (3).to_bytes(4, "big")
    path = written(tmp_path, one_record(0), with_checksum(wrong), one_record(3))
    rows = rows_of([path], mode=Mode.PERMISSIVE)
    assert [(row["offset"], row["value"], row["damage"] is None) for row in rows] == [
        (0, b"at 0", True),
        (1, None, False),
        (3, b"at 3", True),
    ]
    assert "offsets 1 to 2 are missing" in rows[1]["damage"]
    with pytest.raises(DamagedFileError, match="damaged at offset 1"):
        rows_of([path])
    assert [row["offset"] for row in rows_of([path], mode=Mode.DROPMALFORMED)] == [0, 3]


def large_batch(offset: int, size: int) -> bytes:
    options = BatchOptions(base_offset=offset, compression=Compression.ZSTD)
    return build_batch([RecordData(bytes(size))], options)


def test_batches_that_unpack_to_much_are_rows_each_up_to_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = (6_000_000, 8_000_000, 9_000_000, 6_000_000)
    path = written(tmp_path, *(large_batch(*one) for one in enumerate(sizes)))
    assert [len(row["value"]) for row in rows_of([path])] == list(sizes)
    monkeypatch.setattr(record_places, "UNPACKED_BYTES_MAX", 8_500_000)
    rows = rows_of([path], mode=Mode.PERMISSIVE)
    assert [size(row["value"]) for row in rows] == [6_000_000, 8_000_000, -1, 6_000_000]
    assert "zstd: unpacks to more than 8500000 bytes" in rows[2]["damage"]


def unknown_codec() -> bytes:
    batch = bytearray(build_batch([RecordData(b"one")], BatchOptions(base_offset=1)))
    batch[22] |= 5
    return with_checksum(batch)


def header_beyond_its_record() -> bytes:
    record = RecordData(b"one", headers=[("name", b"value")])
    batch = bytearray(build_batch([record], BatchOptions(base_offset=1)))
    batch[batch.index(b"name") - 1] = 0x7E
    return with_checksum(batch)


def bytes_after_its_headers() -> bytes:
    record = RecordData(b"one", headers=[("name", b"value"), ("more", None)])
    batch = bytearray(build_batch([record], BatchOptions(base_offset=1)))
    # One header instead of two.
    batch[batch.index(b"name") - 2] = 0x02
    return with_checksum(batch)


def header_that_ends_in_the_next_record() -> bytes:
    records = [RecordData(b"one", headers=[("name", None)]), RecordData(b"two")]
    batch = bytearray(build_batch(records, BatchOptions(base_offset=1)))
    # The length of a value, of which the rest is the length of the next record.
    batch[batch.index(b"name") + 4] = 0x81
    return with_checksum(batch)


WRONG_BATCHES = (
    unknown_codec(),
    header_beyond_its_record(),
    bytes_after_its_headers(),
    header_that_ends_in_the_next_record(),
)


@pytest.mark.parametrize("wrong", WRONG_BATCHES)
def test_a_codec_or_a_header_that_cannot_be_read_ends_no_query(
    tmp_path: Path, wrong: bytes
) -> None:
    path = written(tmp_path, one_record(0), wrong, one_record(3))
    rows = rows_of([path], mode=Mode.PERMISSIVE)
    assert [(row["offset"], row["damage"] is None) for row in rows] == [
        (0, True),
        (1, False),
        (3, True),
    ]
    with pytest.raises(DamagedFileError, match="damaged at offset 1"):
        rows_of([path])


def test_numbers_of_more_than_32_bits_are_cut_off_as_the_codec_does(tmp_path: Path) -> None:
    options = BatchOptions(base_offset=1, producer_id=7, producer_epoch=0, base_sequence=5)
    batch = bytearray(build_batch([RecordData(b"one", timestamp=0)], options))
    # The difference of its offset, 0, in five bytes with a bit beyond the 32nd.
    batch[64:65] = b"\x80\x80\x80\x80\x20"
    batch[61] += 2 * 4
    batch[11] += 4
    path = written(tmp_path, one_record(0), with_checksum(batch))
    _, row = rows_of([path])
    (record,) = list(stored_batches(path.parent))[1].records()
    assert (row["offset"], row["sequence"], row["value"]) == (record.offset, 5, b"one")


def test_no_damaged_byte_changes_a_record_or_loses_one_unsaid(
    golden_sets: Path, tmp_path: Path
) -> None:
    """With any byte wrong each record is as it was, or a damage covers its offset."""
    random = Random(8)
    sources = [one for one in partitions(golden_sets) if is_of_format_2(one)]
    segments = [path for one in sources for path in sorted(one.glob("*.log"))]
    whole_segments = [path for path in segments if is_without_gaps(path)]
    named = 0
    for number in range(DAMAGES):
        segment = random.choice(whole_segments)
        lost, damages = after_one_flipped_bit(segment, random, tmp_path / str(number))
        assert not lost or min(lost) in {row["offset"] for row in damages}
        named += bool(lost)
    assert named > DAMAGES // 2


def is_without_gaps(segment: Path) -> bool:
    """Whether compaction has left out nothing: the offsets are those of the file's name on."""
    expected = int(segment.stem)
    for batch in read_batches(segment.read_bytes()):
        if batch.base_offset != expected or batch.record_count != batch.last_offset_delta + 1:
            return False
        expected = batch.next_offset
    return expected > int(segment.stem)
