"""Controllers as they have registered (KIP-919)."""

from dataclasses import dataclass
from typing import Any, Final

from kvorum.metadata.metadata_version import METADATA_VERSION_FEATURE
from kvorum.spark.report.features import level_text
from kvorum.spark.report.tables_directory import ClusterTables
from kvorum.spark.report.time_window import TimeWindow

_COLUMNS: Final = (
    "controller_id",
    "incarnation_id",
    "from_offset",
    "begins_earlier",
    "endpoints",
    "features",
)


@dataclass(frozen=True, slots=True)
class ControllerFacts:
    """A controller that is registered at the window's end.

    `since_ms` is when this incarnation registered first, `begins_earlier` where that was before the
    log begins. `incarnation_count` counts the incarnations within the window. `metadata_version` is
    the highest one that it supports.
    """

    controller_id: int
    since_ms: int
    begins_earlier: bool
    incarnation_count: int
    listeners: tuple[str, ...]
    metadata_version: str


def controller_facts(tables: ClusterTables, window: TimeWindow) -> tuple[ControllerFacts, ...]:
    """Return what `controller_registrations` shows of the window, by controller."""
    rows = tables.read("controller_registrations", (*_COLUMNS, "from_time", "to_time"))
    begins, ends = rows.times_ms("from_time"), rows.times_ms("to_time")
    overlaps = window.overlaps(begins, ends)
    by_controller: dict[int, list[dict[str, Any]]] = {}
    found = rows.where(overlaps).dicts(*_COLUMNS)
    for row, begin in zip(found, begins[overlaps].tolist(), strict=True):
        by_controller.setdefault(row["controller_id"], []).append({**row, "since_ms": begin})
    return tuple(_facts_of(by_controller[each]) for each in sorted(by_controller))


def _facts_of(registrations: list[dict[str, Any]]) -> ControllerFacts:
    registrations.sort(key=lambda row: row["from_offset"])
    last = registrations[-1]
    first = next(row for row in registrations if row["incarnation_id"] == last["incarnation_id"])
    return ControllerFacts(
        controller_id=last["controller_id"],
        since_ms=first["since_ms"],
        begins_earlier=first["begins_earlier"],
        incarnation_count=len({row["incarnation_id"] for row in registrations}),
        listeners=tuple(
            f"{each['listener']} {each['host']}:{each['port']}" for each in last["endpoints"]
        ),
        metadata_version=next(
            (
                level_text(each["name"], each["max_level"])
                for each in last["features"]
                if each["name"] == METADATA_VERSION_FEATURE
            ),
            "-",
        ),
    )
