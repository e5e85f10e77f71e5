"""Adds up what many seeds did, and says it in lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from kvorum.simulation.properties.catalogue import ALL
from kvorum.simulation.result import SeedResult

FAULT_NAMES = {
    "F1": "messages lost",
    "F2": "messages doubled",
    "F3": "messages reordered",
    "F4": "paths clogged",
    "F5": "partitions",
    "F6": "one-way partitions",
    "F7": "connections reset",
    "F8": "crashes",
    "F9": "restarts",
    "F10": "pauses",
    "F11": "clocks drifting, jumping",
    "F12": "unsynced tails lost",
    "F13": "torn writes",
    "F14": "renames lost",
    "F15": "failed syncs",
    "F16": "writes refused",
    "F17": "bits flipped",
    "F18": "disks wiped",
    "F19": "mixed versions, upgrades",
    "F20": "voters changed",
}
SEEDS_FOR_SHARES = 200
"""From how many seeds on every kind of fault has to strike in its share of them."""
SHARE_MIN = 0.05


class Report:
    """The sums over all seeds."""

    def __init__(self) -> None:
        self.seeds = 0
        self.failures: list[SeedResult] = []
        self.cpu_seconds = 0.0
        self.events = 0
        self.acknowledged_writes = 0
        self._fired: Counter[str] = Counter()
        self._seeds_with: Counter[str] = Counter()
        self._checked: Counter[str] = Counter()
        self._kinds_max = 0

    def add(self, result: SeedResult) -> None:
        """Add one seed."""
        self.seeds += 1
        self.cpu_seconds += result.cpu_seconds
        self.events += result.events
        self.acknowledged_writes += result.acknowledged_writes
        self._fired.update(result.faults)
        struck = [kind for kind, count in result.faults.items() if count]
        self._seeds_with.update(struck)
        self._kinds_max = max(self._kinds_max, len(struck))
        self._checked.update(result.checks)
        if result.failure is not None:
            self.failures.append(result)

    @property
    def missing(self) -> list[str]:
        """What should have struck or been looked at, and was not often enough, in sentences."""
        if self.seeds < SEEDS_FOR_SHARES:
            return []
        rare = [
            f"{kind} ({name}) struck in {self._seeds_with[kind]} of {self.seeds} seeds"
            for kind, name in FAULT_NAMES.items()
            if self._seeds_with[kind] < self.seeds * SHARE_MIN
        ]
        unseen = [
            f"{one.id} ({one.meaning}) was never checked"
            for one in ALL
            if not self._checked[one.id]
        ]
        return rare + unseen

    def lines(self) -> Iterator[str]:
        """Yield the report."""
        yield f"{self.seeds} seeds, {len(self.failures)} failed"
        if not self.seeds:
            return
        yield (
            f"{self.cpu_seconds / self.seeds:.2f} s of processor time, "
            f"{self.events // self.seeds} events and "
            f"{self.acknowledged_writes // self.seeds} acknowledged writes a seed"
        )
        yield ""
        yield f"{'fault':<32}{'struck':>12}{'in seeds':>10}"
        for kind, name in FAULT_NAMES.items():
            share = self._seeds_with[kind] / self.seeds
            yield f"{kind:<5}{name:<27}{self._fired[kind]:>12}{share:>9.0%}"
        yield f"at most {self._kinds_max} kinds in one seed"
        yield ""
        yield f"{'property':<80}{'checked':>14}"
        for one in ALL:
            yield f"{one.id:<5}{one.meaning:<75}{self._checked[one.id]:>14}"


def failure_lines(result: SeedResult) -> Iterator[str]:
    """Yield what broke in a seed, and how to see it again."""
    yield f"seed {result.seed} failed at {result.failed_at_ms:.3f} ms: {result.failure}"
    yield f"  {result.options}"
    yield f"  again: {result.rerun}"
