"""A batch of 1,000 records, written and read by kvorum, kafka-python and aiokafka."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kvorum.wire.records import RecordData, build_batch, read_batches

RECORDS = 1000
TIMESTAMP_MS = 1_700_000_000_000


@dataclass(frozen=True, slots=True)
class BatchCodec:
    """One library's way to build the batch, and to read `RECORDS` records from it."""

    library: str
    encode: Callable[[], bytes]
    decode: Callable[[], int]


def key_of(number: int) -> bytes:
    return b"key-%05d" % number


VALUE = b"v" * 100


def ours(data: bytes) -> BatchCodec:
    records = [
        RecordData(key=key_of(number), value=VALUE, timestamp=TIMESTAMP_MS + number)
        for number in range(RECORDS)
    ]

    def decode() -> int:
        count = 0
        for batch in read_batches(data):
            for record in batch.records():
                count += record.value is not None
        return count

    return BatchCodec("kvorum", lambda: build_batch(records), decode)


def kafka_python(data: bytes) -> BatchCodec:
    default_records: Any = importlib.import_module("kafka.record.default_records")
    memory_records: Any = importlib.import_module("kafka.record.memory_records")

    def encode() -> bytes:
        builder = default_records.DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, 1 << 24)
        for number in range(RECORDS):
            builder.append(number, TIMESTAMP_MS + number, key_of(number), VALUE, [])
        return bytes(builder.build())

    def decode() -> int:
        count = 0
        records = memory_records.MemoryRecords(data)
        while (batch := records.next_batch()) is not None:
            for record in batch:
                count += record.value is not None
        return count

    return BatchCodec("kafka-python", encode, decode)


def aiokafka(data: bytes) -> BatchCodec:
    """Return aiokafka's codec, which uses its C extension: this peer is not pure Python."""
    default_records: Any = importlib.import_module("aiokafka.record.default_records")
    memory_records: Any = importlib.import_module("aiokafka.record.memory_records")

    def encode() -> bytes:
        builder = default_records.DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, 1 << 24)
        for number in range(RECORDS):
            builder.append(number, TIMESTAMP_MS + number, key_of(number), VALUE, [])
        return bytes(builder.build())

    def decode() -> int:
        count = 0
        records = memory_records.MemoryRecords(data)
        while records.has_next():
            for record in records.next_batch():
                count += record.value is not None
        return count

    return BatchCodec("aiokafka (C)", encode, decode)


def codecs() -> list[BatchCodec]:
    """Return the codec of every library, after a check that all read the same records."""
    data = ours(b"").encode()
    found = [ours(data), kafka_python(data), aiokafka(data)]
    for codec in found:
        if codec.decode() != RECORDS or len(codec.encode()) != len(data):
            message = f"{codec.library} reads or writes a different batch"
            raise ValueError(message)
    return found
