"""The dump of a log: the files that have one, ``kvorum dump-log``, and the records in a dump."""

import argparse
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from kvorum.cli import dump_log


class Dumped(NamedTuple):
    """Its end, and its output."""

    exit_code: int
    stdout: str
    stderr: str


def dump(capture: pytest.CaptureFixture[str], *arguments: str) -> Dumped:
    parser = argparse.ArgumentParser()
    dump_log.configure(parser)
    capture.readouterr()
    code = dump_log.run(parser.parse_args(arguments))
    printed = capture.readouterr()
    return Dumped(code, printed.out, printed.err)


def decoder_of(file: Path) -> str:
    """Return the option that fits a file, by the name of its partition."""
    for topic, option in (
        ("__consumer_offsets", "--offsets-decoder"),
        ("__transaction_state", "--transaction-log-decoder"),
        ("__share_group_state", "--share-group-state-decoder"),
    ):
        if file.parent.name.startswith(topic):
            return option
    is_metadata = file.parent.name == "__cluster_metadata-0" or file.name == "bootstrap.checkpoint"
    return "--cluster-metadata-decoder" if is_metadata else "--print-data-log"


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


SUFFIXES = (".log", ".checkpoint", ".index", ".timeindex", ".txnindex", ".snapshot")


def log_files(folder: Path) -> list[Path]:
    """Every file the tool knows."""
    return sorted(path for path in folder.rglob("*") if path.suffix in SUFFIXES)
