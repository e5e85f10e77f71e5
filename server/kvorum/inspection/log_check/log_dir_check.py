"""The files of a log directory beside its partitions: whose it is, and offsets by partition."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kvorum.inspection.layouts.text_files import CLEAN_SHUTDOWN, OFFSET_CHECKPOINT, meta_properties
from kvorum.inspection.log_check.findings import Findings, Rule, Severity
from kvorum.inspection.log_check.listing import read_text, read_whole
from kvorum.inspection.log_check.metadata_check import check_bootstrap_checkpoint
from kvorum.inspection.log_check.partition_check import LogFacts
from kvorum.storage.directory.partition_directory import suffix_of
from kvorum.storage.errors import MetaPropertiesError, PropertiesFormatError
from kvorum.storage.metadata_log.bootstrap_checkpoint import BOOTSTRAP_CHECKPOINT
from kvorum.storage.names import METADATA_LOG_DIRECTORY
from kvorum.storage.small_files.clean_shutdown import CLEAN_SHUTDOWN_FILE
from kvorum.storage.small_files.meta_properties import (
    META_PROPERTIES_FILE,
    MetaProperties,
    decode_meta_properties,
    is_reserved_directory_id,
)
from kvorum.storage.small_files.offset_checkpoint_file import (
    CLEANER_OFFSET_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
)

OFFSET_CHECKPOINTS: Final = (
    RECOVERY_POINT_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    CLEANER_OFFSET_CHECKPOINT,
)
_OF_ALL_LOGS: Final = frozenset({RECOVERY_POINT_CHECKPOINT, HIGH_WATERMARK_CHECKPOINT})
LOG_DIR_FILES: Final = frozenset(
    {META_PROPERTIES_FILE, BOOTSTRAP_CHECKPOINT, CLEAN_SHUTDOWN_FILE, *OFFSET_CHECKPOINTS}
)
"""The names by which a log directory is recognised."""


@dataclass(frozen=True, slots=True)
class LogDirFacts:
    """The node that a log directory belongs to, and the high watermarks by partition directory."""

    directory: Path
    properties: MetaProperties | None
    high_watermarks: Mapping[str, int]


def check_log_dir(
    directory: Path, names: list[str], logs: Mapping[str, LogFacts], findings: Findings
) -> LogDirFacts:
    """Check the files `names` of a log directory, whose checked partitions are `logs` by name."""
    properties = None
    if META_PROPERTIES_FILE in names:
        properties = _meta_properties(directory / META_PROPERTIES_FILE, findings)
    else:
        path = directory / META_PROPERTIES_FILE
        findings.add(Rule.META_PROPERTIES, path, "the file is missing")
    if BOOTSTRAP_CHECKPOINT in names:
        check_bootstrap_checkpoint(directory / BOOTSTRAP_CHECKPOINT, findings)
    was_clean = CLEAN_SHUTDOWN_FILE in names
    if was_clean:
        read_text(directory / CLEAN_SHUTDOWN_FILE, CLEAN_SHUTDOWN, findings)
        _check_tails(directory, logs, findings)
    high_watermarks: dict[str, int] = {}
    is_broker = not set(OFFSET_CHECKPOINTS).isdisjoint(names)
    for name in OFFSET_CHECKPOINTS:
        if name not in names:
            if is_broker:
                _note_missing(directory / name, findings)
        else:
            offsets = _offsets(directory / name, findings)
            _check_offsets(directory / name, offsets, logs, findings, was_clean=was_clean)
            if was_clean and name in _OF_ALL_LOGS:
                _check_all_listed(directory / name, offsets, logs, findings)
            if name == HIGH_WATERMARK_CHECKPOINT:
                high_watermarks = offsets
    return LogDirFacts(directory, properties, high_watermarks)


def _note_missing(path: Path, findings: Findings) -> None:
    findings.add(Rule.OFFSET_CHECKPOINT, path, "the file is missing", severity=Severity.NOTE)


def _meta_properties(path: Path, findings: Findings) -> MetaProperties | None:
    data = read_whole(path, findings)
    if data is None:
        return None
    problem = meta_properties(data).problem
    if problem is not None:
        findings.add(Rule.META_PROPERTIES, path, problem.text, position=problem.position)
        return None
    keys = [field.path for field in meta_properties(data).fields]
    try:
        properties = decode_meta_properties(data)
    except (MetaPropertiesError, PropertiesFormatError) as error:
        findings.add(Rule.META_PROPERTIES, path, error.problem, position=0)
        return None
    wrong = _problem_of(properties, keys)
    if wrong is not None:
        findings.add(Rule.META_PROPERTIES, path, wrong, position=0)
    return properties


_KEYS: Final = frozenset({"version", "cluster.id", "broker.id", "node.id", "directory.id"})


def _problem_of(properties: MetaProperties, keys: list[str]) -> str | None:
    unknown = sorted(set(keys) - _KEYS)
    if unknown:
        return f"there is no property {unknown[0]}"
    if len(set(keys)) < len(keys):
        return "a property is there twice"
    if properties.node_id is not None and properties.node_id < 0:
        return f"a node.id of {properties.node_id}"
    directory_id = properties.directory_id
    if directory_id is not None and is_reserved_directory_id(directory_id):
        return "a directory.id that is reserved"
    return None


def _check_tails(directory: Path, logs: Mapping[str, LogFacts], findings: Findings) -> None:
    """Add that a torn tail cannot be, where the node was stopped in good order."""
    for log in logs.values():
        if log.has_torn_tail:
            problem = f"the node was stopped in good order, and {log.directory.name} has a torn end"
            findings.add(Rule.LOG_END, directory / CLEAN_SHUTDOWN_FILE, problem)


def _offsets(path: Path, findings: Findings) -> dict[str, int]:
    """Return the offsets of a checkpoint by the name of the partition's directory."""
    fields = read_text(path, OFFSET_CHECKPOINT, findings, Rule.OFFSET_CHECKPOINT)
    if fields is None:
        return {}
    values = [value for name, value in fields.items() if name.startswith("entries.")]
    offsets: dict[str, int] = {}
    for topic, partition, offset in zip(values[::3], values[1::3], values[2::3], strict=True):
        name = f"{topic}-{partition}"
        if name in offsets:
            findings.add(Rule.OFFSET_CHECKPOINT, path, f"{name} is there twice")
        if int(offset) < 0:
            findings.add(Rule.OFFSET_CHECKPOINT, path, f"{name} has offset {offset}")
        offsets[name] = int(offset)
    return offsets


def _check_all_listed(
    path: Path, offsets: Mapping[str, int], logs: Mapping[str, LogFacts], findings: Findings
) -> None:
    """Check that a checkpoint has each log, as after a stop in good order."""
    for name in logs:
        if name not in offsets and name != METADATA_LOG_DIRECTORY and suffix_of(name) is None:
            findings.add(Rule.OFFSET_CHECKPOINT, path, f"{name} is not listed")


def _check_offsets(
    path: Path,
    offsets: Mapping[str, int],
    logs: Mapping[str, LogFacts],
    findings: Findings,
    *,
    was_clean: bool,
) -> None:
    for name, offset in offsets.items():
        log = logs.get(name)
        if log is None or log.end_offset is None:
            continue
        end = log.end_offset
        is_exact = was_clean and path.name == RECOVERY_POINT_CHECKPOINT
        if offset > end or (is_exact and offset < end):
            problem = f"{name} has offset {offset}, and its log ends at {end}"
            findings.add(Rule.OFFSET_CHECKPOINT, path, problem, offset=offset)
        elif path.name == HIGH_WATERMARK_CHECKPOINT and 0 < offset < (log.start_offset or 0):
            problem = f"{name} has offset {offset}, and its log begins at {log.start_offset}"
            findings.add(
                Rule.OFFSET_CHECKPOINT, path, problem, offset=offset, severity=Severity.NOTE
            )
