"""The made-up clusters of the benchmark are such as a controller could have written."""

from pathlib import Path

from benchmarks.fleet.cluster_log import write_cluster
from benchmarks.fleet.cluster_story import Batch, ClusterStory

from kvorum.metadata.image import MetadataImage
from kvorum.metadata.record_frame import RecordAndVersion, decode_record
from kvorum.wire.records import read_batches

RECORDS = 20_000


def replayed(batches: list[Batch]) -> MetadataImage:
    image, offset = MetadataImage(), 0
    for batch in batches:
        numbered = [
            (message, version, offset + index)
            for index, (message, version) in enumerate(batch.records)
        ]
        image = image.apply_all(numbered)
        offset += batch.record_count
    return image


def test_the_records_lead_to_the_partitions_that_the_story_has() -> None:
    story = ClusterStory(1, brokers=5, partitions=200)
    image = replayed(list(story.batches(RECORDS)))
    told = {
        (one.topic_id, one.partition_id): (one.replicas, one.isr, one.leader)
        for one in story.partitions()
    }
    assert told
    assert told == {
        (topic.id, number): (list(one.replicas), list(one.isr), one.leader)
        for topic in image.topics.sorted_topics()
        for number, one in topic.sorted_partitions()
    }


def test_the_log_holds_the_records_of_the_story(tmp_path: Path) -> None:
    count = write_cluster(tmp_path / "cluster", 7, records=RECORDS, partitions=200)
    (segment,) = (tmp_path / "cluster" / "__cluster_metadata-0").glob("*.log")
    story = ClusterStory(7, partitions=200)
    written: list[tuple[RecordAndVersion, ...]] = []
    for batch in read_batches(segment.read_bytes()):
        batch.verify()
        values = [record.value or b"" for record in batch.records()]
        written.append(() if batch.is_control else tuple(map(decode_record, values)))
    assert written == [batch.records for batch in story.batches(RECORDS)]
    assert count >= RECORDS
