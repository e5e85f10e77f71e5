"""Records of the golden internal topics, with what kafka-dump-log printed of them."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.golden_data import dump_text

from kvorum.wire.records import read_batches

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
    text = dump_text(segment, decoded=True).read_text(encoding="utf-8")
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
