"""The records in a text that kafka-dump-log printed with its metadata decoder."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

BATCH_LINE: Final = re.compile(r"baseOffset: .* partitionLeaderEpoch: (-?\d+) ")
RECORD_LINE: Final = re.compile(
    r"\| offset: (\d+) (?:CreateTime|LogAppendTime): (-?\d+) .* headerKeys: \[\] (.*)"
)
METADATA: Final = re.compile(r'payload: \{"type":"(\w+)","version":(\d+),"data":(.*)\}')
CONTROL: Final = re.compile(r"(\w+):? (\{.*\})")
BARE_CONTROL: Final = re.compile(r"controlType: (\w+)\(\d+\)")
CONTROL_TYPES: Final = {
    "LeaderChange": "LEADER_CHANGE",
    "SnapshotHeader": "SNAPSHOT_HEADER",
    "SnapshotFooter": "SNAPSHOT_FOOTER",
    "KRaftVersion": "KRAFT_VERSION",
    "KRaftVoters": "KRAFT_VOTERS",
}


@dataclass(frozen=True, slots=True)
class DumpRecord:
    """One record as the dump shows it; `json` is the very text of the record itself.

    Older releases name some control records and show nothing of them: no version, no json then.
    """

    offset: int
    epoch: int
    timestamp_ms: int
    record_kind: str
    type: str
    version: int | None
    json: str | None


def read_dump(text: Path) -> list[DumpRecord]:
    """Return the records of a dump, in its order; every line must be understood."""
    records: list[DumpRecord] = []
    epoch = -1
    for line in text.read_text(encoding="utf-8").splitlines():
        if batch := BATCH_LINE.match(line):
            epoch = int(batch[1])
        elif line.startswith("| offset:"):
            records.append(_record(line, epoch))
    return records


def _record(line: str, epoch: int) -> DumpRecord:
    match = RECORD_LINE.fullmatch(line)
    assert match is not None, line
    offset, timestamp_ms, shown = int(match[1]), int(match[2]), match[3]
    kind, name, version, body = _shown(shown)
    return DumpRecord(offset, epoch, timestamp_ms, kind, name, version, body)


def _shown(shown: str) -> tuple[str, str, int | None, str | None]:
    if metadata := METADATA.fullmatch(shown):
        return "metadata", metadata[1], int(metadata[2]), metadata[3]
    if bare := BARE_CONTROL.fullmatch(shown):
        return "control", bare[1], None, None
    control = CONTROL.fullmatch(shown)
    assert control is not None, shown
    return "control", CONTROL_TYPES[control[1]], json.loads(control[2])["version"], control[2]
