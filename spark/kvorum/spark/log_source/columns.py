"""The columns of the table of records, with their types."""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa

from kvorum.log_files.find import LogFile
from kvorum.spark.arrow_types import TIMESTAMP
from kvorum.spark.source_options import known_names

HEADERS: Final[Any] = pa.list_(
    pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
)
DAMAGE: Final = "damage"

ARROW_TYPES: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "path": pa.string(),
        "cluster_id": pa.string(),
        "node_id": pa.int32(),
        "topic": pa.string(),
        "partition": pa.int32(),
        "offset": pa.int64(),
        "leader_epoch": pa.int32(),
        "timestamp": TIMESTAMP,
        "timestamp_type": pa.string(),
        "key": pa.binary(),
        "value": pa.binary(),
        "headers": HEADERS,
        "compression": pa.string(),
        "producer_id": pa.int64(),
        "producer_epoch": pa.int16(),
        "sequence": pa.int32(),
        "transaction": pa.string(),
        "control_type": pa.string(),
        DAMAGE: pa.string(),
    }
)
"""Every column, in order. They are described in docs/spark/README.md."""

FILE_VALUES: Final[Mapping[str, Callable[[LogFile], Any]]] = MappingProxyType(
    {
        "path": lambda file: file.path,
        "cluster_id": lambda file: file.cluster_id,
        "node_id": lambda file: file.node_id,
        "topic": lambda file: file.topic,
        "partition": lambda file: file.partition,
    }
)
"""The columns that are the same for all records of a file."""


def columns_named(names: Iterable[str]) -> tuple[str, ...]:
    """Return the columns; `OptionError` for an unknown or repeated name, or for none."""
    return known_names(names, ARROW_TYPES, ", ".join(ARROW_TYPES))


def types_of(columns: Iterable[str]) -> dict[str, Any]:
    """Return the types of columns by name, in their order."""
    return {name: ARROW_TYPES[name] for name in columns}
