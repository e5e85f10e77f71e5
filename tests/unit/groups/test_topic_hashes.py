"""The hash of the topics of a consumer group, which brokers of Kafka compute alike."""

from typing import Final

import pytest

from kvorum.groups.modern_group.metadata_hash import NO_TOPICS, TopicHashes
from kvorum.metadata.image import MetadataImage
from kvorum.wire.messages.partition_record import PartitionRecord
from kvorum.wire.messages.register_broker_record import RegisterBrokerRecord
from kvorum.wire.messages.topic_record import TopicRecord
from kvorum.wire.primitives import Message

FOO: Final = (1).to_bytes(8, "big") + (2).to_bytes(8, "big")
BAR: Final = (3).to_bytes(8, "big") + (4).to_bytes(8, "big")
RACK_0: Final = 0
RACK_1: Final = 1
NO_RACK: Final = 2


def partition(topic_id: bytes, index: int, replicas: list[int]) -> Message:
    return PartitionRecord(
        partition_id=index,
        topic_id=topic_id,
        replicas=replicas,
        isr=replicas,
        leader=replicas[0],
        leader_epoch=0,
        partition_epoch=0,
        directories=[bytes(16)] * len(replicas),
    )


def changed(image: MetadataImage, *records: Message) -> MetadataImage:
    offset = image.last_offset + 1
    return image.apply_all((record, record.MAX_VERSION, offset) for record in records)


@pytest.fixture
def image() -> MetadataImage:
    """Two topics: foo without racks, bar with the racks "r1" and "r0", and with "r0"."""
    return changed(
        MetadataImage(),
        RegisterBrokerRecord(broker_id=RACK_0, rack="r0"),
        RegisterBrokerRecord(broker_id=RACK_1, rack="r1"),
        RegisterBrokerRecord(broker_id=NO_RACK, rack=None),
        TopicRecord("foo", FOO),
        partition(FOO, 0, [NO_RACK]),
        TopicRecord("bar", BAR),
        partition(BAR, 0, [RACK_1, RACK_0]),
        partition(BAR, 1, [RACK_0]),
    )


@pytest.mark.parametrize(
    ("topics", "expected"),
    [
        ((), NO_TOPICS),
        (("absent",), NO_TOPICS),
        (("foo",), 188021574596939444),
        (("foo", "bar", "absent"), -7273409990105619216),
    ],
)
def test_the_hash_of_topics_is_that_of_kafka(
    image: MetadataImage, topics: tuple[str, ...], expected: int
) -> None:
    assert TopicHashes().of_group(topics, image) == expected


def test_a_topic_has_another_hash_when_it_changes(image: MetadataImage) -> None:
    hashes = TopicHashes()
    before = hashes.of_group(("foo",), image)
    grown = changed(image, partition(FOO, 1, [NO_RACK]))
    assert hashes.of_group(("foo",), grown) != before
    assert hashes.of_group(("foo",), image) == before


def test_racks_that_change_without_the_topic_count_when_it_changes(image: MetadataImage) -> None:
    hashes = TopicHashes()
    before = hashes.of_group(("bar",), image)
    moved = changed(image, RegisterBrokerRecord(broker_id=RACK_0, rack="r9"))
    assert hashes.of_group(("bar",), moved) == before
    hashes.forget(("bar", "foo"))
    assert hashes.of_group(("bar",), moved) != before
