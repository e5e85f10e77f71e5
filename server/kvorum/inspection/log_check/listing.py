"""The files of a partition's directory by their roles, small ones read whole, logs by entries.

A log is read by the rules of the Spark reader: entries, and what is wrong between.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from kvorum.inspection.layouts.text_files import TextLayout
from kvorum.inspection.log_check.findings import Findings, Rule, Severity
from kvorum.inspection.reading import GONE, Tell, lasting_name
from kvorum.log_files.batch_rules import LogTraits
from kvorum.log_files.damage import Damage, DamageKind
from kvorum.log_files.entry_reader import EntryOrDamage, EntryReader
from kvorum.log_files.file_systems import FileWindow, LocalFiles, walk_through_links
from kvorum.log_files.find import FoundFiles, LogFile, classify, swap_end_offset
from kvorum.log_files.ranges import FileRange, plan_ranges
from kvorum.storage.directory.partition_directory import suffix_of
from kvorum.storage.errors import StorageError
from kvorum.storage.log.interrupted_swap import interrupted_swap
from kvorum.storage.names import (
    LOG_SUFFIX,
    METADATA_LOG_DIRECTORY,
    PRODUCER_SNAPSHOT_SUFFIX,
    SNAPSHOT_SUFFIX,
    SWAP_SUFFIX,
    parse_offset_name,
    parse_partition_directory,
    parse_snapshot_name,
)
from kvorum.storage.small_files.meta_properties import META_PROPERTIES_FILE

_INDEX_SUFFIXES: Final = (".index", ".timeindex", ".txnindex")
_NAMED_AFTER_OFFSETS: Final = (LOG_SUFFIX, *_INDEX_SUFFIXES, PRODUCER_SNAPSHOT_SUFFIX)
Decoded = TypeVar("Decoded")
SIZE_MAX: Final = 2**31 - 1
"""The largest size in bytes of a file that Kafka reads, or maps, as a whole, such as an index."""
_WHOLE_FILES = 2**63
REPLACED: Final = "a node replaced or truncated it meanwhile: nothing is said of it"
"""The note on a segment that is not the file any more that was listed."""

KNOWN_NAMES: Final = frozenset(
    {"leader-epoch-checkpoint", "partition.metadata", "quorum-state", "kvorum-flushed-offset"}
)
"""The files of a partition that are not named after an offset."""


@dataclass(slots=True)
class PartitionFiles:
    """The files of one directory; segments, indexes and snapshots by the offsets in their names.

    `is_listed` is False where the directory could not be listed.
    """

    directory: Path
    is_listed: bool = True
    segments: dict[int, Path] = field(default_factory=dict[int, Path])
    indexes: dict[tuple[int, str], Path] = field(default_factory=dict[tuple[int, str], Path])
    producer_snapshots: dict[int, Path] = field(default_factory=dict[int, Path])
    snapshots: list[Path] = field(default_factory=list[Path])
    named: dict[str, Path] = field(default_factory=dict[str, Path])

    @property
    def is_metadata(self) -> bool:
        """Whether this is the log of the quorum, which has no gaps."""
        return self.directory.name == METADATA_LOG_DIRECTORY


def list_partition(directory: Path, findings: Findings) -> PartitionFiles:
    """Return the files of a partition's directory, with findings for names that are wrong."""
    files = PartitionFiles(directory)
    try:
        names = sorted(entry.name for entry in directory.iterdir() if entry.is_file())
    except OSError as error:
        findings.unreadable(directory, error)
        files.is_listed = False
        return files
    swap = interrupted_swap(names, lambda name: swap_end_offset(LocalFiles(), str(directory), name))
    for name, lasting in swap.lasting_names(names).items():
        _place(name, lasting, files, findings)
    for (base, suffix), path in files.indexes.items():
        if base not in files.segments:
            problem = f"there is no segment {base:020d}{LOG_SUFFIX} for this {suffix} file"
            findings.add(Rule.MISSING_SEGMENT, path, problem, offset=base)
    return files


def _place(name: str, lasting: str, files: PartitionFiles, findings: Findings) -> None:
    """Put a file where it belongs by the name that it has after the next start of its node."""
    path = files.directory / name
    offset_name = parse_offset_name(lasting)
    if offset_name is not None:
        base, suffix = offset_name
        if suffix == LOG_SUFFIX:
            files.segments[base] = path
        elif suffix == PRODUCER_SNAPSHOT_SUFFIX:
            files.producer_snapshots[base] = path
        else:
            files.indexes[base, suffix] = path
        return
    snapshot = parse_snapshot_name(name)
    is_passing = lasting_name(name) != name
    if is_passing or (snapshot and (snapshot.is_partial or snapshot.is_deleted)):
        return
    if snapshot is not None:
        files.snapshots.append(path)
    elif name.endswith((*_NAMED_AFTER_OFFSETS, SNAPSHOT_SUFFIX)):
        findings.add(Rule.FILE_NAME, path, "the name does not begin with an offset in 20 digits")
    elif name in KNOWN_NAMES:
        files.named[name] = path
    else:
        findings.add(Rule.FILE_NAME, path, "no file of a log", severity=Severity.NOTE)


def is_partition_directory(path: Path) -> bool:
    """Return whether a directory is that of a partition, by its name and its files.

    A node's directory may have such a name too (broker-1), but not such files.
    """
    name = path.name
    if parse_partition_directory(name) is None and suffix_of(name) is None:
        return False
    try:
        names = [entry.name for entry in path.iterdir()]
    except OSError:
        return True
    return META_PROPERTIES_FILE not in names and (
        not names
        or any(
            file in KNOWN_NAMES
            or file.endswith(_NAMED_AFTER_OFFSETS)
            or parse_snapshot_name(file) is not None
            for file in names
        )
    )


def directories_below(path: Path) -> Iterator[Path]:
    """Yield a directory and all below it, in a fixed order; what cannot be listed comes alone.

    Links to directories are followed, as by brokers; each directory comes once.
    """
    for folder, _ in walk_through_links(str(path), on_error=_go_on):
        yield Path(folder)


def _go_on(error: OSError) -> None:
    del error


def read_whole(path: Path, findings: Findings) -> bytes | None:
    """Return the bytes of a file; None, with a finding, where it cannot be read or is too large."""
    findings.note_file(path)
    try:
        with closing(LocalFiles().open(str(path))) as file:
            if file.size > SIZE_MAX:
                problem = f"{file.size} bytes are more than a node reads of such a file"
                findings.add(Rule.UNREADABLE, path, problem, severity=Severity.UNREADABLE)
                return None
            return file.read_at(0, file.size)
    except OSError as error:
        findings.unreadable(path, error)
        return None


def read_text(
    path: Path,
    decode: Callable[[bytes, Path], Decoded],
    layout: TextLayout,
    findings: Findings,
    rule: Rule = Rule.FILE_FORM,
) -> Decoded | None:
    """Return what a node reads in a text file; None, with a finding, where it refuses the file.

    `decode` is the node's own reader; its StorageError is the verdict. `layout` only knows the
    place, and what Kafka would have written otherwise, which is a note.
    """
    data = read_whole(path, findings)
    if data is None:
        return None
    difference = layout(data).problem
    position = 0 if difference is None else difference.position
    try:
        decoded = decode(data, path)
    except StorageError as error:
        findings.add(rule, path, error.problem, position=position)
        return None
    if difference is not None:
        problem = f"{difference.text}: a node reads the file, and Kafka writes it otherwise"
        findings.add(rule, path, problem, position=position, severity=Severity.NOTE)
    return decoded


def plan_files(paths: list[Path], findings: Findings) -> list[FileRange]:
    """Return files of a log as ranges, in order, each with what its neighbours say of it."""
    found: list[LogFile] = []
    for path in paths:
        findings.note_file(path)
        try:
            size = path.stat().st_size
        except OSError as error:
            findings.unreadable(path, error)
            continue
        # Of the files that a swap has left, only those are here that count as segments.
        file = classify(str(path.with_name(path.name.removesuffix(SWAP_SUFFIX))), size)
        if file is not None:
            found.append(file._replace(path=str(path)))
    return _planned(found)


def units_of_file(path: Path, name: str) -> list[FileRange]:
    """Return a single file, to be read as if it had this name; none if it can have no records.

    Raises OSError.
    """
    file = classify(str(path.with_name(name)), path.stat().st_size)
    return [] if file is None else _planned([file._replace(path=str(path))])


def _planned(files: list[LogFile]) -> list[FileRange]:
    in_order = tuple(sorted(files, key=lambda file: file.order))
    return plan_ranges(FoundFiles(in_order, frozenset()), range_bytes=_WHOLE_FILES)


def identity_of(path: Path) -> tuple[int, int] | None:
    """Return what tells a file from others that had its name; None where it cannot be read."""
    try:
        facts = path.stat()
    except OSError:
        return None
    return _identity(facts)


def _identity(facts: os.stat_result) -> tuple[int, int]:
    return facts.st_dev, facts.st_ino


def change_since(unit: FileRange, identity: tuple[int, int] | None) -> str | None:
    """Return what a node has done with a segment since it was listed; None where it is the same.

    A running node deletes segments, puts compacted ones in their places, and truncates.
    """
    path = Path(unit.file.path)
    try:
        facts = path.stat()
    except FileNotFoundError:
        return GONE
    except OSError:
        return None
    is_shorter = facts.st_size < unit.file.size
    is_another = _identity(facts) != identity
    return REPLACED if is_shorter or is_another else None


def plan_segments(files: PartitionFiles, findings: Findings) -> list[FileRange]:
    """Return the segments of a directory as ranges."""
    return plan_files(list(files.segments.values()), findings)


def read_unit(unit: FileRange, *, has_gaps: bool) -> Iterator[EntryOrDamage]:
    """Yield the sound entries of a file in order, and the damage between; raises OSError."""
    files = LocalFiles()
    with closing(files.open(unit.file.path)) as file:
        window = FileWindow(file, end=unit.file.size)
        traits = LogTraits(has_gaps=has_gaps, with_legacy=has_gaps)
        reader: EntryReader[Damage] = EntryReader(unit, window, files, traits)
        yield from reader.run()


class SegmentReading(NamedTuple):
    """The last offset of a segment, -1 without records.

    `change` is what a node has done with the segment meanwhile, so that no damage is known.
    """

    file: Path
    last_offset: int
    change: str | None


def read_segments(directory: Path, *, tell: Tell, damages: list[str]) -> Iterator[SegmentReading]:
    """Read the segments of a partition's directory one after the other; raises OSError.

    A line for each damage is added to `damages` as soon as it is found, so that those lines are
    there after Ctrl-C; the lines of a segment that has changed meanwhile are removed again.
    """
    listed = Findings()
    files = list_partition(directory, listed)
    identities = {path: identity_of(path) for path in files.segments.values()}
    for unit in plan_segments(files, listed):
        file = Path(unit.file.path)
        count = len(damages)
        try:
            last_offset = _read_segment(unit, damages, has_gaps=not files.is_metadata, tell=tell)
        finally:
            change = change_since(unit, identities.pop(file))
            if change is not None:
                del damages[count:]
        yield SegmentReading(file, last_offset, change)
    for file in identities:
        # Its size could not be taken.
        with suppress(FileNotFoundError):
            file.stat()
        yield SegmentReading(file, -1, GONE)


def _read_segment(unit: FileRange, damages: list[str], *, has_gaps: bool, tell: Tell) -> int:
    """Add the damages of a segment, and return its last offset."""
    file, last_offset = Path(unit.file.path), -1
    with suppress(FileNotFoundError):
        for item in read_unit(unit, has_gaps=has_gaps):
            tell(file, item.position)
            if isinstance(item, Damage):
                damages.append(f"{item.path}: {item.text}")
            else:
                last_offset = item.last_offset
    return last_offset


def read_directory(directory: Path) -> Iterator[tuple[Path, EntryOrDamage]]:
    """Yield the entries of all segments of a partition's directory, each with its file.

    What is found about names and sizes is left out. Raises OSError.
    """
    listed = Findings()
    files = list_partition(directory, listed)
    for unit in plan_segments(files, listed):
        for item in read_unit(unit, has_gaps=not files.is_metadata):
            yield Path(unit.file.path), item


def add_damage(damage: Damage, findings: Findings, rule: Rule = Rule.BATCHES) -> None:
    """Add a damage of a file as a finding."""
    is_torn = damage.kind is DamageKind.TORN_TAIL
    findings.add(
        Rule.TORN_TAIL if is_torn else rule,
        Path(damage.path),
        damage.text.partition(": ")[2],
        position=damage.position,
        offset=max(damage.first_offset, 0),
        severity=Severity.TORN_TAIL if is_torn else Severity.DAMAGE,
    )
