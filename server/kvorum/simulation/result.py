"""What came of running one seed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedResult:
    """One run: its trace's hash, what fired, what was checked, and what it broke, if anything.

    `cpu_seconds` is the one thing that differs between two runs of a seed.
    """

    seed: int
    duration_ms: int
    digest: str
    options: str
    faults: Mapping[str, int]
    """How often each kind of fault struck, by its number."""
    checks: Mapping[str, int]
    """How often each property was looked at, by its number."""
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
        """The command line that does it all again."""
        return f"kvorum simulate --seed {self.seed} --duration {self.duration_ms // 1000}"
