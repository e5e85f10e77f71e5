"""One broker beside a real one: records in and out, by Kafka's own perf tools.

Each candidate runs alone; each round starts both again, ours first in every other one.
"""

from __future__ import annotations

import os
from typing import Final

from benchmarks.data.brokers import broker, embedded, first_record_s, of_candidate
from benchmarks.data.perf_tools import Figures, Load, Loads, PerfTools, measure, median_rows
from benchmarks.node_start import kafka_nodes, kvorum_node
from benchmarks.report import Row
from tests.support.kafka.fetch_jars import JARS_ROOT, REFERENCE_RELEASE, find_java
from tests.support.kafka.java import Java

ROUNDS: Final = 3
LARGE: Final = Load(750_000, 1024, ("batch.size=65536",))
SMALL: Final = Load(3_000_000, 100)
WARM_UP: Final = (LARGE._replace(records=150_000), SMALL._replace(records=600_000))
LOADS: Final = Loads(LARGE, SMALL, WARM_UP)


def rows() -> list[Row]:
    """Return the rows of the report."""
    tools = PerfTools(Java(find_java(), JARS_ROOT / REFERENCE_RELEASE))
    candidates = [(kvorum_node(), Figures()), (kafka_nodes()[0], Figures())]
    for turn in range(ROUNDS):
        for candidate, figures in candidates if turn % 2 == 0 else reversed(candidates):
            with broker(candidate, dict(os.environ)) as running:
                measure(running, tools, LOADS, figures)
    (_, ours), (peer, theirs) = candidates
    for _ in range(ROUNDS):
        ours.first_record_s.append(first_record_s(embedded))
        theirs.first_record_s.append(first_record_s(lambda: of_candidate(peer)))
    wanted = (
        ("produce, 1 KiB records, batches of 64 KiB", "MiB/s", "large_mib_per_s"),
        ("produce, 100-byte records, default batches", "r/s", "small_records_per_s"),
        ("consume, 1 KiB records, a group of one", "MiB/s", "consumed_mib_per_s"),
        ("produce to consume at 1,000 records/s, p99", "ms", "end_to_end_p99_ms"),
        ("resident memory after that", "MiB", "memory_mib"),
        ("with Cluster() to a group's first record", "s", "first_record_s"),
    )
    return median_rows(wanted, peer.name, ours, theirs)
