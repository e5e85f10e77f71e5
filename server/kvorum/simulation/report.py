"""The report over many seeds: sums, and the lines that print them."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar

from kvorum.simulation.faults import FaultKind
from kvorum.simulation.partitions import promises
from kvorum.simulation.properties.catalogue import ALL, Property
from kvorum.simulation.quorum_clients import ACKNOWLEDGED_WRITES
from kvorum.simulation.run import SeedResult

SEEDS_FOR_SHARES = 200
"""The number of seeds from which on every kind of fault must strike in `SHARE_MIN` of them."""
SHARE_MIN = 0.05


class Report(ABC):
    """The sums over all seeds of one kind of world."""

    worlds: ClassVar[str]
    """The name of such worlds."""

    def __init__(self) -> None:
        self.seeds = 0
        self.failures: list[SeedResult] = []
        self._counts: Counter[str] = Counter()
        self._fired: Counter[FaultKind] = Counter()
        self._checked: Counter[str] = Counter()

    def add(self, result: SeedResult) -> None:
        """Add one seed."""
        self.seeds += 1
        self._counts.update(result.counts)
        self._fired.update(result.faults)
        self._checked.update(result.checks)
        if result.failure is not None:
            self.failures.append(result)

    @property
    def missing(self) -> Sequence[str]:
        """Sentences on faults that struck too rarely and on properties that were never checked."""
        return ()

    @abstractmethod
    def lines(self) -> Iterator[str]:
        """Yield the report."""


class QuorumReport(Report):
    """The sums over worlds of a quorum alone."""

    worlds = "quorums"

    def __init__(self) -> None:
        super().__init__()
        self._cpu_seconds = 0.0
        self._events = 0
        self._seeds_with: Counter[FaultKind] = Counter()
        self._target_voters: Counter[str] = Counter()
        self._seeds_with_targets: Counter[str] = Counter()
        self._kinds_max = 0

    def add(self, result: SeedResult) -> None:
        """Add one seed."""
        super().add(result)
        self._cpu_seconds += result.cpu_seconds
        self._events += result.events
        struck = [kind for kind, count in result.faults.items() if count]
        self._seeds_with.update(struck)
        self._kinds_max = max(self._kinds_max, len(struck))
        self._target_voters.update(result.target_voters)
        self._seeds_with_targets.update(
            what for what, count in result.target_voters.items() if count
        )

    @property
    def missing(self) -> Sequence[str]:
        """Sentences on faults that struck too rarely and on properties that were never checked."""
        if self.seeds < SEEDS_FOR_SHARES:
            return []
        rare = [
            f"{kind.value!r} struck in {self._seeds_with[kind]} of {self.seeds} seeds"
            for kind in FaultKind
            if self._seeds_with[kind] < self.seeds * SHARE_MIN
        ]
        return rare + [
            f"{one.id} ({one.meaning}) was never checked"
            for one in ALL
            if not self._checked[one.id]
        ]

    def lines(self) -> Iterator[str]:
        """Yield the report."""
        yield f"{self.seeds} seeds, {len(self.failures)} failed"
        if not self.seeds:
            return
        yield (
            f"{self._cpu_seconds / self.seeds:.2f} s of processor time, "
            f"{self._events // self.seeds} events and "
            f"{self._counts[ACKNOWLEDGED_WRITES] // self.seeds} acknowledged writes a seed"
        )
        yield ""
        yield f"{'fault':<32}{'struck':>12}{'in seeds':>10}"
        for kind in FaultKind:
            share = self._seeds_with[kind] / self.seeds
            yield f"{kind.value:<32}{self._fired[kind]:>12}{share:>9.0%}"
        yield f"at most {self._kinds_max} kinds in one seed"
        yield ""
        yield f"{'target_voters for other voters':<32}{'happened':>12}{'in seeds':>10}"
        for what in sorted(self._target_voters):
            share = self._seeds_with_targets[what] / self.seeds
            yield f"{what:<32}{self._target_voters[what]:>12}{share:>9.0%}"
        yield ""
        yield from checked_lines(ALL, self._checked)


class BrokersReport(Report):
    """The sums over worlds with brokers."""

    worlds = "worlds of brokers"

    def lines(self) -> Iterator[str]:
        """Yield the report."""
        yield f"{self.seeds} seeds of brokers, {len(self.failures)} failed"
        controllers = {f"controllers: {one.value}": n for one, n in self._fired.items()}
        for name, count in sorted({**self._counts, **controllers}.items()):
            if count:
                yield f"  {count:>12,} {name}"
        yield from checked_lines((*ALL, *promises.ALL), self._checked)


def checked_lines(properties: Iterable[Property], counts: Mapping[str, int]) -> Iterator[str]:
    """Yield how often each property was checked, 0 for one that nothing has exercised."""
    yield f"{'property':<80}{'checked':>14}"
    for one in properties:
        yield f"{one.id:<5}{one.meaning:<75}{counts.get(one.id, 0):>14}"


def failure_lines(result: SeedResult) -> Iterator[str]:
    """Yield the failure of a seed, and the command line that repeats it."""
    yield f"seed {result.seed} failed at {result.failed_at_ms:.3f} ms: {result.failure}"
    yield f"  {result.options}"
    yield f"  again: {result.rerun}"
