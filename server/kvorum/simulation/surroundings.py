"""The shared parts of a world: time, random generators, trace, properties, crashes at steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from random import Random

from kvorum.simulation.events import Events
from kvorum.simulation.faults import FaultCounter, FaultKind
from kvorum.simulation.network import Network
from kvorum.simulation.options import Options
from kvorum.simulation.properties.watch import Properties
from kvorum.simulation.trace import Trace


class StepMoment(Enum):
    """A moment at which a leader may crash that works towards other voters."""

    ADDITION_WRITTEN = "a new voter is in its log"
    ADDITION_COMMITTED = "a new voter is committed"
    REMOVAL_WRITTEN = "a removal is in its log"
    REMOVAL_COMMITTED = "a removal is committed"
    HANDED_OVER = "it has resigned"
    TARGETS_CLEARED = "the end of the target voters is in its log"


@dataclass(frozen=True, slots=True)
class StepCrash:
    """A crash of the leader that reaches a moment, and the time until it starts again."""

    moment: StepMoment
    is_power_cut: bool
    restart_ms: float


class StepCrashes:
    """The crashes of a world that wait for their moments."""

    def __init__(self) -> None:
        self._waiting: list[StepCrash] = []

    def add(self, crash: StepCrash) -> None:
        """Let the next leader crash that reaches the moment."""
        self._waiting.append(crash)

    def take(self, moment: StepMoment) -> StepCrash | None:
        """Return a crash that waits for a moment, which waits no longer; None without one."""
        found = next((crash for crash in self._waiting if crash.moment is moment), None)
        if found is not None:
            self._waiting.remove(found)
        return found

    def forget(self) -> None:
        """Let no process crash any more."""
        self._waiting.clear()


def _ignore(offset: int, value: bytes) -> None:
    del offset, value


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Everything of a world except the nodes, the clients and the injectors of faults."""

    seed: int
    options: Options
    cluster_id: str
    events: Events
    trace: Trace
    network: Network
    properties: Properties
    faults: FaultCounter
    step_crashes: StepCrashes
    on_record: Callable[[int, bytes], None]
    """Called with the offset and the value of each record that a node applies."""

    @classmethod
    def of(
        cls,
        seed: int,
        options: Options,
        cluster_id: str,
        *,
        events: Events,
        is_trace_kept: bool,
        on_record: Callable[[int, bytes], None] = _ignore,
    ) -> Surroundings:
        """Return the shared parts of a new world, each with a generator named after it."""
        faults = FaultCounter()
        return cls(
            seed=seed,
            options=options,
            cluster_id=cluster_id,
            events=events,
            faults=faults,
            step_crashes=StepCrashes(),
            trace=Trace(lambda: events.now_ms, is_kept=is_trace_kept),
            network=Network(events, random_for(seed, "network"), note=faults.count),
            properties=Properties(random_for(seed, "properties"), now_ms=lambda: events.now_ms),
            on_record=on_record,
        )

    @property
    def now_ms(self) -> float:
        """The world's time since its beginning."""
        return self.events.now_ms

    def random_for(self, name: str) -> Random:
        """Return the random generator of one part of the world."""
        return random_for(self.seed, name)

    def count(self, kind: FaultKind) -> None:
        """Note that a fault has struck."""
        self.faults.count(kind)


def random_for(seed: int, name: str) -> Random:
    """Return the random generator of one part of a seed's world."""
    return Random(f"{seed}/{name}")  # noqa: S311 - to be repeatable is its use
