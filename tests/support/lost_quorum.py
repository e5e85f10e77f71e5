"""A quorum that has lost its majority: three stories of how, and what is left on its disks."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain, combinations
from pathlib import Path
from random import Random
from typing import NamedTuple

from kvorum.inspection.recovery.plan import Forecast
from kvorum.inspection.recovery.survivor import Survivor, read_survivor
from kvorum.inspection.recovery.writing import Operator
from kvorum.raft.voter import Voter
from kvorum.raft.voter_set import VoterSet
from kvorum.simulation.disk import SimulatedDisk
from kvorum.simulation.faults import Fault
from kvorum.simulation.node import Part, SimulatedNode
from kvorum.simulation.operator import OPERATOR_ID
from kvorum.simulation.options import Options, QuorumKind, draw_options
from kvorum.simulation.surroundings import random_for
from kvorum.simulation.versions import Release
from kvorum.simulation.world import World
from kvorum.storage.files import FileSystem
from kvorum.storage.names import METADATA_LOG_DIRECTORY
from kvorum.storage.small_files.meta_properties import MetaProperties, write_meta_properties
from kvorum.wire.headers import encode_request_frame
from kvorum.wire.messages.add_raft_voter import AddRaftVoterRequest
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
    for node in world.quorum.nodes.values():
        node.crash(is_power_cut=random.random() < 0.5)


def name_directories(world: World) -> None:
    """Give each disk the meta.properties of a formatted directory."""
    for node in world.quorum.nodes.values():
        properties = MetaProperties(
            cluster_id=world.around.cluster_id, node_id=node.node_id, directory_id=node.directory_id
        )
        files = node.disk.inspect()
        if files.exists(node.settings.directory):
            write_meta_properties(directory_of(node), properties, files, now=NOW)


def directory_of(node: SimulatedNode) -> Path:
    return node.settings.directory.parent


def static_voters(world: World) -> VoterSet:
    if world.around.options.kind is QuorumKind.DYNAMIC:
        return VoterSet()
    voters = [node.as_voter() for node in world.quorum.nodes.values()][
        : world.around.options.voter_count
    ]
    return VoterSet.of(
        Voter(voter.key._replace(directory_id=None), voter.endpoints) for voter in voters
    )


def read(world: World, nodes: Iterable[SimulatedNode]) -> list[Survivor]:
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
    file = files.open(path, read_only=True)
    return file.read_at(0, file.size())


def copied(node: SimulatedNode) -> SimulatedDisk:
    return node.disk.copy(Random(1))


def keeps(forecast: Forecast, offset: int, epoch: int) -> bool:
    """Return whether an acknowledged record is kept, by the forecast."""
    return OffsetAndEpoch(offset, epoch) < forecast.kept


WRITE_EVERY_MS = 100.0
CUT_MS = 14_000.0
NEXT_CUT_MS = 20_000.0
END_MS = 24_000.0
IN_FLIGHT_MS = 600.0
"""Short enough that a leader which is cut off still leads."""
PARTIAL_SNAPSHOT = "00000000000000000003-0000000001-77.checkpoint.part"


class Acknowledged(NamedTuple):
    """A write whose commit was confirmed to its writer."""

    offset: int
    epoch: int
    value: bytes


@dataclass
class Story:
    """A world that has stopped, and the writes in it that were acknowledged."""

    world: World
    acknowledged: list[Acknowledged] = field(default_factory=list[Acknowledged])

    @property
    def voters(self) -> list[SimulatedNode]:
        """The nodes that were the voters at the beginning."""
        return [node for node in self.world.quorum.nodes.values() if node.part is Part.VOTER]


class Teller:
    """Plans the events of a world."""

    world: World

    def __init__(self) -> None:
        self.acknowledged: list[Acknowledged] = []
        self._number = 0

    def begin(self, world: World) -> None:
        """Plan everything in a world that is about to run."""
        self.world = world
        self.at(0.0, self._write)
        self.script()

    def script(self) -> None:
        """Plan what makes the story."""
        raise NotImplementedError

    def at(self, time_ms: float, callback: Callable[[], None]) -> None:
        self.world.quorum.around.events.at(time_ms, callback)

    def leader(self) -> SimulatedNode:
        """Return the node that leads the highest epoch."""
        leader = self.world.quorum.leader()
        assert leader is not None
        return leader

    def cut_off(self, node: SimulatedNode, *, keeps: Part | None = None) -> None:
        """Cut a node off from the others, but for those of one part."""
        for other in self.world.quorum.nodes.values():
            if other is not node and other.part is not keeps:
                self.world.quorum.around.network.cut(node.node_id, other.node_id)
                self.world.quorum.around.network.cut(other.node_id, node.node_id)

    def _write(self) -> None:
        """Write a value to every node that believes to lead, again and again."""
        around = self.world.quorum.around
        for node in self.world.quorum.nodes.values():
            process = node.process
            if process is not None and process.application.leading_epoch is not None:
                self._write_to(node, process.application.leading_epoch)
        around.events.after(WRITE_EVERY_MS, self._write)

    def _write_to(self, node: SimulatedNode, epoch: int) -> None:
        process = node.process
        assert process is not None
        around = self.world.quorum.around
        self._number += 1
        value = b"mine %d" % self._number
        around.properties.ledger.invoked(value, around.now_ms)

        def told(offset: int | None) -> None:
            if offset is not None:
                self.acknowledged.append(Acknowledged(offset, epoch, value))

        def propose() -> None:
            process.propose(value, told)

        process.turn(propose)


def uncommitted_tail(kind: QuorumKind, voter_count: int) -> Story:
    """The leader is cut off and goes on writing; of five, a follower is cut off later."""
    return run_story(Cutting(), kind, voter_count, END_MS)


def snapshot_in_the_making(kind: QuorumKind, voter_count: int) -> Story:
    """As before, with logs that begin at snapshots, and half of another snapshot on each disk."""
    story = run_story(
        Cutting(),
        kind,
        voter_count,
        END_MS,
        holds=lambda options: options.snapshot_every <= 15 and options.log.retention_bytes <= 2_000,
    )
    for node in story.world.quorum.nodes.values():
        files = node.disk.inspect()
        if files.exists(node.settings.directory):
            part = files.create_exclusively(node.settings.directory / PARTIAL_SNAPSHOT)
            part.write_at(0, b"half a snapsh")
    return story


def voter_change_in_flight(kind: QuorumKind, voter_count: int) -> Story:
    """The leader is cut off from the other voters, and appends a new voter that it still hears."""
    return run_story(
        Adding(), kind, voter_count, CUT_MS + IN_FLIGHT_MS, holds=lambda one: one.spare_count > 0
    )


class Cutting(Teller):
    """Cuts the leader off; later, of more than three voters, one of those who follow the next."""

    def script(self) -> None:
        self.at(CUT_MS, lambda: self.cut_off(self.leader()))
        if self.world.around.options.voter_count > 3:
            self.at(NEXT_CUT_MS, self._cut_a_follower)

    def _cut_a_follower(self) -> None:
        leader = self.leader()
        assert leader.core is not None
        epoch = leader.core.role.epoch
        following = [
            node
            for node in self.world.quorum.nodes.values()
            if node.part is Part.VOTER and node.core is not None and node.core.role.epoch == epoch
        ]
        self.cut_off(next(node for node in following if node is not leader))


class Adding(Teller):
    """Adds a voter to a leader that cannot commit."""

    def script(self) -> None:
        self.at(CUT_MS, self._add)

    def _add(self) -> None:
        leader = self.leader()
        self.cut_off(leader, keeps=Part.SPARE)
        spare = next(node for node in self.world.quorum.nodes.values() if node.part is Part.SPARE)
        around = self.world.quorum.around
        around.properties.operator_asked_to_add(spare.node_id, spare.directory_id)
        request = AddRaftVoterRequest(
            cluster_id=around.cluster_id,
            timeout_ms=30_000,
            voter_id=spare.node_id,
            voter_directory_id=spare.directory_id,
            listeners=[AddRaftVoterRequest.Listener("CONTROLLER", spare.host, 9093)],
        )
        frame = encode_request_frame(request, version=1, correlation_id=1, client_id="operator")
        self.world.quorum.carry_request(OPERATOR_ID, leader.host, frame, lambda _: None)


def run_story(
    teller: Teller,
    kind: QuorumKind,
    voter_count: int,
    end_ms: float,
    *,
    holds: Callable[[Options], bool] = lambda _: True,
) -> Story:
    """Run a story to its end, and kill every process."""

    def suits(options: Options) -> bool:
        is_plain = set(options.releases) == {Release.LATEST} and not options.auto_joins
        return is_plain and options.raft.fetch_timeout_ms >= 1_000 and holds(options)

    seed = seed_with(kind, voter_count, holds=suits)
    world = stopped_world(seed, end_ms, plan=(), before=teller.begin)
    for node in world.quorum.nodes.values():
        node.crash(is_power_cut=False)
    name_directories(world)
    return Story(world, teller.acknowledged)
