"""The places of the records of messages of the formats 0 and 1."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kvorum.spark.columnar.field_places import ABSENT, Places
from kvorum.spark.columnar.record_places import PADDING, RecordPlaces
from kvorum.wire.records.legacy import LegacyMessage

_NO_HEADERS = b"\x00"


def place_messages(messages: Sequence[LegacyMessage]) -> RecordPlaces:
    """Return the places of the records of `messages`, wrapped ones unpacked.

    Checksums are not verified. Raises `CorruptBatchError` and `BatchTooLargeError`.
    """
    content = bytearray(_NO_HEADERS)
    numbers: list[int] = []
    for index, message in enumerate(messages):
        for record in message.records():
            numbers += (index, record.offset, record.timestamp)
            for part in (record.key, record.value):
                numbers += (len(content), ABSENT if part is None else len(part))
                content += part or b""
    content += PADDING
    columns = np.array(numbers, np.int64).reshape(-1, 7).T
    batches, offsets, timestamps, key_starts, key_counts, value_starts, value_counts = columns
    none = np.zeros_like(offsets)
    return RecordPlaces(
        content=bytes(content),
        data=np.frombuffer(content, np.uint8),
        batches=batches,
        offsets=offsets,
        timestamps=timestamps,
        keys=Places(key_starts, key_counts),
        values=Places(value_starts, value_counts),
        header_starts=none,
        ends=none + len(_NO_HEADERS),
    )
