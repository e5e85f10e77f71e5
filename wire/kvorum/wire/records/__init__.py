"""Record batches of message format 2: reading, checking, building, and the control records.

Messages of the formats before are read by `kvorum.wire.records.legacy`.
"""

from kvorum.wire.records.batch import BatchOptions, RecordBatch, build_batch, read_batches
from kvorum.wire.records.compression_type import Compression
from kvorum.wire.records.control import (
    CONTROL_VERSION,
    ControlRecord,
    ControlRecordType,
    decode_control_record,
    encode_control_record,
)
from kvorum.wire.records.decompression import DECOMPRESSED_BYTES_MAX
from kvorum.wire.records.metadata_batches import build_control_batch, build_data_batch
from kvorum.wire.records.record import Header, Record, RecordData

__all__ = [
    "CONTROL_VERSION",
    "DECOMPRESSED_BYTES_MAX",
    "BatchOptions",
    "Compression",
    "ControlRecord",
    "ControlRecordType",
    "Header",
    "Record",
    "RecordBatch",
    "RecordData",
    "build_batch",
    "build_control_batch",
    "build_data_batch",
    "decode_control_record",
    "encode_control_record",
    "read_batches",
]
