"""`kvorum log image --at` says what the real metadata shell says of a log that ends there."""

from collections.abc import Container, Iterator
from itertools import cycle
from pathlib import Path
from random import Random
from typing import Final

import pytest
from tests.interop.metadata_shell import Shell, history, shell_directories, tree_text
from tests.support.golden_data import first_offset, snapshots
from tests.support.kafka.tools import ToolRunner

from kvorum.inspection.metadata_log.folding import FoldedLog, Moment, fold_until
from kvorum.wire.records import BatchOptions, RecordBatch, RecordData, build_batch, read_batches

OFFSETS: Final = 200
_CONFIG_INDENT: Final = " " * 4
_TOPIC: Final = "TOPIC:"


def ends_at(data: bytes, offset: int) -> bytes:
    """Return a log that ends with the record at `offset`, which may be within a batch."""
    parts: list[bytes] = []
    for batch in read_batches(data):
        if batch.next_offset > offset + 1:
            parts.append(beginning_of(batch, offset))
            break
        parts.append(bytes(batch.data))
        if batch.next_offset == offset + 1:
            break
    return b"".join(parts)


def beginning_of(batch: RecordBatch, offset: int) -> bytes:
    """Return the batch with its records up to `offset` only; nothing for one that begins behind."""
    records = [record for record in batch.records() if record.offset <= offset]
    if not records:
        return b""
    options = BatchOptions(
        base_offset=batch.base_offset, partition_leader_epoch=batch.partition_leader_epoch
    )
    values = [RecordData(value=record.value, timestamp=record.timestamp) for record in records]
    return build_batch(values, options)


def offsets_of_records(directory: Path, data: bytes) -> list[int]:
    """Return the offsets of all records but those of the quorum itself."""
    begin = 0
    if first_offset(directory):
        begin = min(end for end in snapshots(directory) if end >= first_offset(directory))
    return [
        offset
        for batch in read_batches(data)
        if not batch.is_control and batch.base_offset >= begin
        for offset in range(batch.base_offset, batch.next_offset)
    ]


def draw(golden_sets: Path) -> Iterator[tuple[Path, bytes, int]]:
    """Yield directories, their logs, and offsets in them, again and again."""
    drawn = Random(1)
    logs = [(directory, history(directory)) for directory in shell_directories(golden_sets)]
    offsets = {directory: offsets_of_records(directory, data) for directory, data in logs}
    for directory, data in cycle(one for one in logs if offsets[one[0]]):
        yield directory, data, drawn.choice(offsets[directory])


def is_shown(folded: FoldedLog) -> bool:
    """Return whether the real shell shows something: not before metadata.version, for one."""
    return folded.image.transaction is None and folded.image.features.metadata_version is not None


def without_leftovers(tree: str, topics: Container[str]) -> list[str]:
    """Leave out configurations of topics that are gone, which snapshots of some nodes have.

    Kafka keeps the configuration of a topic that was made, configured and removed again between
    two of its images.
    """
    kept: list[str] = []
    is_left_out = False
    for line in tree.splitlines():
        if line.startswith(_CONFIG_INDENT) and line[len(_CONFIG_INDENT)] != " ":
            name = line.strip().removesuffix(":")
            is_left_out = name.startswith(_TOPIC) and name.removeprefix(_TOPIC) not in topics
        elif not line.startswith(_CONFIG_INDENT):
            is_left_out = False
        if not is_left_out:
            kept.append(line)
    return kept


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_images_at_random_offsets(
    golden_sets: Path, kafka_tools: ToolRunner, tmp_path: Path
) -> None:
    shell = Shell(kafka_tools, tmp_path)
    compared, within_batches = 0, 0

    def fail(text: str) -> None:
        raise AssertionError(text)

    for directory, data, offset in draw(golden_sets):
        folded = fold_until(directory, Moment(offset), warn=fail)
        if not is_shown(folded):
            continue
        ours = tree_text(folded.image.published, folded.provenance)
        theirs = shell.tree(ends_at(data, offset))
        topics = folded.image.topics.ids
        shown = without_leftovers(theirs, topics)
        assert without_leftovers(ours, topics) == shown, (directory, offset)
        within_batches += not any(batch.last_offset == offset for batch in read_batches(data))
        compared += 1
        if compared == OFFSETS:
            break
    assert within_batches > OFFSETS / 4
