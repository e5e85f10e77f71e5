"""The latest changes of configurations, ACLs, quotas, credentials, features and tokens, as text.

Values that must not be shown are not: those of sensitive keys, and those of keys that Kafka does
not define, which may be anything. Of credentials and tokens only names are in the tables.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

from kvorum.metadata.acl_codes import WILDCARD
from kvorum.metadata.errors import MetadataError
from kvorum.metadata.metadata_version import METADATA_VERSION_FEATURE, metadata_version_from_level
from kvorum.spark.report.conditions import after, during, field
from kvorum.spark.report.tables_directory import ClusterTables
from kvorum.spark.report.texts import cut_text
from kvorum.spark.report.time_window import TimeWindow

HIDDEN: Final = "(hidden)"
"""Stands for a value that may be a secret."""
CHANGES_MAX: Final = 30
"""The number of latest changes that are shown of each kind."""

_Row: TypeAlias = Mapping[str, Any]

_RESOURCE: Final = ("resource_type", "resource_name")
"""The columns that say what a value belongs to."""


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


@dataclass(frozen=True, slots=True)
class ValueChange:
    """A change of a value: of what kind, what it is about, and how it changed."""

    offset: int
    time_ms: int
    kind: str
    subject: str
    change: str


@dataclass(frozen=True, slots=True)
class ValueHistory:
    """The latest changes of one kind, latest first, and how many there are in the window."""

    kind: str
    changes: tuple[ValueChange, ...]
    count: int


def value_histories(tables: ClusterTables, window: TimeWindow) -> tuple[ValueHistory, ...]:
    """Return the latest changes in the window, by kind."""
    return tuple(_history(tables, window, kind) for kind in _KINDS)


@dataclass(frozen=True, slots=True)
class _Kind:
    name: str
    table: str
    columns: Sequence[str]
    subject: Callable[[_Row], str]
    change: Callable[[_Row], str]


def _history(tables: ClusterTables, window: TimeWindow, kind: _Kind) -> ValueHistory:
    # Offsets first: texts are read of the latest rows only.
    offsets = tables.read(kind.table, ("offset",), during("time", window)).integers("offset")
    latest = np.sort(offsets)[-CHANGES_MAX:]
    if len(latest) == 0:
        return ValueHistory(kind.name, (), 0)
    where = during("time", window) & (field("offset") >= int(latest[0]))
    rows = tables.read(kind.table, ("offset", "time", *kind.columns), where)
    times = rows.times_ms("time").tolist()
    changes = [
        ValueChange(row["offset"], time, kind.name, kind.subject(row), kind.change(row))
        for row, time in zip(rows.dicts("offset", *kind.columns), times, strict=True)
    ]
    changes.sort(key=lambda change: change.offset, reverse=True)
    return ValueHistory(kind.name, tuple(changes[:CHANGES_MAX]), len(offsets))


def _resource(row: _Row) -> str:
    name: str = row["resource_name"]
    return f"{row['resource_type'].lower()} {name or '(all)'}"


def _config_change(row: _Row) -> str:
    old, new = (_config_value(row, row[each]) for each in ("old_value", "new_value"))
    reason = " with its topic" if row["is_topic_deleted"] else ""
    return f"{row['name']}: {old} → {new}{reason}"


def _config_value(row: _Row, value: str | None) -> str:
    if value is None:
        return "unset"
    # A key that Kafka does not define has no known sensitivity.
    return cut_text(value) if row["is_sensitive"] is False else HIDDEN


def _acl_subject(row: _Row) -> str:
    prefixed = "*" if row["pattern_type"] == "PREFIXED" else ""
    return f"{row['resource_type'].lower()} {row['resource_name']}{prefixed}"


def _acl_change(row: _Row) -> str:
    rule = f"{row['permission_type']} {row['operation']} for {row['principal']}"
    where = "" if row["host"] == WILDCARD else f" from {row['host']}"
    return f"{row['action']}: {rule}{where}"


def _quota_subject(row: _Row) -> str:
    entity = [(part["entity_type"], part["entity_name"]) for part in row["entity"]]
    return ", ".join(f"{kind} {'(default)' if name is None else name}" for kind, name in entity)


def _quota_change(row: _Row) -> str:
    old, new = (_number(row[each]) for each in ("old_value", "new_value"))
    return f"{row['key']}: {old} → {new}"


def _number(value: float | None) -> str:
    return "unset" if value is None else f"{value:,.15g}"


def _feature_change(row: _Row) -> str:
    old, new = (level_text(row["feature"], row[each]) for each in ("old_level", "new_level"))
    return f"{old} → {new}"


_KINDS: Final = (
    _Kind(
        "configuration",
        "config_history",
        (*_RESOURCE, "name", "old_value", "new_value", "is_sensitive", "is_topic_deleted"),
        _resource,
        _config_change,
    ),
    _Kind(
        "ACL",
        "acl_history",
        (*_RESOURCE, "action", "pattern_type", "principal", "host", "operation", "permission_type"),
        _acl_subject,
        _acl_change,
    ),
    _Kind(
        "quota",
        "quota_history",
        ("entity", "key", "old_value", "new_value"),
        _quota_subject,
        _quota_change,
    ),
    _Kind(
        "feature",
        "feature_history",
        ("feature", "old_level", "new_level"),
        lambda row: str(row["feature"]),
        _feature_change,
    ),
    _Kind(
        "SCRAM credential",
        "scram_history",
        ("action", "user", "mechanism", "iterations"),
        lambda row: f"user {row['user']}",
        lambda row: f"{row['action']}: {row['mechanism']}, {row['iterations']:,} iterations",
    ),
    _Kind(
        "delegation token",
        "delegation_token_history",
        ("action", "owner"),
        lambda row: f"owner {row['owner']}",
        lambda row: str(row["action"]),
    ),
)
