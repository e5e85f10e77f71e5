"""The cluster of a test: how long it takes to start and to stop, one by one and side by side.

Ours runs in the test's own process. Beside it are franz-go's kfake, a program, until it listens,
and Kafka as its scripts run it, formatted and started until it answers. A failed start ends the
run.
"""

import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.data.brokers import broker
from benchmarks.data.fakes import built_kfake, kfake
from benchmarks.node_start import kafka_nodes
from benchmarks.report import Row

from kvorum.testing import Cluster

STARTS: Final = 300
STARTS_SIDE_BY_SIDE: Final = 600
SIDE_BY_SIDE: Final = 4
STARTS_OF_KAFKA: Final = 5
Started = Callable[[], AbstractContextManager[object]]


class Times(NamedTuple):
    """The medians of a start and of a stop, in milliseconds."""

    start_ms: float
    stop_ms: float


def rows() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        program = built_kfake(Path(folder))
        ours = _times(Cluster, STARTS)
        ours_side_by_side = _times(Cluster, STARTS_SIDE_BY_SIDE, at_once=SIDE_BY_SIDE)
        fake = _times(lambda: kfake(program), STARTS)
        fake_side_by_side = _times(
            lambda: kfake(program), STARTS_SIDE_BY_SIDE, at_once=SIDE_BY_SIDE
        )
        real = _times(lambda: broker(kafka_nodes()[0]), STARTS_OF_KAFKA)
    together = f"the start of a cluster, {SIDE_BY_SIDE} at once"
    return [
        Row("the start of a cluster", "kfake", ours.start_ms, fake.start_ms, "ms"),
        Row("the stop of a cluster", "kfake", ours.stop_ms, fake.stop_ms, "ms"),
        Row(together, "kfake", ours_side_by_side.start_ms, fake_side_by_side.start_ms, "ms"),
        Row("the start of a cluster", "Kafka", ours.start_ms, real.start_ms, "ms"),
        Row("the stop of a cluster", "Kafka", ours.stop_ms, real.stop_ms, "ms"),
    ]


def _times(start: Started, count: int, *, at_once: int = 1) -> Times:
    with ThreadPoolExecutor(at_once) as pool:
        found = list(pool.map(_once, [start] * count))
    starts, stops = zip(*found, strict=True)
    return Times(statistics.median(starts) * 1e3, statistics.median(stops) * 1e3)


def _once(start: Started) -> tuple[float, float]:
    began = time.perf_counter()
    with start():
        started = time.perf_counter()
    return started - began, time.perf_counter() - started
