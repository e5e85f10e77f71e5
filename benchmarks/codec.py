"""The codec beside kafka-python, kio and aiokafka, and what one import costs."""

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence

from benchmarks import batch_cases, codec_cases, codec_peers
from benchmarks.report import Row
from benchmarks.timing import time_in_turns

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
    for case in codec_cases.cases():
        found += codec_rows(case.name, codec_peers.codecs(case))
    return found + codec_rows(f"a batch of {batch_cases.RECORDS:,} records", batch_cases.codecs())


def codec_rows(name: str, found: Sequence[codec_peers.Codec]) -> list[Row]:
    decode = time_in_turns({codec.library: codec.decode for codec in found})
    encode = time_in_turns({codec.library: codec.encode for codec in found})
    return rows_of(f"decode {name}", decode) + rows_of(f"encode {name}", encode)


def rows_of(what: str, median_seconds: dict[str, float]) -> list[Row]:
    ours = median_seconds["kvorum"] * MICROSECONDS
    return [
        Row(what, peer, ours, seconds * MICROSECONDS, "us")
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
