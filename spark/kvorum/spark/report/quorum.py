"""The metadata quorum over time: epochs with their leaders, the voters, and the controllers."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from kvorum.metadata.address import Address
from kvorum.metadata.metadata_version import METADATA_VERSION_FEATURE
from kvorum.spark.report.conditions import holds_at
from kvorum.spark.report.rows import MISSING, Int64s
from kvorum.spark.report.tables_directory import ClusterTables
from kvorum.spark.report.time_window import Intervals, TimeWindow
from kvorum.spark.report.value_history import level_text

EPOCHS_MAX: Final = 30
STRIP_EPOCHS_MAX: Final = 400
"""Epochs that are drawn; of more, the latest ones."""

_COLUMNS: Final = (
    "controller_id",
    "incarnation_id",
    "from_offset",
    "begins_earlier",
    "endpoints",
    "features",
)
"""The columns of a controller's registration that the report shows."""


@dataclass(frozen=True, slots=True)
class Epoch:
    """An epoch that reaches into the window; `leader` is None where the log begins within it.

    `lost_count` epochs right before it have no record: their elections had no winner, or the
    winner wrote nothing.
    """

    epoch: int
    leader: int | None
    offset: int
    begin_ms: int
    end_ms: int
    is_open: bool
    lost_count: int
    voters: tuple[int, ...]
    granting_voters: tuple[int, ...]

    @property
    def duration_ms(self) -> int:
        """Its duration, until the end of the window where it is open."""
        return self.end_ms - self.begin_ms


@dataclass(frozen=True, slots=True)
class LeaderShare:
    """The time for which a controller led within the window, and the number of epochs."""

    leader: int | None
    epoch_count: int
    led_ms: int


@dataclass(frozen=True, slots=True)
class QuorumFacts:
    """The quorum over the window; `epochs` are the latest ones, in their order."""

    epochs: tuple[Epoch, ...]
    epoch_count: int
    election_count: int
    lost_count: int
    shares: tuple[LeaderShare, ...]
    voters: tuple[int, ...]
    kraft_version: int | None

    @property
    def current(self) -> Epoch | None:
        """The epoch at the window's end."""
        return self.epochs[-1] if self.epochs and self.epochs[-1].is_open else None


def quorum_facts(tables: ClusterTables, window: TimeWindow) -> QuorumFacts:
    """Return what `quorum_epochs` and `quorum_voters` show of the window."""
    columns = ("epoch", "leader", "from_offset", "voters", "granting_voters")
    rows = tables.read("quorum_epochs", (*columns, "from_time", "to_time"))
    rows = rows.at(np.argsort(rows.integers("epoch"), kind="stable"))
    numbers = rows.integers("epoch")
    # The first epoch of the log has none before it that could be missing.
    lost = np.diff(numbers, prepend=numbers[:1] - 1) - 1
    overlaps = window.overlaps(rows.times_ms("from_time"), rows.times_ms("to_time"))
    rows, lost = rows.where(overlaps), lost[overlaps]
    begins, ends = rows.times_ms("from_time"), rows.times_ms("to_time")
    intervals = Intervals.within(begins, ends, window)
    whole = Intervals.until_end(begins, ends, window)
    leaders = rows.integers("leader")
    first = max(0, rows.count - STRIP_EPOCHS_MAX)
    epochs = tuple(
        Epoch(
            epoch=row["epoch"],
            leader=row["leader"],
            offset=row["from_offset"],
            begin_ms=int(whole.begins[index]),
            end_ms=int(whole.ends[index]),
            is_open=bool(whole.is_open[index]),
            lost_count=int(lost[index]),
            voters=tuple(row["voters"]),
            granting_voters=tuple(row["granting_voters"]),
        )
        for index, row in enumerate(rows.part(first, rows.count).dicts(*columns), start=first)
    )
    voters, kraft_version = _voters(tables, window, epochs)
    return QuorumFacts(
        epochs=epochs,
        epoch_count=rows.count,
        election_count=int(((begins >= window.begin_ms) & (leaders != MISSING)).sum()),
        lost_count=int(lost.sum()),
        shares=_shares(leaders, intervals),
        voters=voters,
        kraft_version=kraft_version,
    )


def _shares(leaders: Int64s, intervals: Intervals) -> tuple[LeaderShare, ...]:
    """Return the leaders, the one that led longest first."""
    shares = [
        LeaderShare(
            None if leader == MISSING else int(leader),
            int((leaders == leader).sum()),
            int(intervals.lengths_ms[leaders == leader].sum()),
        )
        for leader in np.unique(leaders)
    ]
    return tuple(sorted(shares, key=lambda share: -share.led_ms))


def _voters(
    tables: ClusterTables, window: TimeWindow, epochs: tuple[Epoch, ...]
) -> tuple[tuple[int, ...], int | None]:
    """Return the voters and the kraft.version at the window's end.

    A quorum of kraft.version 0 names its voters only where it elects a leader.
    """
    columns = ("kraft_version", "voters")
    found = tables.read("quorum_voters", columns, holds_at(window.end_ms)).dicts(*columns)
    elected = epochs[-1].voters if epochs else ()
    if not found:
        return elected, None
    listed = tuple(sorted(voter["voter_id"] for voter in found[-1]["voters"]))
    return listed or elected, found[-1]["kraft_version"]


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
            f"{each['listener']} {Address(each['host'], each['port'])}"
            for each in last["endpoints"]
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
