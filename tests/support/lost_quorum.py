"""Simulated quorums that stop at a moment, and what their disks hold then."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import chain, combinations
from pathlib import Path
from random import Random

from kvorum.inspection.recovery.forecast import Forecast
from kvorum.inspection.recovery.log_facts import Committed
from kvorum.inspection.recovery.record import Operator
from kvorum.inspection.recovery.survivor import Survivor, read_survivor
from kvorum.raft.voter_set import Voter, VoterSet
from kvorum.simulation.disk import SimulatedDisk
from kvorum.simulation.faults import Fault
from kvorum.simulation.node import SimulatedNode
from kvorum.simulation.options import Options, QuorumKind, draw_options
from kvorum.simulation.surroundings import random_for
from kvorum.simulation.world import World
from kvorum.storage.files import FileSystem
from kvorum.storage.meta_properties import MetaProperties, write_meta_properties
from kvorum.storage.names import METADATA_LOG_DIRECTORY
from kvorum.wire.offset_and_epoch import OffsetAndEpoch

DURATION_MS = 60_000
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
OPERATOR = Operator(
    user="ada", host="here", command=("kvorum", "quorum", "recover"), version="1", time="2026-01-02"
)


class StoppedError(Exception):
    """The world stops here."""


def stopped_world(
    seed: int,
    at_ms: float,
    *,
    plan: tuple[Fault, ...] | None = None,
    before: Callable[[World], None] = lambda _: None,
) -> World:
    """Return a world at a moment of its run; `before` may plan events in it."""
    world = World(seed, duration_ms=DURATION_MS, plan=plan)

    def stop() -> None:
        raise StoppedError

    world.quorum.around.events.at(at_ms, stop)
    before(world)
    with suppress(StoppedError):
        world.run()
    return world


def seed_with(kind: QuorumKind, voter_count: int, *, holds: Callable[[Options], bool]) -> int:
    """Return the first seed whose world is of that kind and size."""
    for seed in range(1, 5000):
        options = draw_options(random_for(seed, "options"), duration_ms=DURATION_MS)
        if (options.kind, options.voter_count) == (kind, voter_count) and holds(options):
            return seed
    raise AssertionError("there is no such world")


def kill_all(world: World, *, random: Random) -> None:
    """End every process, some of them by a power cut."""
    for node in world.nodes.values():
        node.crash(is_power_cut=random.random() < 0.5)


def name_directories(world: World) -> None:
    """Give each disk the meta.properties of a formatted directory."""
    for node in world.nodes.values():
        properties = MetaProperties(
            cluster_id=world.cluster_id, node_id=node.node_id, directory_id=node.directory_id
        )
        files = node.disk.inspect()
        if files.exists(node.settings.directory):
            write_meta_properties(directory_of(node), properties, files, now=NOW)


def directory_of(node: SimulatedNode) -> Path:
    """Return the metadata log directory of a node."""
    return node.settings.directory.parent


def static_voters(world: World) -> VoterSet:
    """Return the voters in the configuration of a world's nodes."""
    if world.options.kind is QuorumKind.DYNAMIC:
        return VoterSet()
    voters = [node.as_voter() for node in world.nodes.values()][: world.options.voter_count]
    return VoterSet.of(
        Voter(voter.key._replace(directory_id=None), voter.endpoints) for voter in voters
    )


def read(world: World, nodes: Iterable[SimulatedNode]) -> list[Survivor]:
    """Read the directories of nodes."""
    return [
        read_survivor(directory_of(node), node.disk.inspect(), static_voters=static_voters(world))
        for node in nodes
    ]


def subsets(nodes: Sequence[SimulatedNode]) -> Iterator[tuple[SimulatedNode, ...]]:
    """Yield every subset of nodes but the empty one."""
    return chain.from_iterable(combinations(nodes, size) for size in range(1, len(nodes) + 1))


def export(node: SimulatedNode, folder: Path) -> Path:
    """Write a node's disk to real files; return its metadata log directory."""
    files = node.disk.inspect()
    target = folder / node.host
    for source, copy in (
        (directory_of(node), target),
        (node.settings.directory, target / METADATA_LOG_DIRECTORY),
    ):
        copy.mkdir(parents=True, exist_ok=True)
        for name in files.list_names(source):
            if not files.exists(source / name / "none") and name != METADATA_LOG_DIRECTORY:
                (copy / name).write_bytes(content(files, source / name))
    return target


def content(files: FileSystem, path: Path) -> bytes:
    """Return the bytes of a file."""
    file = files.open(path, read_only=True)
    return file.read_at(0, file.size())


def copied(node: SimulatedNode) -> SimulatedDisk:
    """Return an independent copy of a node's disk."""
    return node.disk.copy(Random(1))


def committed_of(survivors: Iterable[Survivor]) -> Committed:
    """Return what is known to be committed from some directories."""
    return max((one.committed for one in survivors), key=lambda known: known.end)


def keeps(forecast: Forecast, offset: int, epoch: int) -> bool:
    """Return whether an acknowledged record is kept, by the forecast."""
    return OffsetAndEpoch(offset, epoch) < forecast.kept
