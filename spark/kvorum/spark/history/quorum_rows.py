"""Rows about the quorum itself, from the control records of the metadata log."""

from __future__ import annotations

from typing import NamedTuple

from kvorum.spark.history.columns import Int32, Int64, TimestampMs, VoterColumn


class QuorumEpochRow(NamedTuple):
    """An epoch of the quorum and its leader, up to the begin of the next epoch in the log."""

    epoch: Int32
    leader: Int32 | None
    voters: tuple[Int32, ...]
    granting_voters: tuple[Int32, ...]
    from_offset: Int64
    from_time: TimestampMs
    begins_earlier: bool
    to_offset: Int64 | None
    to_time: TimestampMs | None
    end_reason: str


class QuorumVotersRow(NamedTuple):
    """The kraft.version and the voters from the record at `from_offset` up to `to_offset`."""

    kraft_version: Int32
    voters: tuple[VoterColumn, ...]
    from_offset: Int64
    from_time: TimestampMs
    begins_earlier: bool
    to_offset: Int64 | None
    to_time: TimestampMs | None
    end_reason: str
