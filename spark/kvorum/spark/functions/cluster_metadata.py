"""The result of `metadata_record`: a record of the cluster metadata log."""

from typing import Final

from kvorum.metadata.errors import MetadataParseError
from kvorum.metadata.json_text import json_text
from kvorum.metadata.record_frame import decode_record, record_type_name
from kvorum.spark.arrow_types import INT, TEXT
from kvorum.spark.functions.record_function import Column, RecordFunction, Row
from kvorum.spark.metadata_source.columns import DEFAULT_COLUMNS as TABLE_COLUMNS
from kvorum.spark.metadata_source.columns import Origin
from kvorum.spark.metadata_source.record_types import SUBJECT_FIELDS
from kvorum.wire.json_form import to_json

COLUMNS: Final = (
    Column("type", TEXT),
    Column("version", INT),
    *(Column(one.name, one.type) for one in TABLE_COLUMNS if one.origin is Origin.BODY),
    Column("json", TEXT),
    Column("error", TEXT),
)


def metadata_row(value: bytes | None) -> Row | None:
    """Return the result for one framed metadata record; null for null."""
    if value is None:
        return None
    try:
        message, version = decode_record(value)
    except MetadataParseError as error:
        return {"error": str(error)}
    name = record_type_name(type(message))
    fields = to_json(message, version)
    subject = {column: fields.get(path) for column, path in SUBJECT_FIELDS.get(name, {}).items()}
    return {"type": name, "version": version, **subject, "json": json_text(fields)}


METADATA_RECORD: Final = RecordFunction(
    name="kvorum_metadata_record", arguments=("value",), columns=COLUMNS, row=metadata_row
)
