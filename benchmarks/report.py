"""Rows of the benchmark's report, as text and as JSON."""

import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """One figure of ours beside that of a peer; `ratio` above 1 means that ours is better.

    Less is better, unless `is_rate`.
    """

    what: str
    peer: str
    ours: float
    theirs: float
    unit: str
    is_rate: bool = False

    def shown(self, figure: float) -> str:
        """Return a figure as wide as its column, with as many digits as make sense."""
        return f"{figure:>12.{1 if self.ours >= 1 else 2}f}"

    @property
    def ratio(self) -> float:
        return self.ours / self.theirs if self.is_rate else self.theirs / self.ours


def outage_rows(
    what: str, peer: str, ours_ms: Sequence[float], theirs_ms: Sequence[float]
) -> list[Row]:
    """Return the median of as many outages as there are, and the worst one."""
    return [
        Row(f"{what}{label}", peer, of(ours_ms), of(theirs_ms), "ms")
        for label, of in ((f", of {len(ours_ms)}", statistics.median), (", worst", max))
    ]


def as_text(rows: list[Row]) -> str:
    header = f"{'what':<52} {'kvorum':>12} {'peer':>12}  {'':<4} {'ratio':>8}  beside"
    lines = [
        f"{row.what:<52} {row.shown(row.ours)} {row.shown(row.theirs)}  {row.unit:<4}"
        f" {row.ratio:>7.1f}x  {row.peer}"
        for row in rows
    ]
    return "\n".join([header, *lines])


def as_json(rows: list[Row]) -> str:
    return "\n".join(json.dumps({**asdict(row), "ratio": round(row.ratio, 2)}) for row in rows)
