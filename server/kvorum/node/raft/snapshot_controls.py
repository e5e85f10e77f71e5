"""The control records of a snapshot: the voters and the kraft.version."""

from typing import NamedTuple

from kvorum.node.raft.control_records import quorum_controls
from kvorum.node.raft.log_batches import batches_of
from kvorum.raft.voter_set import VoterSet
from kvorum.storage.metadata_log.metadata_log import MetadataLog
from kvorum.storage.metadata_log.snapshot_reader import read_snapshot_batches
from kvorum.wire.offset_and_epoch import OffsetAndEpoch


class SnapshotControls(NamedTuple):
    """The voters and the kraft.version in a snapshot."""

    voters: VoterSet | None
    kraft_version: int


def snapshot_controls(log: MetadataLog, snapshot_id: OffsetAndEpoch) -> SnapshotControls:
    """Return the quorum's records in the first batch of a snapshot. Raises StorageError."""
    voters: VoterSet | None = None
    kraft_version = 0
    reader = log.snapshots.open(snapshot_id)
    if reader is None:
        return SnapshotControls(None, 0)
    try:
        for header, data in read_snapshot_batches(reader):
            if not header.is_control:
                break
            for batch in batches_of(log, data):
                found = quorum_controls(batch)
                voters = found.voters[-1][1] if found.voters else voters
                kraft_version = (
                    found.kraft_versions[-1][1] if found.kraft_versions else kraft_version
                )
    finally:
        reader.close()
    return SnapshotControls(voters, kraft_version)
