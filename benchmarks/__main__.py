"""`python -m benchmarks [PART]`: the figures of docs/figures.md, each beside a peer in one run."""

import argparse
import platform
from collections.abc import Callable, Mapping

from benchmarks import (
    codec,
    controller,
    dump_log,
    node_start,
    outages,
    reassignment,
    soak,
    spark_growth,
)
from benchmarks.report import Row, as_json, as_text


def data_rows(arguments: argparse.Namespace) -> list[Row]:
    from benchmarks import data  # noqa: PLC0415 - imports a client, which other parts need not pay

    return data.rows(arguments.data.split(","), divisor=arguments.divisor)


def transaction_rows(arguments: argparse.Namespace) -> list[Row]:
    from benchmarks import transaction_load, transactions  # noqa: PLC0415 - as above

    divisor = arguments.divisor
    return [*transactions.rows(divisor), *transaction_load.rows(divisor)]


def group_rows(arguments: argparse.Namespace) -> list[Row]:
    from benchmarks import group_members  # noqa: PLC0415 - as above

    return group_members.rows(arguments.divisor)


def share_rows(arguments: argparse.Namespace) -> list[Row]:
    from benchmarks import share_members  # noqa: PLC0415 - as above

    return share_members.rows(arguments.divisor)


def security_rows(arguments: argparse.Namespace) -> list[Row]:
    from benchmarks import security  # noqa: PLC0415 - as above

    return security.rows(arguments.divisor)


def spark_rows(arguments: argparse.Namespace) -> list[Row]:
    from benchmarks import spark  # noqa: PLC0415 - imports pyspark, which other parts need not pay

    return spark.rows(
        metadata_records=arguments.metadata_records,
        pushdown_records=arguments.pushdown_records,
        log_records=arguments.log_records,
    )


def spark_cluster_rows(arguments: argparse.Namespace) -> list[Row]:
    from benchmarks import spark_cluster  # noqa: PLC0415 - as above

    return spark_cluster.rows(records=arguments.fleet_records)


def testing_rows(_: argparse.Namespace) -> list[Row]:
    from benchmarks import testing  # noqa: PLC0415 - as above

    return testing.rows()


MEASURED: Mapping[str, Callable[[argparse.Namespace], list[Row]]] = {
    "codec": lambda _: codec.rows(),
    "node": lambda _: node_start.rows(),
    "failover": lambda _: outages.failover_rows(),
    "cold-start": lambda _: outages.cold_start_rows(),
    "reassignment": lambda _: reassignment.rows(),
    "quorum": lambda _: outages.idle_rows(),
    "controller": lambda arguments: controller.rows(
        [int(size) for size in arguments.partitions.split(",") if size],
        brokers=arguments.brokers,
        with_peer=not arguments.alone,
        heap_gib=arguments.heap_gib,
    ),
    "data": data_rows,
    "transactions": transaction_rows,
    "security": security_rows,
    "groups": group_rows,
    "shares": share_rows,
    "dump-log": lambda arguments: dump_log.rows(records=arguments.dumped_records),
    "spark": spark_rows,
    "spark-cluster": spark_cluster_rows,
    "testing": testing_rows,
    "spark-growth": lambda arguments: spark_growth.rows(records=arguments.fleet_records),
}
"""The parts that have rows; they run in this order."""


def arguments_of_run() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parts = (*MEASURED, "soak", "raft-under-load", "slow-log")
    add = parser.add_argument
    add("part", nargs="?", choices=parts, help="only this part")
    add("--json", action="store_true", help="one JSON object a line")
    add("--idle-minutes", type=float, default=60, help="soak: minutes idle (default: 60)")
    add("--load-minutes", type=float, default=10, help="soak: minutes under load (default: 10)")
    add(
        "--partitions",
        default="0,10000",
        help="controller: sizes to measure, separated by commas (default: 0,10000)",
    )
    add(
        "--brokers",
        type=int,
        default=12,
        help="controller: number of simulated brokers (default: 12)",
    )
    add("--alone", action="store_true", help="controller: measure without Kafka")
    add("--heap-gib", type=int, default=1, help="controller: Kafka's heap")
    add(
        "--data",
        default="one,three,requests,partitions,groups,fakes",
        help="data: what to measure, separated by commas (default: %(default)s)",
    )
    add(
        "--divisor",
        type=int,
        default=1,
        help="data, transactions, security, groups, shares: divide what is many (default: 1)",
    )
    add("--dumped-records", type=int, default=10_000_000, help="dump-log: default 10,000,000")
    add("--metadata-records", type=int, default=500_000, help="spark: default 500,000")
    add("--pushdown-records", type=int, default=10_000_000, help="spark: default 10,000,000")
    add("--log-records", type=int, default=1_000_000, help="spark: default 1,000,000")
    add(
        "--fleet-records",
        type=int,
        default=10_000_000,
        help="spark-cluster, spark-growth: default 10,000,000",
    )
    return parser.parse_args()


def main() -> None:
    arguments = arguments_of_run()
    if arguments.part == "soak":
        soak.run(idle_minutes=arguments.idle_minutes, load_minutes=arguments.load_minutes)
        return
    if arguments.part == "raft-under-load":
        from benchmarks import raft_under_load  # noqa: PLC0415 - as above

        raft_under_load.run()
        return
    if arguments.part == "slow-log":
        from benchmarks import slow_log  # noqa: PLC0415 - as above

        slow_log.run()
        return
    parts = MEASURED if arguments.part is None else (arguments.part,)
    rows = [row for part in parts for row in MEASURED[part](arguments)]
    if arguments.json:
        print(as_json(rows))
        return
    print(
        f"Python {platform.python_version()}, {platform.machine()}; medians; "
        "a ratio above 1 means that ours is better"
    )
    print(as_text(rows))
    if arguments.part in (None, "codec"):
        print(f"import of one message: {codec.import_milliseconds():.1f} ms")


main()
