"""Small batches that unpack to much, sent or stored: answered in bounded memory, others served."""

import struct
import zlib
from collections.abc import Iterator, Mapping
from typing import Final

import pytest
from tests.process.bystander import Watch
from tests.support.fixtures import Report
from tests.support.header_variants import LAST_OFFSET_DELTA, with_fields
from tests.support.node import Node
from tests.support.node_process import NodeProcess
from tests.support.raw_client import RawClient
from tests.support.record_requests import batch, produce
from tests.support.topics import (
    create,
    create_request,
    wait_until_led,
    wait_until_served,
    wait_until_written,
)

from kvorum.wire.checksums import crc32c
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from kvorum.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kvorum.wire.messages.produce import ProduceRequest, ProduceResponse
from kvorum.wire.records import Compression, RecordData
from kvorum.wire.records.compression import compress, compress_pieces
from kvorum.wire.records.record import write_numbered

MIB: Final = 2**20
PACKED: Final = (Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD)
RECORDS_MAX: Final = 740_000
"""As many records of 7 bytes as fit into what a batch may unpack to."""
TINY_RECORD: Final = bytes([12, 0, 0, 0, 1, 1, 0])
"""A record at offset 0 without key and value; the other one has an empty key."""
TINY_KEYED_RECORD: Final = bytes([12, 0, 0, 0, 0, 1, 0])
_ZEROS: Final = bytes(MIB)
_GZIP_HEADER: Final = bytes.fromhex("1f8b0800000000000003")
_ZSTD_HEADER: Final = bytes.fromhex("28b52ffd0050")
_ZSTD_BLOCK_BYTES: Final = 128 * 1024
_NULL: Final = b"\x01"
_SNAPPY_BLOCK_CLAIM: Final = b"\x00\x00\x00\x09\xff\xff\xff\xff\x07\x00\x00\x00\x00"
_ZSTD_FRAME_CLAIM: Final = bytes.fromhex("28b52ffde0") + struct.pack("<Q", 2**40) + bytes(3)
_LZ4_BLOCK_CLAIM: Final = b"\x04\x22\x4d\x18\x70\x40\xdf\x00\x00\x40\x00"
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
REWRITTEN_GROWTH_MAX: Final = 256 * MIB
"""The same where a record of 64 MiB is packed again: it is there with its copies."""
LARGE_COUNT: Final = 2_850_000
"""As many records of 7 bytes as fit into 20 MB, which are a giant among batches."""
MIB_MAX: Final = {
    Compression.GZIP: 900,
    Compression.SNAPPY: 18,
    Compression.LZ4: 200,
    Compression.ZSTD: 2047,
}
"""The MiB of zeros that fit into a batch of a mebibyte, and into a value."""
COUNT: Final = 250_000
TOPIC: Final = "stored"
MAX_TIMESTAMP: Final = 8
STORED_COUNT: Final = 6_000_000


def packed_batch(packed: bytes, compression: Compression, *, record_count: int = 1) -> bytes:
    """Return a batch with a right checksum of any bytes for records."""
    fields = (compression, record_count - 1, 1000, 1000, -1, -1, -1, record_count)
    after_crc = struct.pack(">hiqqqhii", *fields)
    checksum = crc32c(packed, crc32c(after_crc))
    return struct.pack(">qiibI", 0, 49 + len(packed), -1, 2, checksum) + after_crc + packed


def tiny_records(
    compression: Compression, record: bytes = TINY_RECORD, count: int = RECORDS_MAX
) -> bytes:
    """Return a batch of as many records as can be, all at one offset."""
    return packed_batch(compress(record * count, compression), compression, record_count=count)


def large_value(compression: Compression, mib: int) -> bytes:
    body = b"\x00\x00\x00\x00" + _zigzag(mib * MIB)
    head, tail = _zigzag(len(body) + mib * MIB + 1) + body, b"\x00"
    if compression is Compression.GZIP:
        packed = _gzip(head, mib, tail)
    elif compression is Compression.ZSTD:
        packed = _zstd(head, mib, tail)
    else:
        packed = compress(head + bytes(mib * MIB) + tail, compression)
    return packed_batch(packed, compression)


def claims(compression: Compression) -> Iterator[bytes]:
    """Yield batches that say that they hold more than they do."""
    yield packed_batch(compress(TINY_RECORD * 10, compression), compression, record_count=2**31 - 1)
    yield packed_batch(compress(_zigzag(2**31 - 1) + b"\x00\x00\x00\x00", compression), compression)
    long_value = _zigzag(20) + b"\x00\x00\x00" + _NULL + _zigzag(2**30) + bytes(20)
    yield packed_batch(compress(long_value, compression), compression)


def broken_claims() -> dict[Compression, bytes]:
    """Return batches whose packed bytes themselves say that they unpack to gigabytes."""
    empty = compress(b"", Compression.SNAPPY)
    return {
        Compression.SNAPPY: packed_batch(empty + _SNAPPY_BLOCK_CLAIM, Compression.SNAPPY),
        Compression.LZ4: packed_batch(_LZ4_BLOCK_CLAIM, Compression.LZ4),
        Compression.ZSTD: packed_batch(_ZSTD_FRAME_CLAIM, Compression.ZSTD),
    }


def _gzip(head: bytes, mib: int, tail: bytes) -> bytes:
    """Pack mebibytes of zeros between two pieces: the packed mebibyte is repeated."""
    checksum = zlib.crc32(head)
    for _ in range(mib):
        checksum = zlib.crc32(_ZEROS, checksum)
    parts = [_deflated(head), _deflated(_ZEROS) * mib, _deflated(tail, zlib.Z_FINISH)]
    size = len(head) + mib * MIB + len(tail)
    return b"".join([_GZIP_HEADER, *parts, struct.pack("<II", zlib.crc32(tail, checksum), size)])


def _deflated(data: bytes, end: int = zlib.Z_FULL_FLUSH) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush(end)


def _zstd(head: bytes, mib: int, tail: bytes) -> bytes:
    """Pack as `_gzip` does: a block of four bytes stands for 128 KiB of one byte."""
    run = struct.pack("<I", _ZSTD_BLOCK_BYTES << 3 | 1 << 1)[:3] + b"\x00"
    raw_head, raw_tail = struct.pack("<I", len(head) << 3), struct.pack("<I", len(tail) << 3 | 1)
    runs = run * (mib * MIB // _ZSTD_BLOCK_BYTES)
    return b"".join([_ZSTD_HEADER, raw_head[:3], head, runs, raw_tail[:3], tail])


def _zigzag(number: int) -> bytes:
    """Return a number that is not negative, as a record has it."""
    left, encoded = number << 1, bytearray()
    while left > 0x7F:
        encoded.append(left & 0x7F | 0x80)
        left >>= 7
    encoded.append(left)
    return bytes(encoded)


STORED: Final = (
    large_value(Compression.ZSTD, 2047),
    # No record is as late as the header says: each is looked at.
    with_fields(
        tiny_records(Compression.ZSTD, count=STORED_COUNT),
        {LAST_OFFSET_DELTA: STORED_COUNT - 1, MAX_TIMESTAMP: 2000},
    ),
    large_value(Compression.GZIP, 8),
)
"""The content of each partition's log; all records have the time 1000."""


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


@pytest.mark.slow
def test_what_unpacks_to_gigabytes_is_never_in_memory(
    bombed: tuple[Node, NodeProcess], report: Report
) -> None:
    """With the codes of a real broker: it is taken where it need not be packed again."""
    node, process = bombed
    bombs = [
        large_value(compression, mib) for compression in PACKED for mib in (8, MIB_MAX[compression])
    ]
    expected = {
        "as-produced": ErrorCode.NONE,
        "unpacked": ErrorCode.MESSAGE_TOO_LARGE,
        "compacted": ErrorCode.NONE,
    }
    end = _end_offset(node.broker, "as-produced")
    watch = Watch(node.broker, process.pid)
    with watch.bystander:
        for topic, code in expected.items():
            assert {_code(node.broker, topic, bomb) for bomb in bombs} == {code}, topic
    assert _end_offset(node.broker, "as-produced") == end + len(bombs)
    watch.check(report, GROWTH_MAX, "batches of up to 1 MiB that unpack to up to 2 GiB")


@pytest.mark.slow
def test_a_record_that_unpacks_to_much_is_packed_again_up_to_a_size(
    bombed: tuple[Node, NodeProcess], report: Report
) -> None:
    """Above that size it is refused, as by a real broker whose memory is too small."""
    node, process = bombed
    watch = Watch(node.broker, process.pid)
    with watch.bystander:
        for compression in PACKED:
            taken = large_value(compression, min(60, MIB_MAX[compression]))
            assert _code(node.broker, "in-gzip", taken) == ErrorCode.NONE
        for compression in (Compression.LZ4, Compression.ZSTD):
            refused = large_value(compression, MIB_MAX[compression])
            assert _code(node.broker, "in-gzip", refused) == ErrorCode.UNKNOWN_SERVER_ERROR
    watch.check(report, REWRITTEN_GROWTH_MAX, "records of up to 60 MiB that are packed again")


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


@pytest.mark.slow
def test_a_batch_of_more_records_than_kafka_can_keep(
    bombed: tuple[Node, NodeProcess], report: Report
) -> None:
    """They are counted as they are read, while others are served."""
    node, process = bombed
    count = 2**24 + 1
    pieces = (TINY_KEYED_RECORD * size for size in (2**20,) * 16 + (1,))
    packed = compress_pieces(pieces, Compression.ZSTD)
    data = packed_batch(packed, Compression.ZSTD, record_count=count)
    watch = Watch(node.broker, process.pid)
    with watch.bystander:
        assert _code(node.broker, "as-produced", data) == ErrorCode.UNKNOWN_SERVER_ERROR
    watch.check(report, GROWTH_MAX, f"{count} records in {len(data)} bytes")


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


def test_where_batches_may_be_large_they_may_unpack_to_more(
    bombed: tuple[Node, NodeProcess], report: Report
) -> None:
    """As on a real broker; and none of the records is looked at by the event loop."""
    node, process = bombed
    (topic,) = LARGE_RECORDS
    _create(node.broker, LARGE_RECORDS, partition_count=1)
    end = _end_offset(node.broker, topic)
    watch = Watch(node.broker, process.pid)
    with watch.bystander:
        taken = [
            _code(node.broker, topic, large_value(packed, mib))
            for packed in PACKED
            for mib in (8, 40)
        ]
        many = _code(node.broker, topic, tiny_records(Compression.ZSTD, count=LARGE_COUNT))
    assert many == ErrorCode.UNKNOWN_SERVER_ERROR, "they are not numbered"
    assert taken == [ErrorCode.NONE] * len(taken)
    assert _end_offset(node.broker, topic) == end + len(taken)
    watch.check(report, GROWTH_MAX, "batches that unpack to 8 MiB and more")


def test_after_all_that_the_node_works(bombed: tuple[Node, NodeProcess]) -> None:
    node, process = bombed
    for topic in TOPICS.keys() - {"compacted"}:
        assert _code(node.broker, topic, batch(b"after")) == ErrorCode.NONE
    assert _code(node.broker, "compacted", _keyed()) == ErrorCode.NONE
    assert process.terminate().exit_code == 0


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
    """As a real broker answers, and however long one takes, the node serves others."""
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
        (ErrorCode.NONE, 0),
        (ErrorCode.NONE, -1),
        (ErrorCode.NONE, 0),
    ]
