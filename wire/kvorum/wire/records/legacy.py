"""Messages of the formats 0 and 1, which Kafka wrote before record batches; they are only read.

A message begins like a batch with its offset and the length of what follows: CRC-32, format,
attributes, in format 1 a timestamp, then key and value, each with a length of 32 bits that is
negative for null. A compressed message wraps others: its value is a sequence of messages, its
offset is the last one's. In format 1 the wrapped ones count their offsets from 0.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple, TypeAlias

from kvorum.wire.errors import CorruptBatchError, DecompressionError, InvalidRecordError
from kvorum.wire.records.batch import (
    COMPRESSION_MASK,
    LENGTH_FIELD_END,
    LOG_APPEND_TIME,
    MAGIC,
    NO_PRODUCER,
    NO_TIMESTAMP,
    RecordBatch,
    batch_at,
    read_units,
)
from kvorum.wire.records.compression_type import Compression
from kvorum.wire.records.decompression import (
    DECOMPRESSED_BYTES_MAX,
    RECORD_BYTES_MAX,
    decompress_few,
    decompressed_pieces,
)
from kvorum.wire.records.lz4_frames import repair_lz4_header
from kvorum.wire.records.record_runs import PiecewiseBytes
from kvorum.wire.records.size_check import SizeCheck, up_to

_LENGTH_PLACE: Final = 8
MAGIC_PLACE: Final = 16
# The bytes of a message of format 0 after its length when key and value are null.
LENGTH_MIN: Final = 14
NO_EPOCH: Final = -1
_HEAD = struct.Struct(">qiIbB")
_TIMESTAMP = struct.Struct(">q")
_SIZE = struct.Struct(">i")
_WHAT = "message"


class LegacyMessage(NamedTuple):
    """A message in a buffer; `body` is where its key begins in `data`, a view of all its bytes.

    `timestamp` is -1 in format 0.
    """

    offset: int
    crc: int
    magic: int
    attributes: int
    timestamp: int
    position: int
    body: int
    data: memoryview

    @property
    def size(self) -> int:
        """The size of the message in bytes, offset and length included."""
        return len(self.data)

    @property
    def base_offset(self) -> int:
        """The same as `last_offset`: those of wrapped messages are known once it is unpacked."""
        return self.offset

    @property
    def last_offset(self) -> int:
        """The offset of the last message that this one wraps, or its own."""
        return self.offset

    @property
    def next_offset(self) -> int:
        """The offset after the last message."""
        return self.offset + 1

    @property
    def max_timestamp(self) -> int:
        """The highest time of the messages that this one wraps, or its own."""
        return self.timestamp

    @property
    def partition_leader_epoch(self) -> int:
        """Always -1: these formats are older than leader epochs."""
        return NO_EPOCH

    @property
    def producer_id(self) -> int:
        """Always -1: these formats are older than producer ids."""
        return NO_PRODUCER

    @property
    def key(self) -> bytes | None:
        """The key; `CorruptBatchError` where it reaches beyond the message."""
        return self._part(self.body)[0]

    @property
    def value(self) -> bytes | None:
        """The value; `CorruptBatchError` where it reaches beyond the message."""
        return self._part(self._part(self.body)[1])[0]

    @property
    def compression(self) -> Compression:
        """The compression of the wrapped messages; NONE for a message that wraps none."""
        number = self.attributes & COMPRESSION_MASK
        if number > Compression.LZ4:
            raise DecompressionError(_WHAT, f"compression {number}", offset=self.position)
        return Compression(number)

    @property
    def is_control(self) -> bool:
        """Always False: these formats are older than control records."""
        return False

    @property
    def is_log_append_time(self) -> bool:
        """Whether the broker set the time."""
        return self.magic > 0 and bool(self.attributes & LOG_APPEND_TIME)

    @property
    def is_valid(self) -> bool:
        """Whether the checksum is right."""
        return zlib.crc32(self.data[MAGIC_PLACE:]) == self.crc

    def verify(self) -> None:
        """Raise `CorruptBatchError` unless the checksum is right."""
        if not self.is_valid:
            raise CorruptBatchError(_WHAT, "its checksum is wrong", offset=self.position)

    def records(
        self,
        decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX,
        *,
        record_bytes_max: int = RECORD_BYTES_MAX,
    ) -> Iterator[LegacyMessage]:
        """Yield the messages that this one wraps, or itself; checksums are not verified.

        Raises `CorruptBatchError` where they cannot be read; for packed ones, `BatchTooLargeError`
        where all take more than `decompressed_bytes_max`, and `InvalidRecordError` where one takes
        more than `record_bytes_max`, its offset and length not counted.
        """
        check_size = up_to(decompressed_bytes_max, self.compression)
        return self.messages(check_size, record_bytes_max=record_bytes_max)

    def messages(
        self, check_size: SizeCheck, *, record_bytes_max: int = RECORD_BYTES_MAX
    ) -> Iterator[LegacyMessage]:
        """Yield what `records` does; `check_size` is called as by `RecordBatch.content`."""
        if self.compression is Compression.NONE:
            return iter((self,))
        value = self.value
        if value is None:
            raise CorruptBatchError(_WHAT, "wraps null", offset=self.position)
        if self.magic == 0 and self.compression is Compression.LZ4:
            value = repair_lz4_header(value)
        few = decompress_few(value, self.compression)
        check_size(DECOMPRESSED_BYTES_MAX + 1 if few is None else len(few))

        def unpacked() -> Iterable[bytes]:
            if few is not None:
                return (few,)
            return decompressed_pieces(value, self.compression, check_size)

        return self._wrapped(unpacked, record_bytes_max)

    def _wrapped(
        self, unpacked: Callable[[], Iterable[bytes]], record_bytes_max: int
    ) -> Iterator[LegacyMessage]:
        # Read twice: the last one's offset must be known before the first one is yielded.
        last_offset = -1
        for message in _messages(unpacked(), record_bytes_max):
            last_offset = message.offset
        if last_offset < 0:
            raise CorruptBatchError(_WHAT, "wraps no messages", offset=self.position)
        base = self.offset - last_offset if self.magic > 0 and self.offset > 0 else 0
        if base < 0:
            problem = f"offset {self.offset} is less than {last_offset}, its last message's"
            raise CorruptBatchError(_WHAT, problem, offset=self.position)
        for message in _messages(unpacked(), record_bytes_max):
            if message.compression is not Compression.NONE:
                raise CorruptBatchError(_WHAT, "wraps a wrapper", offset=self.position)
            is_stamped = self.is_log_append_time and message.magic > 0
            timestamp = self.timestamp if is_stamped else message.timestamp
            yield message._replace(offset=base + message.offset, timestamp=timestamp)

    def _part(self, pos: int) -> tuple[bytes | None, int]:
        """Return the key or the value that begins at `pos`, and where it ends."""
        start = pos + _SIZE.size
        if start <= len(self.data):
            (length,) = _SIZE.unpack_from(self.data, pos)
            if length < 0:
                return None, start
            if start + length <= len(self.data):
                return bytes(self.data[start : start + length]), start + length
        problem = "its key or value reaches beyond its end"
        raise CorruptBatchError(_WHAT, problem, offset=self.position)


Entry: TypeAlias = RecordBatch | LegacyMessage
"""The entries of a log of any age."""


def first_offset_of(entry: Entry) -> int:
    """Return the offset of the first record, for which a wrapper of messages is unpacked.

    Raises `CorruptBatchError`.
    """
    return entry.base_offset if isinstance(entry, RecordBatch) else next(entry.records()).offset


def read_entries(
    data: bytes | bytearray | memoryview, *, begin: int = 0, is_cut_allowed: bool = False
) -> Iterator[Entry]:
    """Yield the batches, and the messages of formats 0 and 1, in `data`, as views of it.

    The first one is at `begin`. Checks, errors and omissions are those of
    `kvorum.wire.records.read_batches`.
    """
    return read_units(memoryview(data), _entry_at, begin=begin, is_cut_allowed=is_cut_allowed)


def _entry_at(view: memoryview, pos: int) -> Entry | None:
    is_legacy = len(view) - pos > MAGIC_PLACE and view[pos + MAGIC_PLACE] < MAGIC
    return message_at(view, pos) if is_legacy else batch_at(view, pos)


def _messages(unpacked: Iterable[bytes], size_max: int) -> Iterator[LegacyMessage]:
    """Yield wrapped messages; as in Kafka, a last one that is cut off is left out.

    Raises `InvalidRecordError` where one has more than `size_max` bytes after its length.
    """
    left = PiecewiseBytes(unpacked)
    while left.gather(MAGIC_PLACE + 1):
        if left.data[left.pos + MAGIC_PLACE] >= MAGIC:
            raise CorruptBatchError(_WHAT, "wraps what is no message", offset=left.place)
        (length,) = _SIZE.unpack_from(left.data, left.pos + _LENGTH_PLACE)
        if length > size_max:
            problem = f"{length} bytes exceed the configured maximum of {size_max}"
            raise InvalidRecordError(_WHAT, problem, offset=left.place)
        left.gather(LENGTH_FIELD_END + length)
        message = message_at(memoryview(left.data), left.pos)
        if message is None:
            return
        yield message._replace(position=left.place)
        left.skip(message.size)


def message_at(view: memoryview, pos: int) -> LegacyMessage | None:
    """Return the message at `pos`, None where it is cut off; its format is known to be 0 or 1.

    Raises `CorruptBatchError` for bytes that are no message.
    """
    if len(view) - pos < _HEAD.size:
        return None
    offset, length, crc, magic, attributes = _HEAD.unpack_from(view, pos)
    if length < LENGTH_MIN:
        # Zeros, as a rule: neither a message nor a batch.
        raise CorruptBatchError("record batch", f"a length of {length} bytes", offset=pos)
    end = pos + LENGTH_FIELD_END + length
    if end > len(view):
        return None
    if offset < 0 or (magic and length < LENGTH_MIN + _TIMESTAMP.size):
        problem = f"a length of {length} bytes, offset {offset}"
        raise CorruptBatchError(_WHAT, problem, offset=pos)
    body = _HEAD.size
    timestamp = NO_TIMESTAMP
    if magic:
        (timestamp,) = _TIMESTAMP.unpack_from(view, pos + body)
        body += _TIMESTAMP.size
    return LegacyMessage(offset, crc, magic, attributes, timestamp, pos, body, view[pos:end])
