"""The election record of the core, read from the file quorum-state and written to it."""

from kvorum.node.raft.translation.common import replica_key
from kvorum.raft.effects import WriteElection
from kvorum.raft.election_record import ElectionRecord
from kvorum.storage.small_files.quorum_state import QuorumState, QuorumStateFile
from kvorum.wire.uuid_text import ZERO_UUID


def read_election(file: QuorumStateFile) -> ElectionRecord | None:
    """Return the stored election record, or None if there is no file. Raises StorageError."""
    state = file.read()
    if state is None:
        return None
    voted = None
    if state.voted_id is not None:
        voted = replica_key(state.voted_id, state.voted_directory_id or ZERO_UUID)
    return ElectionRecord(state.leader_epoch, state.leader_id, voted)


def write_election(file: QuorumStateFile, write: WriteElection) -> None:
    """Store an election record durably."""
    voted = write.record.voted
    file.write(
        QuorumState(
            leader_epoch=write.record.epoch,
            leader_id=write.record.leader_id,
            voted_id=None if voted is None else voted.id,
            voted_directory_id=None if voted is None else voted.directory_id,
            voters=write.voter_ids,
        ),
        version=min(write.kraft_version, 1),
    )
