"""A simulated node: its state that outlives its processes, and the faults that may strike it."""

from collections.abc import Callable
from dataclasses import replace
from enum import Enum
from pathlib import Path

from kvorum.metadata.address import Address
from kvorum.node.outbound.client_connection import NobodyListensError
from kvorum.node.raft.control_records import voters_record_of
from kvorum.node.raft.settings import RaftSettings
from kvorum.raft import Destination, Endpoint, RaftCore, ReplicaKey, Voter, VoterSet
from kvorum.raft.roles import Role
from kvorum.simulation.disk import SimulatedDisk
from kvorum.simulation.disk_faults import CrashedError
from kvorum.simulation.events import NodeClock
from kvorum.simulation.faults import FaultKind
from kvorum.simulation.network import OnReply
from kvorum.simulation.options import QuorumKind
from kvorum.simulation.process import Neighbours, Process
from kvorum.simulation.properties.catalogue import PropertyViolatedError
from kvorum.simulation.surroundings import Surroundings
from kvorum.simulation.trace import role_text
from kvorum.simulation.versions import Release
from kvorum.storage.errors import StorageError
from kvorum.storage.metadata_log.bootstrap_checkpoint import write_bootstrap_snapshot
from kvorum.storage.metadata_log.metadata_log import MetadataLog

LISTENER = "CONTROLLER"
PORT = 9093
FAILURE_RESTART_MS = 3_000.0
SYNC_OF_MUCH = "sync of much"
"""A sync of a file that has at least `MUCH_BYTES` to lose, so that a write can be torn."""
MUCH_BYTES = 1_024


class Part(Enum):
    """The part of a node in the quorum."""

    VOTER = "voter"
    SPARE = "spare"
    OBSERVER = "observer"
    BROKER = "broker"
    """An observer that begins and ends with the broker on its machine."""


def host_of(node_id: int) -> str:
    """Return the host name of a node."""
    return f"node-{node_id}"


class SimulatedNode:
    """One machine with its disk and clock, and the process on it while one runs."""

    def __init__(
        self,
        around: Surroundings,
        *,
        neighbours: Neighbours,
        node_id: int,
        part: Part,
        release: Release,
    ) -> None:
        self._around = around
        self._neighbours = neighbours
        self.node_id = node_id
        self.part = part
        self.release = release
        self.host = host_of(node_id)
        self.port = PORT
        self.clock = NodeClock(around.events)
        self.random = around.random_for(f"node/{node_id}")
        self.disk = SimulatedDisk(
            around.random_for(f"disk/{node_id}"), before_call=self._before_call, note=self._note
        )
        self.directory_id = self.random.randbytes(16)
        self.settings = self._settings()
        self.start_count = 0
        self.process: Process | None = None
        self.is_paused = False
        # Whether its machine can answer that no process listens: not after a power cut.
        self.is_host_up = True
        self.on_failure: Callable[[Exception], None] | None = None
        """Called once a process has ended by its disk, in place of another start."""
        # Called with each request to a hidden node, which vanishes without an error.
        self._on_vanished: Callable[[bytes], None] | None = None
        # Whether durable bytes have changed or are lost; whether the node may never run again.
        self.is_damaged = False
        self.is_barred = False
        self.calls_until_crash: int | None = None
        self.crashing_operation: str | None = None
        self.crash_is_power_cut = False
        self.restart_after_ms = FAILURE_RESTART_MS
        self.last_voters = VoterSet()
        self._traced_role: Role | None = None
        self._traced_log_start = 0

    @property
    def key(self) -> ReplicaKey:
        """Its key in a voter set."""
        return ReplicaKey(self.node_id, self.directory_id)

    @property
    def can_vote(self) -> bool:
        """Whether it is a controller."""
        return self.part in {Part.VOTER, Part.SPARE}

    @property
    def core(self) -> RaftCore | None:
        """The core of its process; None where none runs."""
        return None if self.process is None else self.process.client.core

    @property
    def log(self) -> MetadataLog | None:
        """The log of its process; None where none runs."""
        return None if self.process is None else self.process.client.log

    @property
    def is_hidden(self) -> bool:
        """Whether everything that is sent to it vanishes."""
        return self._on_vanished is not None

    @property
    def is_up(self) -> bool:
        """Whether a process runs, paused or not."""
        return self.process is not None

    @property
    def voters(self) -> VoterSet:
        """The latest voters that it knows of, or knew of when it last ran."""
        return self.last_voters if self.core is None else self.core.history.voters

    def as_voter(self) -> Voter:
        """Return its entry in a voter set."""
        return Voter(self.key, (Endpoint(LISTENER, self.host, self.port),), 0, 1)

    def _settings(self) -> RaftSettings:
        around, options = self._around, self._around.options
        is_dynamic = options.kind is QuorumKind.DYNAMIC
        voter_ids = range(1, options.voter_count + 1)
        controllers = range(1, options.voter_count + options.spare_count + 1)
        return RaftSettings(
            node_id=self.node_id,
            cluster_id=around.cluster_id,
            directory_id=self.directory_id,
            directory=Path(f"/{self.host}/__cluster_metadata-0"),
            can_vote=self.can_vote,
            controller_listener=LISTENER,
            local_listeners=(Endpoint(LISTENER, self.host, self.port),) if self.can_vote else (),
            static_voters=()
            if is_dynamic
            else tuple(Destination(one, host_of(one), PORT) for one in voter_ids),
            bootstrap_servers=tuple(Address(host_of(one), PORT) for one in controllers)
            if is_dynamic
            else (),
            raft=replace(options.raft, auto_join=options.auto_joins and self.can_vote),
            log=options.log,
        )

    def format(self, voters: VoterSet) -> None:
        """Write the first snapshot of a dynamic quorum, as formatting a directory does."""
        write_bootstrap_snapshot(
            self.settings.directory,
            self.disk.inspect(),
            kraft_version=1,
            voters=voters_record_of(voters),
            now_ms=self.clock.wall_ms(),
        )

    # --- starting and ending ---

    def start(self) -> None:
        """Start a process, unless one runs or the node may never run again."""
        if self.process is not None or self.is_barred:
            return
        around = self._around
        self.is_host_up = True
        around.properties.node_starts(self)
        self.start_count += 1
        try:
            process = Process(self, around=around, neighbours=self._neighbours)
        except CrashedError:
            self._crash_while_starting()
            return
        except StorageError as error:
            self._refuse(error)
            return
        self.process = process
        self._traced_role = None
        self._traced_log_start = process.client.log.log_start_offset
        around.trace.say(f"{self.node_id} starts ({process.client.log.log_end_offset} records)")
        around.properties.node_started(self)
        process.begin()

    def _crash_while_starting(self) -> None:
        around = self._around
        around.faults[FaultKind.CRASH_POINT] += 1
        around.trace.say(f"{self.node_id} crashes while it starts")
        self._forget_crash_points()
        self.is_host_up = not self.crash_is_power_cut
        self.disk.crash(is_power_cut=self.crash_is_power_cut)
        around.properties.node_crashes(self)
        around.events.after(self.restart_after_ms, self.start)

    def _refuse(self, error: StorageError) -> None:
        around = self._around
        around.trace.say(f"{self.node_id} does not start: {error}")
        around.properties.node_refused_to_start(self, error)
        self.disk.crash(is_power_cut=False)
        if not self.is_damaged:
            around.events.after(FAILURE_RESTART_MS, self.start)

    def crash_here(self) -> None:
        """End the process at its crash point, in the middle of an action."""
        self._around.faults[FaultKind.CRASH_POINT] += 1
        self.crash(is_power_cut=self.crash_is_power_cut)
        self._around.events.after(self.restart_after_ms, self.start)

    def crash_and_restart(self, *, is_power_cut: bool, restart_ms: float) -> None:
        """End the process, and start another one after a while."""
        self.crash(is_power_cut=is_power_cut)
        self._around.events.after(restart_ms, self.start)

    def crash(self, *, is_power_cut: bool, is_scattering: bool = False) -> None:
        """End the process without a shutdown; a power cut ends the machine with it."""
        if self.process is None:
            return
        how = "loses power" if is_power_cut else "is killed"
        self._around.trace.say(f"{self.node_id} {how}")
        self._end(is_power_cut=is_power_cut, is_scattering=is_scattering)
        if is_scattering:
            self.is_damaged = True

    def stop(self, then: Callable[[], None]) -> None:
        """End the process as an operator does; then call back."""
        process = self.process
        if process is None or process.is_stopping:
            return
        self._around.trace.say(f"{self.node_id} is stopped")

        def closed() -> None:
            self._end(is_power_cut=False)
            then()

        process.turn(lambda: process.stop(closed))

    def _end(self, *, is_power_cut: bool, is_scattering: bool = False) -> None:
        process = self.process
        if process is None:
            return
        self.last_voters = self.voters
        self._around.properties.node_crashes(self)
        process.die()
        self.process = None
        self.is_paused = False
        self.is_host_up = not is_power_cut
        self._forget_crash_points()
        self.disk.crash(is_power_cut=is_power_cut, is_scattering=is_scattering)
        if self.is_host_up:
            self._neighbours.process_ended(self.node_id)

    def wipe(self, *, keeps_directory_id: bool = False) -> None:
        """Replace the disk by an empty one; the process must have ended."""
        self.disk.wipe()
        if not keeps_directory_id:
            self.directory_id = self.random.randbytes(16)
            self.settings = self._settings()
        self.is_damaged = False
        self._around.properties.node_wiped(self)

    # --- addresses ---

    def hide(self, on_vanished: Callable[[bytes], None]) -> None:
        """Move it to another port, at which nothing arrives; the process must have ended.

        Its next process sends requests as before, and reports the port. `on_vanished` is called
        with each request to it.
        """
        self.port += 1
        self.settings = self._settings()
        self._on_vanished = on_vanished

    def show(self) -> None:
        """Let requests arrive at its port again."""
        self._on_vanished = None

    # --- pauses ---

    def pause(self) -> None:
        """Pause the process."""
        if self.process is not None and not self.is_paused:
            self.is_paused = True
            self._around.trace.say(f"{self.node_id} is paused")
            self._around.properties.node_paused(self)

    def resume(self) -> None:
        """Resume the process where it was paused."""
        if self.is_paused:
            self.is_paused = False
            self._around.trace.say(f"{self.node_id} goes on")
            self._around.properties.node_resumed(self)
            if self.process is not None:
                self.process.resume()

    # --- requests, events and faults ---

    def take_request(self, frame: bytes, respond: OnReply) -> None:
        """Hand a request to the process; it vanishes where the node is hidden or has no power."""
        process = self.process
        if self._on_vanished is not None:
            self._on_vanished(frame)
        elif process is not None:
            process.turn(lambda: process.deliver(frame, respond))
        elif self.is_host_up:
            respond(NobodyListensError(f"nobody listens at {self.host}"))

    def look(self) -> None:
        """Check and trace the node after one of its events."""
        process = self.process
        if process is None:
            return
        self._around.properties.after_event(self)
        core = process.client.core
        if not process.has_been_voter and core.is_voter and _are_voters_committed(core):
            process.has_been_voter = True
        role = core.role
        if role is not self._traced_role:
            self._traced_role = role
            self._around.trace.say(f"{self.node_id} is {role_text(role)}")
        start_offset = process.client.log.log_start_offset
        if start_offset != self._traced_log_start:
            # The log was cleaned, or replaced by a snapshot.
            self._traced_log_start = start_offset
            self._around.trace.say(f"{self.node_id} keeps its log from {start_offset}")
        if process.client.failure is not None:
            self._fail(process.client.failure)

    def _fail(self, failure: Exception) -> None:
        if isinstance(failure, PropertyViolatedError):
            raise failure
        self._around.trace.say(f"{self.node_id} stops itself: {failure}")
        self._around.properties.node_failed(self, failure)
        self._end(is_power_cut=False)
        if self.on_failure is not None:
            self.on_failure(failure)
        elif not self.is_damaged:
            self._around.events.after(FAILURE_RESTART_MS, self.start)

    def set_crash_point(
        self,
        *,
        disk_calls: int | None,
        operation: str | None,
        sends: int | None,
        is_power_cut: bool,
        restart_ms: float,
    ) -> None:
        """Let the node crash after so many more calls to its disk, or requests.

        With an `operation` only calls of that kind are counted.
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
        """Drop every fault that has not struck yet."""
        self._forget_crash_points()
        if self.process is not None:
            self.process.sends_until_crash = None
        self.disk.forget_faults()

    def _before_call(self, operation: str, path: Path) -> None:
        if self.calls_until_crash is None or not self._is_crashing_operation(operation, path):
            return
        self.calls_until_crash -= 1
        if self.calls_until_crash < 0:
            self._around.trace.say(f"{self.node_id} crashes before: {operation} {path.name}")
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

    def _note(self, fault: FaultKind, text: str) -> None:
        self._around.faults[fault] += 1
        self._around.trace.say(f"{self.node_id} {fault.name.lower().replace('_', ' ')}: {text}")
        self._around.properties.disk_fault(self, fault)


def _are_voters_committed(core: RaftCore) -> bool:
    offset, known = core.history.voters_offset, core.high_watermark
    return offset is not None and known is not None and offset < known
