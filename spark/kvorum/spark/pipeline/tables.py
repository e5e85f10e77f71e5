"""All tables of the output, by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from kvorum.spark.history import HISTORY_TABLES, STATE_TABLES
from kvorum.spark.pipeline.own_tables import OWN_TABLES

RECORDS: Final = "records"
RUNS: Final = "runs"
ROW_TYPES: Final[Mapping[str, type[Any]]] = MappingProxyType(
    {**HISTORY_TABLES, **STATE_TABLES, **OWN_TABLES}
)
"""The type of the rows of every table but that of records."""
ALL_TABLES: Final = (RECORDS, *ROW_TYPES)
