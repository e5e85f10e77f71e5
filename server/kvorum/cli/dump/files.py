"""The dump of one file, whose kind its name shows, as the options choose.

Names of files are treated and printed as Java's File does: never resolved, only tidied up.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Final

from kvorum.cli.dump.arguments import Given, WrongUsageError
from kvorum.cli.dump.decoders import (
    STRING_DECODER,
    CoordinatorDecoder,
    Decoder,
    KeyValueDecoder,
    MetadataDecoder,
    named_decoder,
)
from kvorum.cli.dump.errors import DamagedFileError
from kvorum.cli.dump.log_dump import LogDump
from kvorum.cli.dump.log_text import LOG_BYTES_MAX
from kvorum.cli.dump.output import Complaints, print_lines
from kvorum.cli.dump.processes import print_log
from kvorum.cli.dump.remote_log_text import decode_remote_log_metadata
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
from kvorum.inspection.reading import MappedFile, Tell, no_report, offset_entries
from kvorum.internal_topics.coordinator_records import (
    CONSUMER_OFFSETS,
    SHARE_GROUP_STATE,
    TRANSACTION_STATE,
)
from kvorum.storage.metadata_log.bootstrap_checkpoint import BOOTSTRAP_CHECKPOINT
from kvorum.storage.names import parse_snapshot_name

_SLASHES = re.compile("/+")
_OFFSET = re.compile(r"[+-]?[0-9]{1,40}")
_OFFSET_LIMIT = 2**63
_PASSED = "passed sanity check."
MESSAGE_BYTES_MAX: Final = 5 * 1024 * 1024
_PRINTING: Final = (
    "print-data-log",
    "offsets-decoder",
    "transaction-log-decoder",
    "cluster-metadata-decoder",
    "remote-log-metadata-decoder",
    "value-decoder-class",
    "key-decoder-class",
    "share-group-state-decoder",
)
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,10}")
_INTEGER_LIMIT: Final = 2**31


@dataclass(frozen=True, slots=True)
class JavaFile:
    """A file by the text of its path, as `tidied` returns it."""

    text: str

    @property
    def absolute(self) -> str:
        """The path from the root on; `.` and `..` stay in it."""
        if self.text.startswith("/"):
            return self.text
        return f"{Path.cwd()}/{self.text}" if self.text else str(Path.cwd())

    @property
    def name(self) -> str:
        """The part after the last slash."""
        return self.text.rpartition("/")[2]

    @property
    def suffix(self) -> str:
        """The part from the last dot of the name on; empty without one."""
        _, dot, ending = self.name.rpartition(".")
        return dot + ending

    @property
    def stem(self) -> str:
        """The part before the first dot of the name."""
        return self.name.partition(".")[0]

    @property
    def base_offset(self) -> int | None:
        """The offset that the name begins with; None where it does not."""
        if not _OFFSET.fullmatch(self.stem):
            return None
        offset = int(self.stem)
        return offset if -_OFFSET_LIMIT <= offset < _OFFSET_LIMIT else None

    @property
    def path(self) -> Path:
        """The path for opening the file."""
        return Path(self.text)

    def neighbour(self, suffix: str) -> Path:
        """Return the path of the file of the same segment with another suffix."""
        return Path(os.path.dirname(self.absolute), self.stem + suffix)  # noqa: PTH120 - keeps ".."


def tidied(text: str) -> JavaFile:
    """Return a file as its path is given; slashes that mean nothing are dropped."""
    single = _SLASHES.sub("/", text)
    return JavaFile(single.removesuffix("/") if single != "/" else single)


def listed_files(text: str) -> list[JavaFile]:
    """Return the files of a list separated by commas; empty names count, except at its end."""
    if not text:
        return [JavaFile("")]
    names = text.split(",")
    while names and not names[-1]:
        names.pop()
    return [tidied(name) for name in names]


def print_file(
    file: JavaFile, options: DumpOptions, complaints: Complaints, *, report: Tell = no_report
) -> None:
    """Print the output for one file; `report` takes in how far it was read.

    Raises OSError, `LostProcessError` and the errors of `UNREADABLE`; whatever precedes them is
    printed.
    """
    print_lines([f"Dumping {file.text}"])
    match file.suffix:
        case ".log" | ".checkpoint":
            _print_log(file, options, complaints, report)
        case ".index":
            print_lines(_offset_index_lines(file, options, complaints))
        case ".timeindex":
            print_lines(_time_index_lines(file, options, complaints))
        case ".snapshot":
            try:
                print_lines(producer_snapshot_lines(file.path.read_bytes()))
            except DamagedFileError as error:
                complaints.now.append(str(error))
        case ".txnindex":
            _base_offset(file)
            # A segment without aborted transactions has no such file.
            if file.path.exists():
                print_lines(transaction_index_lines(file.path.read_bytes()))
        case _:
            complaints.now.append(f"Ignoring unknown file {file.text}")


def _print_log(file: JavaFile, options: DumpOptions, complaints: Complaints, report: Tell) -> None:
    dump = replace(options.log_dump(file.name), report=partial(report, file.path))
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


def _base_offset(file: JavaFile) -> int:
    offset = file.base_offset
    if offset is None:
        raise DamagedFileError(f"{file.name} does not begin with an offset")
    return offset


@dataclass(frozen=True)
class DumpOptions:
    """The choice of what is printed of the files, and how.

    Values are read when a file needs them, as by Kafka's tool: a wrong one shows between the lines
    of two files, as a `WrongUsageError`.
    """

    given: Given

    @cached_property
    def decoder(self) -> Decoder | None:
        """The decoder of the contents, in Kafka's order of precedence; None where none print."""
        if not self.given.has(*_PRINTING):
            return None
        if self.given.has("offsets-decoder"):
            return CoordinatorDecoder(CONSUMER_OFFSETS)
        if self.given.has("transaction-log-decoder"):
            return CoordinatorDecoder(TRANSACTION_STATE)
        if self.given.has("cluster-metadata-decoder"):
            return MetadataDecoder()
        if self.given.has("remote-log-metadata-decoder"):
            return decode_remote_log_metadata
        if self.given.has("share-group-state-decoder"):
            return CoordinatorDecoder(SHARE_GROUP_STATE)
        value = named_decoder(self.given.value("value-decoder-class", STRING_DECODER))
        key = named_decoder(self.given.value("key-decoder-class", STRING_DECODER))
        return KeyValueDecoder(key, value)

    @property
    def message_bytes_max(self) -> int:
        """The largest batch that is looked for where an offset index points."""
        return self._size("max-message-size", MESSAGE_BYTES_MAX)

    @property
    def only_verifies_indexes(self) -> bool:
        """Whether the entries of indexes are not printed."""
        return self.given.has("verify-index-only")

    @property
    def only_checks_indexes(self) -> bool:
        """Whether indexes are only checked as at a broker's start."""
        return self.given.has("index-sanity-check")

    def log_dump(self, file_name: str) -> LogDump:
        """Return the printer of one segment or snapshot."""
        return LogDump(
            file_name=file_name,
            is_deep=self.decoder is not None or self.given.has("deep-iteration"),
            decoder=self.decoder,
            skips_metadata=self.given.has("skip-record-metadata"),
            bytes_max=self._size("max-bytes", LOG_BYTES_MAX),
        )

    def _size(self, name: str, default: int) -> int:
        text = self.given.value(name, str(default))
        number = int(text) if _INTEGER.fullmatch(text) else _INTEGER_LIMIT
        if not -_INTEGER_LIMIT <= number < _INTEGER_LIMIT:
            raise WrongUsageError(f"Cannot parse argument '{text}' of option {name}")
        return number
