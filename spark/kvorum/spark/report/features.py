"""Finalized feature levels at the end of the window."""

from dataclasses import dataclass

from kvorum.metadata.errors import MetadataError
from kvorum.metadata.metadata_version import METADATA_VERSION_FEATURE, metadata_version_from_level
from kvorum.spark.report.conditions import after
from kvorum.spark.report.tables_directory import ClusterTables
from kvorum.spark.report.time_window import TimeWindow


@dataclass(frozen=True, slots=True)
class FeatureLevel:
    """The finalized level of a feature."""

    feature: str
    text: str


def level_text(feature: str, level: int) -> str:
    """Return a level as Kafka's tools print it: 4.3-IV0 of metadata.version, else the number.

    A level of no known release is a number as well.
    """
    if feature != METADATA_VERSION_FEATURE or level == 0:
        return str(level)
    try:
        return metadata_version_from_level(level).text
    except MetadataError:
        return str(level)


def feature_levels(tables: ClusterTables, window: TimeWindow) -> tuple[FeatureLevel, ...]:
    """Return the features whose level is above 0 at the window's end, by name.

    They are those of the state at the end of the log, with later changes taken back.
    """
    rows = tables.read("features", ("feature", "level"))
    levels: dict[str, int] = dict(zip(rows.values("feature"), rows.values("level"), strict=True))
    columns = ("offset", "feature", "old_level")
    later = tables.read("feature_history", columns, after("time", window.end_ms))
    for change in sorted(later.dicts(*columns), key=lambda row: row["offset"], reverse=True):
        levels[change["feature"]] = change["old_level"]
    return tuple(
        FeatureLevel(name, level_text(name, level))
        for name, level in sorted(levels.items())
        if level
    )
