"""A replica of the metadata log in an event loop, with methods to await; it notes stalls.

The process stalls when it gets no processor time, or when one step takes too long.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from random import Random

from kvorum.node.asyncio_runtime import AsyncioRuntime
from kvorum.node.clock import Clock
from kvorum.node.coroutines import OneAtATime, Promise
from kvorum.node.events.log_event import LogEvent
from kvorum.node.outbound.outgoing import Outgoing
from kvorum.node.raft.listener import RaftListener
from kvorum.node.raft.network_channel import NetworkChannel
from kvorum.node.raft.opened_directory import OpenedDirectory, open_directory
from kvorum.node.raft.outbound_requests import PeerResult
from kvorum.node.raft.raft_client import RaftClient
from kvorum.node.raft.settings import RaftSettings
from kvorum.node.runtime import Runtime
from kvorum.node.tasks import run
from kvorum.raft import OffsetAndEpoch
from kvorum.storage.files import FileSystem
from kvorum.wire.primitives import Message

_LOG = logging.getLogger(__name__)
THREAD_COUNT = 3
"""No flush waits while a snapshot is written and files are removed."""
BEAT_MS = 100
"""Short enough to detect stalls near the fetch timeout, and cheap for the processor."""
STALL_MS_MIN = 100
"""Shorter stalls are normal for a busy loop."""
TOLD_STALL_MS_MIN = 1000
"""Shorter stalls do no harm, and are frequent on a busy machine."""


class RaftNode(RaftClient):
    """A voter or observer of the metadata quorum whose requests and snapshots can be awaited.

    Everything runs in the event loop of `open`; blocking work runs in threads.
    """

    def __init__(
        self,
        settings: RaftSettings,
        *,
        opened: OpenedDirectory,
        listener: RaftListener,
        threads: AsyncioRuntime,
        random: Random,
        outgoing: Outgoing,
    ) -> None:
        """Use an open directory; callers use `open`, which opens it first."""
        self._outgoing = outgoing
        self._threads = threads
        self._is_closed = False
        self.stall_count = 0
        self.stalled_ms = 0.0

        super().__init__(
            settings,
            opened=opened,
            listener=listener,
            runtime=threads,
            connect=self._connect,
            random=random,
        )
        self._stalls = StallWatch(threads, self._note_stall)

    def _connect(self, on_result: Callable[[int, PeerResult], None]) -> NetworkChannel:
        self._links = NetworkChannel(
            self.settings, clock=self._threads, outgoing=self._outgoing, on_result=on_result
        )
        return self._links

    @classmethod
    async def open(
        cls,
        settings: RaftSettings,
        *,
        listener: RaftListener,
        files: FileSystem,
        clock: Clock,
        random: Random,
        outgoing: Outgoing | None = None,
    ) -> RaftNode:
        """Open the directory and return its replica, which `start` starts.

        Raises StorageError if the directory cannot be used. The caller closes the replica.
        """
        threads = AsyncioRuntime(
            clock, thread_name=f"raft-{settings.node_id}", thread_count=THREAD_COUNT
        )
        try:
            opened = await run(_open_directory(settings, files, threads))
            return cls(
                settings,
                opened=opened,
                listener=listener,
                threads=threads,
                random=random,
                outgoing=outgoing or Outgoing(),
            )
        except BaseException:
            threads.close()
            raise

    async def start(self) -> None:
        """Pass the latest snapshot to the listener, and take part; see `begin`."""
        self.begin()

    async def close(self, *, hands_over: bool = True) -> None:
        """Hand over leadership, stop, and close the directory cleanly. May be repeated.

        Without `hands_over` nothing is sent to other replicas, as if the process had died.
        """
        if self._is_closed:
            return
        self._is_closed = True
        self._stalls.stop()
        closed: Promise[None] = Promise(self._threads)
        try:
            self.shut_down(closed.settle, hands_over=hands_over)
            await run(closed.result())
        finally:
            await self._links.close()
            self._threads.close()

    def _note_stall(self, duration_ms: float) -> None:
        if self.is_stopped:
            return
        self.stall_count += 1
        self.stalled_ms += duration_ms
        if duration_ms >= TOLD_STALL_MS_MIN:
            _LOG.info(LogEvent("The process stood still", duration_ms=round(duration_ms)))
        # In a stall this process could not receive.
        self.core.stood_still(duration_ms)

    async def handle_request(
        self, request: Message, *, version: int, listener_name: str
    ) -> Message:
        """Return the response to a request of a peer, see `receive`; a fetch may wait for records.

        `version` and `listener_name` are those of the request. Raises RaftStoppedError.
        """
        response: Promise[Message] = Promise(self._threads)
        token = self.receive(
            request, version=version, listener_name=listener_name, respond=response.settle
        )
        try:
            return await response.result()
        finally:
            if token is not None and not response.is_settled:
                self.forget(token)

    async def create_snapshot(
        self,
        *,
        end_offset: int,
        epoch: int,
        last_contained_log_timestamp_ms: int,
        values: Iterable[Sequence[bytes]],
    ) -> bool:
        """Write a snapshot of everything below `end_offset`; each item of `values` is a batch.

        Returns False if it exists already, or the log starts after it. `epoch` is that of its last
        record. `values` is consumed in another thread. Raises StorageError.
        """
        written: Promise[None] = Promise(self._threads)
        is_new = self.write_snapshot(
            OffsetAndEpoch(end_offset, epoch),
            last_contained_log_timestamp_ms=last_contained_log_timestamp_ms,
            values=values,
            then=written.settle,
        )
        if is_new:
            await written.result()
        return is_new


async def _open_directory(
    settings: RaftSettings, files: FileSystem, threads: Runtime
) -> OpenedDirectory:
    """Open the directory in a thread, and log what its recovery has found."""
    opened = await OneAtATime(threads).in_thread(
        lambda: open_directory(settings, files=files, now_ms=threads.wall_ms())
    )
    for line in opened.log.recovery.lines():
        _LOG.warning("%s", line)
    return opened


class StallWatch:
    """Calls `on_stall` with the milliseconds by which the loop of `runtime` was late."""

    def __init__(self, runtime: Runtime, on_stall: Callable[[float], None]) -> None:
        self._runtime = runtime
        self._on_stall = on_stall
        self._due_ms = runtime.monotonic_ms() + BEAT_MS
        self._timer = runtime.call_at(self._due_ms, self._beat)

    def stop(self) -> None:
        """Stop the watch."""
        self._timer.cancel()

    def _beat(self) -> None:
        # Of timers that are due, the loop runs the older ones first: before any timeout that ran
        # out during the stall is handled, the stall is reported.
        now_ms = self._runtime.monotonic_ms()
        late_ms = now_ms - self._due_ms
        self._due_ms = now_ms + BEAT_MS
        self._timer = self._runtime.call_at(self._due_ms, self._beat)
        if late_ms >= STALL_MS_MIN:
            self._on_stall(late_ms)
