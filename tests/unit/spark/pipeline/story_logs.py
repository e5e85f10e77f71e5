"""Logs of a made-up cluster: its batches as bytes, put on any number of disks."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from benchmarks.fleet.cluster_log import write_cluster

from kvorum.wire.records import RecordBatch, read_batches

META = "version=1\ncluster.id={cluster}\nnode.id={node}\n"
LOG = "__cluster_metadata-0"


@dataclass(frozen=True)
class Story:
    """The log of a cluster, batch by batch."""

    cluster_id: str
    batches: tuple[RecordBatch, ...]

    @property
    def record_count(self) -> int:
        return self.batches[-1].next_offset

    def bytes_of(self, first: int, end: int) -> bytes:
        """Return the bytes of the batches from number `first` up to `end`."""
        return b"".join(bytes(batch.data) for batch in self.batches[first:end])

    def write(
        self, folder: Path, *, node: int = 1, begin: int = 0, end: int | None = None,
        segments: int = 1,
    ) -> Path:  # fmt: skip
        """Write a node's disk with batches `begin` to `end` in some segments; replaces them."""
        inner = folder / LOG
        inner.mkdir(parents=True, exist_ok=True)
        (folder / "meta.properties").write_text(META.format(cluster=self.cluster_id, node=node))
        for old in inner.glob("*.log"):
            old.unlink()
        last = len(self.batches) if end is None else end
        bounds = [begin + (last - begin) * each // segments for each in range(segments + 1)]
        for first, limit in pairwise(bounds):
            name = f"{self.batches[first].base_offset:020}.log"
            (inner / name).write_bytes(self.bytes_of(first, limit))
        return folder


def make_story(folder: Path, seed: int, *, records: int = 900, partitions: int = 120) -> Story:
    """Return the log of a made-up cluster."""
    write_cluster(folder, seed, records=records, partitions=partitions)
    (segment,) = (folder / LOG).glob("*.log")
    properties = (folder / "meta.properties").read_text()
    (line,) = [line for line in properties.splitlines() if line.startswith("cluster.id=")]
    data = segment.read_bytes()
    return Story(line.partition("=")[2], tuple(read_batches(data)))
