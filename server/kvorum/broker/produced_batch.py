"""The one batch that a producer may send for a partition (ProduceRequest.validateRecords)."""

import struct
from typing import Final

from kvorum.metadata.api import RequestError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.errors import CorruptBatchError
from kvorum.wire.records import Compression, RecordBatch
from kvorum.wire.records.batch import MAGIC, unchecked_batch_at

FIRST_VERSION_WITH_ZSTD: Final = 7
LEGACY_OVERHEAD: Final = 14
"""The size of the smallest record of the first format: no batch of any format is smaller."""
_LENGTH: Final = struct.Struct(">i")
_LENGTH_POSITION: Final = 8
_MAGIC: Final = struct.Struct(">b")
_MAGIC_POSITION: Final = 16


def produced_batch(batch: RecordBatch | None, records: memoryview, version: int) -> RecordBatch:
    """Return the only batch in `records`, which begin with `batch`.

    Its checksum, its numbers and its records are not looked at.
    Raises RequestError with the code for the partition: INVALID_RECORD, CORRUPT_MESSAGE, or
    UNSUPPORTED_COMPRESSION_TYPE.
    """
    if batch is None:
        raise RequestError.with_default_message(ErrorCode.INVALID_RECORD)
    if version < FIRST_VERSION_WITH_ZSTD and _compression_of(batch) is Compression.ZSTD:
        raise RequestError.with_default_message(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
    if batch.size == len(records):
        return batch
    try:
        second = first_batch(records[batch.size :])
    except RequestError as error:
        raise RequestError.with_default_message(error.code) from error
    if second is not None:
        raise RequestError.with_default_message(ErrorCode.INVALID_RECORD)
    return batch


def first_batch(records: memoryview) -> RecordBatch | None:
    """Return the first batch; None if the bytes do not have it whole.

    Raises RequestError CORRUPT_MESSAGE, with a text for the producer, for what cannot be a batch of
    any format.
    """
    if len(records) <= _MAGIC_POSITION:
        return None
    (length,) = _LENGTH.unpack_from(records, _LENGTH_POSITION)
    (magic,) = _MAGIC.unpack_from(records, _MAGIC_POSITION)
    if length < LEGACY_OVERHEAD:
        raise RequestError(
            ErrorCode.CORRUPT_MESSAGE,
            f"Record size {length} is less than the minimum record overhead ({LEGACY_OVERHEAD})",
        )
    if not 0 <= magic <= MAGIC:
        raise RequestError(ErrorCode.CORRUPT_MESSAGE, f"Invalid magic found in record: {magic}")
    if magic < MAGIC:
        # A batch of a former format, which may be sent no more.
        return None
    try:
        return unchecked_batch_at(records, 0)
    except CorruptBatchError as error:
        raise RequestError.with_default_message(ErrorCode.CORRUPT_MESSAGE) from error


def _compression_of(batch: RecordBatch) -> Compression:
    try:
        return batch.compression
    except CorruptBatchError as error:
        raise RequestError.with_default_message(ErrorCode.UNKNOWN_SERVER_ERROR) from error
