"""The run of one seed, and its result."""

from collections.abc import Mapping
from dataclasses import dataclass
from time import process_time

from kvorum.simulation.faults import Fault, FaultKind
from kvorum.simulation.makeup import WorldKind
from kvorum.simulation.partitions.cluster import Cluster
from kvorum.simulation.partitions.history_check import WrittenHistory
from kvorum.simulation.properties.catalogue import PropertyViolatedError
from kvorum.simulation.world import DURATION_MS, World

_NOTHING_BROKEN = "defect"
"""The `broken` of a run that ended in an error other than a broken property."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedResult:
    """One run: its trace's hash, its faults, its checks, and the property that broke, if any.

    Only `cpu_seconds` differs between two runs of a seed.
    """

    seed: int
    kind: WorldKind
    duration_ms: int
    """The time that was asked for; a world with brokers has its own."""
    digest: str
    options: str
    faults: Mapping[FaultKind, int]
    """The number of times that each kind of fault struck the quorum."""
    checks: Mapping[str, int]
    """The number of times that each property was checked, by its number."""
    target_voters: Mapping[str, int]
    """The counts of target voters that were stated, replaced, reached and so on."""
    counts: Mapping[str, int]
    """The number of times that things happened to the inhabitants."""
    events: int
    cpu_seconds: float
    broken: str | None = None
    """The number of the property that broke."""
    failure: str | None = None
    failed_at_ms: float = 0.0
    trace: tuple[str, ...] = ()
    plan: tuple[str, ...] = ()
    """The planned faults, as text."""
    histories: tuple[WrittenHistory, ...] = ()
    """The histories of the clients of brokers, if they were asked for."""

    @property
    def rerun(self) -> str:
        """The command line that repeats the run."""
        command = f"kvorum simulate --only {self.kind.value} --seed {self.seed}"
        if self.kind is WorldKind.BROKERS:
            return command
        return f"{command} --duration {self.duration_ms // 1000}"


def run_seed(
    seed: int,
    *,
    kind: WorldKind = WorldKind.QUORUM,
    duration_ms: int = DURATION_MS,
    plan: tuple[Fault, ...] | None = None,
    is_traced: bool = False,
    is_history_kept: bool = False,
) -> SeedResult:
    """Run one world and return its result; `plan` replaces the drawn faults of the quorum."""
    began = process_time()
    world = World(seed, kind=kind, duration_ms=duration_ms, plan=plan, is_trace_kept=is_traced)
    broken: str | None = None
    failure: str | None = None
    try:
        world.run()
    except PropertyViolatedError as error:
        broken, failure = error.broken.id, str(error)
    except Exception as error:  # noqa: BLE001 - every end of a seed is reported with its number
        broken, failure = _NOTHING_BROKEN, f"{type(error).__name__}: {error}"
    around = world.around
    if failure is not None:
        around.trace.say(failure)
    return SeedResult(
        seed=seed,
        kind=kind,
        duration_ms=duration_ms,
        digest=around.trace.digest,
        options=around.options.describe(),
        faults=dict(around.faults),
        checks=dict(around.properties.checks.counts),
        target_voters=dict(around.properties.reassignments.counts),
        counts=dict(world.inhabitants.counts),
        events=around.trace.said_count,
        cpu_seconds=process_time() - began,
        broken=broken,
        failure=failure,
        failed_at_ms=around.now_ms,
        trace=tuple(around.trace.lines),
        plan=tuple(fault.describe() for fault in world.plan),
        histories=_histories(world) if is_history_kept else (),
    )


def _histories(world: World) -> tuple[WrittenHistory, ...]:
    inhabitants = world.inhabitants
    return inhabitants.histories() if isinstance(inhabitants, Cluster) else ()
