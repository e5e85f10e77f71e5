"""Batches as controllers write them, which are printed many at a time: as batch by batch."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kvorum.cli.dump.decoders import MetadataDecoder
from kvorum.cli.dump.log_dump import LogDump
from kvorum.cli.dump.log_text import entry_line, records_with_texts
from kvorum.inspection.reading import MappedFile
from kvorum.metadata.record_frame import encode_record
from kvorum.wire.errors import WireError
from kvorum.wire.messages.no_op_record import NoOpRecord
from kvorum.wire.messages.partition_change_record import PartitionChangeRecord
from kvorum.wire.messages.topic_record import TopicRecord
from kvorum.wire.records import BatchOptions, Compression, RecordData, build_batch
from kvorum.wire.records.batch import HEADER_BYTES
from kvorum.wire.records.legacy import read_entries

TOPIC_ID = bytes(range(16))
CHANGE = encode_record(PartitionChangeRecord(partition_id=3, topic_id=TOPIC_ID, isr=[1, 2]), 2)
SHRUNK = encode_record(PartitionChangeRecord(partition_id=4, topic_id=TOPIC_ID, isr=[1]), 2)
LED = encode_record(PartitionChangeRecord(partition_id=3, topic_id=TOPIC_ID, leader=2), 2)
NOTHING = encode_record(NoOpRecord(), 0)
NAMED, LONG = (encode_record(TopicRecord(name="t" * n, topic_id=TOPIC_ID), 0) for n in (3, 90))
NAME = "log"
FORMS = {
    "one": [CHANGE],
    "one of few bytes": [NOTHING],
    "one of many bytes": [LONG],
    "two": [CHANGE, CHANGE],
    "of one size": [CHANGE] * 5,
    "of one size and several kinds": [NAMED, NAMED + b"\0", SHRUNK, CHANGE, NAMED],
    "of many sizes": [CHANGE, LED, SHRUNK, LONG, NAMED],
    "as many as have short numbers": [CHANGE] * 63,
    "one more": [CHANGE, LED] * 32,
    "many": [NAMED, *[CHANGE, LED, SHRUNK] * 25, NAMED],
    "values that are no records": [b"", b"\1", b"\1\5\2", b"\1\5\2\0", b"\2\5\2\0\0"],
}


def one_by_one(data: bytes) -> Iterator[str]:
    """Yield the lines, each batch and each record by itself."""
    decoder = MetadataDecoder()
    rest = len(data)
    for entry in read_entries(data, is_cut_allowed=True):
        yield entry_line(entry)
        for record, text in records_with_texts(entry):
            yield text if entry.is_control else f"{text} payload: {decoder(record).value}"
        rest -= entry.size
    if rest:
        yield f"Found {rest} invalid bytes at the end of {NAME}"


def until_error(lines: Iterator[str]) -> tuple[str, str]:
    """Return the lines and the error that ends them."""
    found: list[str] = []
    try:
        found.extend(lines)
    except WireError as error:
        return "\n".join(found), str(error)
    return "\n".join(found), ""


def dumped(folder: Path, data: bytes) -> tuple[str, str]:
    path = folder / NAME
    path.write_bytes(data)
    dump = LogDump(NAME, is_deep=True, decoder=MetadataDecoder())
    return until_error(dump.lines(MappedFile(path)))


@pytest.mark.parametrize("values", FORMS.values(), ids=FORMS)
def test_batches_are_printed_as_one_by_one(tmp_path: Path, values: list[bytes]) -> None:
    batch = build_batch([RecordData(value, None, 5) for value in values], BatchOptions())
    other = build_batch(
        [RecordData(CHANGE, b"k", 5)] * 5, BatchOptions(compression=Compression.GZIP)
    )
    data = batch + other + batch * 3
    assert dumped(tmp_path, data) == until_error(one_by_one(data))


@pytest.mark.parametrize("values", FORMS.values(), ids=FORMS)
def test_any_byte_that_is_wrong_is_printed_as_one_by_one(
    tmp_path: Path, values: list[bytes]
) -> None:
    batch = build_batch([RecordData(value, None, 5) for value in values], BatchOptions())
    ends = {*range(HEADER_BYTES + 48), *range(len(batch) - 12, len(batch))}
    for place in sorted(ends & set(range(len(batch)))):
        for bit in (0, 1, 7):
            damaged = bytearray(batch)
            damaged[place] ^= 1 << bit
            # Behind another one: what is known of its records is used then.
            data = batch + damaged + batch
            assert dumped(tmp_path, data) == until_error(one_by_one(data)), (place, bit)


def test_the_lines_of_batches_alone_are_the_same(tmp_path: Path) -> None:
    values = [RecordData(CHANGE, None, 5)]
    batches = [
        build_batch(values, BatchOptions()),
        build_batch(values, BatchOptions(producer_id=7, producer_epoch=1, base_sequence=2)),
        build_batch(values, BatchOptions(compression=Compression.LZ4)),
    ]
    data = b"".join(batches[number] for number in (0, 0, 1, 1, 0, 2, 0, 0))
    path = tmp_path / NAME
    path.write_bytes(data)
    lines = "\n".join(LogDump(NAME).lines(MappedFile(path)))
    assert lines == "\n".join(map(entry_line, read_entries(data)))
