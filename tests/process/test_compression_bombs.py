"""Small batches that unpack to much: answered with a code, in bounded memory, others served."""

from collections.abc import Iterator, Mapping
from typing import Final

import pytest
from tests.process.bystander import Watch
from tests.process.produce_bombs import (
    MIB,
    PACKED,
    RECORDS_MAX,
    TINY_KEYED_RECORD,
    broken_claims,
    claims,
    large_value,
    packed_batch,
    tiny_records,
)
from tests.support.fixtures import Report
from tests.support.node import Node
from tests.support.node_process import NodeProcess
from tests.support.raw_client import RawClient
from tests.support.record_requests import batch, produce
from tests.support.topics import create_request, wait_until_written

from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from kvorum.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kvorum.wire.messages.produce import ProduceRequest, ProduceResponse
from kvorum.wire.records import Compression, RecordData
from kvorum.wire.records.compression import compress
from kvorum.wire.records.record import write_numbered

TOPICS: Final[dict[str, dict[str, str]]] = {
    "as-produced": {},
    "in-gzip": {"compression.type": "gzip"},
    "unpacked": {"compression.type": "uncompressed"},
    "compacted": {"cleanup.policy": "compact"},
}
LARGE_RECORDS: Final = {"large-records": {"max.message.bytes": "20000000"}}
PARTITIONS: Final = 12
GROWTH_MAX: Final = 32 * MIB
"""The growth of a node, whatever is sent: two times 5 MiB unpacked, what is written, and the
libraries that are imported with the first batch."""
LARGE_GROWTH_MAX: Final = 64 * MIB
"""The same where 20 MB may be unpacked."""
LARGE_COUNT: Final = 2_850_000
"""As many records of 7 bytes as fit into 20 MB."""
MIB_MAX: Final = {
    Compression.GZIP: 900,
    Compression.SNAPPY: 18,
    Compression.LZ4: 200,
    Compression.ZSTD: 2047,
}
"""The MiB of zeros that fit into a batch of a mebibyte, and into a value."""
COUNT: Final = 250_000


@pytest.fixture(scope="module")
def bombed(
    formatted: Node, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Node, NodeProcess]]:
    """A running node with a topic for each way of storing records."""
    node = formatted.copy_to(tmp_path_factory.mktemp("bombed") / "node", settings={})
    with node.process as process:
        _create(node.broker, TOPICS, partition_count=PARTITIONS)
        yield node, process


def _create(address: str, topics: Mapping[str, Mapping[str, str]], *, partition_count: int) -> None:
    request = create_request(list(topics), partition_count=partition_count)
    for topic in request.topics:
        topic.configs = [
            CreateTopicsRequest.CreatableTopicConfig(key, value)
            for key, value in topics[topic.name].items()
        ]
    with RawClient(address) as client:
        answered = client.ask(request, CreateTopicsResponse, 7).topics
        assert [topic.error_code for topic in answered] == [ErrorCode.NONE] * len(topics)
    for name in topics:
        wait_until_written(address, name, _keyed())


def _keyed() -> bytes:
    return packed_batch(compress(TINY_KEYED_RECORD, Compression.GZIP), Compression.GZIP)


def _code(address: str, topic: str, data: bytes) -> int:
    with RawClient(address) as client:
        return produce(client, topic, data).error_code


def _end_offset(address: str, topic: str) -> int:
    wish = ListOffsetsRequest.ListOffsetsPartition(0, -1, -1)
    request = ListOffsetsRequest(topics=[ListOffsetsRequest.ListOffsetsTopic(topic, [wish])])
    with RawClient(address) as client:
        return client.ask(request, ListOffsetsResponse, 5).topics[0].partitions[0].offset


def test_what_unpacks_to_gigabytes_is_refused(
    bombed: tuple[Node, NodeProcess], report: Report
) -> None:
    """A real broker takes these where it has nothing to pack again; see docs/differences.md."""
    node, process = bombed
    bombs = [
        large_value(compression, mib) for compression in PACKED for mib in (8, MIB_MAX[compression])
    ]
    ends = {topic: _end_offset(node.broker, topic) for topic in TOPICS}
    watch = Watch(node.broker, process.pid)
    with watch.bystander:
        codes = {_code(node.broker, topic, bomb) for topic in TOPICS for bomb in bombs}
    assert codes == {ErrorCode.MESSAGE_TOO_LARGE}
    assert {topic: _end_offset(node.broker, topic) for topic in TOPICS} == ends
    watch.check(report, GROWTH_MAX, "batches of up to 1 MiB that unpack to up to 2 GiB")


def test_what_says_to_be_gigabytes_is_refused(
    bombed: tuple[Node, NodeProcess], report: Report
) -> None:
    """With the codes of a real broker."""
    node, process = bombed
    watch = Watch(node.broker, process.pid)
    with watch.bystander:
        for topic in TOPICS:
            for compression in PACKED:
                codes = {_code(node.broker, topic, data) for data in claims(compression)}
                assert codes == {ErrorCode.INVALID_RECORD}
            for data in broken_claims().values():
                assert _code(node.broker, topic, data) == ErrorCode.UNKNOWN_SERVER_ERROR
    watch.check(report, GROWTH_MAX, "batches that say to be gigabytes")


@pytest.mark.parametrize("compression", PACKED)
def test_a_batch_of_very_many_records(
    bombed: tuple[Node, NodeProcess], report: Report, compression: Compression
) -> None:
    """With the codes of a real broker: 300 bytes of zstd are 250,000 records."""
    node, process = bombed
    keyed = tiny_records(compression, TINY_KEYED_RECORD, COUNT)
    # A batch may stay in its compression only where its records are numbered.
    unnumbered = ErrorCode.UNKNOWN_SERVER_ERROR
    expected = {
        "as-produced": unnumbered,
        "in-gzip": unnumbered if compression is Compression.GZIP else ErrorCode.NONE,
        "unpacked": ErrorCode.MESSAGE_TOO_LARGE,
        "compacted": unnumbered,
    }
    end = _end_offset(node.broker, "in-gzip")
    watch = Watch(node.broker, process.pid)
    with watch.bystander:
        assert {topic: _code(node.broker, topic, keyed) for topic in TOPICS} == expected
    added = COUNT if expected["in-gzip"] == ErrorCode.NONE else 0
    assert _end_offset(node.broker, "in-gzip") == end + added
    watch.check(report, GROWTH_MAX, f"{COUNT} records in {len(keyed)} bytes of {compression.name}")


def test_very_many_numbered_records_are_taken(
    bombed: tuple[Node, NodeProcess], report: Report
) -> None:
    """A compacted topic keeps the last one of a key."""
    node, process = bombed
    content = write_numbered(enumerate([RecordData(None, b"", 1000)] * COUNT)).data
    data = packed_batch(compress(content, Compression.ZSTD), Compression.ZSTD, record_count=COUNT)
    end = _end_offset(node.broker, "compacted")
    watch = Watch(node.broker, process.pid)
    with watch.bystander:
        assert _code(node.broker, "compacted", data) == ErrorCode.NONE
    assert _end_offset(node.broker, "compacted") == end + COUNT
    watch.check(report, GROWTH_MAX, f"{COUNT} numbered records in {len(data)} bytes")


def test_a_batch_of_very_many_wrong_records(
    bombed: tuple[Node, NodeProcess], report: Report
) -> None:
    """Not each of them is answered: the response would have a hundred million times the bytes."""
    node, process = bombed
    data = tiny_records(Compression.ZSTD)
    watch = Watch(node.broker, process.pid)
    with watch.bystander, RawClient(node.broker) as client:
        refused = produce(client, "compacted", data)
    assert refused.error_code == ErrorCode.INVALID_RECORD
    assert f"{RECORDS_MAX} record errors in total" in (refused.error_message or "")
    assert [one.batch_index for one in refused.record_errors] == list(range(10_000))
    watch.check(report, GROWTH_MAX, f"{RECORDS_MAX} wrong records in {len(data)} bytes")


def test_a_request_with_bombs_for_many_partitions(
    bombed: tuple[Node, NodeProcess], report: Report
) -> None:
    """Small ones too, which the event loop looks at itself: others have their turns between."""
    node, process = bombed
    small, large = (tiny_records(Compression.ZSTD, count=count) for count in (3500, 100_000))
    partitions = [
        ProduceRequest.PartitionProduceData(index, small if index % 2 else large)
        for index in range(PARTITIONS)
    ]
    sent = ProduceRequest.TopicProduceData("compacted", partition_data=partitions)
    watch = Watch(node.broker, process.pid)
    with watch.bystander, RawClient(node.broker) as client:
        (topic,) = client.ask(ProduceRequest(None, -1, 5000, [sent]), ProduceResponse, 9).responses
    assert {one.error_code for one in topic.partition_responses} == {ErrorCode.INVALID_RECORD}
    assert sum(len(one.record_errors) for one in topic.partition_responses) == 10_000
    watch.check(report, GROWTH_MAX, f"bombs for {PARTITIONS} partitions")


def test_where_batches_may_be_large_they_may_unpack_to_as_much(
    bombed: tuple[Node, NodeProcess], report: Report
) -> None:
    """As on a real broker: a packed record of 8 MiB is taken, and what is far larger is not."""
    node, process = bombed
    (topic,) = LARGE_RECORDS
    _create(node.broker, LARGE_RECORDS, partition_count=1)
    end = _end_offset(node.broker, topic)
    watch = Watch(node.broker, process.pid)
    with watch.bystander:
        taken = [_code(node.broker, topic, large_value(packed, 8)) for packed in PACKED]
        refused = [
            _code(node.broker, topic, large_value(packed, max(MIB_MAX[packed], 20)))
            for packed in PACKED
        ]
        many = _code(node.broker, topic, tiny_records(Compression.ZSTD, count=LARGE_COUNT))
    assert many == ErrorCode.UNKNOWN_SERVER_ERROR, "they are not numbered"
    assert taken == [ErrorCode.NONE] * len(PACKED)
    assert refused == [ErrorCode.MESSAGE_TOO_LARGE] * len(PACKED)
    assert _end_offset(node.broker, topic) == end + len(PACKED)
    watch.check(report, LARGE_GROWTH_MAX, "batches that unpack to 8 MiB and more")


def test_after_all_that_the_node_works(bombed: tuple[Node, NodeProcess]) -> None:
    node, process = bombed
    for topic in TOPICS.keys() - {"compacted"}:
        assert _code(node.broker, topic, batch(b"after")) == ErrorCode.NONE
    assert _code(node.broker, "compacted", _keyed()) == ErrorCode.NONE
    assert process.terminate().exit_code == 0
