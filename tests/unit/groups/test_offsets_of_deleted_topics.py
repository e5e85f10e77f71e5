"""Offsets of topics that are deleted: all of them go, and finding them takes one look at each."""

import pytest
from tests.unit.groups.coordinator import Coordinator
from tests.unit.groups.looks_at_items import noted_looks

from kvorum.groups.offsets.store import OffsetAndMetadata, TopicPartition
from kvorum.metadata.topics_image import TopicImage
from kvorum.wire.messages.offset_commit_key import OffsetCommitKey

GROUPS = ("g", "h")
KEPT_COUNT = 20
OFFSET = OffsetAndMetadata(committed_offset=1, commit_timestamp=0)


def id_of(number: int) -> bytes:
    return number.to_bytes(16)


def gone(count: int) -> list[TopicImage]:
    return [TopicImage(f"gone-{number}", id_of(number)) for number in range(1, count + 1)]


@pytest.fixture
def coordinator() -> Coordinator:
    coordinator = Coordinator()
    for group in GROUPS:
        for number in range(KEPT_COUNT):
            where = TopicPartition(f"kept-{number}", 0)
            coordinator.shard.offsets.committed.put(group, where, OFFSET)
    return coordinator


def test_the_offsets_of_all_deleted_topics_go_topic_by_topic(coordinator: Coordinator) -> None:
    offsets = coordinator.shard.offsets
    for topic in reversed(gone(2)):
        for group in GROUPS:
            offsets.committed.put(group, TopicPartition(topic.name, 3), OFFSET)
    offsets.pending.put(7, "g", TopicPartition("gone-1", 4), OFFSET)
    result = coordinator.shard.on_topics_deleted(gone(2))
    assert [one.key for one in result.records] == [
        OffsetCommitKey("g", "gone-1", 3),
        OffsetCommitKey("h", "gone-1", 3),
        OffsetCommitKey("g", "gone-1", 4),
        OffsetCommitKey("g", "gone-2", 3),
        OffsetCommitKey("h", "gone-2", 3),
    ]


def test_offsets_are_gone_through_once_however_many_topics_are_deleted(
    coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = noted_looks(monkeypatch)
    coordinator.shard.on_topics_deleted(gone(1))
    looks_for_one = len(looks)
    looks.clear()
    coordinator.shard.on_topics_deleted(gone(50))
    assert len(looks) == looks_for_one
