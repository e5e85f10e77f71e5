"""Topics at scale: what is kept beside the partitions follows them, and equal ones are shared."""

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvorum.metadata.image import MetadataImage
from kvorum.metadata.image_records import image_records
from kvorum.metadata.partition import PartitionRegistration, Partitions
from kvorum.metadata.topics_image import (
    KINDS_MAX,
    BrokerPartitions,
    PartitionCounts,
    SharedPartitions,
    TopicsImage,
)
from kvorum.wire.messages.abort_transaction_record import AbortTransactionRecord
from kvorum.wire.messages.begin_transaction_record import BeginTransactionRecord
from kvorum.wire.messages.clear_elr_record import ClearElrRecord
from kvorum.wire.messages.feature_level_record import FeatureLevelRecord
from kvorum.wire.messages.partition_change_record import PartitionChangeRecord
from kvorum.wire.messages.partition_record import PartitionRecord
from kvorum.wire.messages.remove_topic_record import RemoveTopicRecord
from kvorum.wire.messages.topic_record import TopicRecord
from kvorum.wire.primitives import Message

BROKERS: tuple[int, ...] = (1, 2, 300)
LEVELS: tuple[Message, ...] = (
    FeatureLevelRecord(name="metadata.version", feature_level=29),
    FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1),
)
TOPICS = (TopicRecord(name="a", topic_id=b"a" * 16), TopicRecord(name="b", topic_id=b"b" * 16))

members: st.SearchStrategy[list[int]] = st.lists(st.sampled_from(BROKERS), unique=True)
leaders = st.sampled_from((-1, *BROKERS))
indexes = st.integers(0, 3)
topic_ids = st.sampled_from((b"a" * 16, b"b" * 16))


@st.composite
def partition_records(draw: st.DrawFn) -> PartitionRecord:
    replicas: list[int] = draw(st.permutations(BROKERS))
    return PartitionRecord(
        partition_id=draw(indexes),
        topic_id=draw(topic_ids),
        replicas=replicas,
        isr=draw(members),
        leader=draw(leaders),
        leader_epoch=0,
        partition_epoch=0,
        directories=[bytes([broker_id % 256]) * 16 for broker_id in replicas],
        eligible_leader_replicas=draw(members),
    )


changes = st.builds(
    PartitionChangeRecord,
    partition_id=indexes,
    topic_id=topic_ids,
    isr=st.none() | members,
    leader=st.just(-2) | leaders,
    eligible_leader_replicas=st.none() | members,
)
records: st.SearchStrategy[Message] = st.one_of(
    st.sampled_from(TOPICS),
    st.builds(RemoveTopicRecord, topic_ids),
    partition_records(),
    changes,
    st.builds(ClearElrRecord, st.sampled_from(("", "a"))),
    st.builds(BeginTransactionRecord),
    st.builds(AbortTransactionRecord),
)


def is_contradiction(image: MetadataImage, message: Message) -> bool:
    """Tell whether no controller would write the record in this state."""
    topics = image.topics
    match message:
        case TopicRecord():
            return message.name in topics.ids
        case RemoveTopicRecord() | PartitionRecord():
            return message.topic_id not in topics.by_id
        case PartitionChangeRecord():
            return topics.partition(message.topic_id, message.partition_id) is None
        case ClearElrRecord():
            return bool(message.topic_name) and message.topic_name not in topics.ids
        case BeginTransactionRecord():
            return image.transaction is not None
        case AbortTransactionRecord():
            return image.transaction is None
        case _:
            return False


def applied(image: MetadataImage, messages: Sequence[Message]) -> MetadataImage:
    first = image.last_offset + 1
    return image.apply_all(
        (message, type(message).MAX_VERSION, first + step) for step, message in enumerate(messages)
    )


def counted(topics: TopicsImage) -> PartitionCounts:
    """Count by looking at every partition."""
    led: Counter[int] = Counter()
    in_sync: Counter[int] = Counter()
    eligible: Counter[int] = Counter()
    partitions = [one for topic in topics.by_id.values() for _, one in topic.partitions.in_order()]
    for partition in partitions:
        led.update([partition.leader] if partition.leader >= 0 else [])
        in_sync.update(partition.isr)
        eligible.update(partition.elr)
    brokers = {
        id_: BrokerPartitions(led[id_], in_sync[id_], eligible[id_])
        for id_ in led.keys() | in_sync.keys() | eligible.keys()
    }
    return PartitionCounts(
        all=len(partitions),
        leaderless=sum(partition.leader == -1 for partition in partitions),
        not_preferred=sum(partition.leader != partition.replicas[0] for partition in partitions),
        brokers=PartitionCounts().brokers.update(brokers),
    )


@given(messages=st.lists(records, min_size=20, max_size=60), cuts=st.sets(st.integers(1, 59)))
def test_counts_are_what_a_full_scan_counts_under_every_batching(
    messages: list[Message], cuts: set[int]
) -> None:
    image = applied(MetadataImage(), [*LEVELS, *TOPICS])
    possible: list[Message] = []
    for message in messages:
        if not is_contradiction(image, message):
            possible.append(message)
            image = applied(image, [message])
            assert image.topics.counts == counted(image.topics)
    start = applied(MetadataImage(), [*LEVELS, *TOPICS])
    for begin, end in zip([0, *sorted(cuts)], [*sorted(cuts), len(possible)], strict=True):
        start = applied(start, possible[begin:end])
    assert start == image
    if image.transaction is None:
        snapshot = [message for message, _ in image_records(image)]
        assert applied(MetadataImage(), snapshot).topics == image.topics


@given(order=st.permutations(range(6)), absent=st.sets(st.integers(0, 5)))
def test_partitions_are_a_mapping_in_order_however_they_came(
    order: list[int], absent: set[int]
) -> None:
    editor = Partitions().edit()
    expected: dict[int, PartitionRegistration] = {}
    for index in order:
        if index not in absent:
            expected[index] = PartitionRegistration((index,), (b"d",), (index,))
            editor.put(index, expected[index])
            assert editor.get(index) is expected[index]
    partitions = editor.finish()
    assert list(partitions.in_order()) == sorted(expected.items()) == list(partitions.items())
    assert [partitions.get(index) for index in range(-1, 7)] == [
        expected.get(index) for index in range(-1, 7)
    ]
    assert len(partitions) == len(expected)
    again = Partitions().edit()
    for index, partition in expected.items():
        again.put(index, partition)
    assert again.finish() == partitions == expected
    assert hash(again.finish()) == hash(partitions)
    with pytest.raises(KeyError):
        partitions[6]


def test_a_partition_after_a_gap_does_not_change_an_image_made_before() -> None:
    editor = Partitions().edit()
    editor.put(2, PartitionRegistration((1,), (b"d",), (1,)))
    before = editor.finish()
    after = before.edit()
    after.put(2, PartitionRegistration((2,), (b"d",), (2,)))
    after.put(0, PartitionRegistration((3,), (b"d",), (3,)))
    assert before[2].replicas == (1,)
    assert after.finish()[2].replicas == (2,)


def topic_of(count: int) -> list[Message]:
    topic_id = count.to_bytes(16)
    topic = TopicRecord(name=f"t{count}", topic_id=topic_id)
    partitions = [
        PartitionRecord(
            partition_id=index,
            topic_id=topic_id,
            replicas=[1, 2, 300],
            isr=[1, 2, 300],
            leader=300,
            leader_epoch=0,
            partition_epoch=0,
            directories=[bytes([broker_id % 256]) * 16 for broker_id in BROKERS],
        )
        for index in range(count)
    ]
    return [topic, *partitions]


def test_partitions_that_are_alike_are_one_object_across_topics_and_batches() -> None:
    image = applied(MetadataImage(), [*LEVELS, *topic_of(3)])
    image = applied(image, topic_of(2))
    partitions = {
        id(one) for topic in image.topics.by_id.values() for _, one in topic.partitions.in_order()
    }
    assert len(partitions) == 1
    one = image.topics.sorted_topics()[0].partitions[0]
    assert one.isr is one.replicas
    assert one.leader is one.replicas[2]


def test_what_is_shared_does_not_grow_without_end() -> None:
    shared = SharedPartitions()
    first = shared.share(PartitionRegistration((1,), (b"d",), (1,)))
    for epoch in range(1, KINDS_MAX + 1):
        made = PartitionRegistration((1,), (b"d",), (1,), partition_epoch=epoch)
        assert shared.share(made) == made
    assert shared.share(PartitionRegistration((1,), (b"d",), (1,))) is not first
