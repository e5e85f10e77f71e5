"""A simulated node: what stays of it from process to process, and what may happen to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from kvorum.node.raft.control_records import voters_record_of
from kvorum.node.raft.settings import Address, ListenerAddress, RaftSettings, StaticVoter
from kvorum.raft import Endpoint, RaftCore, ReplicaKey, Voter, VoterSet
from kvorum.raft.roles import Role
from kvorum.simulation.clock import NodeClock
from kvorum.simulation.disk import SimulatedDisk
from kvorum.simulation.disk_faults import CrashedError, DiskFault
from kvorum.simulation.options import QuorumKind
from kvorum.simulation.process import Process
from kvorum.simulation.properties.checks import PropertyViolatedError
from kvorum.simulation.telling import told_role
from kvorum.simulation.transport import Reply
from kvorum.simulation.versions import Release
from kvorum.storage.bootstrap_checkpoint import write_voters_checkpoint
from kvorum.storage.errors import StorageError
from kvorum.storage.log import MetadataLog

if TYPE_CHECKING:
    from kvorum.simulation.world import World

LISTENER = "CONTROLLER"
PORT = 9093
FAILURE_RESTART_MS = 3_000.0
SYNC_OF_MUCH = "sync of much"
"""A sync of a file that has at least `MUCH_BYTES` to lose, so that a write can be torn."""
MUCH_BYTES = 1_024


class Part(Enum):
    """What a node is for."""

    VOTER = "voter"
    SPARE = "spare"
    OBSERVER = "observer"


def host_of(node_id: int) -> str:
    """Return where a node listens."""
    return f"node-{node_id}"


class SimulatedNode:
    """One machine with its disk and clock, and the process that runs on it, if one does."""

    def __init__(self, world: World, *, node_id: int, part: Part, release: Release) -> None:
        self.world = world
        self.node_id = node_id
        self.part = part
        self.release = release
        self.host = host_of(node_id)
        self.clock = NodeClock(world.events)
        self.random = world.random_for(f"node/{node_id}")
        self.disk = SimulatedDisk(
            world.random_for(f"disk/{node_id}"), before_call=self._before_call, note=self._note
        )
        self.directory_id = self.random.randbytes(16)
        self.settings = self._settings()
        self.start_count = 0
        self.process: Process | None = None
        self.is_paused = False
        # Whether its machine is there to say that nobody listens: not after a power cut.
        self.is_host_up = True
        # Whether bytes that were durable have changed or gone, and whether it may never run again.
        self.is_damaged = False
        self.is_barred = False
        self.calls_until_crash: int | None = None
        self.crashing_operation: str | None = None
        self.crash_is_power_cut = False
        self.restart_after_ms = FAILURE_RESTART_MS
        self.last_voters = VoterSet()
        self._told_role: Role | None = None

    @property
    def key(self) -> ReplicaKey:
        """Who it is in a set of voters."""
        return ReplicaKey(self.node_id, self.directory_id)

    @property
    def can_vote(self) -> bool:
        """Whether it is a controller."""
        return self.part is not Part.OBSERVER

    @property
    def core(self) -> RaftCore | None:
        """The core of its process; None where none runs."""
        return None if self.process is None else self.process.driver.core

    @property
    def log(self) -> MetadataLog | None:
        """The log of its process; None where none runs."""
        return None if self.process is None else self.process.driver.log

    @property
    def is_up(self) -> bool:
        """Whether a process runs, paused or not."""
        return self.process is not None

    @property
    def voters(self) -> VoterSet:
        """The latest voters it knows of, or knew of when it last ran."""
        core = self.core
        return self.last_voters if core is None else core.history.voters

    def as_voter(self) -> Voter:
        """Return its entry in a set of voters."""
        return Voter(self.key, (Endpoint(LISTENER, self.host, PORT),), 0, 1)

    def _settings(self) -> RaftSettings:
        world, options = self.world, self.world.options
        is_dynamic = options.kind is QuorumKind.DYNAMIC
        voter_ids = range(1, options.voter_count + 1)
        controllers = range(1, options.voter_count + options.spare_count + 1)
        return RaftSettings(
            node_id=self.node_id,
            cluster_id=world.cluster_id,
            directory_id=self.directory_id,
            directory=Path(f"/{self.host}/__cluster_metadata-0"),
            can_vote=self.can_vote,
            controller_listener=LISTENER,
            local_listeners=(ListenerAddress(LISTENER, self.host, PORT),) if self.can_vote else (),
            static_voters=()
            if is_dynamic
            else tuple(StaticVoter(one, host_of(one), PORT) for one in voter_ids),
            bootstrap_servers=tuple(Address(host_of(one), PORT) for one in controllers)
            if is_dynamic
            else (),
            raft=replace(options.raft, auto_join=options.auto_joins and self.can_vote),
            log=options.log,
        )

    def format(self, voters: VoterSet) -> None:
        """Write the first snapshot of a dynamic quorum, as formatting a directory does."""
        write_voters_checkpoint(
            self.settings.directory,
            self.disk.inspect(),
            kraft_version=1,
            voters=voters_record_of(voters),
            now_ms=self.clock.wall_ms(),
        )

    # --- starting and ending ---

    def start(self) -> None:
        """Start a process, unless one runs or the node must not run any more."""
        if self.process is not None or self.is_barred:
            return
        world = self.world
        self.is_host_up = True
        world.properties.node_starts(self)
        self.start_count += 1
        try:
            process = Process(self)
        except CrashedError:
            self._crash_while_starting()
            return
        except StorageError as error:
            self._refuse(error)
            return
        self.process = process
        self._told_role = None
        world.trace.say(f"{self.node_id} starts ({process.driver.log.end_offset} records)")
        world.properties.node_started(self)
        process.begin()

    def _crash_while_starting(self) -> None:
        world = self.world
        world.count("F8")
        world.trace.say(f"{self.node_id} crashes while it starts")
        self._forget_crash_points()
        self.is_host_up = not self.crash_is_power_cut
        self.disk.crash(is_power_cut=self.crash_is_power_cut)
        world.properties.node_crashes(self)
        world.events.after(self.restart_after_ms, self.start)

    def _refuse(self, error: StorageError) -> None:
        world = self.world
        world.trace.say(f"{self.node_id} does not start: {error}")
        world.properties.node_refused_to_start(self, error)
        self.disk.crash(is_power_cut=False)
        if not self.is_damaged:
            world.events.after(FAILURE_RESTART_MS, self.start)

    def crash_here(self) -> None:
        """End at a crash point that was set, in the middle of what the process does."""
        self.world.count("F8")
        self.crash(is_power_cut=self.crash_is_power_cut)
        self.world.events.after(self.restart_after_ms, self.start)

    def crash(self, *, is_power_cut: bool, is_scattering: bool = False) -> None:
        """End the process without a word; a power cut takes the machine with it."""
        if self.process is None:
            return
        how = "loses power" if is_power_cut else "is killed"
        self.world.trace.say(f"{self.node_id} {how}")
        self._end(is_power_cut=is_power_cut, is_scattering=is_scattering)
        if is_scattering:
            self.damage()

    def stop(self, then: Callable[[], None]) -> None:
        """End the process as an operator does; then call back."""
        process = self.process
        if process is None or process.is_stopping:
            return
        self.world.trace.say(f"{self.node_id} is stopped")

        def closed() -> None:
            self._end(is_power_cut=False)
            then()

        process.turn(lambda: process.stop(closed))

    def _end(self, *, is_power_cut: bool, is_scattering: bool = False) -> None:
        process = self.process
        if process is None:
            return
        self.last_voters = self.voters
        self.world.properties.node_crashes(self)
        process.die()
        self.process = None
        self.is_paused = False
        self.is_host_up = not is_power_cut
        self._forget_crash_points()
        self.disk.crash(is_power_cut=is_power_cut, is_scattering=is_scattering)
        if self.is_host_up:
            self.world.tell_process_ended(self)

    def damage(self) -> None:
        """Note that durable bytes have changed; where nobody can replace the disk, that is all."""
        self.is_damaged = True

    def wipe(self, *, keeps_directory_id: bool = False) -> None:
        """Replace the disk by an empty one; the process must be gone."""
        self.disk.wipe()
        if not keeps_directory_id:
            self.directory_id = self.random.randbytes(16)
            self.settings = self._settings()
        self.is_damaged = False
        self.world.properties.node_wiped(self)

    # --- pauses ---

    def pause(self) -> None:
        """Let nothing happen in the process for a while."""
        if self.process is not None and not self.is_paused:
            self.is_paused = True
            self.world.trace.say(f"{self.node_id} is paused")
            self.world.properties.node_paused(self)

    def resume(self) -> None:
        """Go on where the process was paused."""
        if self.is_paused:
            self.is_paused = False
            self.world.trace.say(f"{self.node_id} goes on")
            self.world.properties.node_resumed(self)
            if self.process is not None:
                self.process.resume()

    # --- what happens to it ---

    def take_request(self, frame: bytes, respond: Callable[[Reply], None]) -> None:
        """Take in a request that has arrived; where nothing runs there is no answer from here."""
        process = self.process
        if process is not None:
            process.turn(lambda: process.deliver(frame, respond))

    def look(self) -> None:
        """Look at the node after an event of its own."""
        process = self.process
        if process is None:
            return
        self.world.properties.after_event(self)
        core = process.driver.core
        if not process.has_been_voter and core.is_voter and _are_voters_committed(core):
            process.has_been_voter = True
        role = core.role
        if role is not self._told_role:
            self._told_role = role
            self.world.trace.say(f"{self.node_id} is {told_role(role)}")
        if process.driver.failure is not None:
            self._fail(process.driver.failure)

    def _fail(self, failure: Exception) -> None:
        if isinstance(failure, PropertyViolatedError):
            raise failure
        self.world.trace.say(f"{self.node_id} stops itself: {failure}")
        self.world.properties.node_failed(self, failure)
        self._end(is_power_cut=False)
        if not self.is_damaged:
            self.world.events.after(FAILURE_RESTART_MS, self.start)

    def set_crash_point(
        self,
        *,
        disk_calls: int | None,
        operation: str | None,
        sends: int | None,
        is_power_cut: bool,
        restart_ms: float,
    ) -> None:
        """Let the node crash before a call to its disk, or a request, so many from now.

        With an `operation` only such calls are counted.
        """
        self.crash_is_power_cut = is_power_cut
        self.restart_after_ms = restart_ms
        self.calls_until_crash = disk_calls
        self.crashing_operation = operation
        if self.process is not None:
            self.process.sends_until_crash = sends

    def _forget_crash_points(self) -> None:
        self.calls_until_crash = None
        self.restart_after_ms = FAILURE_RESTART_MS

    def forget_faults(self) -> None:
        """Let nothing happen any more that was set to happen."""
        self._forget_crash_points()
        if self.process is not None:
            self.process.sends_until_crash = None
        self.disk.forget_faults()

    def _before_call(self, operation: str, path: Path) -> None:
        if self.calls_until_crash is None:
            return
        if not self._is_crashing_operation(operation, path):
            return
        self.calls_until_crash -= 1
        if self.calls_until_crash < 0:
            self.world.trace.say(f"{self.node_id} crashes before: {operation} {path.name}")
            raise CrashedError(f"before {operation}")

    def _is_crashing_operation(self, operation: str, path: Path) -> bool:
        if self.crashing_operation != SYNC_OF_MUCH:
            return self.crashing_operation in {None, operation}
        if operation != "sync":
            return False
        file = self.disk.directory_at(path.parent).names.get(path.name)
        if file is None:
            return False
        return len(file.content) - file.durable_size >= MUCH_BYTES

    def _note(self, fault: DiskFault, text: str) -> None:
        self.world.count(fault.value)
        self.world.trace.say(f"{self.node_id} {fault.name.lower().replace('_', ' ')}: {text}")
        self.world.properties.disk_fault(self, fault)


def _are_voters_committed(core: RaftCore) -> bool:
    offset, known = core.history.voters_offset, core.high_watermark
    return offset is not None and known is not None and offset < known
