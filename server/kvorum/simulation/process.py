"""One process of a simulated node: the real replica, between simulated disk and network."""

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Protocol

from kvorum.controller.settings import ControllerSettings
from kvorum.metadata.voters import recorded_target_voters
from kvorum.node.outbound.client_connection import ConnectionLostError
from kvorum.node.raft.errors import RaftStoppedError
from kvorum.node.raft.inbound_requests import Respond
from kvorum.node.raft.opened_directory import open_directory
from kvorum.node.raft.outbound_requests import PeerResult
from kvorum.node.raft.raft_client import RaftClient
from kvorum.node.raft.translation import add_raft_voter, remove_raft_voter
from kvorum.raft import NotLeaderError, OffsetAndEpoch
from kvorum.raft.effects import Send
from kvorum.raft.messages import AddRaftVoterRequest
from kvorum.simulation.application import Application, OnCommit
from kvorum.simulation.controller import Controller, is_handled
from kvorum.simulation.controller_registration import Registration
from kvorum.simulation.disk_faults import CrashedError
from kvorum.simulation.events import NodeClock
from kvorum.simulation.faults import FaultKind
from kvorum.simulation.network import OnReply
from kvorum.simulation.options import QuorumKind
from kvorum.simulation.properties.node_facts import ObservedNode
from kvorum.simulation.quorum_reassignment import QuorumReassignment
from kvorum.simulation.runtime import SimulatedRuntime
from kvorum.simulation.surroundings import StepMoment, Surroundings
from kvorum.simulation.trace import request_text, response_text
from kvorum.simulation.transport import SimulatedLinks
from kvorum.simulation.versions import Release, offered_versions
from kvorum.storage.errors import StorageError
from kvorum.wire.apis import request_class
from kvorum.wire.headers import decode_request_frame, encode_response_frame
from kvorum.wire.messages.add_raft_voter import AddRaftVoterRequest as AddRaftVoterMessage
from kvorum.wire.messages.api_versions import ApiVersionsRequest
from kvorum.wire.messages.remove_raft_voter import RemoveRaftVoterRequest
from kvorum.wire.primitives import Message


class Machine(ObservedNode, Protocol):
    """The machine of a process, as far as the process uses it."""

    @property
    def release(self) -> Release:
        """The release to whose requests it is limited."""
        ...

    @property
    def clock(self) -> NodeClock:
        """Its clock."""
        ...

    @property
    def is_paused(self) -> bool:
        """Whether its process is paused."""
        ...

    def crash_here(self) -> None:
        """End the process at its crash point, in the middle of an action."""
        ...

    def crash_and_restart(self, *, is_power_cut: bool, restart_ms: float) -> None:
        """End the process, and start another one after a while."""
        ...

    def look(self) -> None:
        """Check and trace the node after one of its events."""
        ...


class Neighbours(Protocol):
    """The other nodes, as far as a node and its process know of them."""

    def release_of(self, host: str) -> Release:
        """Return the release to whose requests the node at an address is limited."""
        ...

    def id_of(self, host: str) -> int:
        """Return the id of the node at an address."""
        ...

    def carry_request(self, sender: int, host: str, frame: bytes, reply: OnReply) -> None:
        """Carry a request to the node at an address, and its reply back."""
        ...

    def process_ended(self, node_id: int) -> None:
        """Notify every node that is connected to a process that the process has ended."""
        ...


class Process:
    """One process of a node, from its start to its end. Everything in it happens in `turn`s."""

    def __init__(self, node: Machine, *, around: Surroundings, neighbours: Neighbours) -> None:
        self.node = node
        self.is_dead = False
        self.is_stopping = False
        self.has_been_voter = False
        self.sends_until_crash: int | None = None
        self._around = around
        self._neighbours = neighbours
        self._backlog: list[Callable[[], object]] = []
        self._is_writing_snapshot = False
        name = f"process/{node.node_id}/{node.start_count}"
        self.runtime = SimulatedRuntime(
            around.events,
            node.clock,
            around.random_for(f"{name}/threads"),
            turn=self.turn,
            do_work=self._do_work,
        )
        self.application = Application(
            self._applied, on_leading=self._leading, on_record=around.committed.on_record
        )
        self.client = self._open(self._around.random_for(name))
        self.controller = Controller(
            self.client,
            self.application,
            self.runtime,
            ControllerSettings(
                node_id=node.node_id,
                cluster_id=around.cluster_id,
                session_timeout_ms=around.options.session_timeout_ms,
            ),
            self._around.random_for(f"{name}/controller"),
        )
        self.reassignment = QuorumReassignment(
            self.controller, node, around, put=self.put, reach=self.reach
        )
        self._registration = Registration(self.controller, node, self._carry)

    def _open(self, random: Random) -> RaftClient:
        """Open the directory and make its replica; raise StorageError or CrashedError."""
        node = self.node
        opened = open_directory(
            node.settings, files=node.disk.mount(), now_ms=self.runtime.wall_ms()
        )
        return RaftClient(
            node.settings,
            opened=opened,
            listener=self._around.properties.listener_for(node, self.application),
            runtime=self.runtime,
            connect=self._connect,
            random=random,
            cleaning_interval_ms=self._around.options.clean_every_ms,
        )

    def _connect(self, on_result: Callable[[int, PeerResult], None]) -> SimulatedLinks:
        self.links = SimulatedLinks(
            self.node.settings,
            self.runtime,
            release=self.node.release,
            release_of=self._neighbours.release_of,
            wire=self,
            on_result=on_result,
        )
        return self.links

    def begin(self) -> None:
        """Begin to take part in the quorum."""
        self.turn(self.client.begin)
        is_static = self._around.options.kind is QuorumKind.STATIC
        if self.node.settings.can_vote and not is_static:
            self._registration.begin()

    def while_running(self, callback: Callable[[], object]) -> None:
        """Call back now; later where the process is paused, never where it has ended."""
        if self.is_dead:
            return
        if self.node.is_paused:
            self._backlog.append(callback)
        else:
            callback()

    def turn(self, callback: Callable[[], object]) -> None:
        """Call back as one event of the node's replica and controller, as `while_running` does."""
        self.while_running(partial(self._turn, callback))

    def _turn(self, callback: Callable[[], object]) -> None:
        try:
            callback()
        except CrashedError:
            self.node.crash_here()
        else:
            self.reassignment.after_turn()
            self.node.look()

    def _do_work(self, work: Callable[[], object]) -> None:
        """Do a blocking piece of work, which must leave the core alone."""
        properties = self._around.properties
        before = properties.before_thread_piece(self.node)
        work()
        properties.after_thread_piece(self.node, before)

    def resume(self) -> None:
        """Make all calls that waited for the end of a pause."""
        backlog, self._backlog = self._backlog, []
        for callback in backlog:
            self.while_running(callback)

    # --- for the links ---

    def carry_request(self, host: str, message: Message, frame: bytes, reply: OnReply) -> None:
        """Carry a request of this process to the node at an address."""
        self._around.properties.request_sent(self.node, message)
        if self.sends_until_crash is not None:
            self.sends_until_crash -= 1
            if self.sends_until_crash < 0:
                raise CrashedError("before a request was sent")
        self._neighbours.carry_request(
            self.node.node_id, host, frame, lambda said: self.turn(lambda: reply(said))
        )

    def tell_sent(self, send: Send) -> None:
        """Write a sent request to the trace; note it where it asks to add this node as a voter."""
        if isinstance(send.request, AddRaftVoterRequest) and not self.has_been_voter:
            self._around.properties.operator_asked_to_add(self.node.node_id, self.node.directory_id)
        trace = self._around.trace
        if trace.is_kept:
            to = self._neighbours.id_of(send.destination.host)
            trace.add(f"{self.node.node_id} asks {to} {request_text(send.request)}")

    def tell_result(self, send: Send, result: PeerResult) -> None:
        """Write the result of a request to the trace."""
        trace = self._around.trace
        if trace.is_kept:
            to = self._neighbours.id_of(send.destination.host)
            trace.add(f"{self.node.node_id} hears from {to}: {response_text(result.response)}")

    # --- requests of others ---

    def deliver(self, frame: bytes, respond: OnReply) -> None:
        """Handle a request; call in a turn. `respond` is called at most once."""
        header, body = decode_request_frame(frame)
        version = header.request_api_version
        request = request_class(header.request_api_key).decode(bytes(body), version)
        properties = self._around.properties
        properties.request_arrives(self.node, request)

        def answered(said: Message | RaftStoppedError) -> None:
            if isinstance(said, RaftStoppedError):
                respond(ConnectionLostError(str(said)))
                return
            properties.response_leaves(self.node, request, said)
            respond(
                encode_response_frame(said, version=version, correlation_id=header.correlation_id)
            )

        if isinstance(request, ApiVersionsRequest):
            answered(offered_versions(self.node.release))
        elif is_handled(request):
            self.controller.handle(request, version, answered)
        elif (refusal := self._refusal_of_change(request)) is not None:
            answered(refusal)
        else:
            self._receive(request, version=version, respond=answered)

    def _refusal_of_change(self, request: Message) -> Message | None:
        """Return the refusal of a change by hand that leads away from the target voters."""
        image = self.application.image
        refusal: Message | None = None
        match request:
            case AddRaftVoterMessage():
                admit = add_raft_voter.API.admit
            case RemoveRaftVoterRequest():
                admit = remove_raft_voter.API.admit
            case _:
                return None
        if admit is not None:
            refusal = admit(image, request)
        if refusal is None:
            self._around.properties.change_admitted(
                self.node, request, self.application.next_offset
            )
        return refusal

    def put(self, request: Message, respond: Respond) -> None:
        """Put a request to this process's own replica."""
        properties = self._around.properties
        properties.request_arrives(self.node, request)

        def answered(said: Message | RaftStoppedError) -> None:
            if not isinstance(said, RaftStoppedError):
                properties.response_leaves(self.node, request, said)
            respond(said)

        self._receive(request, version=request.MAX_VERSION, respond=answered)

    def _carry(self, frame: bytes) -> None:
        """Carry a request to the leader that this process knows, if it knows one."""
        leader = self.client.leader_endpoint()
        if leader is not None:
            self._neighbours.carry_request(
                self.node.node_id, leader.host, frame, lambda _said: None
            )

    def _receive(self, request: Message, *, version: int, respond: Respond) -> None:
        listener_name = self.node.settings.controller_listener
        try:
            self.client.receive(
                request, version=version, listener_name=listener_name, respond=respond
            )
        except RaftStoppedError as error:
            respond(error)

    def propose(self, value: bytes, on_commit: OnCommit) -> bool:
        """Append a value if this process leads; `on_commit` gets the outcome. Call in a turn."""
        epoch = self.application.leading_epoch
        if epoch is None:
            return False
        try:
            offset = self.client.propose([value], epoch=epoch)
        except (NotLeaderError, RaftStoppedError):
            return False
        # This is in time: the commit needs a sync, whose completion comes in a later turn.
        self.application.wait_for(offset, epoch=epoch, on_commit=on_commit)
        return True

    def resign(self) -> None:
        """Give up leadership, as an operator may request at any time. Call in a turn."""
        if not self.client.is_stopped:
            self.client.resign(self.client.epoch)

    # --- the reassignment of the quorum ---

    def _applied(self) -> None:
        """Compare the target voters with what is committed, and look for something to do."""
        self._around.properties.targets_known(
            self.node, recorded_target_voters(self.application.image), self.application.next_offset
        )
        self.reassignment.wake()
        every = self._around.options.snapshot_every
        if self.application.records_since_snapshot >= every and not self._is_writing_snapshot:
            self._is_writing_snapshot = True
            self.runtime.call_soon(self._take_snapshot)

    def _leading(self) -> None:
        self.reassignment.wake()

    def reach(self, moment: StepMoment) -> None:
        """Note that a moment of a step is reached, at which the process may crash."""
        around = self._around
        around.properties.reassignments.counts[moment.value] += 1
        crash = next((one for one in around.step_crashes if one.moment is moment), None)
        if crash is None:
            return
        around.step_crashes.remove(crash)
        around.faults[FaultKind.CRASH_AT_STEP] += 1
        around.trace.say(f"{self.node.node_id} crashes: {moment.value}")

        def end() -> None:
            if not self.is_dead:
                self.node.crash_and_restart(
                    is_power_cut=crash.is_power_cut, restart_ms=crash.restart_ms
                )

        around.events.after(0.0, end)

    # --- snapshots ---

    def _take_snapshot(self) -> None:
        """Write a snapshot as a node does; a failure stops nothing."""
        if self.client.is_stopped:
            return
        application = self.application
        end = OffsetAndEpoch(application.next_offset, application.last_epoch)
        application.records_since_snapshot = 0
        self._is_writing_snapshot = False
        try:
            self._is_writing_snapshot = self.client.write_snapshot(
                end,
                last_contained_log_timestamp_ms=application.last_timestamp_ms,
                values=list(application.batches()),
                then=lambda error: self._snapshot_written(end, error),
            )
        except StorageError as error:
            self._around.trace.say(f"{self.node.node_id} cannot write a snapshot: {error}")

    def _snapshot_written(self, snapshot_id: OffsetAndEpoch, error: Exception | None) -> None:
        self._is_writing_snapshot = False
        trace, name = self._around.trace, self.node.node_id
        if error is not None:
            trace.say(f"{name} cannot write a snapshot: {error}")
        elif not self.client.is_stopped:
            trace.say(f"{name} has a snapshot of all before {snapshot_id.offset}")

    # --- ending ---

    def stop(self, then: Callable[[], None]) -> None:
        """Hand over leadership and shut down cleanly; then call back."""
        self.is_stopping = True
        self.client.shut_down(lambda _error: then())

    def die(self) -> None:
        """End the process; it gets no further turn."""
        self.is_dead = True
        self._backlog.clear()
