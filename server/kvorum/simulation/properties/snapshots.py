"""The snapshots on the disks: P9."""

from typing import NamedTuple

from kvorum.node.raft.control_records import quorum_controls
from kvorum.raft.voter_set import VoterSet
from kvorum.simulation.properties.catalogue import P9, Checks
from kvorum.simulation.properties.node_facts import NodeMemory
from kvorum.simulation.properties.shared_log import SharedLog
from kvorum.storage.errors import StorageError
from kvorum.storage.metadata_log.snapshot_reader import SnapshotInMemory, read_snapshot_batches
from kvorum.storage.names import snapshot_name
from kvorum.wire.checksums import crc32c
from kvorum.wire.errors import WireError
from kvorum.wire.offset_and_epoch import BOOTSTRAP_SNAPSHOT_ID, OffsetAndEpoch
from kvorum.wire.records import read_batches


class SnapshotContent(NamedTuple):
    """The content of a snapshot: voters, kraft.version, and a checksum of its records."""

    end_offset: int
    voters: VoterSet | None
    kraft_version: int
    records_crc: int


class SnapshotFacts:
    """All snapshots that any node has ever had."""

    def __init__(self, checks: Checks, shared: SharedLog) -> None:
        self._checks = checks
        self._shared = shared
        self._contents: dict[OffsetAndEpoch, SnapshotContent] = {}
        # The content by which each node was formatted; its file may be damaged after it was read.
        self._bootstraps: dict[int, SnapshotContent | None] = {}
        # Snapshots made from a damaged log: other nodes may get them before their contents are
        # known to be committed.
        self._unwitnessed: set[OffsetAndEpoch] = set()

    def check(self, memory: NodeMemory) -> bool:
        """Check the node's snapshots if they have changed; return whether they have."""
        log = memory.node.log
        if log is None:
            return False
        ids = frozenset(log.snapshots.ids())
        if ids == memory.snapshots:
            return False
        for one in sorted(ids - memory.snapshots):
            self._check_one(memory, one)
        memory.snapshots = ids
        return True

    def check_cover(self, memory: NodeMemory) -> None:
        """Demand that a snapshot covers the part that the log has removed from its start."""
        log = memory.node.log
        if log is None or log.log_start_offset == memory.start_offset:
            return
        memory.start_offset = log.log_start_offset
        latest = log.snapshots.latest()
        text = f"{memory.name}'s log starts at {log.log_start_offset}, its snapshots are "
        text += f"{sorted(memory.snapshots)}"
        self._checks.demand(
            P9, text, holds=latest is not None and latest.offset >= log.log_start_offset
        )

    def _check_one(self, memory: NodeMemory, snapshot_id: OffsetAndEpoch) -> None:
        offset, epoch = snapshot_id.offset, snapshot_id.epoch
        if snapshot_id == BOOTSTRAP_SNAPSHOT_ID:
            self._bootstraps[id(memory)] = self._read(memory, snapshot_id)
            return
        committed = self._shared.committed_end
        message = f"{memory.name}'s snapshot {offset}-{epoch}"
        if memory.is_log_damaged:
            # The committed records of such a node cannot be checked from outside.
            self._unwitnessed.add(snapshot_id)
            return
        if offset > committed and snapshot_id in self._unwitnessed:
            return
        self._checks.demand(
            P9, f"{message} is above {committed}, what is committed", holds=offset <= committed
        )
        self._checks.demand(
            P9, f"{message} ends within a batch", holds=self._shared.is_boundary(offset)
        )
        before = self._shared.epoch_before(offset)
        self._checks.demand(P9, f"{message} ends in epoch {before}", holds=before == epoch)
        content = self._read(memory, snapshot_id)
        if content is None:
            return
        first = self._contents.setdefault(snapshot_id, content)
        self._checks.demand(
            P9, f"{message} holds {content}, another node's {first}", holds=content == first
        )

    def _read(self, memory: NodeMemory, snapshot_id: OffsetAndEpoch) -> SnapshotContent | None:
        try:
            return read_content(memory, snapshot_id)
        except (StorageError, WireError) as error:
            text = f"{memory.name}'s snapshot cannot be read: {error}"
            self._checks.demand(P9, text, holds=memory.is_damaged)
            return None

    def controls_of_latest(self, memory: NodeMemory) -> SnapshotContent | None:
        """Return the content of the latest snapshot that the node's core knows, if there is one.

        A fetched snapshot is on the disk before the core knows of it.
        """
        core = memory.node.core
        known_latest = None if core is None else core.log.latest_snapshot
        if known_latest is None:
            return None
        if known_latest == BOOTSTRAP_SNAPSHOT_ID:
            return self._bootstraps.get(id(memory))
        known = self._contents.get(known_latest)
        return known if known is not None else self._read(memory, known_latest)


def read_content(memory: NodeMemory, snapshot_id: OffsetAndEpoch) -> SnapshotContent:
    """Read a node's snapshot from its disk; raise StorageError or WireError."""
    path = memory.node.settings.directory / snapshot_name(snapshot_id)
    file = memory.node.disk.directory_at(path.parent).names[path.name]
    voters: VoterSet | None = None
    kraft_version, records_crc = 0, 0
    for header, data in read_snapshot_batches(SnapshotInMemory(path, bytes(file.content))):
        for batch in read_batches(data):
            if not header.is_control:
                for record in batch.records():
                    records_crc = crc32c(record.value or b"", records_crc)
                continue
            found = quorum_controls(batch)
            voters = found.voters[-1][1] if found.voters else voters
            kraft_version = found.kraft_versions[-1][1] if found.kraft_versions else kraft_version
    return SnapshotContent(snapshot_id.offset, voters, kraft_version, records_crc)
