"""Kafka's logs in Spark: data sources, SQL functions, and the tables made from them.

Importing this package does not import pyspark: only the data sources and `kvorum.spark.functions`
need the extra ``kvorum[spark]`` and a Java runtime; the rest of kvorum needs neither.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kvorum.spark.log_source.source import KvorumLogSource
    from kvorum.spark.metadata_source.source import KvorumMetadataSource

__all__ = ["KvorumLogSource", "KvorumMetadataSource"]


def __getattr__(name: str) -> object:
    """Import a data source on first access: pyspark is slow to import, and optional."""
    if name == "KvorumLogSource":
        from kvorum.spark.log_source.source import KvorumLogSource  # noqa: PLC0415 - imports pyspark

        return KvorumLogSource
    if name == "KvorumMetadataSource":
        from kvorum.spark.metadata_source.source import KvorumMetadataSource  # noqa: PLC0415 - imports pyspark

        return KvorumMetadataSource
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
