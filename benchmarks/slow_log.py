"""One log on a slow disk, and how long the clients of another one wait.

A combined node whose writes, syncs or reads of one partition's log take 0.8 s each. Clients produce
to that partition, fetch from it and search it by time. Meanwhile another client produces to another
partition, one record after the other at an even pace. An election may not take place.

`python -m benchmarks.slow_log FILE OPERATION` runs `kvorum server FILE` on such a disk.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final
from unittest.mock import patch

from benchmarks.node_start import CLUSTER_ID
from tests.support.node import STANDALONE, Node
from tests.support.quorum.quorum import Quorum
from tests.support.raw_client import RawClient
from tests.support.record_requests import batch, fetch, list_offset, produce
from tests.support.topics import create_topic

from kvorum.cli import main
from kvorum.storage.files import RealOpenFile
from kvorum.wire.error_codes import ErrorCode

SLOW: Final = "slow"
OTHER: Final = "other"
DELAY_S: Final = 0.8
SECONDS: Final = 60.0
EVERY_S: Final = 0.02
OPERATIONS: Final = ("nothing", "write_at", "sync", "read_at")
EVERY_RECORD: Final = {"flush.messages": "1"}
"""The settings of the slow topic: each of its records is synced."""


def run() -> None:
    """Measure a log whose disk is not slow, and then one of each kind of slowness."""
    for operation in OPERATIONS:
        with _combined_node(operation) as quorum:
            _measure(quorum, operation)


def _measure(quorum: Quorum, operation: str) -> None:
    (node,) = quorum.members.values()
    before = quorum.described()
    is_over = threading.Event()
    slow_counts = dict.fromkeys(("produced", "fetched", "searched"), 0)
    asks: Sequence[tuple[str, Callable[[RawClient], object]]] = (
        ("produced", lambda client: produce(client, SLOW, batch(b"slow"), acks=1)),
        ("fetched", lambda client: fetch(client, SLOW, 0)),
        ("searched", lambda client: list_offset(client, SLOW, 1)),
    )
    threads = [
        threading.Thread(target=_ask_until, args=(is_over, node.broker, ask, slow_counts, kind))
        for kind, ask in asks
    ]
    for thread in threads:
        thread.start()
    try:
        ms = _produce_at_a_pace(node.broker)
    finally:
        is_over.set()
        for thread in threads:
            thread.join()
    after = quorum.described()
    if before is None or after is None or before.leader_epoch != after.leader_epoch:
        raise RuntimeError(f"an election took place: {quorum.last_words()}")
    p99 = statistics.quantiles(ms, n=100, method="inclusive")[98]
    counts = ", ".join(f"{kind} {count}" for kind, count in slow_counts.items())
    print(
        f"{operation:<9} of the slow log: another's records median {statistics.median(ms):6.1f} ms,"
        f" p99 {p99:6.1f} ms, max {max(ms):6.1f} ms of {len(ms)}; no election; slow log: {counts}",
        flush=True,
    )


def _produce_at_a_pace(address: str) -> list[float]:
    """Return how many milliseconds after it was due each record was acknowledged."""
    ms: list[float] = []
    with RawClient(address) as client:
        began = time.perf_counter()
        while (due := began + len(ms) * EVERY_S) < began + SECONDS:
            time.sleep(max(0.0, due - time.perf_counter()))
            code = produce(client, OTHER, batch(b"other"), acks=1).error_code
            if code != ErrorCode.NONE:
                raise RuntimeError(f"a record was refused with error {code}")
            ms.append(1000 * (time.perf_counter() - due))
    return ms


def _ask_until(
    is_over: threading.Event,
    address: str,
    ask: Callable[[RawClient], object],
    counts: dict[str, int],
    kind: str,
) -> None:
    with RawClient(address) as client:
        while not is_over.is_set():
            ask(client)
            counts[kind] += 1


@contextmanager
def _combined_node(operation: str) -> Generator[Quorum]:
    with tempfile.TemporaryDirectory() as name:
        node = Node(Path(name), {})
        with Quorum([node]) as quorum:
            node.format(STANDALONE, cluster_id=CLUSTER_ID)
            node.process.command = [
                sys.executable,
                "-m",
                "benchmarks.slow_log",
                str(node.properties),
                operation,
            ]
            quorum.start()
            node.process.come_up()
            with RawClient(node.broker) as client:
                create_topic(client, SLOW, configs=EVERY_RECORD)
                create_topic(client, OTHER)
                for topic in (SLOW, OTHER):
                    produce(client, topic, batch(b"first"), acks=1)
            yield quorum


def _serve(properties: str, operation: str) -> int:
    """Run a server on whose disk an operation on the slow topic's log takes long."""
    if operation not in OPERATIONS[1:]:
        return main(["server", properties])
    usual = getattr(RealOpenFile, operation)

    def slow(file: RealOpenFile, *arguments: object) -> object:
        if file.path.parent.name == f"{SLOW}-0" and file.path.suffix == ".log":
            time.sleep(DELAY_S)
        return usual(file, *arguments)

    with patch.object(RealOpenFile, operation, slow), suppress(KeyboardInterrupt):
        return main(["server", properties])
    return 0


if __name__ == "__main__":
    sys.exit(_serve(*sys.argv[1:3]))
