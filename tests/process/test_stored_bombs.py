"""Batches in a log that unpack to much, as a real leader stores them, are looked at by time."""

from typing import Final

import pytest
from tests.process.bystander import Watch
from tests.process.produce_bombs import MIB, large_value, tiny_records
from tests.support.fixtures import Report
from tests.support.header_variants import LAST_OFFSET_DELTA, with_fields
from tests.support.node import Node
from tests.support.raw_client import RawClient
from tests.support.topics import create, wait_until_led, wait_until_served

from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kvorum.wire.records import Compression

TOPIC: Final = "stored"
MAX_TIMESTAMP: Final = 8
COUNT: Final = 6_000_000
STORED: Final = (
    large_value(Compression.ZSTD, 2047),
    # No record is as late as the header says: each is looked at.
    with_fields(
        tiny_records(Compression.ZSTD, count=COUNT),
        {LAST_OFFSET_DELTA: COUNT - 1, MAX_TIMESTAMP: 2000},
    ),
    large_value(Compression.GZIP, 8),
)
"""The content of each partition's log; all records have the time 1000."""
GROWTH_MAX: Final = 300 * MIB
"""The growth that a node may have: 256 MiB unpacked, and the libraries."""


def _store(node: Node) -> None:
    """Leave a stopped node with the batches in its logs, as if they had been replicated."""
    with node.process as process:
        wait_until_served(node.broker)
        assert create(node.broker, TOPIC, partition_count=len(STORED)) == [ErrorCode.NONE]
        _wait_until_led(node)
        assert process.terminate().exit_code == 0
    for index, data in enumerate(STORED):
        (node.data / f"{TOPIC}-{index}" / f"{0:020}.log").write_bytes(data)
    (node.data / ".kafka_cleanshutdown").unlink()


def _wait_until_led(node: Node) -> None:
    with RawClient(node.broker) as client:
        for index in range(len(STORED)):
            wait_until_led(client, TOPIC, partition=index)


@pytest.mark.slow
def test_offsets_by_time_in_batches_that_unpack_to_much(node: Node, report: Report) -> None:
    """One that unpacks to too much is refused; the other partitions of the request are served."""
    _store(node)
    wishes = [
        ListOffsetsRequest.ListOffsetsPartition(index, timestamp=timestamp)
        for index, timestamp in enumerate((500, 1500, 500))
    ]
    request = ListOffsetsRequest(topics=[ListOffsetsRequest.ListOffsetsTopic(TOPIC, wishes)])
    with node.process as process:
        _wait_until_led(node)
        watch = Watch(node.broker, process.pid)
        with watch.bystander, RawClient(node.broker) as client:
            (topic,) = client.ask(request, ListOffsetsResponse, 7).topics
        watch.check(report, GROWTH_MAX, "offsets by time in bombs")
    assert [(one.error_code, one.offset) for one in topic.partitions] == [
        (ErrorCode.UNKNOWN_SERVER_ERROR, -1),
        (ErrorCode.NONE, -1),
        (ErrorCode.NONE, 0),
    ]
