"""The shared parts of a world: time, random generators, trace, properties, crashes at steps."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import Enum
from random import Random

from kvorum.simulation.committed_metadata import CommittedMetadata
from kvorum.simulation.events import Events
from kvorum.simulation.faults import FaultKind
from kvorum.simulation.network import Network, Usual
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
    faults: Counter[FaultKind]
    """The number of times that each kind of fault has struck."""
    step_crashes: list[StepCrash]
    """The crashes that wait for their moments."""
    committed: CommittedMetadata

    @classmethod
    def of(
        cls,
        seed: int,
        options: Options,
        cluster_id: str,
        *,
        usual: Usual,
        is_trace_kept: bool,
    ) -> Surroundings:
        """Return the shared parts of a new world, each with a generator named after it."""
        events = Events()
        faults = Counter[FaultKind]()
        trace = Trace(lambda: events.now_ms, is_kept=is_trace_kept)
        return cls(
            seed=seed,
            options=options,
            cluster_id=cluster_id,
            events=events,
            faults=faults,
            step_crashes=[],
            trace=trace,
            network=Network(events, random_for(seed, "network"), faults, trace, usual),
            properties=Properties(random_for(seed, "properties"), now_ms=lambda: events.now_ms),
            committed=CommittedMetadata(),
        )

    @property
    def now_ms(self) -> float:
        """The world's time since its beginning."""
        return self.events.now_ms

    def random_for(self, name: str) -> Random:
        """Return the random generator of one part of the world."""
        return random_for(self.seed, name)


def random_for(seed: int, name: str) -> Random:
    """Return the random generator of one part of a seed's world."""
    return Random(f"{seed}/{name}")  # noqa: S311 - to be repeatable is its use
