"""The difference of two images, checked by going the way it tells of."""

from collections.abc import Mapping
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvorum.metadata.image import MetadataImage
from kvorum.metadata.image_delta import ImageDelta, MapDelta, map_delta
from kvorum.wire.messages.config_record import ConfigRecord
from kvorum.wire.messages.feature_level_record import FeatureLevelRecord
from kvorum.wire.messages.partition_change_record import PartitionChangeRecord
from kvorum.wire.messages.partition_record import PartitionRecord
from kvorum.wire.messages.register_broker_record import RegisterBrokerRecord
from kvorum.wire.messages.remove_topic_record import RemoveTopicRecord
from kvorum.wire.messages.topic_record import TopicRecord
from kvorum.wire.primitives import Message

Key = TypeVar("Key")
Value = TypeVar("Value")
MAPS = st.dictionaries(st.integers(0, 5), st.integers(0, 2))
ID, OTHER_ID = b"t" * 16, b"u" * 16
START = (
    FeatureLevelRecord("metadata.version", 30),
    RegisterBrokerRecord(broker_id=1, broker_epoch=1, incarnation_id=ID),
    TopicRecord("t", ID),
    PartitionRecord(0, ID, replicas=[1], isr=[1], leader=1, leader_epoch=0, partition_epoch=0),
    ConfigRecord(2, "t", "retention.ms", "1"),
)


def fold(image: MetadataImage, *records: Message) -> MetadataImage:
    first = image.last_offset + 1
    return image.apply_all((record, 0, first + index) for index, record in enumerate(records))


def gone_along(before: Mapping[Key, Value], delta: MapDelta[Key, Value]) -> dict[Key, Value]:
    """Return what the delta makes of `before`; fails where it tells anything wrong of it."""
    after = dict(before)
    for key, value in delta.removed.items():
        assert after.pop(key) == value
    for key, (old, new) in delta.changed.items():
        assert after[key] == old != new
        after[key] = new
    assert not set(delta.added) & set(after)
    return after | dict(delta.added)


@given(MAPS, MAPS)
def test_a_delta_leads_from_one_mapping_to_the_other(
    before: dict[int, int], after: dict[int, int]
) -> None:
    delta = map_delta(before, after)
    assert gone_along(before, delta) == after
    assert delta.is_empty == (before == after)


def test_nothing_differs_between_an_image_and_itself() -> None:
    image = fold(MetadataImage(), *START)
    delta = ImageDelta(image, image)
    parts = (
        delta.features,
        delta.brokers,
        delta.controllers,
        delta.topics,
        delta.partitions(ID),
        delta.configs,
        delta.client_quotas,
        delta.acls,
        delta.scram,
        delta.delegation_tokens,
    )
    assert all(part.is_empty for part in parts)


def test_only_what_changed_is_reported() -> None:
    before = fold(MetadataImage(), *START)
    after = fold(
        before,
        FeatureLevelRecord("group.version", 1),
        PartitionChangeRecord(0, ID, leader=-1),
        TopicRecord("u", OTHER_ID),
        ConfigRecord(2, "t", "retention.ms", None),
    )
    delta = ImageDelta(before, after)
    assert delta.features == MapDelta({"group.version": 1}, {}, {})
    assert delta.brokers.is_empty
    assert set(delta.topics.added) == {OTHER_ID}
    assert set(delta.topics.changed) == {ID}
    (old, new) = delta.partitions(ID).changed[0]
    assert (old.leader, new.leader, new.leader_epoch) == (1, -1, 1)
    assert [(key, dict(one)) for key, one in delta.configs.removed.items()] == [
        ((2, "t"), {"retention.ms": "1"})
    ]


@pytest.mark.parametrize("is_forward", [True, False])
def test_a_topic_that_is_gone_takes_its_partitions_along(*, is_forward: bool) -> None:
    before = fold(MetadataImage(), *START)
    after = fold(before, RemoveTopicRecord(ID))
    delta = ImageDelta(before, after) if is_forward else ImageDelta(after, before)
    topics, partitions = delta.topics, delta.partitions(ID)
    assert set(topics.removed if is_forward else topics.added) == {ID}
    assert set(partitions.removed if is_forward else partitions.added) == {0}
