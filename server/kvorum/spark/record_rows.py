"""Rows of a metadata file: one for each metadata or control record."""

from __future__ import annotations

import io
import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kvorum.metadata.errors import MetadataError, MetadataParseError
from kvorum.metadata.json_text import json_text
from kvorum.metadata.record_frame import decode_record
from kvorum.metadata.record_types import record_type_name
from kvorum.spark.errors import DamagedFileError
from kvorum.spark.key_fields import KEY_FIELDS
from kvorum.spark.metadata_files import FileKind, MetadataFile
from kvorum.wire.errors import WireError
from kvorum.wire.json_form import to_json
from kvorum.wire.primitives import Message
from kvorum.wire.records import (
    Record,
    RecordBatch,
    decode_control_record,
    read_batches,
)

METADATA: Final = "metadata"
CONTROL: Final = "control"


@dataclass(frozen=True, slots=True)
class RecordRow:
    """One record of a metadata file; `key_fields` has the columns that its type fills."""

    offset: int
    epoch: int
    timestamp_ms: int
    record_kind: str
    type: str
    version: int
    key_fields: dict[str, Any]
    json: str


def read_rows(file: MetadataFile) -> Iterator[RecordRow]:
    """Yield a file's records in order; each batch's checksum is verified first.

    Raises `DamagedFileError` at the first batch or record that cannot be read; the rows before it
    have been yielded by then.
    """
    offset = file.offset if file.kind is FileKind.SEGMENT else 0
    try:
        for batch in read_batches(_mapped(Path(file.path))):
            batch.verify()
            for record in batch.records():
                offset = record.offset
                yield _row(batch, record)
            offset = batch.last_offset + 1
    except (WireError, MetadataError) as error:
        raise DamagedFileError(file=file.path, offset=offset, reason=str(error)) from error


def _mapped(path: Path) -> memoryview:
    """Map a file's bytes into memory: pages are loaded on access, and can be dropped again."""
    with path.open("rb") as opened:
        if opened.seek(0, io.SEEK_END) == 0:
            return memoryview(b"")
        # The last batch that refers to the mapping removes it, not a fixed place in the code.
        return memoryview(mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ))


def _row(batch: RecordBatch, record: Record) -> RecordRow:
    if batch.is_control:
        kind, (name, message, version) = CONTROL, _control(record)
    else:
        kind, (name, message, version) = METADATA, _metadata(record)
    value = to_json(message, version)
    fields = KEY_FIELDS.get(name, {})
    return RecordRow(
        offset=record.offset,
        epoch=batch.partition_leader_epoch,
        timestamp_ms=record.timestamp,
        record_kind=kind,
        type=name,
        version=version,
        key_fields={column: value.get(field) for column, field in fields.items()},
        json=json_text(value),
    )


def _control(record: Record) -> tuple[str, Message, int]:
    control = decode_control_record(record)
    return control.type.name, control.message, control.version


def _metadata(record: Record) -> tuple[str, Message, int]:
    if record.value is None:
        raise MetadataParseError("a metadata record without a value")
    message, version = decode_record(record.value)
    return record_type_name(type(message)), message, version
