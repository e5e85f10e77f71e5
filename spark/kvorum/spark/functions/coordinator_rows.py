"""Results of the functions over records of the coordinators' topics."""

from collections.abc import Mapping
from typing import Final

from kvorum.internal_topics.coordinator_records import CoordinatorTopic
from kvorum.internal_topics.errors import DamagedRecordError, InternalTopicError
from kvorum.metadata.json_text import json_text
from kvorum.spark.arrow_types import BOOLEAN, INT, TEXT
from kvorum.spark.functions.record_function import Column, Field, RecordFunction, Row, read_fields
from kvorum.wire.json_form import Json

# The first and the last columns of every such result.
FIRST_COLUMNS: Final = (
    Column("type", TEXT),
    Column("type_id", INT),
    Column("value_version", INT),
    Column("is_tombstone", BOOLEAN),
)
LAST_COLUMNS: Final = (Column("key_json", TEXT), Column("value_json", TEXT), Column("error", TEXT))


def coordinator_function(
    name: str,
    topic: CoordinatorTopic,
    columns: tuple[Column, ...],
    fields: Mapping[str, tuple[Field, ...]],
) -> RecordFunction:
    """Return the function over the records of a topic; `fields` are those of each record type.

    The result for no record at all, neither key nor value, is null. Where a part of the record
    cannot be decoded, the result has `error`, and whatever comes before the damage.
    """

    def row_of(key: bytes | None, value: bytes | None) -> Row | None:
        if key is None and value is None:
            return None
        row: Row = {"is_tombstone": value is None}
        record: dict[str, Json] = {}
        try:
            if key is None:
                raise DamagedRecordError("the record has no key")
            row["type_id"] = topic.type_id(key)
            of_key = topic.decode_key(key)
            row |= {"type": of_key.type, "key_json": json_text(of_key.fields)}
            record["key"] = of_key.fields
            if value is not None:
                of_value = topic.decode_value(row["type_id"], value)
                row |= {"value_version": of_value.version, "value_json": json_text(of_value.fields)}
                record["value"] = of_value.fields
        except InternalTopicError as error:
            row["error"] = str(error)
        if "type" in row:
            row.update(read_fields(fields[row["type"]], record))
        return row

    return RecordFunction(name, ("key", "value"), (*FIRST_COLUMNS, *columns, *LAST_COLUMNS), row_of)
