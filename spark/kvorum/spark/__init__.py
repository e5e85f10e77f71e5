"""Kafka's logs in Spark: data sources, SQL functions, and the tables made from them.

Importing this package does not import pyspark: only the data sources and `kvorum.spark.functions`
need the extra ``kvorum[spark]`` and a Java runtime; the rest of kvorum needs neither.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kvorum.spark.log_source.source import KvorumLogSource
    from kvorum.spark.metadata_source.source import KvorumMetadataSource

__all__ = ["KvorumLogSource", "KvorumMetadataSource"]
_OWN_PACKAGE: Final = "kvorum"


def __getattr__(name: str) -> object:
    """Import a data source on first access: pyspark is slow to import, and optional.

    Raises ImportError with the extra to install where a package is missing.
    """
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return _imported(name)
    except ModuleNotFoundError as error:
        package, _, _ = (error.name or "").partition(".")
        if package == _OWN_PACKAGE:
            raise
        raise ImportError(
            f"{name} needs the package {package}: install kvorum with its extra 'spark'",
            name=error.name,
        ) from error


def _imported(name: str) -> object:
    if name == "KvorumLogSource":
        from kvorum.spark.log_source.source import KvorumLogSource  # noqa: PLC0415 - imports pyspark

        return KvorumLogSource
    from kvorum.spark.metadata_source.source import KvorumMetadataSource  # noqa: PLC0415 - imports pyspark

    return KvorumMetadataSource
