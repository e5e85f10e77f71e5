"""The check of files and directories, also those beside the partitions: findings and verdicts."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from kvorum.inspection.layouts.text_files import CLEAN_SHUTDOWN, OFFSET_CHECKPOINT, meta_properties
from kvorum.inspection.log_check.findings import Finding, Findings, Rule, Severity, Verdict
from kvorum.inspection.log_check.findings import verdict_of as _verdict_of
from kvorum.inspection.log_check.listing import directories_below, is_partition_directory, read_text
from kvorum.inspection.log_check.metadata_check import check_bootstrap_checkpoint
from kvorum.inspection.log_check.partition_check import LogFacts, check_partition
from kvorum.inspection.log_check.replica_check import Replica, check_replicas
from kvorum.inspection.reading import Reached, Tell, no_report
from kvorum.metadata.image import MetadataImage
from kvorum.storage.directory.partition_directory import DELETE_SUFFIX, current_name, suffix_of
from kvorum.storage.metadata_log.bootstrap_checkpoint import BOOTSTRAP_CHECKPOINT
from kvorum.storage.names import (
    METADATA_LOG_DIRECTORY,
    parse_partition_directory,
    parse_snapshot_name,
)
from kvorum.storage.small_files.clean_shutdown import CLEAN_SHUTDOWN_FILE, broker_epoch_of
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
    decode_offsets,
)
from kvorum.storage.small_files.partition_metadata import PARTITION_METADATA
from kvorum.wire.uuid_text import uuid_to_text

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
_NAMES_MAX: Final = 10
"""The number of logs that one finding names."""


@dataclass(frozen=True, slots=True)
class LogDirFacts:
    """The files of a log directory: the node that it belongs to, and offsets by their checkpoint.

    The offsets have the names of partition directories. `was_clean` is whether there is the file of
    a stop in good order.
    """

    directory: Path
    properties: MetaProperties | None
    checkpoints: Mapping[str, Mapping[str, int]]
    was_clean: bool

    @property
    def high_watermarks(self) -> Mapping[str, int]:
        """The high watermarks by partition directory."""
        return self.checkpoints.get(HIGH_WATERMARK_CHECKPOINT, {})


def read_log_dir(directory: Path, names: list[str], findings: Findings) -> LogDirFacts:
    """Read and check the files `names` of a log directory, each by itself."""
    properties = None
    if META_PROPERTIES_FILE in names:
        properties = _meta_properties(directory / META_PROPERTIES_FILE, findings)
    else:
        findings.add(Rule.META_PROPERTIES, directory / META_PROPERTIES_FILE, "the file is missing")
    if BOOTSTRAP_CHECKPOINT in names:
        check_bootstrap_checkpoint(directory / BOOTSTRAP_CHECKPOINT, findings)
    was_clean = CLEAN_SHUTDOWN_FILE in names
    if was_clean:
        _clean_shutdown(directory / CLEAN_SHUTDOWN_FILE, findings)
    checkpoints: dict[str, dict[str, int]] = {}
    is_broker = not set(OFFSET_CHECKPOINTS).isdisjoint(names)
    for name in OFFSET_CHECKPOINTS:
        if name not in names:
            if is_broker and name != CLEANER_OFFSET_CHECKPOINT:
                _note_missing(directory / name, findings)
            continue
        offsets = _offsets(directory / name, findings)
        if offsets is not None:
            checkpoints[name] = offsets
    return LogDirFacts(directory, properties, checkpoints, was_clean)


def compare_log_dir(facts: LogDirFacts, logs: Mapping[str, LogFacts], findings: Findings) -> None:
    """Compare the files of a log directory with its partitions, which are `logs` by name.

    A running node raises offsets in checkpoints after it has written the log, so the files are read
    before the logs are.
    """
    clean_shutdown = facts.directory / CLEAN_SHUTDOWN_FILE
    # A node that has started since has taken the file away, and goes on with its logs.
    was_clean = facts.was_clean and clean_shutdown.exists()
    if was_clean:
        _check_tails(facts.directory, logs, findings)
    for name, offsets in facts.checkpoints.items():
        _check_offsets(facts.directory / name, offsets, logs, findings, was_clean=was_clean)
        if was_clean and name in _OF_ALL_LOGS:
            _check_all_listed(facts.directory / name, offsets, logs, findings)
    if was_clean:
        _note_logs_without_directory(facts, findings)


def _note_missing(path: Path, findings: Findings) -> None:
    findings.add(Rule.OFFSET_CHECKPOINT, path, "the file is missing", severity=Severity.NOTE)


def _clean_shutdown(path: Path, findings: Findings) -> None:
    """Add a note where the file names no broker epoch; a node starts with any content."""
    read_text(path, lambda data, _: broker_epoch_of(data), CLEAN_SHUTDOWN, findings)


def _meta_properties(path: Path, findings: Findings) -> MetaProperties | None:
    properties = read_text(
        path,
        lambda data, _: decode_meta_properties(data),
        meta_properties,
        findings,
        Rule.META_PROPERTIES,
    )
    if properties is None:
        return None
    wrong = _problem_of(properties)
    if wrong is not None:
        findings.add(Rule.META_PROPERTIES, path, wrong, position=0)
    return properties


def _problem_of(properties: MetaProperties) -> str | None:
    """Return why no node starts with these properties; None where one does."""
    if properties.cluster_id is None:
        return "there is no cluster.id"
    if properties.node_id is None:
        return "there is no node.id"
    if properties.node_id < 0:
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


def _offsets(path: Path, findings: Findings) -> dict[str, int] | None:
    """Return the offsets of a checkpoint by the names of partition directories."""
    decode = partial(decode_offsets, advice="")
    stored = read_text(path, decode, OFFSET_CHECKPOINT, findings, Rule.OFFSET_CHECKPOINT)
    if stored is None:
        return None
    offsets = {f"{topic}-{partition}": offset for (topic, partition), offset in stored.items()}
    for name, offset in offsets.items():
        if offset < 0:
            findings.add(Rule.OFFSET_CHECKPOINT, path, f"{name} has offset {offset}")
    return offsets


def _check_all_listed(
    path: Path, offsets: Mapping[str, int], logs: Mapping[str, LogFacts], findings: Findings
) -> None:
    """Check that a checkpoint has each log, as after a stop in good order."""
    for name in logs:
        if name not in offsets and name != METADATA_LOG_DIRECTORY and suffix_of(name) is None:
            findings.add(Rule.OFFSET_CHECKPOINT, path, f"{name} is not listed")


def _note_logs_without_directory(facts: LogDirFacts, findings: Findings) -> None:
    """Note which logs had records at a stop in good order, and have no directory any more.

    It is no damage: they may have been moved to another log directory, removed to be fetched again,
    or left out of a copy.
    """
    try:
        there = {current_name(entry.name) for entry in facts.directory.iterdir() if entry.is_dir()}
    except OSError:
        return
    offsets = facts.checkpoints.get(RECOVERY_POINT_CHECKPOINT, {})
    gone = [name for name, offset in offsets.items() if offset > 0 and name not in there]
    if gone:
        names = ", ".join(gone[:_NAMES_MAX]) + (", …" if len(gone) > _NAMES_MAX else "")
        problem = f"there is no directory of logs that had records, {len(gone)} in all: {names}"
        path = facts.directory / RECOVERY_POINT_CHECKPOINT
        findings.add(Rule.OFFSET_CHECKPOINT, path, problem, severity=Severity.NOTE)


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


class NothingToCheckError(Exception):
    """A path that does not exist, or has no file of a log; the text is one line."""


@dataclass(frozen=True, slots=True)
class Report:
    """All findings, the verdict on each file, and the one on everything."""

    findings: tuple[Finding, ...]
    files: Mapping[Path, Verdict]

    @property
    def verdict(self) -> Verdict:
        """The verdict on everything that was checked."""
        return _verdict_of(self.findings)


class InterruptedCheckError(KeyboardInterrupt):
    """A check was interrupted; `report` is what it had found, and `reached` where it was.

    The files of the report may have been read in part, and are not compared with each other.
    """

    def __init__(self, report: Report, reached: Reached) -> None:
        super().__init__()
        self.report = report
        self.reached = reached


def check_paths(paths: Iterable[Path], *, tell: Tell = no_report) -> Report:
    """Check files and directories, and what belongs to them; nothing is written.

    A directory may be a partition's, a node's log directory, or one with many of them below it.
    Replicas of one log among them are compared. Of a file's directory only what is found in the
    file itself is reported. Raises `NothingToCheckError`, and `InterruptedCheckError` after Ctrl-C.
    """
    reached = Reached(tell)
    findings = Findings(reached.tell)
    try:
        _check_all(paths, findings)
    except KeyboardInterrupt as error:
        raise InterruptedCheckError(_report(findings), reached) from error
    return _report(findings)


def _check_all(paths: Iterable[Path], findings: Findings) -> None:
    check = _Check(findings)
    for path in paths:
        if path.is_dir():
            check.directory(path)
        elif path.is_file():
            _check_file(path, findings)
        else:
            raise NothingToCheckError(f"{path}: no such file or directory")
    check.replicas()


def _report(findings: Findings) -> Report:
    by_file: dict[Path, list[Finding]] = {file: [] for file in findings.files}
    for finding in findings.all:
        by_file[finding.file].append(finding)
    return Report(findings.all, {file: _verdict_of(found) for file, found in by_file.items()})


def _check_file(path: Path, findings: Findings) -> None:
    """Check one file, among the others of its directory."""
    alone = Findings(findings.reached)
    directory = path.parent
    try:
        if path.name in LOG_DIR_FILES and not is_partition_directory(directory):
            _Check(alone).directory(directory)
        else:
            check_partition(directory, alone)
    except KeyboardInterrupt:
        findings.add_all(finding for finding in alone.all if finding.file == path)
        raise
    found = [finding for finding in alone.all if finding.file == path]
    if path not in alone.files or any(one.rule is Rule.FILE_NAME for one in found):
        raise NothingToCheckError(f"{path}: no file of a log, by its name")
    findings.note_file(path)
    findings.add_all(found)


class _Check:
    """The check of all directories that were named."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._logs: dict[Path, LogFacts] = {}
        self._log_dirs: dict[Path, LogDirFacts] = {}

    def directory(self, path: Path) -> None:
        """Check a directory and everything below it."""
        count = len(self._logs) + len(self._log_dirs)
        below = list(directories_below(path))
        new = [facts for facts in map(self._read_log_dir, below) if facts is not None]
        for directory in below:
            is_leaving = suffix_of(directory.name) == DELETE_SUFFIX
            if not is_leaving and directory not in self._logs and is_partition_directory(directory):
                self._logs[directory] = check_partition(directory, self._findings)
        for facts in new:
            self._compare_log_dir(facts)
        if is_partition_directory(path):
            self._log_dir_around(path)
        if len(self._logs) + len(self._log_dirs) == count:
            raise NothingToCheckError(f"{path}: there are no files of a log")

    def _read_log_dir(self, directory: Path) -> LogDirFacts | None:
        """Return the facts of a log directory; None for one that is known, and for any other."""
        try:
            names = [entry.name for entry in directory.iterdir() if entry.is_file()]
        except OSError as error:
            self._findings.unreadable(directory, error)
            return None
        if directory in self._log_dirs or not LOG_DIR_FILES.intersection(names):
            return None
        facts = self._log_dirs[directory] = read_log_dir(directory, names, self._findings)
        return facts

    def _compare_log_dir(self, facts: LogDirFacts) -> None:
        logs = {
            log.directory.name: log
            for log in self._logs.values()
            if log.directory.parent == facts.directory
        }
        compare_log_dir(facts, logs, self._findings)

    def _log_dir_around(self, path: Path) -> None:
        """Learn who a partition's directory belongs to, without checking what is around it."""
        directory = path.parent
        if directory in self._log_dirs or not directory.is_dir():
            return
        around = Findings()
        names = [entry.name for entry in directory.iterdir() if entry.is_file()]
        wanted = [name for name in names if name in LOG_DIR_FILES]
        if wanted:
            self._log_dirs[directory] = read_log_dir(directory, wanted, around)

    def replicas(self) -> None:
        """Compare the replicas of each log."""
        groups: dict[tuple[str, str], list[LogFacts]] = defaultdict(list)
        for log in self._logs.values():
            key = self._log_of(log)
            if key is not None:
                groups[key].append(log)
        for group in groups.values():
            if len(group) > 1:
                check_replicas([self._replica(log) for log in group], self._findings)
        self._check_topic_ids()
        self._check_identities()

    def _log_of(self, log: LogFacts) -> tuple[str, str] | None:
        """Return what tells a log from others: its cluster, or its topic's id, and its name."""
        name = log.directory.name
        if parse_partition_directory(name) is None:
            return None
        cluster = self._cluster_of(log)
        topic = "" if log.topic_id is None else log.topic_id.hex()
        if cluster is not None:
            return cluster + topic, name
        return None if not topic or name == METADATA_LOG_DIRECTORY else (topic, name)

    def _replica(self, log: LogFacts) -> Replica:
        is_metadata = log.directory.name == METADATA_LOG_DIRECTORY
        committed = 0
        around = self._log_dirs.get(log.directory.parent)
        if is_metadata:
            names = [parse_snapshot_name(path.name) for path in log.directory.iterdir()]
            committed = max((name.id.offset for name in names if name is not None), default=0)
        elif around is not None:
            committed = around.high_watermarks.get(log.directory.name, 0)
        return Replica(
            directory=log.directory,
            is_metadata=is_metadata,
            committed=committed,
            voters=frozenset(log.quorum.voters),
        )

    def _check_topic_ids(self) -> None:
        """Compare the topic ids of partitions with the longest metadata log of their cluster."""
        images: dict[str | None, MetadataImage] = {}
        for log in self._logs.values():
            cluster = self._cluster_of(log)
            if log.image is not None and cluster is not None:
                known = images.get(cluster)
                if known is None or known.last_offset < log.image.last_offset:
                    images[cluster] = log.image
        for log in self._logs.values():
            image = images.get(self._cluster_of(log))
            if image is not None:
                _check_topic_id(log, image, self._findings)

    def _cluster_of(self, log: LogFacts) -> str | None:
        around = self._log_dirs.get(log.directory.parent)
        properties = None if around is None else around.properties
        return None if properties is None else properties.cluster_id

    def _check_identities(self) -> None:
        """Check that no directory id belongs to two nodes, and that voters have their own."""
        seen: dict[bytes, LogDirFacts] = {}
        for facts in self._log_dirs.values():
            properties = facts.properties
            if properties is None or properties.directory_id is None:
                continue
            other = seen.setdefault(properties.directory_id, facts)
            assert other.properties is not None
            path = facts.directory / "meta.properties"
            if other.properties.node_id != properties.node_id:
                problem = f"its directory.id is that of {other.directory} too, of another node"
                self._findings.add(Rule.META_PROPERTIES, path, problem, position=0)
            log = self._logs.get(facts.directory / METADATA_LOG_DIRECTORY)
            if log is None or properties.node_id is None:
                continue
            known = log.quorum.voters.get(properties.node_id, set())
            if known and properties.directory_id not in known:
                problem = f"the quorum knows voter {properties.node_id} by another directory.id"
                self._findings.add(
                    Rule.META_PROPERTIES, path, problem, position=0, severity=Severity.NOTE
                )


def _check_topic_id(log: LogFacts, image: MetadataImage, findings: Findings) -> None:
    """Add a finding where a directory has the id of a topic that has another name.

    An id that the metadata does not know is a note: the topic may have been deleted, and another
    one of its name made, while the broker was away.
    """
    parsed = parse_partition_directory(log.directory.name)
    if parsed is None or log.topic_id is None or log.directory.name == METADATA_LOG_DIRECTORY:
        return
    name = parsed[0]
    owner, topic = image.topics.by_id.get(log.topic_id), image.topics.by_name(name)
    text = uuid_to_text(log.topic_id)
    path = log.directory / PARTITION_METADATA
    if owner is not None and owner.name != name:
        problem = f"topic id {text} is that of topic {owner.name}"
        findings.add(Rule.PARTITION_METADATA, path, problem, position=0)
    elif owner is None and topic is not None:
        problem = f"topic id {text} is an older one: the metadata log has {uuid_to_text(topic.id)}"
        findings.add(Rule.PARTITION_METADATA, path, problem, position=0, severity=Severity.NOTE)
