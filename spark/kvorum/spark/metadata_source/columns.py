"""The columns of the table: names, types, and what they are filled from."""

from collections.abc import Iterable, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import pyarrow as pa

from kvorum.log_files.find import LogFile
from kvorum.spark.arrow_types import INT, INTS, LONG, TEXT, TIMESTAMP
from kvorum.spark.columnar.body_columns import BodyColumn
from kvorum.spark.metadata_source.record_types import (
    NUMBERS,
    SUBJECT_FIELDS,
    message_classes,
    struct_type,
)
from kvorum.spark.source_options import known_names

DAMAGE: Final = "damage"
JSON: Final = "json"


class Origin(Enum):
    """The source of a column's values; the later, the more work."""

    FILE = "file"
    DAMAGE = "damage"
    BATCH = "batch"
    FRAME = "frame"
    BODY = "body"
    MESSAGE = "message"


class Column(NamedTuple):
    """A column of the table."""

    name: str
    type: pa.DataType
    origin: Origin

    @property
    def body(self) -> BodyColumn:
        """The column as the reader of record bodies takes it."""
        fields = {
            NUMBERS[name]: fields[self.name]
            for name, fields in SUBJECT_FIELDS.items()
            if name in NUMBERS and self.name in fields
        }
        return BodyColumn(self.name, self.type, fields)


DEFAULT_COLUMNS: Final = (
    Column("path", TEXT, Origin.FILE),
    Column("cluster_id", TEXT, Origin.FILE),
    Column("node_id", INT, Origin.FILE),
    Column("file_kind", TEXT, Origin.FILE),
    Column("offset", LONG, Origin.BATCH),
    Column("epoch", INT, Origin.BATCH),
    Column("timestamp", TIMESTAMP, Origin.FRAME),
    Column("record_kind", TEXT, Origin.BATCH),
    Column("type", TEXT, Origin.FRAME),
    Column("version", INT, Origin.FRAME),
    Column("topic_name", TEXT, Origin.BODY),
    Column("topic_id", TEXT, Origin.BODY),
    Column("partition_id", INT, Origin.BODY),
    Column("broker_id", INT, Origin.BODY),
    Column("resource_type", INT, Origin.BODY),
    Column("resource_name", TEXT, Origin.BODY),
    Column("name", TEXT, Origin.BODY),
    Column("leader", INT, Origin.BODY),
    Column("isr", INTS, Origin.BODY),
    Column("replicas", INTS, Origin.BODY),
    Column("leader_epoch", INT, Origin.BODY),
    Column("partition_epoch", INT, Origin.BODY),
    Column(DAMAGE, TEXT, Origin.DAMAGE),
)
JSON_COLUMN: Final = Column(JSON, TEXT, Origin.MESSAGE)
STRUCT_COLUMNS: Final = tuple(
    Column(name.lower(), struct_type(kind), Origin.MESSAGE)
    for name, kind in message_classes().items()
)
COLUMNS: Final[Mapping[str, Column]] = MappingProxyType(
    {column.name: column for column in (*DEFAULT_COLUMNS, JSON_COLUMN, *STRUCT_COLUMNS)}
)


def columns_named(names: Iterable[str]) -> tuple[Column, ...]:
    """Return the columns; `OptionError` for an unknown or repeated name, or for none."""
    usual = ", ".join(column.name for column in (*DEFAULT_COLUMNS, JSON_COLUMN))
    described = f"{usual}, and one struct for each type of record, such as partition_record"
    return tuple(COLUMNS[name] for name in known_names(names, COLUMNS, described))


def types_of(columns: Iterable[Column]) -> dict[str, Any]:
    """Return the types of columns by name, in their order."""
    return {column.name: column.type for column in columns}


def file_values(file: LogFile) -> dict[str, str | int | None]:
    """Return the columns that are the same for all records of a file."""
    return {
        "path": file.path,
        "cluster_id": file.cluster_id,
        "node_id": file.node_id,
        "file_kind": file.kind.value,
    }
