"""Snapshots of the metadata log, and bootstrap.checkpoint: each whole, and fit to be loaded."""

from __future__ import annotations

from pathlib import Path

from kvorum.inspection.log_check.findings import Findings, Rule
from kvorum.inspection.log_check.log_units import add_damage, plan_files, read_unit
from kvorum.inspection.log_check.metadata_check import LoadedSnapshot, MetadataFold, QuorumFacts
from kvorum.metadata.image import MetadataImage
from kvorum.spark.files.damage import Damage
from kvorum.storage.names import parse_snapshot_name
from kvorum.wire.records import RecordBatch


def load_snapshot(path: Path, findings: Findings, quorum: QuorumFacts) -> LoadedSnapshot | None:
    """Return a snapshot that is sound; None, with a finding, for any other one."""
    name = parse_snapshot_name(path.name)
    fold = _folded(path, findings, quorum, epoch=None if name is None else name.id.epoch)
    if fold is None or name is None:
        return None
    return LoadedSnapshot(name, path, fold.image(), fold.last_contained_timestamp)


def check_bootstrap_checkpoint(path: Path, findings: Findings) -> None:
    """Add findings for the first records of a cluster, which have the form of a snapshot."""
    quorum = QuorumFacts()
    _folded(path, findings, quorum, epoch=None)
    if quorum.voters:
        problem = "it holds the quorum's voters, which belong into the snapshot of offset 0"
        findings.add(Rule.SNAPSHOT, path, problem, position=0)


def _folded(
    path: Path, findings: Findings, quorum: QuorumFacts, *, epoch: int | None
) -> MetadataFold | None:
    """Fold a snapshot; every batch is of `epoch`, if that is given."""
    fold = MetadataFold(findings, quorum, MetadataImage())
    try:
        for unit in plan_files([path], findings):
            for item in read_unit(unit, has_gaps=False):
                if isinstance(item, Damage):
                    add_damage(item, findings, Rule.SNAPSHOT)
                    fold.is_trusted = False
                elif isinstance(item, RecordBatch):
                    _check_epoch(path, item, epoch, findings)
                    fold.take(path, item)
    except OSError as error:
        findings.unreadable(path, error)
        return None
    return fold if fold.is_trusted and not findings.has_damage_in(path) else None


def _check_epoch(path: Path, batch: RecordBatch, epoch: int | None, findings: Findings) -> None:
    found = batch.partition_leader_epoch
    if epoch is not None and found != epoch:
        findings.add(
            Rule.SNAPSHOT,
            path,
            f"a batch of epoch {found} in a snapshot of epoch {epoch}",
            position=batch.position,
            offset=batch.base_offset,
        )
