"""The make-up of a world, drawn from its seed: a quorum alone, or brokers and their quorum."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from random import Random
from typing import Final, TypeAlias

from kvorum.raft.config import RaftConfig
from kvorum.simulation.fault_plan import draw_hidden_voters, draw_plan, in_order
from kvorum.simulation.faults import Fault
from kvorum.simulation.network import Conditions, Route, Usual, always_healthy
from kvorum.simulation.options import Options, QuorumKind, draw_options
from kvorum.simulation.partitions.cluster import Cluster
from kvorum.simulation.partitions.settings import (
    CLUSTER_ID,
    END_MS,
    FAULTS_FROM_MS,
    PEACE_FROM_MS,
    SESSION_MS,
    ClusterSettings,
)
from kvorum.simulation.quorum import SimulatedQuorum
from kvorum.simulation.quorum_clients import QuorumClients
from kvorum.simulation.surroundings import random_for
from kvorum.simulation.versions import Release
from kvorum.wire.uuid_text import uuid_to_text

Inhabitants: TypeAlias = QuorumClients | Cluster
"""All that uses the quorum of a world: it begins, settles once faults have stopped, and ends."""
_PLANNED_MS: Final = 60_000
"""The time for which the faults of a quorum with brokers are planned; they strike in a tenth."""
_FAULTS_KEPT: Final = 0.25
"""With all of them brokers would have no active controller most of the time."""


class WorldKind(Enum):
    """The inhabitants that a world has."""

    QUORUM = "quorum"
    """Clients that write to the quorum itself."""
    BROKERS = "brokers"
    """Brokers, which are observers of the quorum, and their clients."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Makeup:
    """Everything of a world that is drawn before it begins."""

    options: Options
    cluster_id: str
    usual: Usual
    """The conditions of paths that no fault has changed."""
    plan: tuple[Fault, ...]
    """The faults that strike the quorum."""
    inhabit: Callable[[SimulatedQuorum], Inhabitants]
    """Returns the inhabitants of the world with this quorum."""


def draw_makeup(seed: int, kind: WorldKind, *, duration_ms: int) -> Makeup:
    """Draw the make-up of a world; one with brokers has a duration of its own."""
    if kind is WorldKind.BROKERS:
        return _draw_brokers(seed)
    return _draw_quorum_alone(seed, duration_ms)


def _draw_quorum_alone(seed: int, duration_ms: int) -> Makeup:
    options = draw_options(random_for(seed, "options"), duration_ms=duration_ms)
    plan = draw_plan(random_for(seed, "plan"), options)
    hidden = draw_hidden_voters(random_for(seed, "hidden voters of a run"), options)
    return Makeup(
        options=options,
        cluster_id=uuid_to_text(random_for(seed, "cluster").randbytes(16)),
        usual=always_healthy,
        plan=in_order((*plan, *hidden)),
        inhabit=QuorumClients,
    )


def _draw_brokers(seed: int) -> Makeup:
    random = Random(seed)  # noqa: S311 - a simulation repeats itself
    settings = ClusterSettings.draw(
        random,
        storm=random_for(seed, "storm"),
        linger=random_for(seed, "append linger"),
        coordinated=random_for(seed, "coordinated transactions"),
        consumer_group=random_for(seed, "KIP-848"),
        share_group=random_for(seed, "share coordinators"),
    )
    planned = _draw_hasty_options(random_for(seed, "options"), settings.brokers)
    controller_ids = range(1, planned.voter_count + planned.spare_count + 1)

    def usual(route: Route) -> Conditions:
        return settings.conditions(sum(one in controller_ids for one in route))

    return Makeup(
        options=replace(planned, safety_ms=PEACE_FROM_MS, liveness_ms=END_MS - PEACE_FROM_MS),
        cluster_id=CLUSTER_ID,
        usual=usual,
        plan=tuple(_draw_hasty_plan(random_for(seed, "plan"), planned)),
        inhabit=partial(Cluster, settings=settings, random=random),
    )


def _draw_hasty_options(random: Random, broker_count: int) -> Options:
    """Draw a small quorum with short timeouts, whose faults are planned for a longer time."""
    drawn = draw_options(random, duration_ms=_PLANNED_MS)
    voter_count = random.choice((1, 3, 3, 3))
    spare_count = random.choice((0, 1)) if drawn.kind is QuorumKind.DYNAMIC else 0
    count = voter_count + spare_count
    releases = tuple(drawn.releases[index % len(drawn.releases)] for index in range(count))
    raft = RaftConfig(
        fetch_snapshot_bytes_max=random.choice((4_096, 1024 * 1024)),
        election_timeout_ms=random.choice((100, 200, 300)),
        election_backoff_ms_max=random.choice((50, 200)),
        fetch_timeout_ms=random.choice((300, 600, 1_000)),
        request_timeout_ms=random.choice((300, 600)),
        fetch_bytes_max=random.choice((1_000, 4_096, 1024 * 1024)),
        fetch_wait_ms_max=100,
        shutdown_timeout_ms=500,
    )
    return replace(
        drawn,
        voter_count=voter_count,
        spare_count=spare_count,
        observer_count=0,
        broker_count=broker_count,
        releases=(*releases, *[Release.LATEST] * broker_count),
        raft=raft,
        snapshot_every=random.choice((40, 100, 400)),
        session_timeout_ms=SESSION_MS,
        client_count=0,
        starts_within_ms=0,
        safety_ms=_PLANNED_MS,
    )


def _draw_hasty_plan(random: Random, planned: Options) -> Iterable[Fault]:
    """Draw a few faults of a quorum, with the times of a world of brokers."""
    share = (PEACE_FROM_MS - FAULTS_FROM_MS) / _PLANNED_MS
    for fault in draw_plan(random, planned):
        if random.random() < _FAULTS_KEPT:
            yield replace(
                fault,
                at_ms=FAULTS_FROM_MS + int(fault.at_ms * share),
                duration_ms=int(fault.duration_ms * share) + 1,
            )
