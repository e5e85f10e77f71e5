"""The driver of the core: does its effects step by step: persist, append, send, answer, notify.

Effects wait in one queue. A write of the election record, or the installation of a snapshot, runs
in another thread; only the effects after it in the queue wait for it. The log is flushed in
another thread too, one flush at a time: batches that are appended meanwhile share the next flush.

The driver does not depend on its environment: time, turns and threads come from a `Runtime`,
connections to other replicas from `Links`. So a process and a simulation run the same driver.
"""

import logging
from collections import deque
from collections.abc import Callable, Sequence

from kvorum.metadata.address import Address
from kvorum.node.events.log_event import LogEvent
from kvorum.node.raft.applier import Applier, SnapshotReady, check_and_freeze
from kvorum.node.raft.control_records import control_batch
from kvorum.node.raft.election_file import write_election
from kvorum.node.raft.errors import RaftStoppedError
from kvorum.node.raft.inbound_requests import InboundRequests
from kvorum.node.raft.links import Connect
from kvorum.node.raft.listener import CommittedBatch, RaftListener
from kvorum.node.raft.measures import RaftMeasures
from kvorum.node.raft.opened_directory import OpenedDirectory
from kvorum.node.raft.outbound_requests import PeerResult
from kvorum.node.raft.snapshot_controls import snapshot_controls
from kvorum.node.runtime import Runtime, Timer
from kvorum.raft import RaftCore
from kvorum.raft.effects import (
    AppendDownload,
    AppendEpochStart,
    AppendFetched,
    AppendProposal,
    AppendVoters,
    BeginDownload,
    Committed,
    DropDownload,
    Effect,
    Effects,
    InstallDownload,
    LeaderChanged,
    LeadershipGained,
    LeadershipLost,
    PeerRefused,
    Send,
    SendResponse,
    ShutdownComplete,
    TruncateLog,
    WriteElection,
)
from kvorum.raft.messages import RequestFailed
from kvorum.storage.errors import CorruptSnapshotError, StorageError
from kvorum.storage.metadata_log.snapshots import RawSnapshotWriter
from kvorum.wire.offset_and_epoch import BOOTSTRAP_SNAPSHOT_ID, OffsetAndEpoch
from kvorum.wire.records import build_data_batch

_LOG = logging.getLogger(__name__)


class Driver:
    """Owns one core and everything that its effects change. Not thread-safe."""

    def __init__(
        self,
        *,
        core: RaftCore,
        opened: OpenedDirectory,
        listener: RaftListener,
        runtime: Runtime,
        connect: Connect,
    ) -> None:
        self.core = core
        self.log = opened.log
        self.applier = Applier(opened.log, listener)
        self.inbound = InboundRequests(opened.log)
        self.failure: Exception | None = None
        self.measures = RaftMeasures(runtime.monotonic_ms())
        self._election_file = opened.election_file
        self._listener = listener
        self._runtime = runtime
        self._links = connect(self._on_result)
        self._queue: deque[Effect | WriteElection] = deque()
        self._proposals: dict[int, Sequence[bytes]] = {}
        self._results: dict[int, PeerResult] = {}
        self._download: RawSnapshotWriter | None = None
        self._is_blocked = False
        self._is_flushing = False
        self._timer: Timer | None = None
        self._timer_at = float("inf")
        self._is_pumping = False
        self.is_closed = False
        """Whether `stop` was called."""
        self._when_handed_over: Callable[[], None] | None = None
        self._refusals: dict[int, str] = {}
        self.problems: dict[int, str] = {}
        """The last failure or invalid response of each peer, in words with the peer's address."""
        self._failure_of_peer: str | None = None

    def now(self) -> float:
        """Return the time that the core uses."""
        return self._runtime.monotonic_ms()

    def begin(self, effects: Effects) -> None:
        """Queue the latest snapshot for the listener, and do the first effects."""
        latest = self.log.snapshots.latest()
        if latest is not None and latest != BOOTSTRAP_SNAPSHOT_ID:
            self.applier.add(SnapshotReady(latest))
        self.run(effects)

    def call(self, verb: Callable[[], Effects]) -> None:
        """Call a verb of the core and do its effects; a broken invariant stops the replica."""
        try:
            effects = verb()
        except Exception as error:  # noqa: BLE001 - the core's state cannot be trusted any more
            self.fail(error)
        else:
            self.run(effects)

    def run(self, effects: Effects) -> None:
        """Queue the effects of a verb behind those of earlier verbs, and do them."""
        self.measures.took_role(self.core.role, now_ms=self.now())
        self._queue.extend(effects.at_once)
        if effects.write is not None:
            self._queue.append(effects.write)
        self._queue.extend(effects.after_write)
        self._pump()

    def propose(self, values: Sequence[bytes], *, epoch: int) -> int:
        """Append records; return the first offset. Raises NotLeaderError."""
        base_offset, effects = self.core.propose(self.now(), epoch=epoch, count=len(values))
        self._proposals[base_offset] = values
        self.run(effects)
        return base_offset

    def shut_down(self, when_handed_over: Callable[[], None]) -> None:
        """Let the core hand over leadership; call back when it is done or the replica fails."""
        self._when_handed_over = when_handed_over
        self.call(lambda: self.core.shutdown(self.now()))

    def _shutdown_complete(self) -> None:
        if self._when_handed_over is not None:
            self._when_handed_over()

    def stop(self) -> None:
        """Stop doing effects; waiting requests fail."""
        self.is_closed = True
        self._stop_timer()
        self.inbound.fail_all(RaftStoppedError("the replica is being closed"))

    def leave(self) -> None:
        """Abort an unfinished download; no blocking work may be under way any more."""
        if self._download is not None:
            self._download.abort()
        if self.failure is None:
            self.applier.stop()

    def fail(self, error: Exception) -> None:
        """Stop finally because of `error`: the disk, the listener, or an invariant failed."""
        if self.failure is not None:
            return
        self.failure = error
        # The failure of a disk is logged in one line; anything else is a bug, and gets a traceback.
        place = None if isinstance(error, StorageError) else error
        _LOG.error(
            LogEvent("The replica of the metadata log stops", error=str(error)), exc_info=place
        )
        self._stop_timer()
        self._queue.clear()
        self.inbound.fail_all(RaftStoppedError(f"the replica has stopped: {error}"))
        self._shutdown_complete()
        self._listener.on_failure(error)

    @property
    def is_stopped(self) -> bool:
        """Whether no effects are done any more."""
        return self.is_closed or self.failure is not None

    def _pump(self) -> None:
        """Do the queued effects up to the next one that has to wait; then arm the timer."""
        if self._is_pumping or self.is_stopped:
            return
        self._is_pumping = True
        try:
            while not self._is_blocked and self._do_next():
                pass
        except Exception as error:  # noqa: BLE001 - after any error the replica must not go on
            self.fail(error)
        finally:
            self._is_pumping = False
        if not self.is_stopped:
            self._arm_timer()

    def _do_next(self) -> bool:
        """Do one effect, or one step of the applier; return whether to continue at once."""
        if self._queue:
            effect = self._queue.popleft()
            if isinstance(effect, WriteElection):
                self._write_election(effect)
            elif isinstance(effect, InstallDownload):
                self._install(effect.snapshot_id)
            else:
                self._do(effect)
            return True
        if not self.applier.has_work:
            return False
        self.applier.step()
        if self.applier.has_work and not self._queue:
            # The applier has much left to do: other work of the event loop gets its turn.
            self._runtime.call_soon(self._pump)
            return False
        return True

    def _do(self, effect: Effect) -> None:
        match effect:
            case Send():
                self._links.send(effect)
            case SendResponse():
                self.inbound.answer(effect, now_ms=self._runtime.wall_ms())
            case AppendProposal():
                self._append_proposal(effect)
            case AppendEpochStart() | AppendVoters():
                self._append_own(control_batch(effect, timestamp_ms=self._runtime.wall_ms()))
            case AppendFetched():
                self._append_fetched(effect)
            case TruncateLog():
                self._truncate(effect.end_offset)
            case Committed() | LeadershipGained() | LeadershipLost() | LeaderChanged():
                self._queue_event(effect)
            case ShutdownComplete():
                self._shutdown_complete()
            case PeerRefused():
                self._note_refusal(effect)
            case _:
                self._do_download(effect)

    def _queue_event(
        self, effect: Committed | LeadershipGained | LeadershipLost | LeaderChanged
    ) -> None:
        if isinstance(effect, Committed):
            self.measures.committed(effect.high_watermark, now_ms=self.now())
        self.applier.add(effect)

    def _do_download(self, effect: Effect) -> None:
        match effect:
            case BeginDownload():
                self._drop_download()
                self._download = self.log.snapshots.create(effect.snapshot_id)
            case AppendDownload():
                part = self._results.pop(effect.number).snapshot_part
                if self._download is not None:
                    self._download.append(part)
            case DropDownload():
                self._drop_download()
            case _:
                raise TypeError(f"{effect} is not an effect")

    def _drop_download(self) -> None:
        if self._download is not None:
            self._download.abort()
            self._download = None

    def _append_proposal(self, effect: AppendProposal) -> None:
        values = self._proposals.pop(effect.base_offset)
        now_ms = self._runtime.wall_ms()
        batch = build_data_batch(
            values, base_offset=effect.base_offset, epoch=effect.epoch, timestamp_ms=now_ms
        )
        self._append_own(batch)
        self.applier.remember(
            CommittedBatch(
                base_offset=effect.base_offset,
                last_offset=effect.base_offset + effect.record_count - 1,
                epoch=effect.epoch,
                append_timestamp_ms=now_ms,
                values=tuple(values),
                is_control=False,
                size_bytes=len(batch),
            )
        )

    def _append_own(self, batch: bytes) -> None:
        before = self.log.log_end_offset
        self._append(batch)
        end_offset = self.log.log_end_offset
        self.measures.appended(end_offset - before, end_offset=end_offset, now_ms=self.now())

    def _append_fetched(self, effect: AppendFetched) -> None:
        records = self._results.pop(effect.number).records
        if records is None:
            raise TypeError("there are no fetched records to append")
        before = self.log.log_end_offset
        self._append(records.first(effect.batch_count))
        self.measures.fetched(self.log.log_end_offset - before, now_ms=self.now())

    def _append(self, batches: bytes | memoryview) -> None:
        self.log.local_log.append(batches)
        if not self._is_flushing:
            self._flush()

    def _truncate(self, end_offset: int) -> None:
        self.applier.forget_from(end_offset)
        reached = self.log.local_log.truncate_to(end_offset, now_ms=self._runtime.wall_ms())
        if reached != end_offset:
            self.run(self.core.log_truncated(self.now(), reached))

    def _note_refusal(self, effect: PeerRefused) -> None:
        """Log a peer's failure or invalid response once, not at every try."""
        destination = effect.destination
        where = str(Address(destination.host, destination.port))
        self.problems[destination.id] = f"{where}: {effect.reason}"
        if effect.reason == self._failure_of_peer:
            # The links log peers that cannot be reached, and when they can be reached again.
            return
        if self._refusals.get(destination.id) != effect.reason:
            self._refusals[destination.id] = effect.reason
            _LOG.info(
                LogEvent(
                    "A response of a peer was rejected",
                    peer=destination.id,
                    at=where,
                    reason=effect.reason,
                )
            )

    def _on_result(self, number: int, result: PeerResult) -> None:
        """Pass the result of a request to a peer on to the core."""
        if self.is_stopped:
            return
        if result.records is not None or result.snapshot_part:
            self._results[number] = result
        response = result.response
        self._failure_of_peer = response.reason if isinstance(response, RequestFailed) else None

        def take_in() -> Effects:
            effects = self.core.receive_response(
                self.now(), number=number, response=result.response
            )
            if not _uses_result(effects, number):
                self._results.pop(number, None)
            return effects

        self.call(take_in)

    def _write_election(self, write: WriteElection) -> None:
        self._is_blocked = True
        self._runtime.run_blocking(
            lambda: write_election(self._election_file, write), self._election_written
        )

    def _election_written(self, error: Exception | None) -> None:
        self._is_blocked = False
        if error is not None:
            self.fail(error)
        self._pump()

    def _flush(self) -> None:
        self._is_flushing = True
        self._runtime.run_blocking(self.log.local_log.flush, self._flushed)

    def _flushed(self, error: Exception | None) -> None:
        """Report the durable offset to the core; flush again if more was appended meanwhile."""
        self._is_flushing = False
        if error is not None:
            self.fail(error)
        if self.is_stopped:
            return
        # The log may have been truncated meanwhile: its current durable offset counts.
        self.call(lambda: self.core.log_durable(self.now(), self.log.local_log.recovery_point))
        is_done = self._is_flushing or self.is_stopped
        if self.log.local_log.recovery_point < self.log.log_end_offset and not is_done:
            self._flush()

    def _install(self, snapshot_id: OffsetAndEpoch) -> None:
        """Replace the log by the fetched snapshot if that is valid."""
        writer, self._download = self._download, None
        if writer is None:
            raise TypeError("no snapshot is being fetched")
        self._is_blocked = True
        self._runtime.run_blocking(
            lambda: check_and_freeze(writer), lambda error: self._installed(snapshot_id, error)
        )

    def _installed(self, snapshot_id: OffsetAndEpoch, error: Exception | None) -> None:
        self._is_blocked = False
        if isinstance(error, CorruptSnapshotError):
            _LOG.warning(LogEvent("The leader's snapshot is corrupt", error=str(error)))
            self.call(lambda: self.core.snapshot_refused(self.now(), snapshot_id))
        elif error is not None:
            self.fail(error)
        else:
            self.call(lambda: self._begin_behind(snapshot_id))

    def _begin_behind(self, snapshot_id: OffsetAndEpoch) -> Effects:
        now_ms = self._runtime.wall_ms()
        if not self.log.truncate_to_latest_snapshot(now_ms=now_ms):
            self.log.local_log.truncate_fully_and_start_at(snapshot_id.offset, now_ms=now_ms)
        self.applier.forget_from(0)
        controls = snapshot_controls(self.log, snapshot_id)
        effects = self.core.snapshot_installed(
            self.now(), snapshot_id, voters=controls.voters, kraft_version=controls.kraft_version
        )
        self.core.log_start_moved(self.log.log_start_offset, self.log.snapshots.ids())
        self.applier.add(SnapshotReady(snapshot_id))
        return effects

    def _arm_timer(self) -> None:
        deadline = self.core.next_deadline
        if deadline == self._timer_at and self._timer is not None:
            return
        self._stop_timer()
        self._timer_at = deadline
        if deadline != float("inf"):
            self._timer = self._runtime.call_at(deadline, self._tick)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tick(self) -> None:
        self._timer = None
        if not self.is_stopped:
            self.call(lambda: self.core.tick(self.now()))


def _uses_result(effects: Effects, number: int) -> bool:
    """Return whether an effect needs the bytes of response `number`."""
    return any(
        isinstance(effect, AppendFetched | AppendDownload) and effect.number == number
        for effect in (*effects.at_once, *effects.after_write)
    )
