"""Kafka metadata logs in Spark: a data source and the tables made from it.

Importing this package does not import pyspark: only `from kvorum.spark import KvorumMetadataSource`
needs the extra ``kvorum[spark]`` and a Java runtime; the rest of kvorum needs neither.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kvorum.spark.metadata_source import KvorumMetadataSource

__all__ = ["KvorumMetadataSource"]


def __getattr__(name: str) -> object:
    """Import the data source on first access."""
    if name == "KvorumMetadataSource":
        from kvorum.spark.metadata_source import (  # noqa: PLC0415 - pyspark is slow and optional
            KvorumMetadataSource,
        )

        return KvorumMetadataSource
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
