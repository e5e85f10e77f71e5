"""The properties' view of a node, and their memory of it from event to event."""

from collections.abc import Mapping
from typing import Protocol

from kvorum.node.raft.settings import RaftSettings
from kvorum.raft import RaftCore, ReplicaKey
from kvorum.raft.election_record import ElectionRecord
from kvorum.raft.roles import Role
from kvorum.simulation.disk import SimulatedDisk
from kvorum.simulation.disk_faults import FileKind
from kvorum.simulation.properties.log_scan import LogScan
from kvorum.storage.errors import StorageError
from kvorum.storage.metadata_log.flushed_offset import FlushedOffsetFile
from kvorum.storage.metadata_log.metadata_log import MetadataLog
from kvorum.storage.small_files.quorum_state import QUORUM_STATE_FILE, decode_quorum_state
from kvorum.wire.offset_and_epoch import OffsetAndEpoch


class ObservedNode(Protocol):
    """A node of a simulated world, running or not."""

    @property
    def node_id(self) -> int:
        """Its id."""
        ...

    @property
    def directory_id(self) -> bytes:
        """The id of its log directory; it changes when its disk is replaced."""
        ...

    @property
    def settings(self) -> RaftSettings:
        """The configuration of its replica."""
        ...

    @property
    def disk(self) -> SimulatedDisk:
        """Its disk."""
        ...

    @property
    def start_count(self) -> int:
        """The number of its processes so far."""
        ...

    @property
    def core(self) -> RaftCore | None:
        """The core of its process; None where none runs."""
        ...

    @property
    def log(self) -> MetadataLog | None:
        """The log of its process; None where none runs."""
        ...


class NodeMemory:
    """The properties' memory of one directory of one node; a replaced disk gets a new memory."""

    def __init__(self, node: ObservedNode) -> None:
        self.node = node
        self.key = ReplicaKey(node.node_id, node.directory_id)
        self.scan = LogScan(node.disk, node.settings.directory)
        self.role: Role | None = None
        # The role whose leader was compared with the leader that other nodes know.
        self.leader_role: Role | None = None
        self.start_count = 0
        # The highest high watermark that the node knew: in this process, and ever.
        self.process_high_watermark: int | None = None
        self.high_watermark = 0
        # The least end of the log after the next start.
        self.promise = 0
        # The end of the log's durable part by the core, and of the part compared with other logs.
        self.durable_offset = 0
        self.verified_offset = 0
        self.start_offset = 0
        self.scanned_end = 0
        # The position in the files at the last look.
        self.marks: Mapping[str, int] = {}
        self.snapshots: frozenset[OffsetAndEpoch] = frozenset()
        self.election = ElectionRecord(0)
        # The disk refused a call, so the process may stop.
        self.is_excused = False
        self._election_bytes: bytes | None = None

    @property
    def name(self) -> str:
        """The name of the node in messages."""
        return f"node {self.node.node_id}"

    def promised_offset(self) -> int:
        """Return how far a log must reach when it is opened, or be refused.

        It must contain all durable records. But where a power cut has lost the last write of the
        flushed offset, a flipped bit in the last batch looks like a batch that was never wholly
        written.
        """
        if not self.is_log_damaged:
            return self.durable_offset
        directory = self.node.settings.directory
        try:
            known = FlushedOffsetFile(directory, self.node.disk.inspect()).read()
        except StorageError:
            return 0
        return min(self.durable_offset, known or 0)

    @property
    def is_damaged(self) -> bool:
        """Whether some file may have lost durable bytes."""
        return bool(self.node.disk.damaged_kinds)

    @property
    def is_log_damaged(self) -> bool:
        """Whether the log may have lost durable bytes."""
        return FileKind.LOG in self.node.disk.damaged_kinds

    def read_election(self) -> ElectionRecord:
        """Return the durable election record; the last known one where the file is damaged."""
        data = self._durable_election_bytes()
        if data == self._election_bytes:
            return self.election
        self._election_bytes = data
        if data is None:
            self.election = ElectionRecord(0)
            return self.election
        try:
            state = decode_quorum_state(data, self.node.settings.directory / QUORUM_STATE_FILE)
        except StorageError:
            return self.election
        voted = (
            None if state.voted_id is None else ReplicaKey(state.voted_id, state.voted_directory_id)
        )
        self.election = ElectionRecord(state.leader_epoch, state.leader_id, voted)
        return self.election

    def _durable_election_bytes(self) -> bytes | None:
        directory = self.node.settings.directory
        if not self.node.disk.has_directory(directory):
            return None
        file = self.node.disk.directory_at(directory).durable_file(QUORUM_STATE_FILE)
        return None if file is None else file.durable()
