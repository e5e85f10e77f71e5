"""The result of running one seed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kvorum.simulation.fault_kinds import FaultKind


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedResult:
    """One run: its trace's hash, its faults, its checks, and the property that broke, if any.

    Only `cpu_seconds` differs between two runs of a seed.
    """

    seed: int
    duration_ms: int
    digest: str
    options: str
    faults: Mapping[FaultKind, int]
    """The number of times that each kind of fault struck."""
    checks: Mapping[str, int]
    """The number of times that each property was checked, by its number."""
    target_voters: Mapping[str, int]
    """The counts of target voters that were stated, replaced, reached and so on."""
    acknowledged_writes: int
    events: int
    cpu_seconds: float
    broken: str | None = None
    """The number of the property that broke."""
    failure: str | None = None
    failed_at_ms: float = 0.0
    trace: tuple[str, ...] = ()
    plan: tuple[str, ...] = field(default=())
    """The planned faults, as text."""

    @property
    def rerun(self) -> str:
        """The command line that repeats the run."""
        seconds = self.duration_ms // 1000
        return f"kvorum simulate --only quorum --seed {self.seed} --duration {seconds}"
