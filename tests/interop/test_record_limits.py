"""The sizes of packed records on a real broker and on ours: what producers and consumers get."""

from collections.abc import Sequence
from contextlib import closing
from typing import Final

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    Message,
    Producer,
    TopicPartition,
)
from tests.interop.clients.confluent import ConfluentDriver
from tests.support.clients.driver import TopicWish
from tests.support.node import BothNodes
from tests.support.raw_client import RawClient
from tests.support.record_requests import list_offset, produce
from tests.support.topics import wait_until_led
from tests.support.waiting import PATIENCE_S, wait_for

from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.records import BatchOptions, Compression, RecordData, build_batch

KEY: Final = "max.decompressed.message.bytes"
LIMIT: Final = 100
OVERHEAD: Final = 8
"""The bytes of a record besides a value of 64 bytes or more and a key of one."""
LARGEST: Final = LIMIT - OVERHEAD
COMPRESSIONS: Final = (Compression.NONE, Compression.GZIP, Compression.ZSTD)
SENT: Final = ((LARGEST,), (LARGEST + 1,), (10, LARGEST + 1, 10))
"""Batches, by the sizes of their values."""


SENT_BY_LIBRDKAFKA: Final = (
    ("defaults", "zstd", 1, 6_000_000),
    ("defaults", "lz4", 600, 10_000),
    ("defaults", "zstd", 20, 400_000),
    ("defaults", "gzip", 1, 8_000_000),
    ("larger", "zstd", 1, 40_000_000),
)
"""The topic, the codec, how many values one batch has, and the bytes of each."""
LARGER: Final = {"max.message.bytes": "20000000"}


def batch(sizes: tuple[int, ...], compression: Compression) -> bytes:
    records = [RecordData(bytes(size), b"k", time) for time, size in enumerate(sizes, 1)]
    return build_batch(records, BatchOptions(compression=compression))


def produced(client: RawClient, topic: str) -> list[tuple[object, ...]]:
    answers = [
        produce(client, topic, batch(sizes, compression))
        for sizes in SENT
        for compression in COMPRESSIONS
    ]
    return [
        (one.error_code, one.base_offset, one.log_start_offset, one.error_message)
        for one in answers
    ]


def offsets_by_time(client: RawClient, driver: ConfluentDriver, topic: str) -> list[object]:
    """Return where records are found once the topic's limit is below one that it has."""
    assert produce(client, topic, batch(SENT[-1], Compression.GZIP)).error_code == 0
    assert list_offset(client, topic, 2) == (ErrorCode.NONE, 1)
    driver.set_topic_config(topic, {KEY: str(LIMIT)})
    wait_for(lambda: list_offset(client, topic, 2) != (ErrorCode.NONE, 1), "the limit is known")
    return [list_offset(client, topic, time) for time in (1, 2, 3, 4, -1, -2, -3)]


def answers_of(address: str) -> tuple[list[tuple[object, ...]], list[object]]:
    with ConfluentDriver(address) as driver, RawClient(address) as client:
        driver.create_topics(
            [TopicWish("limited", configs={KEY: str(LIMIT)}), TopicWish("lowered")]
        )
        for topic in ("limited", "lowered"):
            wait_until_led(client, topic)
        return produced(client, "limited"), offsets_by_time(client, driver, "lowered")


def test_a_record_above_the_limit_is_refused_and_not_looked_behind(both_nodes: BothNodes) -> None:
    with both_nodes() as (real, ours):
        expected, found = answers_of(real.address), answers_of(ours.address)
    assert found == expected
    codes = [one[0] for one in found[0]]
    invalid = ErrorCode.INVALID_RECORD
    assert codes == [0, 0, 0, 0, invalid, invalid, 0, invalid, invalid]
    refused = (invalid, -1)
    assert found[1] == [(0, 0), refused, refused, (0, -1), (0, 3), (0, 0), refused]


def values_through_librdkafka(address: str) -> list[tuple[str | None, int]]:
    """Return the topics and the sizes of what a consumer gets of all that was sent."""
    with ConfluentDriver(address) as driver, RawClient(address) as client:
        driver.create_topics([TopicWish("defaults"), TopicWish("larger", configs=LARGER)])
        for topic in ("defaults", "larger"):
            wait_until_led(client, topic)
    for topic, codec, count, size in SENT_BY_LIBRDKAFKA:
        send(address, topic, codec, [bytes(size)] * count)
    expected = sum(count for _, _, count, _ in SENT_BY_LIBRDKAFKA)
    return [
        (topic, len(value or b""))
        for topic, value in read_all(address, ("defaults", "larger"), expected)
    ]


def send(address: str, topic: str, codec: str, values: Sequence[bytes]) -> None:
    """Send values in one batch; raises where one of them is not taken."""
    settings = {
        "bootstrap.servers": address,
        "compression.type": codec,
        "message.max.bytes": 100_000_000,
        "batch.size": 100_000_000,
        "batch.num.messages": len(values),
        "linger.ms": 60_000,
        "retries": 0,
    }
    problems: list[str] = []

    def on_delivery(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            problems.append(str(error))

    producer = Producer(settings)
    for value in values:
        producer.produce(topic, value, partition=0, on_delivery=on_delivery)
    assert producer.flush(PATIENCE_S) == 0
    assert problems == []


def read_all(
    address: str, topics: Sequence[str], count: int
) -> list[tuple[str | None, bytes | None]]:
    """Return the topics and values of so many records, in the order of the topics."""
    settings = {
        "bootstrap.servers": address,
        "group.id": "sizes",
        "enable.auto.commit": False,
        "fetch.message.max.bytes": 100_000_000,
    }
    found: list[Message] = []
    with closing(Consumer(settings)) as consumer:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING) for topic in topics])

        def has_all() -> bool:
            found.extend(consumer.consume(count, timeout=1))
            return len(found) >= count

        wait_for(has_all, f"{count} records are read", otherwise=lambda: len(found))
    assert [one.error() for one in found] == [None] * count
    found.sort(key=lambda one: (one.topic(), one.offset()))
    return [(one.topic(), one.value()) for one in found]


def test_packed_values_of_any_size_go_through_librdkafka(both_nodes: BothNodes) -> None:
    with both_nodes() as (real, ours):
        expected = values_through_librdkafka(real.address)
        assert values_through_librdkafka(ours.address) == expected
    assert expected == [
        (topic, size) for topic, _, count, size in SENT_BY_LIBRDKAFKA for _ in range(count)
    ]
