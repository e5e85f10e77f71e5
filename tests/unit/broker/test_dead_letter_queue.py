"""Dead-letter queues of share groups: their topics, their records, and the requests for them."""

from collections.abc import Mapping
from typing import Any, cast

import pytest
from immutables import Map

from kvorum.broker.dead_letter_queue.dead_letter_queue_error import DeadLetterQueueError
from kvorum.broker.dead_letter_queue.dead_letter_records import DeadLetterRecords, DeadLetterWriter
from kvorum.broker.dead_letter_queue.dead_letter_topic import (
    AUTO_CREATE,
    GROUP_ENABLE,
    NAME_PREFIX,
    check_dead_letter_topic,
    dead_letter_queue_settings,
    group_dead_letter_queue,
)
from kvorum.broker.dead_letter_queue.original_records import OriginalRecord, OriginalRecords
from kvorum.broker.dead_letter_queue.produce_queue import (
    DeadLetterBatch,
    ProduceCall,
    ProduceQueue,
    ProduceResult,
    QueuePartition,
)
from kvorum.broker.share_partition.state_write import DeadLetter, DeadLetterCause
from kvorum.broker.views.config_layers import ConfigLayers
from kvorum.metadata.configs_image import ConfigsImage, ResourceType
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.topics_image import TopicImage, TopicsImage
from kvorum.storage.topic_partition import TopicPartition
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.produce import ProduceResponse
from kvorum.wire.records import (
    BatchOptions,
    Compression,
    RecordBatch,
    RecordData,
    build_batch,
    read_batches,
)

HERE = TopicPartition("orders", 2)
ID = b"the-id-of-a-queu"
NOW_MS = 1_700_000_000_000
ROOMY = 1_000_000
ENABLED = {"errors_deadletterqueue_group_enable": "true"}
CREATING = {AUTO_CREATE: "true"}


def letter(first_offset: int, last_offset: int) -> DeadLetter:
    """Return records that a member has rejected after two deliveries."""
    batch: Any = None
    return DeadLetter(first_offset, last_offset, 2, DeadLetterCause.CLIENT_REJECT, batch)


def image(topic: str | None = None, **own: str) -> MetadataImage:
    """Return a cluster that has a topic with values of its own, `_` for a dot in their keys."""
    if topic is None:
        return MetadataImage()
    values = Map({name.replace("_", "."): value for name, value in own.items()})
    return MetadataImage(
        topics=TopicsImage(Map({ID: TopicImage(topic, ID)}), Map({topic: ID})),
        configs=ConfigsImage(Map({(int(ResourceType.TOPIC), topic): values})),
    )


def layers(**own: str) -> ConfigLayers:
    return ConfigLayers(static=own)


@pytest.mark.parametrize(
    ("name", "cluster", "broker", "reason"),
    [
        ("", image(), {}, "no errors.deadletterqueue.topic.name"),
        ("__dlq", image("__dlq", **ENABLED), {NAME_PREFIX: ""}, "begins with __"),
        ("dlq.one", image(), {}, f"there is no topic dlq.one, and {AUTO_CREATE} is false"),
        ("dlq.one", image("dlq.one"), {}, f"{GROUP_ENABLE} is false"),
        ("one", image("one", **ENABLED), {}, "does not begin with dlq., which is"),
        ("one", image(), CREATING, "does not begin with dlq., which is"),
        ("dlq.one", image("dlq.one"), CREATING, f"{GROUP_ENABLE} is false"),
    ],
)
def test_a_topic_that_may_be_no_queue_is_refused(
    name: str, cluster: MetadataImage, broker: Mapping[str, str], reason: str
) -> None:
    with pytest.raises(DeadLetterQueueError, match=reason.replace(".", r"\.")):
        check_dead_letter_topic(name, cluster, dead_letter_queue_settings(layers(**broker)))


@pytest.mark.parametrize(
    ("name", "cluster", "broker"),
    [
        ("dlq.one", image("dlq.one", **ENABLED), {}),
        ("dlq.one", image(), CREATING),
        ("one", image("one", **ENABLED), {NAME_PREFIX: ""}),
    ],
)
def test_a_topic_that_may_be_a_queue_is_there_or_can_be_created(
    name: str, cluster: MetadataImage, broker: Mapping[str, str]
) -> None:
    check_dead_letter_topic(name, cluster, dead_letter_queue_settings(layers(**broker)))


def test_a_group_says_whether_its_records_are_copied() -> None:
    own = Map(
        {
            "errors.deadletterqueue.topic.name": "dlq.one",
            "errors.deadletterqueue.copy.record.enable": "true",
        }
    )
    configs = ConfigsImage(Map({(int(ResourceType.GROUP), "g"): own}))
    assert group_dead_letter_queue("g", configs) == ("dlq.one", True)
    assert group_dead_letter_queue("other", configs) == ("", False)


def test_a_dead_letter_tells_where_its_record_is_and_why_it_is_dead() -> None:
    writer = DeadLetterWriter("group", HERE, letter(7, 8))
    originals = {8: OriginalRecord(b"key", b"value")}
    written = writer.batch(7, 8, originals, now_ms=NOW_MS, size_max=ROOMY)
    seventh, eighth = written.records
    assert dict(seventh.headers) == {
        "__dlq.errors.topic": b"orders",
        "__dlq.errors.partition": b"2",
        "__dlq.errors.offset": b"7",
        "__dlq.errors.group": b"group",
        "__dlq.errors.delivery.count": b"2",
        "__dlq.errors.message": b"Offset rejected by client.",
    }
    assert (seventh.key, seventh.value, seventh.timestamp) == (None, None, NOW_MS)
    assert (eighth.key, eighth.value) == (b"key", b"value")
    assert dict(eighth.headers)["__dlq.errors.offset"] == b"8"
    assert written.size == len(build_batch(written.records))


def test_a_batch_takes_as_many_records_as_fit_and_one_of_any_size() -> None:
    writer = DeadLetterWriter("group", HERE, letter(0, 9))
    three = writer.batch(0, 2, {}, now_ms=NOW_MS, size_max=ROOMY)
    assert writer.batch(0, 9, {}, now_ms=NOW_MS, size_max=three.size) == three
    assert writer.batch(0, 9, {}, now_ms=NOW_MS, size_max=three.size - 1).last_offset == 1
    assert writer.batch(4, 9, {}, now_ms=NOW_MS, size_max=1).last_offset == 4


def batch(
    base_offset: int, *values: bytes, compression: Compression = Compression.NONE
) -> RecordBatch:
    options = BatchOptions(base_offset=base_offset, compression=compression)
    (read,) = read_batches(memoryview(build_batch([RecordData(one) for one in values], options)))
    return read


def collected(last_offset: int, bytes_max: int, *batches: RecordBatch) -> OriginalRecords:
    originals = OriginalRecords(1, last_offset, bytes_max)
    originals.collect(batches)
    return originals


def test_the_records_between_two_offsets_are_collected() -> None:
    originals = collected(
        4, ROOMY, batch(0, b"0", b"1"), batch(2, b"2"), batch(3, b"3", b"4", b"5")
    )
    assert {offset: one.value for offset, one in originals.records.items()} == {
        1: b"1",
        2: b"2",
        3: b"3",
        4: b"4",
    }
    assert originals.is_complete


def test_offsets_without_a_record_are_passed_over() -> None:
    compacted = batch(1, b"1", b"2")._replace(last_offset_delta=5)
    originals = collected(9, ROOMY, compacted)
    assert (originals.next_offset, originals.is_complete) == (7, False)


def test_records_are_collected_up_to_a_size() -> None:
    originals = collected(3, 400, batch(1, bytes(300), bytes(300)), batch(3, b"3"))
    assert originals.is_complete
    assert (list(originals.records), originals.next_offset) == ([1], 2)


def test_a_record_or_a_packed_batch_that_is_too_large_is_left_out() -> None:
    packed = batch(3, bytes(300), bytes(300), compression=Compression.GZIP)
    originals = collected(5, 500, batch(1, bytes(600), b"2"), packed, batch(5, b"5"))
    assert (list(originals.records), originals.next_offset) == ([2, 5], 6)


class Results:
    """Batches for a queue, and what has become of them by their names."""

    def __init__(self) -> None:
        self.queue = ProduceQueue()
        self.of: dict[str, ProduceResult] = {}

    def add(self, name: str, partition: int, count: int, *, size_max: int = ROOMY) -> None:
        """Have dead letters be sent to a partition of the queue."""
        writer = DeadLetterWriter("group", HERE, letter(0, count - 1))
        content: DeadLetterRecords = writer.batch(0, count - 1, {}, now_ms=NOW_MS, size_max=ROOMY)
        place = QueuePartition("dlq", ID, partition)
        self.queue.add(
            DeadLetterBatch(place, content, size_max), lambda result: self.of.update({name: result})
        )

    def take(self) -> ProduceCall:
        call = self.queue.take()
        assert call is not None
        return call


def sizes(call: ProduceCall) -> dict[int, int]:
    """Return how many records a request has for each partition, in one batch."""
    (topic,) = call.request.topic_data
    found: dict[int, int] = {}
    for data in topic.partition_data:
        (one,) = read_batches(memoryview(cast("bytes", data.records)))
        found[data.index] = one.record_count
    return found


def answer(name: str, topic_id: bytes, *codes: tuple[int, ErrorCode]) -> ProduceResponse:
    partitions = [ProduceResponse.PartitionProduceResponse(index, code) for index, code in codes]
    topic = ProduceResponse.TopicProduceResponse(name, topic_id, partition_responses=partitions)
    return ProduceResponse([topic])


def test_what_waits_for_a_partition_is_sent_as_one_batch() -> None:
    results = Results()
    results.add("a", 0, 2)
    results.add("b", 0, 3)
    results.add("c", 1, 1)
    call = results.take()
    assert sizes(call) == {0: 5, 1: 1}
    call.on_response(answer("", ID, (0, ErrorCode.NONE), (1, ErrorCode.NOT_ENOUGH_REPLICAS)))
    assert results.of == {
        "a": (ErrorCode.NONE, None),
        "b": (ErrorCode.NONE, None),
        "c": (ErrorCode.NOT_ENOUGH_REPLICAS, None),
    }
    assert results.queue.take() is None


def test_what_would_make_a_batch_too_large_waits_for_the_next_request() -> None:
    results = Results()
    size_max = len(build_batch([RecordData(bytes(2000))]))
    results.add("a", 0, 8, size_max=size_max)
    results.add("b", 0, 8, size_max=size_max)
    assert sizes(results.take()) == {0: 8}
    assert sizes(results.take()) == {0: 8}


@pytest.mark.parametrize(
    ("name", "topic_id"), [("dlq", bytes(16)), ("", ID), ("dlq", ID)], ids=["name", "id", "both"]
)
def test_a_topic_is_answered_for_by_its_name_or_its_id(name: str, topic_id: bytes) -> None:
    results = Results()
    results.add("a", 0, 1)
    results.add("b", 1, 1)
    results.take().on_response(answer(name, topic_id, (0, ErrorCode.NONE)))
    assert results.of["a"].code == ErrorCode.NONE
    assert results.of["b"].code == ErrorCode.UNKNOWN_SERVER_ERROR, "it is left out"


@pytest.mark.parametrize(("name", "topic_id"), [("other", bytes(16)), ("dlq", bytes(range(16)))])
def test_an_answer_for_another_topic_does_not_count(name: str, topic_id: bytes) -> None:
    results = Results()
    results.add("a", 0, 1)
    results.take().on_response(answer(name, topic_id, (0, ErrorCode.NONE)))
    assert results.of["a"].code == ErrorCode.UNKNOWN_SERVER_ERROR
