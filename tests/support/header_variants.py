"""Batches of which one header field has a value at its limits, with the checksum of that."""

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from kvorum.wire.checksums import crc32c
from kvorum.wire.records import BatchOptions, Compression, RecordData, build_batch
from kvorum.wire.records.batch import CRC_START, HEADER_BYTES, LENGTH_FIELD_END

HEADER: Final = struct.Struct(">qiibIhiqqqhii")
CRC_FIELD_START: Final = 17
BASE_OFFSET, LENGTH, LAST_OFFSET_DELTA, RECORD_COUNT = 0, 1, 6, 12
FIELDS: Final = {
    "base offset": (BASE_OFFSET, 64),
    "length": (LENGTH, 32),
    "leader epoch": (2, 32),
    "attributes": (5, 16),
    "last offset delta": (LAST_OFFSET_DELTA, 32),
    "base timestamp": (7, 64),
    "max timestamp": (8, 64),
    "producer id": (9, 64),
    "producer epoch": (10, 16),
    "base sequence": (11, 32),
    "record count": (RECORD_COUNT, 32),
}
"""The place of each field in the header, and its size in bits; format and checksum have none."""
LENGTHS_NEAR_LIMITS: Final = (13, 14, 48, 49, 50)


class Variant(NamedTuple):
    """A batch, and what about it is unusual."""

    name: str
    data: bytes


def with_checksum(data: bytes) -> bytes:
    """Return a batch with the checksum of what its length makes it."""
    raw = bytearray(data)
    (length,) = struct.unpack_from(">i", raw, 8)
    end = length + LENGTH_FIELD_END if length + LENGTH_FIELD_END >= CRC_START else len(raw)
    struct.pack_into(">I", raw, CRC_FIELD_START, crc32c(bytes(raw[CRC_START:end])))
    return bytes(raw)


def with_fields(data: bytes, changes: dict[int, int]) -> bytes:
    header = list(HEADER.unpack_from(data))
    for place, value in changes.items():
        header[place] = value
    return with_checksum(HEADER.pack(*header) + data[HEADER_BYTES:])


def without_records(data: bytes) -> bytes:
    return with_fields(data[:HEADER_BYTES], {LENGTH: HEADER_BYTES - LENGTH_FIELD_END})


def header_variants(now_ms: int) -> Iterator[Variant]:
    """Yield a batch of two records with each field at its limits, plain, packed, of a producer."""
    records = [RecordData(b"abc", b"k", now_ms), RecordData(b"def", b"k", now_ms + 1)]
    kinds = {
        "plain": BatchOptions(),
        "packed": BatchOptions(compression=Compression.GZIP),
        "of a producer": BatchOptions(producer_id=7, producer_epoch=0, base_sequence=0),
    }
    for kind, options in kinds.items():
        data = build_batch(records, options)
        (size,) = struct.unpack_from(">i", data, 8)
        for name, (place, bits) in FIELDS.items():
            limit = 1 << (bits - 1)
            values = {-limit, -limit + 1, -2, -1, 0, 1, 2, 3, limit - 2, limit - 1}
            if place == LENGTH:
                values |= {size - 1, size + 1, *LENGTHS_NEAR_LIMITS}
            for value in sorted(values):
                yield Variant(f"{kind}: {name} {value}", with_fields(data, {place: value}))
        empty = without_records(data)
        for count in (-1, 0, 1, 2):
            for delta in (-1, 0, 1):
                changes = {RECORD_COUNT: count, LAST_OFFSET_DELTA: delta}
                what = f"record count {count}, last offset delta {delta}"
                yield Variant(f"{kind}: {what}", with_fields(data, changes))
                yield Variant(f"{kind}: no records, {what}", with_fields(empty, changes))
