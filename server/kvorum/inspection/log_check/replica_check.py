"""Replicas of one log compared: the same offset must have the same record everywhere.

Two logs that have a batch of the same offset and epoch are equal up to it. The ends of two logs may
differ: a replica whose leader failed may have records that were never committed, until it follows
the next leader. That is a note; anything else is damage.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from kvorum.inspection.log_check.findings import Findings, Rule, Severity
from kvorum.inspection.log_check.listing import read_directory
from kvorum.wire.errors import WireError
from kvorum.wire.records import RecordBatch
from kvorum.wire.records.decompression import UNLIMITED_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """One replica's directory; records below `committed` cannot have been replaced since.

    `voters` are the ids of all voters that the metadata log names.
    """

    directory: Path
    is_metadata: bool
    committed: int
    voters: frozenset[int]


class _Place(NamedTuple):
    file: Path
    batch: RecordBatch


def check_replicas(replicas: list[Replica], findings: Findings) -> None:
    """Compare each replica with the first one; the first difference of each is a finding."""
    reference, *others = replicas
    for other in others:
        if reference.voters and other.voters and reference.voters.isdisjoint(other.voters):
            problem = f"not compared with {reference.directory}: they have no voter in common"
            findings.add(Rule.DIVERGENCE, other.directory, problem, severity=Severity.NOTE)
            continue
        try:
            _compare(reference, other, findings)
        except OSError as error:
            findings.unreadable(other.directory, error)


def _batches(replica: Replica) -> Iterator[_Place]:
    """Yield the sound batches of a replica; what is damaged was found before."""
    for file, item in read_directory(replica.directory):
        if isinstance(item, RecordBatch):
            yield _Place(file, item)


def _compare(reference: Replica, other: Replica, findings: Findings) -> None:
    first: tuple[_Place, _Place] | None = None
    for ours, theirs in _overlapping(_batches(reference), _batches(other)):
        if ours.batch.partition_leader_epoch != theirs.batch.partition_leader_epoch:
            first = first or (ours, theirs)
            continue
        if first is not None:
            _add(*first, "they differ, and agree again behind", findings, Severity.DAMAGE)
            return
        problem = _difference(ours.batch, theirs.batch, is_exact=reference.is_metadata)
        if problem is not None:
            _add(ours, theirs, problem, findings, Severity.DAMAGE)
            return
    if first is None:
        return
    ours, theirs = first
    offset = max(ours.batch.base_offset, theirs.batch.base_offset)
    is_committed = offset < min(reference.committed, other.committed)
    problem = "their ends differ from here on"
    _add(
        ours,
        theirs,
        f"{problem}, though both had committed the offset" if is_committed else problem,
        findings,
        Severity.DAMAGE if is_committed else Severity.NOTE,
    )


def _overlapping(
    ours: Iterator[_Place], theirs: Iterator[_Place]
) -> Iterator[tuple[_Place, _Place]]:
    """Yield each pair of batches that have an offset in common."""
    one, other = next(ours, None), next(theirs, None)
    while one is not None and other is not None:
        if one.batch.last_offset < other.batch.base_offset:
            one = next(ours, None)
        elif other.batch.last_offset < one.batch.base_offset:
            other = next(theirs, None)
        else:
            yield one, other
            if one.batch.last_offset <= other.batch.last_offset:
                one = next(ours, None)
            else:
                other = next(theirs, None)


def _difference(ours: RecordBatch, theirs: RecordBatch, *, is_exact: bool) -> str | None:
    """Return how two batches of one epoch differ, apart from what compaction does; or None."""
    if ours.crc == theirs.crc and ours.base_offset == theirs.base_offset:
        return None
    if is_exact:
        return "they have different batches of the same epoch"
    try:
        known = ours.records(UNLIMITED_BYTES)
        one = next(known, None)
        for record in theirs.records(UNLIMITED_BYTES):
            while one is not None and one.offset < record.offset:
                one = next(known, None)
            if one is not None and one.offset == record.offset and one != record:
                return f"offset {record.offset} has different records of the same epoch"
    except WireError:
        # Records that cannot be read were found before.
        return None
    return None


def _add(
    ours: _Place, theirs: _Place, problem: str, findings: Findings, severity: Severity
) -> None:
    for one, other in ((ours, theirs), (theirs, ours)):
        findings.add(
            Rule.DIVERGENCE,
            one.file,
            f"{problem}: epoch {one.batch.partition_leader_epoch} here, epoch "
            f"{other.batch.partition_leader_epoch} in {other.file} at byte {other.batch.position}",
            position=one.batch.position,
            offset=max(ours.batch.base_offset, theirs.batch.base_offset),
            severity=severity,
        )
