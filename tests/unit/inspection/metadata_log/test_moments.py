"""The image as of any offset and time, against a fold of the records one by one."""

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

from kvorum.inspection.image_entries import image_entries
from kvorum.inspection.metadata_log.files import MetadataSourceError
from kvorum.inspection.metadata_log.folding import FoldedLog, Moment, fold_directory, fold_until
from kvorum.metadata.image import MetadataImage
from kvorum.storage.names import snapshot_name
from kvorum.wire.offset_and_epoch import OffsetAndEpoch

OFFSETS = 25


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
