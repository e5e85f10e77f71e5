"""The dump of one file, whose kind its name shows."""

from __future__ import annotations

import mmap
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from kvorum.cli.dump.options import DumpOptions
from kvorum.cli.dump.small_files import (
    DamagedFileError,
    Findings,
    check_offset_index,
    check_time_index,
    offset_entries,
    offset_index_lines,
    producer_snapshot_lines,
    time_index_lines,
    transaction_index_lines,
)
from kvorum.storage.bootstrap_checkpoint import BOOTSTRAP_CHECKPOINT
from kvorum.storage.names import parse_snapshot_name

_BASE_OFFSET = re.compile(r"[+-]?[0-9]{1,20}")
_PASSED = "passed sanity check."


@dataclass(slots=True)
class Complaints:
    """The messages for standard error after all files are printed, by file.

    `now` has the messages to print directly after the current file.
    """

    gaps: dict[Path, list[tuple[int, int]]] = field(
        default_factory=dict[Path, list[tuple[int, int]]]
    )
    findings: dict[Path, Findings] = field(default_factory=dict[Path, Findings])
    now: list[str] = field(default_factory=list[str])

    def lines(self) -> Iterator[str]:
        """Yield the messages in Kafka's order: indexes, time indexes, logs."""
        yield from self._section(
            "Mismatches in :{}",
            "  Index offset: {}, log offset: {}",
            lambda each: sorted(each.offset_mismatches, reverse=True),
        )
        yield from self._section(
            "Found timestamp mismatch in :{}",
            "  Index timestamp: {}, log timestamp: {}",
            lambda each: each.time_mismatches,
        )
        yield from self._section(
            "Found out of order timestamp in :{}",
            "  Index timestamp: {}, Previously indexed timestamp: {}",
            lambda each: each.unordered_times,
        )
        yield from self._section(
            "The following indexed offsets are not found in :{}",
            "Indexed offset: {}, found log offset: {}",
            lambda each: each.missing_offsets,
        )
        for path, gaps in self.gaps.items():
            yield f"Non-consecutive offsets in {path}"
            yield from (f"  {before} is followed by {after}" for before, after in gaps)

    def _section(
        self, title: str, line: str, choose: Callable[[Findings], list[tuple[int, int]]]
    ) -> Iterator[str]:
        for path, findings in self.findings.items():
            pairs = choose(findings)
            if pairs:
                yield title.format(path)
                yield from (line.format(first, second) for first, second in pairs)


def file_lines(name: str, options: DumpOptions, complaints: Complaints) -> Iterator[str]:
    """Yield the output for one file; OSError and DamagedFileError where it cannot be read."""
    path = Path(name)
    yield f"Dumping {name}"
    match path.suffix:
        case ".log" | ".checkpoint":
            yield from _log_lines(path, options, complaints)
        case ".index":
            yield from _offset_index_lines(path, options, complaints)
        case ".timeindex":
            yield from _time_index_lines(path, options, complaints)
        case ".snapshot":
            yield from _producer_lines(path, complaints)
        case ".txnindex":
            yield from transaction_index_lines(path.read_bytes())
        case _:
            complaints.now.append(f"Ignoring unknown file {name}")


def _mapped(path: Path) -> memoryview:
    """Map a file's bytes into memory; an empty file, which cannot be mapped, has no bytes.

    The mapping is removed with the last view of it, such as a batch that is still in use.
    """
    with path.open("rb") as file:
        if path.stat().st_size == 0:
            return memoryview(b"")
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def _log_lines(path: Path, options: DumpOptions, complaints: Complaints) -> Iterator[str]:
    if path.suffix == ".log":
        yield f"Log starting offset: {_base_offset(path)}"
    elif path.name == BOOTSTRAP_CHECKPOINT:
        yield "KRaft bootstrap snapshot"
    else:
        snapshot = parse_snapshot_name(path.name)
        if snapshot is None:
            raise DamagedFileError(f"{path.name} is not the name of a snapshot")
        yield f"Snapshot end offset: {snapshot.id.offset}, epoch: {snapshot.id.epoch}"
    dump = options.log_dump(path.name)
    yield from dump.lines(_mapped(path))
    if dump.gaps:
        complaints.gaps[path.absolute()] = sorted(dict(dump.gaps).items())


def _offset_index_lines(path: Path, options: DumpOptions, complaints: Complaints) -> Iterator[str]:
    data, base_offset = path.read_bytes(), _base_offset(path)
    log = _mapped(path.with_suffix(".log"))
    if not offset_entries(data, base_offset):
        yield f"{path} is empty."
        return
    if options.only_checks_indexes:
        check_offset_index(data, base_offset, str(path.absolute()))
        yield f"{path} {_PASSED}"
        return
    findings = complaints.findings.setdefault(path.absolute(), Findings())
    for line in offset_index_lines(data, log, base_offset=base_offset, findings=findings):
        if not options.only_verifies_indexes:
            yield line


def _time_index_lines(path: Path, options: DumpOptions, complaints: Complaints) -> Iterator[str]:
    data, base_offset = path.read_bytes(), _base_offset(path)
    offsets = path.with_suffix(".index").read_bytes()
    log = _mapped(path.with_suffix(".log"))
    if options.only_checks_indexes:
        check_time_index(data, base_offset, str(path.absolute()))
        yield f"{path} {_PASSED}"
        return
    findings = complaints.findings.setdefault(path.absolute(), Findings())
    lines = time_index_lines(data, offsets, log, base_offset=base_offset, findings=findings)
    for line in lines:
        if not options.only_verifies_indexes:
            yield line


def _producer_lines(path: Path, complaints: Complaints) -> Iterator[str]:
    try:
        yield from producer_snapshot_lines(path.read_bytes())
    except DamagedFileError as error:
        complaints.now.append(str(error))


def _base_offset(path: Path) -> int:
    text = path.name.partition(".")[0]
    if not _BASE_OFFSET.fullmatch(text):
        raise DamagedFileError(f"{path.name} does not begin with an offset")
    return int(text)
