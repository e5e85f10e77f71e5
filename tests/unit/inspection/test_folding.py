"""Files of metadata logs, whole and damaged, folded into images, to the end or to any moment."""

import shutil
from pathlib import Path
from random import Random

import pytest
from tests.support.golden_data import (
    METADATA_NODES,
    first_offset,
    log_records,
    snapshot_records,
    snapshots,
)

from kvorum.inspection.decoding.files import file_objects
from kvorum.inspection.folded_log import FoldedLog
from kvorum.inspection.folding import fold_directory, fold_file, fold_snapshot, fold_until
from kvorum.inspection.image_entries import image_entries
from kvorum.inspection.log_check.check import check_paths
from kvorum.inspection.log_check.findings import Verdict
from kvorum.inspection.metadata_source_error import MetadataSourceError
from kvorum.inspection.moment import Moment
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.record_frame import decode_record, encode_record
from kvorum.storage.metadata_log.snapshot_writer import SnapshotWriter
from kvorum.storage.names import METADATA_LOG_DIRECTORY, snapshot_name
from kvorum.wire.messages.begin_transaction_record import BeginTransactionRecord
from kvorum.wire.messages.feature_level_record import FeatureLevelRecord
from kvorum.wire.messages.partition_record import PartitionRecord
from kvorum.wire.messages.topic_record import TopicRecord
from kvorum.wire.offset_and_epoch import OffsetAndEpoch
from kvorum.wire.primitives import Message
from kvorum.wire.records import BatchOptions, RecordBatch, RecordData, build_batch, read_batches

FIRST = "00000000000000000000.log"
TIME_MS = 1_700_000_000_000
VERSION = FeatureLevelRecord("metadata.version", 30)
OFFSETS = 25


def topic(number: int) -> TopicRecord:
    return TopicRecord(f"topic-{number}", bytes([*bytes(15), number]))


def batch(offset: int, *records: Message, epoch: int = 3) -> bytes:
    data = [
        RecordData(value=encode_record(record, 0), timestamp=TIME_MS + offset) for record in records
    ]
    return build_batch(data, BatchOptions(base_offset=offset, partition_leader_epoch=epoch))


LOG = batch(0, VERSION) + batch(1, topic(1), topic(2)) + batch(3, topic(3))


class _Parts:
    def __init__(self) -> None:
        self.data = b""

    def append(self, data: bytes) -> None:
        self.data += data


def snapshot(*records: Message) -> bytes:
    parts = _Parts()
    writer = SnapshotWriter(
        parts, epoch=3, last_contained_timestamp_ms=TIME_MS + 99, now_ms=1, kraft_version=1
    )
    writer.append((encode_record(record, 0) for record in records), now_ms=2)
    writer.finish(now_ms=3)
    return parts.data


@pytest.fixture
def warnings() -> list[str]:
    return []


def topics(directory: Path, warnings: list[str]) -> list[str]:
    return sorted(fold_directory(directory, warn=warnings.append).image.topics.ids)


def test_a_log_from_its_beginning(tmp_path: Path, warnings: list[str]) -> None:
    (tmp_path / FIRST).write_bytes(LOG)
    folded = fold_directory(tmp_path, warn=warnings.append)
    assert set(folded.image.topics.ids) == {"topic-1", "topic-2", "topic-3"}
    assert (folded.provenance.offset, folded.provenance.epoch) == (3, 3)
    assert folded.provenance.timestamp_ms == TIME_MS + 3
    assert folded.end == OffsetAndEpoch(4, 3)
    assert warnings == []


def test_the_directory_of_a_node_will_do(tmp_path: Path, warnings: list[str]) -> None:
    (tmp_path / "__cluster_metadata-0").mkdir()
    (tmp_path / "__cluster_metadata-0" / FIRST).write_bytes(LOG)
    assert len(topics(tmp_path, warnings)) == 3


def test_the_latest_snapshot_and_what_lies_after_it_even_within_a_batch(
    tmp_path: Path, warnings: list[str]
) -> None:
    """Records of the log before the snapshot do not count: topic 1 is not in the snapshot."""
    (tmp_path / FIRST).write_bytes(LOG)
    (tmp_path / snapshot_name(OffsetAndEpoch(2, 3))).write_bytes(snapshot(VERSION, topic(9)))
    (tmp_path / snapshot_name(OffsetAndEpoch(1, 2))).write_bytes(b"older, and never read")
    (tmp_path / f"{snapshot_name(OffsetAndEpoch(4, 3))}.deleted").write_bytes(b"no more")
    assert topics(tmp_path, warnings) == ["topic-2", "topic-3", "topic-9"]


def test_a_snapshot_alone_stands_at_its_end(tmp_path: Path, warnings: list[str]) -> None:
    (tmp_path / snapshot_name(OffsetAndEpoch(70, 5))).write_bytes(snapshot(VERSION, topic(9)))
    provenance = fold_directory(tmp_path, warn=warnings.append).provenance
    assert (provenance.offset, provenance.epoch) == (69, 5)
    assert provenance.timestamp_ms == TIME_MS + 99


def test_segments_follow_one_another(tmp_path: Path, warnings: list[str]) -> None:
    (tmp_path / FIRST).write_bytes(LOG)
    (tmp_path / "00000000000000000004.log").write_bytes(batch(4, topic(4)))
    assert len(topics(tmp_path, warnings)) == 4
    (tmp_path / "00000000000000000009.log").write_bytes(batch(9, topic(9)))
    with pytest.raises(MetadataSourceError, match=r"0009\.log: position 0: offset 9 follows wher"):
        topics(tmp_path, warnings)


@pytest.mark.parametrize("damage", ["cut", "flipped", "zeros"])
def test_the_end_of_the_log_may_be_unfinished(
    tmp_path: Path, warnings: list[str], damage: str
) -> None:
    whole, last = LOG[: -len(batch(3, topic(3)))], batch(3, topic(3))
    ends = {"cut": last[:-3], "flipped": last[:-1] + b"\xff", "zeros": bytes(200)}
    (tmp_path / FIRST).write_bytes(whole + ends[damage])
    assert topics(tmp_path, warnings) == ["topic-1", "topic-2"]
    (warning,) = warnings
    assert f"{FIRST}: position {len(whole)}: the last {len(ends[damage])} bytes" in warning


def test_damage_before_the_last_segment_is_an_error(tmp_path: Path, warnings: list[str]) -> None:
    (tmp_path / FIRST).write_bytes(LOG[:-1] + b"\xff")
    (tmp_path / "00000000000000000004.log").write_bytes(batch(4, topic(4)))
    with pytest.raises(MetadataSourceError, match=rf"{FIRST}: position \d+: .*checksum"):
        topics(tmp_path, warnings)


def test_a_directory_without_a_log(tmp_path: Path, warnings: list[str]) -> None:
    with pytest.raises(MetadataSourceError) as raised:
        topics(tmp_path, warnings)
    assert str(raised.value) == (
        f"{tmp_path}: no metadata log is in it, and none is in the directories below"
    )
    with pytest.raises(FileNotFoundError):
        topics(tmp_path / "none", warnings)


def test_an_empty_log(tmp_path: Path, warnings: list[str]) -> None:
    (tmp_path / METADATA_LOG_DIRECTORY).mkdir()
    with pytest.raises(MetadataSourceError, match="no metadata record is in its snapshots and"):
        topics(tmp_path, warnings)


def test_a_directory_above_that_of_a_log_names_it(tmp_path: Path, warnings: list[str]) -> None:
    """It is so with the directories of `kvorum dev --data`."""
    log = tmp_path / "controller-1" / "data" / METADATA_LOG_DIRECTORY
    log.mkdir(parents=True)
    for directory in (tmp_path, tmp_path / "controller-1"):
        with pytest.raises(MetadataSourceError) as raised:
            topics(directory, warnings)
        assert str(raised.value) == (
            f"{directory}: no metadata log is in it: name {log.parent} below it"
        )


def test_a_directory_above_several_logs_names_one(tmp_path: Path, warnings: list[str]) -> None:
    for name in ("controller-2", "controller-1", "broker-101"):
        (tmp_path / name / "data" / METADATA_LOG_DIRECTORY).mkdir(parents=True)
    with pytest.raises(MetadataSourceError) as raised:
        topics(tmp_path, warnings)
    assert str(raised.value).endswith(
        f"name {tmp_path}/broker-101/data below it, or another one: 3 of them have a log"
    )


def test_a_file_that_is_a_snapshot_or_a_segment(tmp_path: Path, warnings: list[str]) -> None:
    file = tmp_path / "any name"
    for data in (snapshot(VERSION, topic(1)), batch(70, VERSION, topic(1))):
        file.write_bytes(data)
        folded = fold_file(file, warn=warnings.append)
        assert set(folded.image.topics.ids) == {"topic-1"}
    assert folded.provenance.offset == 71


def test_a_file_of_another_kind(tmp_path: Path, warnings: list[str]) -> None:
    file = tmp_path / "file"
    for data in (b"", snapshot()):
        file.write_bytes(data)
        with pytest.raises(MetadataSourceError, match="no metadata record is in it"):
            fold_file(file, warn=warnings.append)
    file.write_bytes(batch(0, VERSION)[:-1] + b"\xff")
    with pytest.raises(MetadataSourceError, match=r"file: position 0: .*checksum"):
        fold_file(file, warn=warnings.append)
    file.write_bytes(LOG)
    with pytest.raises(MetadataSourceError, match="no snapshot header"):
        fold_snapshot(file, OffsetAndEpoch(4, 3))


def test_an_open_transaction_is_not_shown(tmp_path: Path, warnings: list[str]) -> None:
    opened = batch(4, BeginTransactionRecord("long"), topic(4))
    (tmp_path / FIRST).write_bytes(LOG + opened + batch(6, topic(5)))
    folded = fold_directory(tmp_path, warn=warnings.append)
    assert set(folded.image.published.topics.ids) == {"topic-1", "topic-2", "topic-3"}
    assert folded.provenance.offset == 3
    assert folded.end.offset == 7


def entries_of(image: MetadataImage) -> dict[str, str]:
    """Return what an image says, without a leftover that Kafka's snapshots may have.

    Kafka keeps the configuration of a topic that was made, configured and removed again between
    two of its images.
    """
    topics = image.published.topics.ids
    return {
        path: value
        for path, value in image_entries(FoldedLog(image))
        if not path.startswith("configs/TOPIC:") or path.split("/")[1][6:] in topics
    }


def folded_by_records(log: Path, offset: int) -> MetadataImage:
    """Fold all records up to an offset, from the first snapshot that the log goes on from."""
    image, start = MetadataImage(), first_offset(log)
    if start:
        start, file = next(one for one in snapshots(log).items() if one[0] >= start)
        image = image.apply_all(snapshot_records(file, start))
    return image.apply_all(one for one in log_records(log, start) if one[2] <= offset)


def no_warning(text: str) -> None:
    raise AssertionError(text)


@pytest.mark.parametrize("node", METADATA_NODES)
def test_images_at_offsets(golden_sets: Path, node: str) -> None:
    log = golden_sets / node / "__cluster_metadata-0"
    last = fold_directory(log, warn=no_warning).end.offset - 1
    first = next((end for end in snapshots(log) if end >= first_offset(log)), 1)
    first = first if first_offset(log) else 1
    drawn = Random(node)
    for offset in [drawn.randint(first, last) for _ in range(OFFSETS)]:
        folded = fold_until(golden_sets / node, Moment(offset), warn=no_warning)
        assert folded.end.offset == offset + 1
        assert entries_of(folded.image) == entries_of(folded_by_records(log, offset)), offset


def test_a_time_is_that_of_the_last_record_before_it(golden_sets: Path) -> None:
    node = golden_sets / METADATA_NODES[1]
    for offset in (300, 1000, 2000):
        known = fold_until(node, Moment(offset), warn=no_warning).provenance
        found = fold_until(node, Moment(time_ms=known.timestamp_ms), warn=no_warning).provenance
        assert found.timestamp_ms == known.timestamp_ms
        assert found.offset >= offset
        before = fold_until(node, Moment(time_ms=known.timestamp_ms - 1), warn=no_warning)
        assert before.provenance.timestamp_ms < known.timestamp_ms
        assert before.provenance.offset < offset


def test_a_segment_alone(golden_sets: Path) -> None:
    node = golden_sets / METADATA_NODES[1]
    segment = node / "__cluster_metadata-0" / "00000000000000000000.log"
    by_offset = fold_until(segment, Moment(500), warn=no_warning)
    assert by_offset == fold_until(node, Moment(500), warn=no_warning)
    by_time = Moment(time_ms=by_offset.provenance.timestamp_ms)
    assert fold_until(segment, by_time, warn=no_warning).end.offset >= 501


def test_moments_that_are_not_in_the_files(golden_sets: Path, tmp_path: Path) -> None:
    node = tmp_path / "node"
    shutil.copytree(golden_sets / METADATA_NODES[1], node)
    with pytest.raises(MetadataSourceError, match=r"offset 9999 is not in it: it ends before"):
        fold_until(node, Moment(9999), warn=no_warning)
    with pytest.raises(MetadataSourceError, match="all of its records are younger"):
        fold_until(node, Moment(time_ms=0), warn=no_warning)
    log = node / "__cluster_metadata-0"
    (log / "00000000000000000000.log").unlink()
    (log / snapshot_name(OffsetAndEpoch(759, 1))).unlink()
    earliest, _ = next(iter(snapshots(log).items()))
    with pytest.raises(MetadataSourceError, match=f"the next snapshot ends at {earliest}"):
        fold_until(node, Moment(300), warn=no_warning)
    assert fold_until(log, Moment(earliest - 1), warn=no_warning).provenance.offset == earliest - 1


def test_tagged_fields_of_other_kafkas_are_passed_over(golden_sets: Path, tmp_path: Path) -> None:
    """Some distributions add fields from 100 on to the records of partitions."""
    known = golden_sets / METADATA_NODES[-1] / "__cluster_metadata-0"
    node = tmp_path / known.name
    shutil.copytree(known, node)
    changed = 0
    for segment in node.glob("*.log"):
        segment.with_suffix(".index").unlink(missing_ok=True)
        segment.with_suffix(".timeindex").unlink(missing_ok=True)
        batches = [_with_other_fields(one) for one in read_batches(segment.read_bytes())]
        changed += sum(was_changed for _, was_changed in batches)
        segment.write_bytes(b"".join(data for data, _ in batches))
    assert changed > 0
    sound = fold_until(known, Moment(), warn=no_warning)
    assert fold_until(node, Moment(), warn=no_warning).image == sound.image
    assert check_paths([node]).verdict is Verdict.SOUND
    for segment in node.glob("*.log"):
        assert not any(found["type"] == "damage" for found in file_objects(segment))


def _with_other_fields(batch: RecordBatch) -> tuple[bytes, bool]:
    """Return the bytes of a batch, with tagged fields in its partition records, if it has some."""
    if batch.is_control:
        return bytes(batch.data), False
    records: list[RecordData] = []
    is_changed = False
    for record in batch.records():
        message, version = decode_record(record.value or b"")
        if isinstance(message, PartitionRecord):
            message.unknown_tagged_fields = [(100, b"\1"), (101, b"abc")]
            is_changed = True
        value = encode_record(message, version)
        records.append(RecordData(value, record.key, record.timestamp, ()))
    options = BatchOptions(batch.base_offset, batch.partition_leader_epoch)
    return bytes(build_batch(records, options)), is_changed
