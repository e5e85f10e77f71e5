"""The shared parts of a world: its time, its random generators, its trace and its properties."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from kvorum.simulation.events import Events
from kvorum.simulation.fault_kinds import FaultCounter, FaultKind
from kvorum.simulation.network import Network
from kvorum.simulation.options import Options
from kvorum.simulation.properties.watch import Properties
from kvorum.simulation.step_crashes import StepCrashes
from kvorum.simulation.trace import Trace


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
