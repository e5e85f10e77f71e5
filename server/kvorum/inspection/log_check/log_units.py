"""A log's files, read by the rules of the Spark reader: entries, and what is wrong between."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from kvorum.inspection.log_check.findings import Findings, Rule, Severity
from kvorum.inspection.log_check.listing import PartitionFiles, list_partition
from kvorum.spark.files.batch_rules import LogTraits
from kvorum.spark.files.damage import Damage, DamageKind
from kvorum.spark.files.entry_reader import EntryOrDamage, EntryReader
from kvorum.spark.files.file_systems import FileWindow, LocalFiles
from kvorum.spark.files.find import FoundFiles, LogFile, classify
from kvorum.spark.files.ranges import FileRange, plan_ranges

_WHOLE_FILES = 2**63


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
        file = classify(str(path), size)
        if file is not None:
            found.append(file)
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
