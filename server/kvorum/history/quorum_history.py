"""The epochs of the quorum and its voters, from control records."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

from kvorum.history.columns import VoterColumn, VoterEndpointColumn
from kvorum.history.intervals import Begin, End, IntervalEnd, Position, begin_at, end_at
from kvorum.history.tables import QuorumEpochRow, QuorumVotersRow
from kvorum.wire.messages.k_raft_version_record import KRaftVersionRecord
from kvorum.wire.messages.leader_change_message import LeaderChangeMessage
from kvorum.wire.messages.voters_record import VotersRecord
from kvorum.wire.primitives import Message
from kvorum.wire.records import CONTROL_VERSION
from kvorum.wire.uuid_text import uuid_to_text

QuorumRow: TypeAlias = QuorumEpochRow | QuorumVotersRow


class OpenEpoch(NamedTuple):
    """An epoch with its leader, None where the log begins within the epoch."""

    epoch: int
    leader: int | None
    voters: tuple[int, ...]
    granting_voters: tuple[int, ...]
    begin: Begin


class OpenVoters(NamedTuple):
    """The kraft.version and the latest VotersRecord, None before the first one."""

    kraft_version: int
    record: VotersRecord | None
    begin: Begin

    @property
    def columns(self) -> tuple[VoterColumn, ...]:
        """The voters as rows contain them, by id."""
        return () if self.record is None else voter_columns(self.record)


class QuorumHistory:
    """The history of the quorum up to the record that was handed in last."""

    def __init__(self) -> None:
        self._epoch: OpenEpoch | None = None
        self._voters: OpenVoters | None = None

    def enter_epoch(self, position: Position) -> Iterator[QuorumRow]:
        """Yield the epoch that ends if the record at `position` belongs to a later one.

        Without a LeaderChangeMessage the leader of the epoch is not known.
        """
        if self._epoch is None or self._epoch.epoch != position.epoch:
            yield from self._next_epoch(
                OpenEpoch(position.epoch, None, (), (), begin_at(position)), position
            )

    def control_record(self, message: Message, position: Position) -> Iterator[QuorumRow]:
        """Yield the intervals that end with a control record."""
        match message:
            case LeaderChangeMessage():
                opened = OpenEpoch(
                    position.epoch,
                    message.leader_id,
                    tuple(voter.voter_id for voter in message.voters),
                    tuple(voter.voter_id for voter in message.granting_voters),
                    begin_at(position),
                )
                yield from self._next_epoch(opened, position)
            case KRaftVersionRecord(k_raft_version=version):
                record = None if self._voters is None else self._voters.record
                yield from self._next_voters(version, record, position)
            case VotersRecord():
                version = 0 if self._voters is None else self._voters.kraft_version
                yield from self._next_voters(version, message, position)
            case _:
                # Headers and footers of snapshots change nothing.
                return

    @property
    def voters(self) -> tuple[VoterColumn, ...]:
        """The voters of the latest VotersRecord, none without such a record."""
        return () if self._voters is None else self._voters.columns

    def open_rows(self, end: End) -> Iterator[QuorumRow]:
        """Yield a row for each open interval."""
        if self._epoch is not None:
            yield _epoch_row(self._epoch, end)
        if self._voters is not None:
            yield _voters_row(self._voters, end)

    def to_saved(self) -> dict[str, Any]:
        """Return the open intervals for `from_saved`."""
        voters, encoded = self._voters, None
        if voters is not None and voters.record is not None:
            encoded = base64.b64encode(voters.record.encode(CONTROL_VERSION)).decode("ascii")
        return {
            "epoch": self._epoch,
            "voters": None if voters is None else [voters.kraft_version, encoded, voters.begin],
        }

    @classmethod
    def from_saved(cls, saved: dict[str, Any]) -> QuorumHistory:
        """Return the history that `to_saved` wrote."""
        history = cls()
        if saved["epoch"] is not None:
            epoch, leader, voters, granting, begin = saved["epoch"]
            history._epoch = OpenEpoch(epoch, leader, tuple(voters), tuple(granting), Begin(*begin))
        if saved["voters"] is not None:
            version, encoded, begin = saved["voters"]
            record: VotersRecord | None = None
            if encoded is not None:
                record = VotersRecord.decode(base64.b64decode(encoded), CONTROL_VERSION)
            history._voters = OpenVoters(version, record, Begin(*begin))
        return history

    def _next_epoch(self, opened: OpenEpoch, position: Position) -> Iterator[QuorumRow]:
        before, self._epoch = self._epoch, opened
        if before is not None:
            yield _epoch_row(before, end_at(position, IntervalEnd.CHANGED))

    def _next_voters(
        self, version: int, record: VotersRecord | None, position: Position
    ) -> Iterator[QuorumRow]:
        before, self._voters = self._voters, OpenVoters(version, record, begin_at(position))
        if before is not None and not position.is_snapshot:
            yield _voters_row(before, end_at(position, IntervalEnd.CHANGED))


def voter_columns(record: VotersRecord) -> tuple[VoterColumn, ...]:
    """Return the voters of a record as rows contain them, by id."""
    return tuple(
        VoterColumn(
            voter.voter_id,
            uuid_to_text(voter.voter_directory_id),
            tuple(VoterEndpointColumn(each.name, each.host, each.port) for each in voter.endpoints),
            voter.k_raft_version_feature.min_supported_version,
            voter.k_raft_version_feature.max_supported_version,
        )
        for voter in sorted(record.voters, key=lambda voter: voter.voter_id)
    )


def _epoch_row(opened: OpenEpoch, end: End) -> QuorumEpochRow:
    return QuorumEpochRow(*opened[:4], *opened.begin, *end[:3])


def _voters_row(opened: OpenVoters, end: End) -> QuorumVotersRow:
    return QuorumVotersRow(opened.kraft_version, opened.columns, *opened.begin, *end[:3])
