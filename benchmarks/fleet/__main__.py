"""`python -m benchmarks.fleet DIR`: write the metadata logs of a made-up fleet of clusters."""

import argparse
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from benchmarks.fleet.cluster_log import write_cluster


def main() -> None:
    """Write one directory for each cluster, and print how many records each has."""
    parser = argparse.ArgumentParser(prog="benchmarks.fleet", description=__doc__)
    parser.add_argument("directory", type=Path, help="where the clusters' directories go")
    parser.add_argument("--clusters", type=int, default=20, help="default: 20")
    parser.add_argument(
        "--records", type=int, default=500_000, help="records of each cluster (default: 500,000)"
    )
    parser.add_argument(
        "--partitions", type=int, default=1200, help="partitions of each cluster (default: 1,200)"
    )
    parser.add_argument("--seed", type=int, default=1, help="the first cluster's (default: 1)")
    arguments = parser.parse_args()
    seeds = range(arguments.seed, arguments.seed + arguments.clusters)
    write = partial(
        _write, arguments.directory, records=arguments.records, partitions=arguments.partitions
    )
    with ProcessPoolExecutor() as pool:
        for name, count in pool.map(write, seeds):
            print(f"{name}: {count:,} records", flush=True)


def _write(directory: Path, seed: int, *, records: int, partitions: int) -> tuple[str, int]:
    name = f"cluster-{seed:04d}"
    return name, write_cluster(directory / name, seed, records=records, partitions=partitions)


if __name__ == "__main__":
    main()
