"""The real kafka-metadata-shell shows the very image that we fold from the same file."""

import re
from collections.abc import Container, Iterator
from itertools import cycle
from pathlib import Path
from random import Random
from typing import Final

import pytest
from tests.interop.every_record import SHA_512, every_batch, log_of
from tests.interop.metadata_shell import (
    Shell,
    has_records,
    history,
    load,
    prefixes,
    shell_directories,
    snapshot_of,
    tree_text,
    without_provenance,
)
from tests.interop.random_log import RandomLog
from tests.support.dump_log import dump
from tests.support.golden_data import first_offset, snapshots
from tests.support.kafka.java import ToolRunner

from kvorum.inspection.folded_log import FoldedLog
from kvorum.inspection.folding import fold_until
from kvorum.inspection.moment import Moment
from kvorum.metadata.record_frame import RecordAndVersion, decode_record, record_type_name
from kvorum.wire.apis import METADATA_RECORDS, record_class
from kvorum.wire.messages.feature_level_record import FeatureLevelRecord
from kvorum.wire.messages.remove_user_scram_credential_record import RemoveUserScramCredentialRecord
from kvorum.wire.messages.unregister_controller_record import UnregisterControllerRecord
from kvorum.wire.messages.user_scram_credential_record import UserScramCredentialRecord
from kvorum.wire.records import BatchOptions, RecordBatch, RecordData, build_batch, read_batches

PREFIXES_PER_LOG = 16
SEEDS = 8
BATCHES_PER_LOG = 100


@pytest.fixture
def shell(kafka_tools: ToolRunner, tmp_path: Path) -> Shell:
    return Shell(kafka_tools, tmp_path)


def test_every_golden_snapshot(golden_sets: Path, shell: Shell) -> None:
    shown = [
        shell.check(data, file)
        for directory in shell_directories(golden_sets)
        for file in sorted(directory.glob("*.checkpoint"))
        if has_records(data := file.read_bytes())
    ]
    assert len(shown) > 15


@pytest.mark.slow
def test_every_golden_log_at_many_offsets(golden_sets: Path, shell: Shell) -> None:
    compared = [
        shell.check(part, (directory, number))
        for directory in shell_directories(golden_sets)
        for number, part in enumerate(prefixes(history(directory), PREFIXES_PER_LOG))
    ]
    assert len(compared) >= 8 * PREFIXES_PER_LOG


def types_and_versions(batches: list[list[RecordAndVersion]]) -> set[tuple[str, int]]:
    return {(message.NAME, version) for batch in batches for message, version in batch}


def test_every_record_type_in_every_version(shell: Shell) -> None:
    batches = every_batch()
    kinds = [record_class(key) for key in METADATA_RECORDS]
    # The shell's release is older than this record.
    kinds.remove(UnregisterControllerRecord)
    assert types_and_versions(batches) == {
        (kind.NAME, version)
        for kind in kinds
        for version in range(kind.MIN_VERSION, kind.MAX_VERSION + 1)
    }
    for end in range(1, len(batches) + 1):
        shell.check(log_of(batches[:end]), end)


def test_a_snapshot_says_what_the_log_said(shell: Shell) -> None:
    log = log_of(every_batch())
    image, _ = load(log)
    snapshot = snapshot_of(image)
    from_log, from_snapshot = shell.check(log), shell.check(snapshot)
    assert without_provenance(from_snapshot) == without_provenance(from_log)


def test_both_are_dumped_by_the_real_tool(
    kafka_tools: ToolRunner, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    unregistration = (UnregisterControllerRecord(controller_id=3001), 0)
    log = log_of([*every_batch(), [unregistration]])
    image, provenance = load(log)
    files = {
        "00000000000000000000.log": log,
        f"{provenance.offset + 1:020}-0000000007.checkpoint": snapshot_of(image),
    }
    for name, data in files.items():
        file = tmp_path / name
        file.write_bytes(data)
        decoder = "--cluster-metadata-decoder"
        theirs = kafka_tools.dumped(file, decoder)
        assert "Error at" not in theirs
        assert theirs == dump(capsys, decoder, "--files", str(file)).stdout
        printed = re.findall(r'payload: \{"type":"(\w+)","version":(\d+)', theirs)
        batches = [batch for batch in read_batches(data) if not batch.is_control]
        records = [decode_record(bytes(r.value or b"")) for b in batches for r in b.records()]
        assert printed == [
            (record_type_name(type(message)), str(version)) for message, version in records
        ]


@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_logs_and_their_snapshots(shell: Shell, seed: int) -> None:
    log = log_of(RandomLog(seed).batches(BATCHES_PER_LOG))
    for part in prefixes(log, 3):
        from_log = shell.check(part)
        from_snapshot = shell.check(snapshot_of(load(part)[0]))
        assert without_provenance(from_snapshot) == without_provenance(from_log)


@pytest.mark.parametrize(
    "time_ms",
    [
        *(0, -1, 1_700_000_000_100, 1_709_164_800_020, 253_402_300_800_000),
        *(-62_135_596_800_001, -62_167_219_200_001, (1 << 63) - 9000, -(1 << 63)),
    ],
)
def test_times_of_any_age(shell: Shell, time_ms: int) -> None:
    shell.check(log_of(every_batch()[:1], begin_ms=time_ms))


def test_a_credential_beside_a_removal_is_kept_here_and_forgotten_there(shell: Shell) -> None:
    """Within one batch, real Kafka drops a mechanism whose last user goes, with all who come."""
    bob = UserScramCredentialRecord("bob", SHA_512, b"salt", b"stored", b"server", 4096)
    alice = UserScramCredentialRecord("alice", SHA_512, b"salt", b"stored", b"server", 4096)
    batches: list[list[RecordAndVersion]] = [
        [(FeatureLevelRecord("metadata.version", 30), 0)],
        [(bob, 0)],
        [(RemoveUserScramCredentialRecord("bob", SHA_512), 0), (alice, 0)],
    ]
    image, _ = load(log_of(batches))
    assert set(image.scram.credentials) == {(SHA_512, "alice")}
    assert "alice" not in shell.tree(log_of(batches))
    shell.check(log_of([*batches[:2], batches[2][1:], batches[2][:1]]))


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
