"""The codec beside kafka-python, kio and aiokafka, and what one import costs."""

import gc
import importlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from benchmarks.codec_peers import Codec, cases, codecs
from benchmarks.report import Row

from kvorum.wire.records import RecordData, build_batch, read_batches

ROUND_SECONDS = 0.05
ROUNDS = 15


def calls_per_round(call: Callable[[], object]) -> int:
    """Return the number of calls that fill a round, found by doubling."""
    calls = 1
    while True:
        elapsed_seconds = time_calls(call, calls)
        if elapsed_seconds >= ROUND_SECONDS:
            return calls
        calls = max(calls * 2, int(calls * ROUND_SECONDS / max(elapsed_seconds, 1e-9)))


def time_calls(call: Callable[[], object], calls: int) -> float:
    started = time.perf_counter()
    for _ in range(calls):
        call()
    return time.perf_counter() - started


def time_in_turns(candidates: Mapping[str, Callable[[], object]]) -> dict[str, float]:
    """Return the seconds of a call of each candidate, the median over the rounds.

    All are timed in every round, so that drift of the machine affects all of them.
    """
    # Objects that the peers' imports left must not add to the times; the collector stays on.
    gc.collect()
    gc.freeze()
    calls = {name: calls_per_round(call) for name, call in candidates.items()}
    samples: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(ROUNDS):
        for name, call in candidates.items():
            samples[name].append(time_calls(call, calls[name]) / calls[name])
    return {name: statistics.median(values) for name, values in samples.items()}


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


def batch_codecs() -> list[Codec]:
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


MICROSECONDS = 1e6
IMPORT_RUNS = 15
IMPORT_PROGRAM = """
import time
started = time.perf_counter()
from kvorum.wire.messages.fetch import FetchRequest
print(time.perf_counter() - started)
"""


def rows() -> list[Row]:
    found: list[Row] = []
    for case in cases():
        found += codec_rows(case.name, codecs(case))
    return found + codec_rows(f"a batch of {RECORDS:,} records", batch_codecs())


def codec_rows(name: str, found: Sequence[Codec]) -> list[Row]:
    decode = time_in_turns({codec.library: codec.decode for codec in found})
    encode = time_in_turns({codec.library: codec.encode for codec in found})
    return rows_of(f"decode {name}", decode) + rows_of(f"encode {name}", encode)


def rows_of(what: str, median_seconds: dict[str, float]) -> list[Row]:
    return [
        Row(what, peer, median_seconds["kvorum"] * MICROSECONDS, seconds * MICROSECONDS, "us")
        for peer, seconds in median_seconds.items()
        if peer != "kvorum"
    ]


def import_milliseconds() -> float:
    """Return the median import time of one message in fresh interpreters, with bytecode caches."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": cache}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        import_once(environment)
        samples = [import_once(environment) for _ in range(IMPORT_RUNS)]
    return statistics.median(samples) * 1000


def import_once(environment: dict[str, str]) -> float:
    """Return the seconds that the import took."""
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_PROGRAM],
        check=True,
        capture_output=True,
        text=True,
        env=environment,
    )
    return float(done.stdout)
