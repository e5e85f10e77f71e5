"""max.decompressed.message.bytes on a real broker and on ours: what producers and consumers get."""

from typing import Final

from tests.interop.clients.confluent import ConfluentDriver
from tests.support.clients.driver import TopicWish
from tests.support.node import BothNodes
from tests.support.raw_client import RawClient
from tests.support.record_requests import list_offset, produce
from tests.support.topics import wait_until_led
from tests.support.waiting import wait_for

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
