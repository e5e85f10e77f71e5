"""One broker beside a real one: records in and out, by Kafka's own perf tools."""

from typing import Final

from benchmarks.data.brokers import broker, embedded, first_record_s
from benchmarks.data.perf_tools import ROUNDS, Load, Loads, measured_in_turns, median_rows
from benchmarks.node_start import kafka_nodes
from benchmarks.report import Row

LARGE: Final = Load(750_000, 1024, ("batch.size=65536",))
SMALL: Final = Load(3_000_000, 100)
WARM_UP: Final = (LARGE._replace(records=150_000), SMALL._replace(records=600_000))
LOADS: Final = Loads(LARGE, SMALL, WARM_UP)


def rows() -> list[Row]:
    ours, theirs = measured_in_turns(broker, LOADS)
    peer = kafka_nodes()[0]
    for _ in range(ROUNDS):
        ours.first_record_s.append(first_record_s(embedded))
        theirs.first_record_s.append(first_record_s(lambda: broker(peer)))
    wanted = (
        ("produce, 1 KiB records, batches of 64 KiB", "MiB/s", "large_mib_per_s"),
        ("produce, 100-byte records, default batches", "r/s", "small_records_per_s"),
        ("consume, 1 KiB records, a group of one", "MiB/s", "consumed_mib_per_s"),
        ("produce to consume at 1,000 records/s, p99", "ms", "end_to_end_p99_ms"),
        ("resident memory after that", "MiB", "memory_mib"),
        ("with Cluster() to a group's first record", "s", "first_record_s"),
    )
    return median_rows(wanted, peer.name, ours, theirs)
