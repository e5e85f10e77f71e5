"""The control records of the metadata log, converted to the core's values and back."""

from typing import NamedTuple

from kvorum.node.raft.translation.common import directory_id_of, read_endpoints, replica_key
from kvorum.raft.effects import AppendEpochStart, AppendVoters
from kvorum.raft.voter import Voter
from kvorum.raft.voter_set import VoterSet
from kvorum.wire.errors import CorruptBatchError
from kvorum.wire.messages.k_raft_version_record import KRaftVersionRecord
from kvorum.wire.messages.leader_change_message import LeaderChangeMessage
from kvorum.wire.messages.voters_record import VotersRecord
from kvorum.wire.records import (
    ControlRecord,
    ControlRecordType,
    RecordBatch,
    build_control_batch,
    decode_control_record,
)


class QuorumControls(NamedTuple):
    """The voter sets and kraft.versions in a batch, with their offsets."""

    voters: tuple[tuple[int, VoterSet], ...]
    kraft_versions: tuple[tuple[int, int], ...]


def quorum_controls(batch: RecordBatch) -> QuorumControls:
    """Return the voters and kraft.versions in a batch; raises CorruptBatchError."""
    if not batch.is_control:
        return QuorumControls((), ())
    voters: list[tuple[int, VoterSet]] = []
    versions: list[tuple[int, int]] = []
    for record in batch.records():
        message = decode_control_record(record).message
        if isinstance(message, VotersRecord):
            voters.append((record.offset, voter_set_of(message)))
        elif isinstance(message, KRaftVersionRecord):
            versions.append((record.offset, message.k_raft_version))
    return QuorumControls(tuple(voters), tuple(versions))


def control_batch(effect: AppendEpochStart | AppendVoters, *, timestamp_ms: int) -> bytes:
    """Return the batch that begins a leader's epoch, or that changes the voters.

    With the voters, it may change kraft.version.
    """
    if isinstance(effect, AppendEpochStart):
        controls = [ControlRecord(ControlRecordType.LEADER_CHANGE, _leader_change(effect))]
        if effect.voters is not None:
            controls += quorum_control_records(effect.kraft_version, effect.voters)
    elif effect.kraft_version is not None:
        controls = quorum_control_records(effect.kraft_version, effect.voters)
    else:
        controls = [ControlRecord(ControlRecordType.KRAFT_VOTERS, voters_record_of(effect.voters))]
    return build_control_batch(
        controls, base_offset=effect.base_offset, epoch=effect.epoch, timestamp_ms=timestamp_ms
    )


def _leader_change(start: AppendEpochStart) -> LeaderChangeMessage:
    return LeaderChangeMessage(
        version=0,
        leader_id=start.leader_id,
        voters=[LeaderChangeMessage.Voter(voter_id) for voter_id in start.voter_ids],
        granting_voters=[LeaderChangeMessage.Voter(voter_id) for voter_id in start.granting_ids],
    )


def quorum_control_records(kraft_version: int, voters: VoterSet | None) -> list[ControlRecord]:
    """Return the records for kraft.version and voters: none below version 1."""
    if kraft_version < 1:
        return []
    version = KRaftVersionRecord(version=0, k_raft_version=kraft_version)
    controls = [ControlRecord(ControlRecordType.KRAFT_VERSION, version)]
    if voters is not None:
        controls.append(ControlRecord(ControlRecordType.KRAFT_VOTERS, voters_record_of(voters)))
    return controls


def voters_record_of(voters: VoterSet) -> VotersRecord:
    """Return the record that contains a voter set."""
    return VotersRecord(
        version=0,
        voters=[
            VotersRecord.Voter(
                voter_id=voter.key.id,
                voter_directory_id=directory_id_of(voter.key),
                endpoints=[
                    VotersRecord.Endpoint(one.name, one.host, one.port) for one in voter.endpoints
                ],
                k_raft_version_feature=VotersRecord.KRaftVersionFeature(
                    voter.kraft_version_min, voter.kraft_version_max
                ),
            )
            for voter in voters.voters
        ],
    )


def voter_set_of(record: VotersRecord) -> VoterSet:
    """Return the voter set in a record; raises CorruptBatchError for an impossible one."""
    try:
        return VoterSet.of(
            Voter(
                key=replica_key(one.voter_id, one.voter_directory_id),
                endpoints=read_endpoints(one.endpoints),
                kraft_version_min=one.k_raft_version_feature.min_supported_version,
                kraft_version_max=one.k_raft_version_feature.max_supported_version,
            )
            for one in record.voters
        )
    except ValueError as error:
        raise CorruptBatchError("VotersRecord", str(error)) from error
