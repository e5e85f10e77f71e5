"""The whole state of a history as bytes: the image as records, and the open intervals as JSON.

    kvorum-history-1 LF | zlib of: JSON LF | (length of 4 bytes, big-endian | metadata record)*

The records are those of a snapshot of the image, in the frames of the metadata log. The features
are in the JSON: the records are written at the highest level, which has a place for everything.
"""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from immutables import Map

from kvorum.metadata.errors import MetadataError
from kvorum.metadata.features import ELR_VERSION_FEATURE, FeaturesImage
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.image_records import image_records
from kvorum.metadata.metadata_version import LATEST_PRODUCTION_METADATA_VERSION, MetadataVersion
from kvorum.metadata.record_frame import decode_record, encode_record
from kvorum.spark.errors import SavedHistoryError
from kvorum.spark.history.intervals import LogRecord

MAGIC: Final = b"kvorum-history-1\n"
"""The name and the number of the format. Another format has another number."""

_LENGTH: Final = struct.Struct(">I")
_EVERYTHING: Final = FeaturesImage(
    LATEST_PRODUCTION_METADATA_VERSION, Map({ELR_VERSION_FEATURE: 1})
)


@dataclass(frozen=True, slots=True)
class SavedHistory:
    """The state of a history: open intervals, the published image, and an open transaction.

    `document` is a JSON object; `in_transaction` are the records of the open transaction so far,
    its begin included.
    """

    document: dict[str, Any]
    image: MetadataImage
    in_transaction: tuple[LogRecord, ...]

    def encode(self) -> bytes:
        """Return the state as bytes."""
        features = self.image.features
        document = {
            **self.document,
            "last_offset": self.image.last_offset,
            "metadata_version": features.metadata_version,
            "feature_levels": dict(features.levels),
            "in_transaction": [_record_to_json(record) for record in self.in_transaction],
        }
        parts = [json.dumps(document, separators=(",", ":")).encode(), b"\n"]
        for message, version in image_records(replace(self.image, features=_EVERYTHING)):
            encoded = encode_record(message, version)
            parts += (_LENGTH.pack(len(encoded)), encoded)
        return MAGIC + zlib.compress(b"".join(parts), zlib.Z_BEST_SPEED)

    @classmethod
    def decode(cls, data: bytes) -> SavedHistory:
        """Return the state that `encode` wrote; raises `SavedHistoryError` for other bytes."""
        if not data.startswith(MAGIC):
            raise SavedHistoryError("the bytes are not a history that this release saved")
        try:
            first_line, _, records = zlib.decompress(data[len(MAGIC) :]).partition(b"\n")
            document: dict[str, Any] = json.loads(first_line)
            image = _image(document, records)
            in_transaction = tuple(map(_record_from_json, document["in_transaction"]))
        except (zlib.error, ValueError, KeyError, struct.error, MetadataError) as error:
            raise SavedHistoryError(f"the saved history is damaged: {error}") from error
        return cls(document, image, in_transaction)


def _image(document: dict[str, Any], records: bytes) -> MetadataImage:
    last_offset: int = document["last_offset"]
    image = MetadataImage().apply_all(
        (*decode_record(record), last_offset) for record in _frames(records)
    )
    level: int | None = document["metadata_version"]
    version = None if level is None else MetadataVersion(level)
    features = FeaturesImage(version, Map(document["feature_levels"]))
    return replace(image, features=features, last_offset=last_offset)


def _frames(records: bytes) -> Iterator[bytes]:
    start = 0
    while start < len(records):
        (length,) = _LENGTH.unpack_from(records, start)
        start += _LENGTH.size
        yield records[start : start + length]
        start += length


def _record_to_json(record: LogRecord) -> list[Any]:
    encoded = base64.b64encode(encode_record(record.message, record.version))
    return [record.offset, record.epoch, record.timestamp_ms, encoded.decode("ascii")]


def _record_from_json(saved: list[Any]) -> LogRecord:
    offset, epoch, timestamp_ms, encoded = saved
    message, version = decode_record(base64.b64decode(encoded))
    return LogRecord(offset, epoch, timestamp_ms, message, version)
