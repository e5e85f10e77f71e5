"""One process of a simulated node: the real core and driver, between simulated disk and network."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING

from kvorum.node.outbound.client_connection import ConnectionLostError
from kvorum.node.raft.directory import SnapshotControls, open_directory, snapshot_ids
from kvorum.node.raft.driver import Driver
from kvorum.node.raft.errors import RaftStoppedError
from kvorum.node.raft.identity import identity_of
from kvorum.node.raft.inbound import read_request
from kvorum.node.raft.peer_exchange import PeerResult
from kvorum.node.raft.runtime import Timer
from kvorum.node.raft.snapshot_files import write_snapshot
from kvorum.raft import NotLeadingError, OffsetAndEpoch, RaftCore
from kvorum.raft.effects import Send
from kvorum.raft.messages import AddRaftVoterRequest
from kvorum.simulation.application import Application, Told
from kvorum.simulation.disk_faults import CrashedError
from kvorum.simulation.runtime import SimulatedRuntime
from kvorum.simulation.telling import told_request, told_response
from kvorum.simulation.transport import Reply, SimulatedLinks
from kvorum.simulation.versions import Release, offered_versions
from kvorum.storage.errors import StorageError
from kvorum.storage.names import OffsetAndEpoch as SnapshotId
from kvorum.storage.retention import clean
from kvorum.wire.apis import request_class
from kvorum.wire.headers import decode_request_frame, encode_response_frame
from kvorum.wire.messages.api_versions import ApiVersionsRequest
from kvorum.wire.primitives import Message

if TYPE_CHECKING:
    from kvorum.simulation.node import SimulatedNode


class Process:
    """What lives from a start to a crash. Everything in it happens in `turn`s."""

    def __init__(self, node: SimulatedNode) -> None:
        self.node = node
        self.is_dead = False
        self.is_stopping = False
        self.has_been_voter = False
        self.sends_until_crash: int | None = None
        self._world = node.world
        self._backlog: list[Callable[[], None]] = []
        self._is_writing_snapshot = False
        self._has_left = False
        name = f"process/{node.node_id}/{node.start_count}"
        self.runtime = SimulatedRuntime(
            self._world.events, node.clock, self._world.random_for(f"{name}/threads"), turns=self
        )
        self.application = Application(self._consider_snapshot)
        self.driver = self._open(self._world.random_for(name))

    def _open(self, random: Random) -> Driver:
        """Open the directory and make core and driver. Raises StorageError and CrashedError."""
        node = self.node
        opened = open_directory(
            node.settings, files=node.disk.mount(), now_ms=self.runtime.wall_ms()
        )
        core = RaftCore(
            identity_of(node.settings),
            config=node.settings.raft,
            log=opened.view,
            history=opened.history,
            random=random,
        )
        self._first = core.start(self.runtime.monotonic_ms(), stored=opened.stored)
        listener = self._world.properties.listener_for(node, self.application)
        return Driver(
            core=core, opened=opened, listener=listener, runtime=self.runtime, connect=self._connect
        )

    def _connect(self, on_result: Callable[[int, PeerResult], None]) -> SimulatedLinks:
        self.links = SimulatedLinks(
            self.node.settings, release=self.node.release, wire=self, on_result=on_result
        )
        return self.links

    def begin(self) -> None:
        """Take part."""
        self.turn(lambda: self.driver.begin(self._first))
        self._clean_later()

    def turn(self, callback: Callable[[], None]) -> None:
        """Call back as one event: never where this process is dead, later where it is paused."""
        if self.is_dead:
            return
        if self.node.is_paused:
            self._backlog.append(callback)
            return
        try:
            callback()
        except CrashedError:
            self.node.crash_here()
        else:
            self.node.look()

    def do_work(self, work: Callable[[], object]) -> None:
        """Do a blocking piece of work, which must leave the core alone."""
        properties = self._world.properties
        before = properties.before_thread_piece(self.node)
        work()
        properties.after_thread_piece(self.node, before)

    def resume(self) -> None:
        """Do everything that waited for the end of a pause."""
        backlog, self._backlog = self._backlog, []
        for callback in backlog:
            self.turn(callback)

    # --- what the links need ---

    def release_of(self, host: str) -> Release:
        """Return which versions the node at an address speaks."""
        return self._world.node_at(host).release

    def call_after(self, delay_ms: float, callback: Callable[[], None]) -> Timer:
        """Call back in a while, by this node's clock, unless this process has ended."""
        return self.runtime.call_after(delay_ms, callback)

    def carry_request(
        self,
        host: str,
        message: Message,
        *,
        version: int,
        frame: bytes,
        reply: Callable[[Reply], None],
    ) -> None:
        """Carry a request of this process to the node at an address."""
        node = self.node
        self._world.properties.request_sent(node, message, version)
        if self.sends_until_crash is not None:
            self.sends_until_crash -= 1
            if self.sends_until_crash < 0:
                raise CrashedError("before a request was sent")
        self._world.carry_request(
            node.node_id, host, frame, lambda said: self.turn(lambda: reply(said))
        )

    def tell_sent(self, send: Send) -> None:
        """Write a request into the trace; a process that was no voter yet may ask to be one."""
        if isinstance(send.request, AddRaftVoterRequest) and not self.has_been_voter:
            self._world.properties.operator_asked_to_add(self.node.node_id, self.node.directory_id)
        trace = self._world.trace
        if trace.is_kept:
            to = self._world.node_at(send.destination.host).node_id
            trace.add(f"{self.node.node_id} asks {to} {told_request(send.request)}")

    def tell_result(self, send: Send, result: PeerResult) -> None:
        """Write what came of a request into the trace."""
        trace = self._world.trace
        if trace.is_kept:
            to = self._world.node_at(send.destination.host).node_id
            trace.add(f"{self.node.node_id} hears from {to}: {told_response(result.response)}")

    # --- what others ask ---

    def deliver(self, frame: bytes, respond: Callable[[Reply], None]) -> None:
        """Take in a request; call in a turn. `respond` is called at most once."""
        header, body = decode_request_frame(frame)
        version = header.request_api_version
        request = request_class(header.request_api_key).decode(bytes(body), version)
        properties = self._world.properties
        properties.request_arrives(self.node, request, version)

        def answered(said: Message | RaftStoppedError) -> None:
            if isinstance(said, RaftStoppedError):
                respond(ConnectionLostError(str(said)))
                return
            properties.response_leaves(self.node, request, version, said)
            respond(
                encode_response_frame(said, version=version, correlation_id=header.correlation_id)
            )

        if isinstance(request, ApiVersionsRequest):
            answered(offered_versions(self.node.release))
        elif self.driver.is_stopped:
            answered(RaftStoppedError("the replica does not run"))
        else:
            self._receive(request, version=version, respond=answered)

    def _receive(
        self,
        request: Message,
        *,
        version: int,
        respond: Callable[[Message | RaftStoppedError], None],
    ) -> None:
        asked = read_request(request, cluster_id=self.node.settings.cluster_id)
        if isinstance(asked, Message):
            respond(asked)
            return
        driver = self.driver
        token = driver.inbound.add(
            request,
            version=version,
            listener_name=self.node.settings.controller_listener,
            respond=respond,
        )
        driver.call(lambda: driver.core.receive(driver.now(), token=token, request=asked))

    def propose(self, value: bytes, told: Told) -> bool:
        """Append a value if this process leads; `told` hears of its commit. Call in a turn."""
        epoch = self.application.leading_epoch
        if epoch is None or self.driver.is_stopped:
            return False
        try:
            offset = self.driver.propose([value], epoch=epoch)
        except NotLeadingError:
            return False
        # Nothing is committed before it was synced, and that is told in another turn.
        self.application.wait_for(offset, epoch=epoch, told=told)
        return True

    # --- what the node does now and then ---

    def _consider_snapshot(self) -> None:
        every = self._world.options.snapshot_every
        if self.application.records_since_snapshot >= every and not self._is_writing_snapshot:
            self._is_writing_snapshot = True
            self.runtime.call_soon(self._take_snapshot)

    def _take_snapshot(self) -> None:
        """Write a snapshot as the node does; that it fails does not stop anything."""
        if self.driver.is_stopped:
            return
        application, driver = self.application, self.driver
        end = OffsetAndEpoch(application.next_offset, application.last_epoch)
        application.records_since_snapshot = 0
        self._is_writing_snapshot = False
        try:
            writer = driver.log.create_snapshot(
                SnapshotId(*end), high_watermark=driver.applier.next_offset
            )
        except StorageError as error:
            self._world.trace.say(f"{self.node.node_id} cannot write a snapshot: {error}")
            return
        if writer is None:
            return
        history = driver.core.history
        controls = SnapshotControls(
            history.recorded_voters_at(end.offset), history.kraft_version_at(end.offset)
        )
        values, timestamp_ms = list(application.batches()), application.last_timestamp_ms
        now_ms = self.runtime.wall_ms()
        self._is_writing_snapshot = True
        self.runtime.run_blocking(
            lambda: write_snapshot(
                writer,
                controls=controls,
                last_contained_log_timestamp_ms=timestamp_ms,
                values=values,
                now_ms=now_ms,
            ),
            lambda error: self._snapshot_written(end, error),
        )

    def _snapshot_written(self, snapshot_id: OffsetAndEpoch, error: Exception | None) -> None:
        self._is_writing_snapshot = False
        trace, name = self._world.trace, self.node.node_id
        if error is not None:
            trace.say(f"{name} cannot write a snapshot: {error}")
        elif not self.driver.is_stopped:
            trace.say(f"{name} has a snapshot of all before {snapshot_id.offset}")
            self.driver.core.snapshot_created(snapshot_id)

    def _clean_later(self) -> None:
        self.runtime.call_after(self._world.options.clean_every_ms, self._clean)

    def _clean(self) -> None:
        driver = self.driver
        if driver.is_stopped:
            return
        try:
            did_clean = clean(driver.log, now_ms=self.runtime.wall_ms())
        except Exception as error:  # noqa: BLE001 - as in the node: a disk that fails stops it
            driver.fail(error)
            return
        if did_clean:
            driver.core.log_start_moved(driver.log.start_offset, snapshot_ids(driver.log))
            self._world.trace.say(
                f"{self.node.node_id} keeps its log from {driver.log.start_offset}"
            )
        self._clean_later()

    # --- how it ends ---

    def stop(self, then: Callable[[], None]) -> None:
        """Hand over leadership and leave the directory clean; then call back."""
        driver = self.driver
        self.is_stopping = True
        patience = self.runtime.call_after(
            self.node.settings.raft.shutdown_timeout_ms, lambda: self._leave(then)
        )

        def complete() -> None:
            patience.cancel()
            self.runtime.call_soon(lambda: self._leave(then))

        driver.on_shutdown_complete = complete
        driver.call(lambda: driver.core.shutdown(driver.now()))

    def _leave(self, then: Callable[[], None]) -> None:
        """Wait for work that is under way, and close."""
        driver = self.driver
        if self._has_left:
            return
        driver.stop()
        if self.runtime.work_count:
            self.runtime.call_after(1.0, lambda: self._leave(then))
            return
        self._has_left = True
        driver.leave()
        self.runtime.run_blocking(driver.log.close, lambda _: then())

    def die(self) -> None:
        """End without another turn."""
        self.is_dead = True
        self._backlog.clear()
