"""The fleet that the benchmarks of `kvorum pipeline` read."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from benchmarks.fleet.cluster_log import write_cluster

CLUSTERS: Final = 20
_PARTITIONS: Final = 1200


def write_fleet(folder: Path, *, records: int) -> None:
    """Write the logs of its clusters, with so many records in all."""
    for number in range(CLUSTERS):
        directory = folder / f"cluster-{number:02}"
        write_cluster(directory, number + 1, records=records // CLUSTERS, partitions=_PARTITIONS)
