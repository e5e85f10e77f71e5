"""The golden data: where it is, and the records in its segments and snapshots."""

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.source_tree import ROOT

from kvorum.metadata.record_frame import decode_record
from kvorum.wire.primitives import Message
from kvorum.wire.records import read_batches

GOLDEN = ROOT / "tests" / "golden"
METADATA_NODES = (
    "dynamic-4.3.1/metadata/broker-11",
    "dynamic-4.3.1/metadata/controller-1",
    "dynamic-4.3.1/metadata/controller-2",
    "ladder-4.3.1/metadata/controller-1",
    "standalone-4.3.1/metadata/broker-11",
    "standalone-4.3.1/metadata/broker-12",
    "static-3.9.1/metadata/broker-11",
    "static-3.9.1/metadata/controller-1",
    "static-3.9.1/metadata/controller-2",
    "standalone-4.4.0/metadata/node-1",
)
"""The nodes whose metadata log is among the golden data, as folders under `golden_sets`."""


def read_json_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a gzipped file of JSON lines, one at a time."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def metadata_directories(golden_sets: Path) -> list[Path]:
    """Return the metadata log directories that hold segments, in a fixed order."""
    return sorted({segment.parent for segment in golden_sets.glob("*/metadata/*/*/*.log")})


def dump_text(file: Path) -> Path:
    """Return where the text that kafka-dump-log printed for a golden file, decoded, is."""
    return file.parent / "dumps" / f"{file.name}.decoded.txt"


Offset = int
Version = int


def raw_records(file: Path) -> Iterator[tuple[Offset, bytes]]:
    """Yield offset and value of each data record of a segment or snapshot."""
    for batch in read_batches(file.read_bytes()):
        if batch.is_control:
            continue
        for record in batch.records():
            assert record.value is not None
            yield record.offset, bytes(record.value)


def log_records(directory: Path, first: Offset = 0) -> Iterator[tuple[Message, Version, Offset]]:
    """Yield the records of a metadata log from offset `first` on."""
    for segment in sorted(directory.glob("*.log")):
        for offset, value in raw_records(segment):
            if offset >= first:
                message, version = decode_record(value)
                yield message, version, offset


def snapshots(directory: Path) -> dict[Offset, Path]:
    """The snapshots of a metadata log by the offset they end at, without the bootstrap one."""
    found = {int(file.name.split("-")[0]): file for file in directory.glob("*.checkpoint")}
    return {offset: file for offset, file in sorted(found.items()) if offset > 0}


def snapshot_records(file: Path, end: Offset) -> list[tuple[Message, Version, Offset]]:
    """The records of a snapshot, all at the last offset it contains."""
    return [(*decode_record(value), end - 1) for _, value in raw_records(file)]


def first_offset(directory: Path) -> Offset:
    """The offset at which the oldest segment begins."""
    return min(int(segment.stem) for segment in directory.glob("*.log"))


TOPICS = ("__consumer_offsets", "__share_group_state", "__transaction_state")
RECORD_LINE = re.compile(r"\| offset: (\d+) .* headerKeys: \[\] key: (\{.*\}) payload: (.*)")
TOMBSTONE = "<DELETE>"


class GoldenRecord(NamedTuple):
    """A record as it is stored, and the texts of its key and value; None for a tombstone's."""

    key: bytes
    value: bytes | None
    key_text: str
    value_text: str | None

    def dumped_key(self) -> dict[str, Any]:
        """Return the key as kafka-dump-log decoded it."""
        found: dict[str, Any] = json.loads(self.key_text)
        return found

    def dumped_value(self) -> dict[str, Any] | None:
        """Return the value as kafka-dump-log decoded it."""
        found: dict[str, Any] | None = json.loads(self.value_text or "null")
        return found


def golden_records(golden_sets: Path, topic: str) -> Iterator[GoldenRecord]:
    """Yield every data record of a topic's partitions that were written and dumped by 4.3.1."""
    for segment in sorted(golden_sets.glob(f"dynamic-4.3.1/data/{topic}-*/*.log")):
        yield from _records(segment)


def _records(segment: Path) -> Iterator[GoldenRecord]:
    text = dump_text(segment).read_text(encoding="utf-8")
    texts = {
        int(match[1]): (match[2], match[3])
        for match in map(RECORD_LINE.fullmatch, text.splitlines())
        if match
    }
    for batch in read_batches(segment.read_bytes()):
        if batch.is_control:
            continue
        for record in batch.records():
            key_text, value_text = texts.pop(record.offset)
            shown = None if value_text == TOMBSTONE else value_text
            assert record.key is not None
            yield GoldenRecord(bytes(record.key), record.value, key_text, shown)
    assert not texts


# The reading of Java: tests/interop/test_utf8_replacement.py asks Kafka's own reader.
READ_BY_JAVA = {
    b"\xff": "\ufffd",
    b"a\xffb": "a\ufffdb",
    b"\xc3\x28": "\ufffd(",
    b"\xc0\x80": "\ufffd\ufffd",
    b"\xe1\x80": "\ufffd",
    b"\xe0\x80\x80": "\ufffd\ufffd\ufffd",
    b"\xf1\x80\x80a": "\ufffda",
    b"\xf4\x90\x80\x80": "\ufffd\ufffd\ufffd\ufffd",
    b"\xed\xa0\x80": "\ufffd",
    b"\xed\xa0": "\ufffd",
    b"\xed": "\ufffd",
    b"\xed\xa0a": "\ufffda",
    b"\xed\xed\xbf\xbf\xbf": "\ufffd\ufffd\ufffd",
    b"\xe1\x80\xed\xa0\x80\xc3\xa9": "\ufffd\ufffd\u00e9",
}
