"""A batch of 1,000 records, written and read by kvorum, kafka-python and aiokafka."""

import importlib
from typing import Any

from benchmarks.codec_peers import Codec

from kvorum.wire.records import RecordData, build_batch, read_batches

RECORDS = 1000
TIMESTAMP_MS = 1_700_000_000_000


def key_of(number: int) -> bytes:
    return b"key-%05d" % number


VALUE = b"v" * 100


def ours(data: bytes) -> Codec:
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

    return Codec("kvorum", decode, lambda: build_batch(records))


def peer(library: str, package: str, data: bytes) -> Codec:
    default_records: Any = importlib.import_module(f"{package}.record.default_records")
    memory_records: Any = importlib.import_module(f"{package}.record.memory_records")

    def encode() -> bytes:
        builder = default_records.DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, 1 << 24)
        for number in range(RECORDS):
            builder.append(number, TIMESTAMP_MS + number, key_of(number), VALUE, [])
        return bytes(builder.build())

    def decode() -> int:
        count = 0
        for batch in iter(memory_records.MemoryRecords(data).next_batch, None):
            for record in batch:
                count += record.value is not None
        return count

    return Codec(library, decode, encode)


def codecs() -> list[Codec]:
    """Return the codec of every library, after a check that all read the same records."""
    data = ours(b"").encode()
    found = [
        ours(data),
        peer("kafka-python", "kafka", data),
        # It uses its C extension: this peer is not pure Python.
        peer("aiokafka (C)", "aiokafka", data),
    ]
    for codec in found:
        if codec.decode() != RECORDS or len(codec.encode()) != len(data):
            message = f"{codec.library} reads or writes a different batch"
            raise ValueError(message)
    return found
