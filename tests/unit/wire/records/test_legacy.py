"""Messages of the formats 0 and 1: real Kafka's, another client's, damaged ones."""

import importlib
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.peak_memory import peak_memory_below

from kvorum.wire.errors import BatchTooLargeError, CorruptBatchError, InvalidRecordError
from kvorum.wire.records import Compression, RecordBatch, RecordData, build_batch
from kvorum.wire.records.decompression import UNLIMITED_BYTES
from kvorum.wire.records.legacy import LegacyMessage, read_entries
from kvorum.wire.records.lz4_frames import repair_lz4_header

CODECS = [Compression.NONE, Compression.GZIP, Compression.SNAPPY, Compression.LZ4]
# No client writes lz4 in format 0 any more; real Kafka's files have it.
BUILT = [(0, codec) for codec in CODECS[:-1]] + [(1, codec) for codec in CODECS]
Contents: TypeAlias = list[tuple[int, bytes | None, bytes | None]]
CONTENTS: Contents = [(1_500, b"key", b"value" * 20), (1_400, None, b""), (1_600, b"", None)]
MIB = 1 << 20


def built(magic: int, codec: Compression, contents: Contents) -> bytes:
    """Return messages as aiokafka builds them, the wrapped ones counted from 0."""
    module: Any = importlib.import_module("aiokafka.record.legacy_records")
    builder = module.LegacyRecordBatchBuilder(magic, int(codec), 1 << 30)
    for index, (timestamp, key, value) in enumerate(contents):
        builder.append(index, timestamp=timestamp, key=key, value=value)
    return bytes(builder.build())


def read_all(data: bytes) -> list[tuple[int, int, bytes | None, bytes | None]]:
    """Read everything; anything but `CorruptBatchError` is a failure."""
    return [
        (record.offset, record.timestamp, record.key, record.value)
        for entry in read_entries(data)
        for record in entry.records()
    ]


def renumbered(wrapper: bytes, offset: int, attributes: int | None = None) -> bytes:
    """Return a message with another offset, which its checksum does not cover."""
    data = bytearray(offset.to_bytes(8, "big") + wrapper[8:])
    if attributes is not None:
        data[17] = attributes
    return bytes(data)


@pytest.mark.parametrize(("magic", "codec"), BUILT)
def test_messages_of_another_client_are_read(magic: int, codec: Compression) -> None:
    data = built(magic, codec, CONTENTS)
    assert all(entry.is_valid for entry in read_entries(data))
    assert read_all(data) == [
        (index, timestamp if magic else -1, key, value)
        for index, (timestamp, key, value) in enumerate(CONTENTS)
    ]


def test_every_checksum_of_real_kafkas_messages_holds(golden_sets: Path) -> None:
    seen: set[tuple[int, Compression]] = set()
    for file in golden_sets.glob("legacy-formats/*/*.log"):
        for entry in read_entries(file.read_bytes()):
            assert entry.is_valid
            seen.add((entry.magic, entry.compression))
            if isinstance(entry, LegacyMessage):
                assert all(message.is_valid for message in entry.records())
    assert seen >= {(magic, codec) for magic in (0, 1) for codec in CODECS}


def test_old_and_new_formats_may_follow_each_other() -> None:
    data = built(0, Compression.NONE, CONTENTS) + build_batch([RecordData(b"new", timestamp=5)])
    entries = list(read_entries(data))
    assert [entry.magic for entry in entries] == [0, 0, 0, 2]
    assert isinstance(entries[-1], RecordBatch)
    assert entries[-1].position == sum(entry.size for entry in entries[:-1])


def test_wrapped_messages_count_back_from_their_wrapper() -> None:
    wrapper = built(1, Compression.GZIP, CONTENTS)
    assert [each[0] for each in read_all(renumbered(wrapper, 102))] == [100, 101, 102]
    assert [each[0] for each in read_all(renumbered(wrapper, 0))] == [0, 1, 2]
    with pytest.raises(CorruptBatchError, match="is less than 2"):
        read_all(renumbered(wrapper, 1))
    of_format_0 = renumbered(built(0, Compression.GZIP, CONTENTS), 102)
    assert [each[0] for each in read_all(of_format_0)] == [0, 1, 2]


def test_a_broker_sets_the_time_of_all_wrapped_messages() -> None:
    (entry,) = read_entries(renumbered(built(1, Compression.GZIP, CONTENTS), 2, attributes=0x09))
    assert entry.is_log_append_time
    assert isinstance(entry, LegacyMessage)
    assert {message.timestamp for message in entry.records()} == {entry.timestamp}


@pytest.mark.parametrize("attributes", [4, 5, 7])
def test_other_compressions_are_refused(attributes: int) -> None:
    wrapper = renumbered(built(1, Compression.GZIP, CONTENTS), 2, attributes=attributes)
    with pytest.raises(CorruptBatchError, match="compression"):
        read_all(wrapper)


def test_no_wrapped_message_may_be_larger_than_is_allowed() -> None:
    """As in Kafka all are counted before the first is read, without offset and length."""
    (wrapper,) = read_entries(built(1, Compression.GZIP, [(5, None, b""), (5, None, bytes(90))]))
    # Checksum, format, attributes, time, two lengths.
    larger = 90 + 22
    assert len(list(wrapper.records(record_bytes_max=larger))) == 2
    with pytest.raises(InvalidRecordError):
        next(wrapper.records(record_bytes_max=larger - 1))


def test_a_wrapper_of_nothing_or_of_wrappers_is_refused() -> None:
    plain = built(1, Compression.NONE, [(1, None, None)])
    with pytest.raises(CorruptBatchError, match="wraps null"):
        read_all(renumbered(plain, 0, attributes=1))
    empty = built(1, Compression.NONE, [(1, None, b"\x00")])
    with pytest.raises(CorruptBatchError, match="wraps no messages"):
        read_all(renumbered(empty, 0, attributes=2))
    twice = built(1, Compression.GZIP, [(1, None, b"x")])
    pack: Any = importlib.import_module("cramjam").gzip.compress
    outer = built(1, Compression.NONE, [(1, None, bytes(pack(twice)))])
    with pytest.raises(CorruptBatchError, match="wraps a wrapper"):
        read_all(renumbered(outer, 0, attributes=1))


def test_a_cut_is_an_error_unless_it_is_expected() -> None:
    data = built(1, Compression.NONE, CONTENTS)
    for end in range(list(read_entries(data))[2].position + 1, len(data)):
        assert len(list(read_entries(data[:end], is_cut_allowed=True))) == 2
        with pytest.raises(CorruptBatchError, match="cut off"):
            list(read_entries(data[:end]))


def assert_readable_or_refused(data: bytes) -> None:
    problem = ""
    try:
        read_all(data)
    except CorruptBatchError as error:
        problem = str(error)
    assert "\n" not in problem


@settings(max_examples=1000)
@given(
    kind=st.sampled_from(BUILT),
    changes=st.lists(st.tuples(st.integers(0, 999), st.integers(0, 255)), min_size=1, max_size=4),
)
def test_changed_bytes_anywhere(
    kind: tuple[int, Compression], changes: list[tuple[int, int]]
) -> None:
    data = bytearray(built(*kind, CONTENTS))
    for place, byte in changes:
        data[place % len(data)] = byte
    assert_readable_or_refused(bytes(data))


@settings(max_examples=500)
@given(st.binary(max_size=100), st.sampled_from([0, 1]))
def test_any_bytes_after_a_length(data: bytes, magic: int) -> None:
    head = bytes(8) + (len(data) + 5).to_bytes(4, "big") + bytes(4) + bytes([magic])
    assert_readable_or_refused(head + data)


@pytest.mark.slow
@pytest.mark.parametrize("codec", CODECS[1:])
def test_memory_is_bounded(codec: Compression) -> None:
    many = built(1, codec, [(1, None, None)] * (MIB // 34 * 2))
    with peak_memory_below(4 * len(many) + 16 * MIB):
        (entry,) = read_entries(many)
        assert sum(1 for _ in entry.records()) == MIB // 34 * 2
    bomb = built(1, codec, [(1, None, bytes(32 * MIB))])
    with peak_memory_below(4 * len(bomb) + 16 * MIB), pytest.raises(BatchTooLargeError):
        read_all(bomb)


@pytest.mark.parametrize("codec", [Compression.GZIP, Compression.SNAPPY])
def test_wrapped_messages_that_unpack_to_much_are_read_one_at_a_time(codec: Compression) -> None:
    data = built(1, codec, [(1_000 + index, b"key", bytes(MIB)) for index in range(40)])
    (entry,) = read_entries(renumbered(data, 139))
    assert isinstance(entry, LegacyMessage)
    with peak_memory_below(4 * len(data) + 15 * MIB):
        found = [
            (record.offset, record.timestamp, record.size)
            for record in entry.records(UNLIMITED_BYTES)
        ]
    sizes = {size for _, _, size in found}
    assert [place[:2] for place in found] == [(100 + index, 1_000 + index) for index in range(40)]
    assert sizes == {MIB + 37}
    with pytest.raises(InvalidRecordError):
        list(entry.records(UNLIMITED_BYTES, record_bytes_max=MIB))


def test_a_wrong_checksum_of_an_lz4_header_is_mended() -> None:
    pack: Any = importlib.import_module("cramjam").lz4.compress
    right = bytes(pack(b"some text"))
    place = 6 + (8 if right[4] & 0x08 else 0)
    wrong = right[:place] + bytes([right[place] ^ 0x55]) + right[place + 1 :]
    assert repair_lz4_header(wrong) == right
    assert repair_lz4_header(right) == right
    for other in (b"", b"\x04\x22\x4d\x18", right[:6], b"something else"):
        assert repair_lz4_header(other) == other
