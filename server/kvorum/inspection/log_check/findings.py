"""Findings as values: what is wrong in which file, and the verdicts that follow."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final

from kvorum.inspection.reading import GONE, Tell, no_report

_RESTORE: Final = (
    "Restore the file from a copy; or, where another replica has the records, empty the directory "
    "and let the node fetch the log anew"
)
_REMOVE: Final = "Remove the file while the node is stopped: its next start makes it anew"
_LOST: Final = "Records that this log had, and may have acknowledged, are gone"


class Severity(Enum):
    """The weight of a finding; only damage and unreadable files make a verdict of damage."""

    DAMAGE = "damage"
    UNREADABLE = "unreadable"
    TORN_TAIL = "torn tail"
    NOTE = "note"


class Rule(Enum):
    """The subject of a finding: its name, its meaning, and what to do."""

    BATCHES = (
        "batches",
        "The records of these offsets cannot be read, or not be trusted to be in their place",
        _RESTORE,
    )
    TORN_TAIL = (
        "torn-tail",
        "A write at the end of the log was not finished, as beside a node that runs or crashed",
        "Nothing: the node cuts the tail off at its next start",
    )
    GAP = (
        "gap",
        "Offsets are missing. Compaction leaves such gaps; a lost batch or segment looks the same",
        "Nothing, if the topic is compacted; else compare with another replica",
    )
    RECORDS = (
        "records",
        "The checksum is right and yet the records cannot be read: they were written wrong",
        _RESTORE,
    )
    COMPRESSION = (
        "compression",
        "Consumers in Java fail at these records, and get none behind them; other clients may not",
        "Write them anew with a client that can read them, then delete them (kafka-delete-records)",
    )
    METADATA_RECORD = (
        "metadata-record",
        "A node that reads this record stops, because it cannot be sure of the cluster's state",
        _RESTORE,
    )
    EPOCHS = (
        "epochs",
        "Batches and leader-epoch-checkpoint differ: one of the two is not as it was written",
        "Restore the file, or let the node fetch the log anew from another replica",
    )
    LOG_END = ("log-end", _LOST, _RESTORE)
    OFFSET_INDEX = ("offset-index", "Readers begin at a wrong place and miss records", _REMOVE)
    TIME_INDEX = ("time-index", "Lookups by time find wrong offsets", _REMOVE)
    TRANSACTION_INDEX = (
        "transaction-index",
        "Consumers with read_committed get records of aborted transactions, or miss committed ones",
        "Remove it and the .index file beside it while the node is stopped: a start makes both",
    )
    MISSING_INDEX = (
        "missing-index",
        "The next start reads the whole segment to make the index",
        "Nothing",
    )
    MISSING_SEGMENT = ("missing-segment", _LOST, _RESTORE)
    FILE_NAME = (
        "file-name",
        "The name does not fit what the file holds, or what such a file is called",
        "Give the file the name that it had",
    )
    PRODUCER_SNAPSHOT = (
        "producer-snapshot",
        "A start would know wrong sequences and transactions of producers",
        _REMOVE,
    )
    SNAPSHOT = (
        "snapshot",
        "A node that loads this snapshot, or sends it to others, gets a wrong state or none",
        "Restore the file. If an older snapshot and the log behind it are there, remove it",
    )
    MISSING_SNAPSHOT = (
        "missing-snapshot",
        "The log begins above offset 0, and nothing has the records before it",
        "Restore the snapshot, or empty the directory and let the node fetch all of it anew",
    )
    QUORUM_STATE = (
        "quorum-state",
        "The node may vote twice in one epoch, or refuses to start",
        "Restore the file; remove it only together with all others, to join the quorum anew",
    )
    FILE_FORM = ("file-form", "The file is not in the form in which it is written", _RESTORE)
    PARTITION_METADATA = (
        "partition-metadata",
        "The directory belongs to another topic than its name says",
        "Check that the directory is that of this partition",
    )
    META_PROPERTIES = (
        "meta-properties",
        "The node refuses to start, or takes the directory for that of another node or cluster",
        "Restore the file",
    )
    OFFSET_CHECKPOINT = (
        "offset-checkpoint",
        "The node believes offsets that the log does not have, or no longer believes any",
        "Restore the file or the log; a node makes its checkpoints anew while it runs",
    )
    DIVERGENCE = (
        "divergence",
        "Replicas have different records at the same offset",
        "Find out which replica was right (the leader's, as a rule), and let the other fetch anew",
    )
    UNFINISHED = (
        "unfinished",
        "A node was stopped in the middle of a change",
        "Nothing: its next start finishes the change",
    )
    UNREADABLE = ("unreadable", "The file could not be read", "Check permissions and the disk")

    def __init__(self, label: str, meaning: str, advice: str) -> None:
        self.label = label
        self.meaning = meaning
        self.advice = advice


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong, or worth a note.

    `position` is a byte of `file`, `offset` one of the log; None without such a place.
    """

    rule: Rule
    severity: Severity
    file: Path
    problem: str
    position: int | None
    offset: int | None

    @property
    def is_damage(self) -> bool:
        """Whether the file is not sound because of it."""
        return self.severity in {Severity.DAMAGE, Severity.UNREADABLE}

    @property
    def text(self) -> str:
        """The finding in one line, without meaning and advice."""
        places = [
            f"{name} {place}"
            for name, place in (("byte", self.position), ("offset", self.offset))
            if place is not None
        ]
        where = f" ({', '.join(places)})" if places else ""
        return f"{self.file}{where}: {self.problem}"


class Findings:
    """The findings of a check so far, and the files that it has looked at."""

    def __init__(self, tell: Tell = no_report) -> None:
        self._tell = tell
        self._found: list[Finding] = []
        self._files: dict[Path, None] = {}

    def note_file(self, file: Path) -> None:
        """Remember that a file is being checked."""
        self._files[file] = None

    def reached(self, file: Path, position: int) -> None:
        """Report how much of a file has been read."""
        self._tell(file, position)

    def add(
        self,
        rule: Rule,
        file: Path,
        problem: str,
        *,
        position: int | None = None,
        offset: int | None = None,
        severity: Severity = Severity.DAMAGE,
    ) -> None:
        """Add a finding."""
        self.note_file(file)
        self._found.append(Finding(rule, severity, file, problem, position, offset))

    def unreadable(self, file: Path, error: OSError) -> None:
        """Add that a file could not be read."""
        severity, reason = Severity.UNREADABLE, error.strerror or str(error)
        if isinstance(error, FileNotFoundError):
            severity = Severity.NOTE
            reason = GONE
        self.add(Rule.UNREADABLE, file, reason, severity=severity)

    @property
    def count(self) -> int:
        """The number of findings."""
        return len(self._found)

    def withdraw_since(self, count: int) -> None:
        """Take back all findings but the first `count`."""
        del self._found[count:]

    def add_all(self, findings: Iterable[Finding]) -> None:
        """Add findings that were made elsewhere."""
        for finding in findings:
            self.note_file(finding.file)
            self._found.append(finding)

    @property
    def all(self) -> tuple[Finding, ...]:
        """All findings, in the order in which they were made."""
        return tuple(self._found)

    @property
    def files(self) -> tuple[Path, ...]:
        """All files that were looked at."""
        return tuple(self._files)


class Verdict(Enum):
    """The verdict about a file, or about everything."""

    SOUND = "sound"
    TORN_TAIL = "torn tail"
    DAMAGED = "damaged"
    UNREADABLE = "unreadable"


def verdict_of(findings: Iterable[Finding]) -> Verdict:
    """Return the verdict that follows from findings; damage counts most."""
    severities = {finding.severity for finding in findings}
    if Severity.DAMAGE in severities:
        return Verdict.DAMAGED
    if Severity.UNREADABLE in severities:
        return Verdict.UNREADABLE
    return Verdict.TORN_TAIL if Severity.TORN_TAIL in severities else Verdict.SOUND
