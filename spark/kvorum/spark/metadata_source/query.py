"""The columns and rows that a query wants, and how it treats damage."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from kvorum.spark.damage_modes import Mode
from kvorum.spark.metadata_source.columns import Column
from kvorum.spark.metadata_source.filters import RowFilter


class Query(NamedTuple):
    """The wanted part of a range."""

    columns: tuple[Column, ...]
    row_filter: RowFilter
    mode: Mode
    file_system_options: Mapping[str, Any]
