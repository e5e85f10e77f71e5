"""The found files by cluster and replica: a replica is one node's copy of a cluster's log."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from kvorum.log_files.errors import LogFilesError
from kvorum.log_files.find import FileKind, FoundFiles, LogFile

ENDLESS: Final = 2**63 - 1
"""An offset greater than every other."""


class Replica(NamedTuple):
    """The files of one node's metadata log, by offset."""

    node_id: int | None
    log_directory: str
    segments: tuple[LogFile, ...]
    snapshots: tuple[LogFile, ...]
    is_whole: bool

    @property
    def start_offset(self) -> int | None:
        """The first offset of the segments; None without segments."""
        return (self.segments[0].offset or 0) if self.segments else None

    @property
    def size(self) -> int:
        """The bytes of all files."""
        return sum(file.size for file in (*self.segments, *self.snapshots))

    @property
    def found(self) -> FoundFiles:
        """The segments as the planner of ranges takes them."""
        # A snapshot stands in for the offsets before the first segment.
        whole = {self.log_directory} if self.is_whole else set[str]()
        return FoundFiles((*self.segments, *self.snapshots), frozenset(whole))


class Cluster(NamedTuple):
    """The replicas of one cluster's log that were found."""

    cluster_id: str
    replicas: tuple[Replica, ...]

    @property
    def size(self) -> int:
        """The bytes of the largest replica: about the work of folding the log."""
        return max(replica.size for replica in self.replicas)

    @property
    def fingerprint(self) -> list[list[str | int]]:
        """Each file with its size, in one order: another one means that there may be news."""
        return sorted(
            [file.path, file.size]
            for replica in self.replicas
            for file in (*replica.segments, *replica.snapshots)
        )


def clusters_of(found: FoundFiles) -> tuple[Cluster, ...]:
    """Return the clusters, the largest first, so that no large one is left for the end.

    Raises `LogFilesError` for a file of which no meta.properties says the cluster.
    """
    logs: dict[str, dict[tuple[int | None, str], list[LogFile]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for file in found.files:
        if file.kind is FileKind.BOOTSTRAP:
            # The first controller wrote these records into the log, too.
            continue
        if file.cluster_id is None:
            raise LogFilesError(
                f"{file.path}: no meta.properties names its cluster: give --cluster-id"
            )
        logs[file.cluster_id][file.node_id, file.log_directory].append(file)
    if not logs:
        raise LogFilesError("the input holds neither segments (.log) nor snapshots (.checkpoint)")
    clusters = [
        Cluster(cluster_id, tuple(_replicas(by_node, found.whole_directories)))
        for cluster_id, by_node in logs.items()
    ]
    return tuple(sorted(clusters, key=lambda cluster: (-cluster.size, cluster.cluster_id)))


def _replicas(
    by_node: dict[tuple[int | None, str], list[LogFile]], whole: Iterable[str]
) -> list[Replica]:
    replicas = [
        Replica(
            node_id,
            directory,
            tuple(_by_offset(files, FileKind.SEGMENT)),
            tuple(_by_offset(files, FileKind.SNAPSHOT)),
            directory in whole,
        )
        for (node_id, directory), files in by_node.items()
    ]
    return sorted(replicas, key=lambda replica: (replica.node_id or 0, replica.log_directory))


def _by_offset(files: list[LogFile], kind: FileKind) -> list[LogFile]:
    chosen = [file for file in files if file.kind is kind]
    return sorted(chosen, key=lambda file: (file.offset or 0, file.path))


def begins_of(replica: Replica) -> list[LogFile | None]:
    """Return where a fold of a replica can begin, the one with the longest history first.

    That is a snapshot, or None for offset 0. Without segments it is only the latest snapshot;
    nowhere if the segments begin after every snapshot.
    """
    start = replica.start_offset
    if start is None:
        return [*replica.snapshots[-1:]]
    covering = [file for file in replica.snapshots if (file.offset or 0) >= start]
    return [None, *covering] if start == 0 else [*covering]


def demand_begin(cluster: Cluster) -> None:
    """Raise `LogFilesError` where no replica has a place at which a fold can begin."""
    if any(map(begins_of, cluster.replicas)):
        return
    replica = cluster.replicas[0]
    covered = max((file.offset or 0 for file in replica.snapshots), default=0)
    raise LogFilesError(
        f"{replica.segments[0].path}: the log begins at offset {replica.start_offset}, but nothing "
        f"here covers the offsets from {covered} on"
    )


class Hole(NamedTuple):
    """Offsets that cannot be read from a replica, from `first_offset` up to `end_offset`."""

    first_offset: int
    end_offset: int


@dataclass(slots=True)
class ReadableReplica:
    """A replica, the offset at which it ends, and what turned out not to be readable."""

    replica: Replica
    end_offset: int
    holes: list[Hole] = field(default_factory=list[Hole])

    def has(self, offset: int) -> bool:
        """Return whether the record at this offset is expected to be readable here."""
        start = self.replica.start_offset
        if start is None or not start <= offset < self.end_offset:
            return False
        return not any(hole.first_offset <= offset < hole.end_offset for hole in self.holes)

    def next_after(self, offset: int) -> int:
        """Return the lowest offset after `offset` at which this replica has something again."""
        starts = [self.replica.start_offset or 0, *(hole.end_offset for hole in self.holes)]
        return min((each for each in starts if each > offset and self.has(each)), default=ENDLESS)
