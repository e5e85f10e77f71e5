"""The partition ``__cluster_metadata``-0 of a broker that lets consumers read it.

Every broker is an observer of the quorum and has a copy of the metadata log of its own. It serves
what of that is committed and applied: what a consumer reads is in the metadata that the same broker
answers from. Below the log's start there are only snapshots, which consumers cannot read.
"""

from __future__ import annotations

import asyncio
import logging

from kvorum.metadata.image import MetadataImage
from kvorum.node.clock import Clock
from kvorum.node.events.log_event import LogEvent
from kvorum.node.events.rare_events import RareEvents
from kvorum.node.metadata_loader import MetadataLoader
from kvorum.node.raft import RaftNode
from kvorum.storage.errors import StorageError
from kvorum.wire.error_codes import ErrorCode

_log = logging.getLogger(__name__)
UNKNOWN_EPOCH = -1


class MetadataTopic:
    """The committed part of this node's metadata log; every read is of bounded size.

    Reads are done in the event loop, which owns the log, so that nothing removes a file during one.
    They are done one at a time, with a turn for other work after each: however many consumers there
    are, the replica waits for one read at most.
    """

    def __init__(self, raft: RaftNode, loader: MetadataLoader, clock: Clock) -> None:
        self._raft = raft
        self._loader = loader
        self._clock = clock
        self._turn = asyncio.Lock()
        self._waiting: set[asyncio.Future[None]] = set()
        self._failures = RareEvents()
        loader.subscribe(self._wake)

    @property
    def log_start_offset(self) -> int:
        """The first offset that can be read."""
        return self._raft.log.start_offset

    @property
    def high_watermark(self) -> int:
        """The offset below which everything is committed, and known to this broker."""
        # A fetched snapshot replaces the log before it is loaded.
        return max(self._loader.last_offset + 1, self.log_start_offset)

    @property
    def last_epoch(self) -> int:
        """The leader epoch of the last committed record."""
        return self._loader.last_epoch

    @property
    def start_epoch(self) -> int:
        """The leader epoch of the first record, UNKNOWN_EPOCH if that is not known."""
        starts = self._raft.log.epoch_starts
        if not starts or starts[0].start_offset > self.log_start_offset:
            return UNKNOWN_EPOCH
        return starts[0].epoch

    @property
    def max_timestamp(self) -> int:
        """The largest timestamp of a record, -1 while there is none."""
        return self._raft.log.max_timestamp

    def offset_before(self, timestamp: int) -> int | None:
        """Return an offset before which no record is as late as `timestamp`; None if all are."""
        return self._raft.log.offset_before(timestamp)

    async def read(self, offset: int, max_bytes: int) -> memoryview:
        """Return committed batches, from the one that holds `offset` on; empty at the end.

        They are at most `max_bytes`, but at least one batch. Raises OffsetOutOfRangeError outside
        of the log, another StorageError if it cannot be read.
        """
        async with self._turn:
            data = self._raft.log.read(offset, max_bytes, end_offset=self.high_watermark)
            await asyncio.sleep(0)
        return data

    async def wait_beyond(self, offset: int, *, deadline_ms: float) -> bool:
        """Wait until the high watermark is above `offset`; return False if it is not in time."""
        while self.high_watermark <= offset:
            left_ms = deadline_ms - self._clock.monotonic_ms()
            if left_ms <= 0:
                return False
            moved: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.add(moved)
            try:
                async with asyncio.timeout(left_ms / 1000):
                    await moved
            except TimeoutError:
                return False
            finally:
                self._waiting.discard(moved)
        return True

    async def error_beyond_end(self, offset: int) -> ErrorCode:
        """Return the error of a read at `offset`, which lies above the end of this copy.

        Another broker may be ahead, and a consumer that comes from there must not learn that its
        place does not exist: it would begin anew. So this waits until this broker either has
        that place (no error), or has been in touch with one leader for long enough to know that the
        quorum does not have it (OFFSET_OUT_OF_RANGE). If it was not, it does not know
        (OFFSET_NOT_AVAILABLE, upon which clients try again).
        """
        epoch = self._raft.epoch
        # A leader that is cut off gives up after one and a half fetch timeouts.
        patience_ms = 2 * self._raft.settings.raft.fetch_timeout_ms
        deadline_ms = self._clock.monotonic_ms() + patience_ms
        if await self.wait_beyond(offset - 1, deadline_ms=deadline_ms):
            return ErrorCode.NONE
        if self._raft.is_in_touch and self._raft.epoch == epoch:
            return ErrorCode.OFFSET_OUT_OF_RANGE
        return ErrorCode.OFFSET_NOT_AVAILABLE

    def report(self, error: StorageError) -> None:
        """Log a failed read. It harms that read alone: the replica judges the disk by its own."""
        suppressed_count = self._failures.happened(self._clock.monotonic_ms())
        if suppressed_count is not None:
            _log.warning(
                LogEvent(
                    "A consumer could not read the metadata log",
                    error=str(error),
                    others=suppressed_count or None,
                )
            )

    def now_ms(self) -> float:
        """Return the time that deadlines are measured in."""
        return self._clock.monotonic_ms()

    def end_offset(self) -> int:
        """Return the end of this broker's copy, which may lie above the high watermark."""
        return self._raft.log.end_offset

    def _wake(self, _image: MetadataImage) -> None:
        waiting, self._waiting = self._waiting, set()
        for moved in waiting:
            if not moved.done():
                moved.set_result(None)
