"""The facts that the control records of a log prove: voters, last leader, what is committed.

A leader does not write into its log how much of it is committed. But some records are proof:

- a snapshot is made of committed records only;
- a leader takes records, and changes of the voters, only after the batch that begins its epoch is
  committed; so the second batch of an epoch proves that the first one is committed;
- a leader changes the voters only after the change before is committed; so a VotersRecord proves
  that of the VotersRecord before it.

Everything below a committed record is committed. Records after the last proof may or may not be:
no file of one replica shows that. (``kvorum-flushed-offset`` is about durability on one disk.)
"""

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from kvorum.node.raft.control_records import quorum_controls
from kvorum.raft.voter_set import VoterSet
from kvorum.raft.voter_set_history import VoterSetHistory
from kvorum.wire.messages.leader_change_message import LeaderChangeMessage
from kvorum.wire.offset_and_epoch import OffsetAndEpoch
from kvorum.wire.records import RecordBatch, decode_control_record

NOTHING_COMMITTED = OffsetAndEpoch(0, 0)


class Proof(Enum):
    """The reason why a part of a log is known to be committed."""

    NONE = "no record proves that anything is committed"
    SNAPSHOT = "a snapshot ends there"
    EPOCH_START = "the leader of that epoch took records behind it"
    VOTERS = "the voters were changed again behind it"


class Committed(NamedTuple):
    """The end of the part of a log that is known to be committed, and the proof of that."""

    end: OffsetAndEpoch = NOTHING_COMMITTED
    proof: Proof = Proof.NONE


class RecordedVoters(NamedTuple):
    """A VotersRecord: the end of the log up to and with it, and the voters in it."""

    end: OffsetAndEpoch
    voters: VoterSet


class EpochBeginning(NamedTuple):
    """The batch that begins a leader's epoch: the leader, and the log's end after the batch."""

    leader_id: int
    end: OffsetAndEpoch


@dataclass(slots=True)
class LogFacts:
    """The facts of a log; `add` takes its batches in order, from the latest snapshot on."""

    history: VoterSetHistory
    committed: Committed = field(default_factory=Committed)
    recorded: list[RecordedVoters] = field(default_factory=list[RecordedVoters])
    epoch_beginning: EpochBeginning | None = None

    def start_from_snapshot(
        self, snapshot_id: OffsetAndEpoch, *, voters: VoterSet | None, kraft_version: int
    ) -> None:
        """Begin with the contents of a snapshot."""
        self.history.start_from_snapshot(snapshot_id, voters=voters, kraft_version=kraft_version)
        self._prove(snapshot_id, Proof.SNAPSHOT)
        if voters is not None:
            self.recorded.append(RecordedVoters(snapshot_id, voters))

    def note_data(self, epoch: int) -> None:
        """Note a batch that holds no control records."""
        beginning = self.epoch_beginning
        if beginning is not None and beginning.end.epoch == epoch:
            self._prove(beginning.end, Proof.EPOCH_START)

    def note_control(self, batch: RecordBatch) -> None:
        """Note a control batch; raises WireError for one that cannot be decoded."""
        epoch = batch.partition_leader_epoch
        leader_id = _leader_of(batch)
        if leader_id is None:
            self.note_data(epoch)
        else:
            end = OffsetAndEpoch(batch.next_offset, epoch)
            self.epoch_beginning = EpochBeginning(leader_id, end)
        found = quorum_controls(batch)
        for offset, version in found.kraft_versions:
            self.history.add_kraft_version(offset, version)
        for offset, voters in found.voters:
            self.history.add_voters(offset, voters)
            if leader_id is None and self.recorded:
                self._prove(self.recorded[-1].end, Proof.VOTERS)
            self.recorded.append(RecordedVoters(OffsetAndEpoch(offset + 1, epoch), voters))

    def leader_of(self, epoch: int) -> int | None:
        """Return the leader of the log's last epoch; None if its beginning is not in the log."""
        beginning = self.epoch_beginning
        return None if beginning is None or beginning.end.epoch != epoch else beginning.leader_id

    def _prove(self, end: OffsetAndEpoch, proof: Proof) -> None:
        if end > self.committed.end:
            self.committed = Committed(end, proof)


def _leader_of(batch: RecordBatch) -> int | None:
    """Return the leader whose epoch a control batch begins; None for any other control batch."""
    first = next(iter(batch.records()), None)
    message = None if first is None else decode_control_record(first).message
    return message.leader_id if isinstance(message, LeaderChangeMessage) else None
