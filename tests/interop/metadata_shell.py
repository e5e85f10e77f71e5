"""Metadata in files, shown by the real kafka-metadata-shell and by us."""

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support.golden_data import first_offset, metadata_directories, snapshots
from tests.support.kafka.java import ToolRunner
from tests.support.waiting import asked_until

from kvorum.cli.shell_tool.session import SOFTWARE
from kvorum.inspection.folded_log import FoldedLog, Provenance
from kvorum.inspection.shell.image_tree import (
    DanglingNameError,
    Software,
    find_lines,
    shell_tree,
    tree_lines,
)
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.image_records import image_records
from kvorum.metadata.record_frame import decode_record, encode_record
from kvorum.storage.metadata_log.snapshot_writer import SnapshotWriter
from kvorum.wire.primitives import Message
from kvorum.wire.records import RecordBatch, read_batches

REFERENCE_SOFTWARE = Software("4.3.1", "26b251a451ce941d")
SHELL_LEVEL = ("--release-version", "4.3-IV0")
"""Format options: the last metadata.version that the shell's release knows."""
_NEWER_SET = "standalone-4.4.0"
_COMPLAINT = re.compile(r"^Unexpected error: (.*)$", re.MULTILINE)
_PROVENANCE = re.compile(r"^ *offset -?\d+, epoch -?\d+, time \S+$", re.MULTILINE)


def shell_directories(golden_sets: Path) -> list[Path]:
    """Return the golden metadata logs whose metadata.version the shell's release knows."""
    return [each for each in metadata_directories(golden_sets) if _NEWER_SET not in each.parts]


@dataclass(frozen=True, slots=True)
class Shell:
    """Kafka's shell; what it shall read goes through a file in `folder`."""

    tools: ToolRunner
    folder: Path

    def check(self, data: bytes, what: object = "") -> str:
        """Check that it shows a snapshot, a log, or one after the other, as we do; return that.

        It starts before its own last step is done, and may then show nothing, or lack the last
        batch: it is asked again until it shows as much as there is.
        """
        image, provenance = load(data)
        tree, found = tree_text(image, provenance), find_text(image, provenance)
        assert tree.splitlines() == self.tree(data).splitlines(), what
        expected = found.splitlines()
        listed = self._until(self._file(data), "find", lambda text: text.splitlines() == expected)
        assert listed.splitlines() == expected, what
        return tree

    def tree(self, data: bytes) -> str:
        expected = tree_text(*load(data))
        return self._until(self._file(data), "tree", lambda text: _ends_alike(text, expected))

    def _file(self, data: bytes) -> Path:
        file = self.folder / "metadata"
        file.write_bytes(without_last_controls(data))
        return file

    def _until(self, file: Path, command: str, is_whole: Callable[[str], bool]) -> str:
        return asked_until(
            lambda: self._run(file, command, "/"), is_whole, f"{command} shows all there is"
        )

    def _run(self, file: Path, *command: str) -> str:
        done = self.tools.run("kafka-metadata-shell", "--snapshot", str(file), *command)
        if done.exit_code == 0:
            return done.stdout
        complaint = _COMPLAINT.search(done.stderr)
        assert complaint is not None, done.stderr
        return f"{done.stdout}{complaint[1]}\n"


def _ends_alike(one: str, other: str) -> bool:
    return _PROVENANCE.findall(one) == _PROVENANCE.findall(other)


def as_of_reference(printed: str) -> str:
    """Have our shell say of itself what the real one says."""
    named = printed.replace(f"{SOFTWARE.version}\n", f"{REFERENCE_SOFTWARE.version}\n")
    return named.replace(f"{SOFTWARE.commit_id}\n", f"{REFERENCE_SOFTWARE.commit_id}\n")


def tree_text(image: MetadataImage, provenance: Provenance) -> str:
    lines = tree_lines(shell_tree(image, provenance, REFERENCE_SOFTWARE))
    return "".join(f"{line}\n" for line in lines)


def without_provenance(tree: str) -> list[str]:
    """Return what ``tree /`` prints apart from where in the log an image stands."""
    return [line for line in tree.splitlines() if not line.lstrip().startswith("offset ")]


def find_text(image: MetadataImage, provenance: Provenance) -> str:
    """Return what ``find /`` has to print, up to its complaint if there is one."""
    lines: list[str] = []
    try:
        lines.extend(find_lines(shell_tree(image, provenance, REFERENCE_SOFTWARE), "/"))
    except DanglingNameError as error:
        lines.append(str(error))
    return "".join(f"{line}\n" for line in lines)


def load(data: bytes, *, end_offset: float = math.inf) -> tuple[MetadataImage, Provenance]:
    """Return the image after all batches before an offset, and its provenance for a reader."""
    folded = FoldedLog()
    for batch in read_batches(data):
        if batch.base_offset >= end_offset:
            break
        folded = folded.add(batch)
    return folded.image.published, folded.provenance


def records_of(batch: RecordBatch) -> Iterator[tuple[Message, int, int]]:
    """Yield message, version and offset of each record in a batch."""
    for record in batch.records():
        assert record.value is not None
        yield (*decode_record(bytes(record.value)), record.offset)


def without_last_controls(data: bytes) -> bytes:
    """Leave out the control batches at the end, a snapshot's footer that is.

    When the last batch is one of those the real shell may wait for ever: it counts as caught up
    with a batch of records, and knows only with the last batch how far it has to catch up.
    """
    ends = [batch.position + batch.size for batch in read_batches(data) if not batch.is_control]
    return data[: ends[-1]]


def prefixes(data: bytes, count: int) -> Iterator[bytes]:
    """Yield `count` beginnings of a file, evenly spread, or none.

    They end where the real shell shows something: outside of a transaction, and after the first
    metadata.version.
    """
    ends: list[int] = []
    folded = FoldedLog()
    for batch in read_batches(data):
        if batch.is_control:
            continue
        folded = folded.add(batch)
        image = folded.image
        if image.transaction is None and image.features.metadata_version is not None:
            ends.append(batch.position + batch.size)
    for number in range(1, count + 1 if ends else 1):
        yield data[: ends[(len(ends) - 1) * number // count]]


def has_records(data: bytes) -> bool:
    """Tell whether there is more than the quorum's own records, as in the first file of a node."""
    return not all(batch.is_control for batch in read_batches(data))


def history(directory: Path) -> bytes:
    """The log from its first record on, or from a snapshot that stands for what is gone."""
    first, parts, end = first_offset(directory), list[bytes](), 0
    if first > 0:
        end, file = min(item for item in snapshots(directory).items() if item[0] >= first)
        parts.append(file.read_bytes())
    for segment in sorted(directory.glob("*.log")):
        data = segment.read_bytes()
        begin = min(
            (
                batch.position
                for batch in read_batches(data, is_cut_allowed=True)
                if batch.base_offset >= end
            ),
            default=len(data),
        )
        parts.append(data[begin:])
    return b"".join(parts)


def snapshot_of(image: MetadataImage) -> bytes:
    parts: list[bytes] = []
    writer = SnapshotWriter(
        _Parts(parts),
        epoch=7,
        last_contained_timestamp_ms=1,
        now_ms=1_700_000_000_999,
        kraft_version=1,
    )
    writer.append((encode_record(*record) for record in image_records(image)), now_ms=2)
    writer.finish(now_ms=3)
    return b"".join(parts)


@dataclass(frozen=True, slots=True)
class _Parts:
    parts: list[bytes]

    def append(self, data: bytes) -> None:
        self.parts.append(data)
