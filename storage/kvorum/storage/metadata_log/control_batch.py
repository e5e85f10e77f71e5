"""The part of a control batch that identifies a snapshot's header and footer.

`kvorum.wire.records` decodes the records themselves. The log only reads the type of a batch's first
control record, without decoding the rest.
"""

import struct

from kvorum.storage.log.batch_header import HEADER_SIZE, BatchHeader

SNAPSHOT_HEADER = 3
SNAPSHOT_FOOTER = 4
_KEY = struct.Struct(">hh")
_SNAPSHOT_HEADER_VALUE = struct.Struct(">hq")


def first_control_record(batch: memoryview, header: BatchHeader) -> tuple[int, bytes] | None:
    """Return type and value of a batch's first record; None unless it is a control record."""
    if not header.is_control or header.record_count < 1:
        return None
    try:
        # Record: length, attributes (one byte), timestamp and offset deltas, key, value.
        _, position = _varint(batch, HEADER_SIZE)
        _, position = _varint(batch, position + 1)
        _, position = _varint(batch, position)
        key_size, position = _varint(batch, position)
        if key_size < _KEY.size:
            return None
        control_type = int(_KEY.unpack_from(batch, position)[1])
        value_size, position = _varint(batch, position + key_size)
    except (IndexError, struct.error):
        return None
    return control_type, bytes(batch[position : position + max(value_size, 0)])


def last_contained_log_timestamp(value: bytes) -> int | None:
    """Return the timestamp in a SNAPSHOT_HEADER record's value, or None if it is too short."""
    if len(value) < _SNAPSHOT_HEADER_VALUE.size:
        return None
    return int(_SNAPSHOT_HEADER_VALUE.unpack_from(value)[1])


def _varint(data: memoryview, position: int) -> tuple[int, int]:
    """Return a zigzag number of up to ten bytes and the position after it."""
    number = 0
    for shift in range(0, 70, 7):
        byte = data[position]
        position += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), position
    raise IndexError
