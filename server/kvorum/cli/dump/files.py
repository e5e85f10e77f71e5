"""The dump of one file, whose kind its name shows."""

from __future__ import annotations

from collections.abc import Iterator

from kvorum.cli.dump.complaints import Complaints
from kvorum.cli.dump.errors import DamagedFileError
from kvorum.cli.dump.java_file import JavaFile
from kvorum.cli.dump.options import DumpOptions
from kvorum.cli.dump.output import print_lines
from kvorum.cli.dump.processes import print_log
from kvorum.cli.dump.small_files import (
    Findings,
    IndexedLog,
    check_offset_index,
    check_time_index,
    offset_index_lines,
    producer_snapshot_lines,
    time_index_lines,
    transaction_index_lines,
)
from kvorum.inspection.index_entries import offset_entries
from kvorum.inspection.mapped_file import MappedFile
from kvorum.storage.metadata_log.bootstrap_checkpoint import BOOTSTRAP_CHECKPOINT
from kvorum.storage.names import parse_snapshot_name

_PASSED = "passed sanity check."


def print_file(file: JavaFile, options: DumpOptions, complaints: Complaints) -> None:
    """Print the output for one file.

    Raises OSError, `LostProcessError` and the errors of `UNREADABLE`; whatever precedes them is
    printed.
    """
    print_lines([f"Dumping {file.text}"])
    match file.suffix:
        case ".log" | ".checkpoint":
            _print_log(file, options, complaints)
        case ".index":
            print_lines(_offset_index_lines(file, options, complaints))
        case ".timeindex":
            print_lines(_time_index_lines(file, options, complaints))
        case ".snapshot":
            print_lines(_producer_lines(file, complaints))
        case ".txnindex":
            print_lines(_transaction_lines(file))
        case _:
            complaints.now.append(f"Ignoring unknown file {file.text}")


def _print_log(file: JavaFile, options: DumpOptions, complaints: Complaints) -> None:
    dump = options.log_dump(file.name)
    print_lines([_log_title(file)])
    if dump.bytes_max < 0:
        raise DamagedFileError(f"--max-bytes is {dump.bytes_max}: no such part of a file exists")
    print_log(dump, MappedFile(file.path))
    if dump.gaps.pairs:
        complaints.gaps.setdefault(file.absolute, {}).update(dump.gaps.pairs)


def _log_title(file: JavaFile) -> str:
    if file.suffix == ".log":
        return f"Log starting offset: {_base_offset(file)}"
    if file.name == BOOTSTRAP_CHECKPOINT:
        return "KRaft bootstrap snapshot"
    snapshot = parse_snapshot_name(file.name)
    if snapshot is None:
        raise DamagedFileError(f"{file.name} is not the name of a snapshot")
    return f"Snapshot end offset: {snapshot.id.offset}, epoch: {snapshot.id.epoch}"


def _offset_index_lines(
    file: JavaFile, options: DumpOptions, complaints: Complaints
) -> Iterator[str]:
    message_bytes_max = options.message_bytes_max
    base_offset = _base_offset(file)
    log = MappedFile(file.neighbour(".log"))
    data = file.path.read_bytes()
    if not offset_entries(data, base_offset):
        yield f"{file.text} is empty."
        return
    if options.only_checks_indexes:
        check_offset_index(data, base_offset, file.absolute)
        yield f"{file.text} {_PASSED}"
        return
    findings = complaints.findings.setdefault(file.absolute, Findings())
    indexed = IndexedLog(log.view, message_bytes_max)
    for line in offset_index_lines(data, indexed, base_offset=base_offset, findings=findings):
        if not options.only_verifies_indexes:
            yield line


def _time_index_lines(
    file: JavaFile, options: DumpOptions, complaints: Complaints
) -> Iterator[str]:
    base_offset = _base_offset(file)
    log = MappedFile(file.neighbour(".log"))
    offsets = file.neighbour(".index").read_bytes()
    data = file.path.read_bytes()
    if options.only_checks_indexes:
        check_time_index(data, base_offset, file.absolute)
        yield f"{file.text} {_PASSED}"
        return
    findings = complaints.findings.setdefault(file.absolute, Findings())
    lines = time_index_lines(data, offsets, log.view, base_offset=base_offset, findings=findings)
    for line in lines:
        if not options.only_verifies_indexes:
            yield line


def _producer_lines(file: JavaFile, complaints: Complaints) -> Iterator[str]:
    try:
        yield from producer_snapshot_lines(file.path.read_bytes())
    except DamagedFileError as error:
        complaints.now.append(str(error))


def _transaction_lines(file: JavaFile) -> Iterator[str]:
    _base_offset(file)
    # A segment without aborted transactions has no such file.
    if file.path.exists():
        yield from transaction_index_lines(file.path.read_bytes())


def _base_offset(file: JavaFile) -> int:
    offset = file.base_offset
    if offset is None:
        raise DamagedFileError(f"{file.name} does not begin with an offset")
    return offset
