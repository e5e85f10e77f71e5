"""One replica of the metadata log: the consensus core, its storage and its peers, driven."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from random import Random

from kvorum.node.events.event import Event
from kvorum.node.outbound.outgoing import Outgoing
from kvorum.node.raft.directory import (
    OpenedDirectory,
    SnapshotControls,
    open_directory,
    snapshot_ids,
)
from kvorum.node.raft.driver import Driver
from kvorum.node.raft.errors import NotLeaderError, ProposalTooLargeError, RaftStoppedError
from kvorum.node.raft.identity import identity_of
from kvorum.node.raft.inbound import read_request
from kvorum.node.raft.listener import RaftListener
from kvorum.node.raft.measures import RaftMeasures
from kvorum.node.raft.peer_exchange import PeerResult
from kvorum.node.raft.peer_links import PeerLinks
from kvorum.node.raft.runtime import AsyncioRuntime
from kvorum.node.raft.settings import Address, Clock, RaftSettings
from kvorum.node.raft.snapshot_files import write_snapshot
from kvorum.node.raft.stalls import StallWatch
from kvorum.raft import (
    KRaftVersionUpgradeError,
    NotLeadingError,
    OffsetAndEpoch,
    RaftCore,
    StaleEpochError,
)
from kvorum.raft.basics import endpoint_named
from kvorum.raft.metrics import RaftMetrics
from kvorum.raft.roles import Follower, Leader
from kvorum.raft.voter_set import VoterSet
from kvorum.storage.files import FileSystem
from kvorum.storage.names import OffsetAndEpoch as SnapshotId
from kvorum.storage.retention import clean
from kvorum.wire.primitives import Message

_LOG = logging.getLogger(__name__)
BATCH_BYTES_MAX = 8 * 1024 * 1024
"""As Kafka's: no batch of the metadata log is bigger."""
CLEANING_INTERVAL_MS = 60_000
TOLD_STALL_MS_MIN = 1000
"""Shorter ones do no harm, and come often where a machine is busy."""


class RaftNode:
    """A voter or observer of the metadata quorum.

    Everything runs in the event loop that `start` was called in; syncs of the disk run in threads.
    """

    def __init__(
        self,
        settings: RaftSettings,
        *,
        listener: RaftListener,
        files: FileSystem,
        clock: Clock,
        random: Random,
        outgoing: Outgoing | None = None,
    ) -> None:
        self._settings = settings
        self._outgoing = outgoing or Outgoing()
        self._listener = listener
        self._files = files
        self._clock = clock
        self._random = random
        self._driver: Driver | None = None
        self._runtime: AsyncioRuntime | None = None
        self._links: PeerLinks | None = None
        self._shutdown_complete = asyncio.Event()
        self._cleaning: asyncio.Task[None] | None = None
        self._stalls: StallWatch | None = None
        self._is_closed = False
        self.snapshot_bytes = 0
        """Size of the latest snapshot that this node wrote, 0 where there is none."""
        self.stall_count = 0
        self.stalled_ms = 0.0

    async def start(self) -> None:
        """Open the directory, tell the listener the latest snapshot, and take part.

        Raises StorageError where the directory cannot be used. A lone voter begins to lead at once.
        """
        opened = await asyncio.get_running_loop().run_in_executor(None, self._open)
        for line in opened.log.recovery.lines():
            _LOG.warning("%s", line)
        core = RaftCore(
            identity_of(self._settings),
            config=self._settings.raft,
            log=opened.view,
            history=opened.history,
            random=self._random,
        )
        try:
            effects = core.start(self._clock.monotonic_ms(), stored=opened.stored)
        except BaseException:
            opened.log.close()
            raise
        runtime = AsyncioRuntime(self._clock, thread_name=f"raft-{self._settings.node_id}")
        driver = Driver(
            core=core,
            opened=opened,
            listener=self._listener,
            runtime=runtime,
            connect=self._connect,
        )
        driver.on_shutdown_complete = self._shutdown_complete.set
        self._driver, self._runtime = driver, runtime
        driver.begin(effects)
        self._stalls = StallWatch(self._note_stall)
        self._cleaning = asyncio.create_task(self._clean_now_and_then())

    def _connect(self, on_result: Callable[[int, PeerResult], None]) -> PeerLinks:
        self._links = PeerLinks(
            self._settings, clock=self._clock, outgoing=self._outgoing, on_result=on_result
        )
        return self._links

    def _open(self) -> OpenedDirectory:
        return open_directory(self._settings, files=self._files, now_ms=self._clock.wall_ms())

    async def close(self, *, hands_over: bool = True) -> None:
        """Hand over leadership, stop, and leave the directory clean. Closing twice is allowed.

        Without `hands_over`, nobody is told: the others find out as if the process had died.
        """
        if self._is_closed:
            return
        self._is_closed = True
        driver, runtime = self._driver, self._runtime
        if driver is None or runtime is None:
            return
        if self._stalls is not None:
            self._stalls.stop()
        if self._cleaning is not None:
            self._cleaning.cancel()
            await asyncio.gather(self._cleaning, return_exceptions=True)
        if hands_over and not driver.is_stopped:
            driver.call(lambda: driver.core.shutdown(driver.now()))
            with suppress(TimeoutError):
                async with asyncio.timeout(self._settings.raft.shutdown_timeout_ms / 1000):
                    await self._shutdown_complete.wait()
        driver.stop()
        if self._links is not None:
            await self._links.close()
        await runtime.join()
        driver.leave()
        await runtime.close(driver.log.close)

    def _note_stall(self, duration_ms: float) -> None:
        """Do not blame the leader for what this process could not hear."""
        if self._driver is not None and not self._driver.is_stopped:
            self.stall_count += 1
            self.stalled_ms += duration_ms
            if duration_ms >= TOLD_STALL_MS_MIN:
                _LOG.info(Event("The process stood still", duration_ms=round(duration_ms)))
            self._driver.core.stood_still(duration_ms)

    @property
    def epoch(self) -> int:
        """The current leader epoch; 0 before the start."""
        return 0 if self._driver is None else self._driver.core.role.epoch

    @property
    def leader_id(self) -> int | None:
        """Who leads in the current epoch, as far as is known; may be this node."""
        return None if self._driver is None else self._driver.core.role.leader_id

    @property
    def is_leader(self) -> bool:
        """Whether this node leads the current epoch (its first batch may not be committed yet)."""
        return self._driver is not None and isinstance(self._driver.core.role, Leader)

    @property
    def is_stopped(self) -> bool:
        """Whether the replica does not run: not yet, not any more, or because something failed."""
        return self._driver is None or self._driver.is_stopped

    @property
    def high_watermark(self) -> int | None:
        """The offset below which everything is committed; None until that is known."""
        return None if self._driver is None else self._driver.core.high_watermark

    @property
    def log_end_offset(self) -> int:
        """The offset the next record gets."""
        return 0 if self._driver is None else self._driver.core.log.end_offset

    @property
    def kraft_version(self) -> int:
        """The finalized kraft.version: 0 with static voters, 1 with a voter set in the log."""
        return 0 if self._driver is None else self._driver.core.history.kraft_version

    @property
    def metrics(self) -> RaftMetrics | None:
        """What can be measured of the replica as of now; None before the start."""
        driver = self._driver
        return None if driver is None else driver.core.metrics(driver.now())

    @property
    def measures(self) -> RaftMeasures | None:
        """What was collected while the replica ran; None before the start."""
        return None if self._driver is None else self._driver.measures

    @property
    def voters(self) -> VoterSet:
        """The voters as of the log's end; none before the start."""
        return VoterSet() if self._driver is None else self._driver.core.history.voters

    @property
    def failure(self) -> Exception | None:
        """Why the replica has stopped, None where nothing failed."""
        return None if self._driver is None else self._driver.failure

    @property
    def has_leader(self) -> bool:
        """Whether this node leads, or follows one that it hears of; not while it looks for one."""
        return self._driver is not None and isinstance(self._driver.core.role, Leader | Follower)

    @property
    def leader_high_watermark(self) -> int | None:
        """Up to where the leader has committed, whether that has come here or not.

        None where that cannot be told: no leader, or none that has answered a fetch yet.
        """
        if self._driver is None:
            return None
        role = self._driver.core.role
        if isinstance(role, Follower):
            return role.leader_high_watermark
        return self._driver.core.high_watermark if isinstance(role, Leader) else None

    def voter_ids(self) -> frozenset[int]:
        """Return the ids of the current voters."""
        return (
            frozenset() if self._driver is None else frozenset(self._driver.core.history.voters.ids)
        )

    def leader_endpoint(self, listener_name: str | None = None) -> Address | None:
        """Return where the leader listens, by default under the controller listener."""
        leader_id = self.leader_id
        if self._driver is None or leader_id is None:
            return None
        name = listener_name or self._settings.controller_listener
        core = self._driver.core
        found = endpoint_named(core.role.leader_endpoints, name)
        found = found or core.history.voters.endpoint_of(leader_id, name)
        return None if found is None else Address(found.host, found.port)

    def propose(self, values: Sequence[bytes], *, epoch: int) -> int:
        """Append records in one batch and return the offset of the last one.

        The batch is committed, or lost with the leadership, as a whole; the listener hears of it.
        Raises NotLeaderError unless this node leads in `epoch`, ProposalTooLargeError above 8 MiB,
        RaftStoppedError.
        """
        driver = self._running_driver()
        if not values:
            raise ValueError("a proposal without records")
        if sum(map(len, values)) > BATCH_BYTES_MAX:
            raise ProposalTooLargeError(f"the records take more than {BATCH_BYTES_MAX} bytes")
        try:
            base_offset = driver.propose(values, epoch=epoch)
        except NotLeadingError:
            raise NotLeaderError(leader_id=self.leader_id, epoch=self.epoch) from None
        return base_offset + len(values) - 1

    def kraft_upgrade_problem(self, kraft_version: int) -> str | None:
        """Return why the quorum cannot be raised to a kraft.version, None where it can be.

        Raises NotLeaderError.
        """
        try:
            self._upgrade(kraft_version, epoch=self.epoch, validate_only=True)
        except KRaftVersionUpgradeError as error:
            return str(error)
        return None

    def upgrade_kraft_version(self, kraft_version: int, *, epoch: int) -> None:
        """Have the quorum work at a kraft.version from the next record on, if it does not yet.

        Raises NotLeaderError unless this node leads in `epoch`, KRaftVersionUpgradeError where
        `kraft_upgrade_problem` tells of one.
        """
        self._upgrade(kraft_version, epoch=epoch, validate_only=False)

    def _upgrade(self, kraft_version: int, *, epoch: int, validate_only: bool) -> None:
        driver = self._running_driver()
        try:
            _, effects = driver.core.upgrade_kraft_version(
                driver.now(), epoch=epoch, kraft_version=kraft_version, validate_only=validate_only
            )
        except StaleEpochError as error:
            raise NotLeaderError(leader_id=self.leader_id, epoch=self.epoch) from error
        driver.run(effects)

    def resign(self, epoch: int) -> None:
        """Give up the leadership of `epoch`, if this node still has it."""
        driver = self._running_driver()
        driver.call(lambda: driver.core.resign(driver.now(), epoch=epoch))

    async def handle_request(
        self, request: Message, *, version: int, listener_name: str
    ) -> Message:
        """Answer a request of a peer; a fetch may wait for records.

        Takes Vote, BeginQuorumEpoch, EndQuorumEpoch, Fetch, FetchSnapshot, DescribeQuorum, and
        AddRaftVoter, RemoveRaftVoter and UpdateRaftVoter.
        `version` is the request's, `listener_name` the one it came in on. Raises RaftStoppedError.
        """
        driver = self._running_driver()
        asked = read_request(request, cluster_id=self._settings.cluster_id)
        if isinstance(asked, Message):
            return asked
        response: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        token = driver.inbound.add(
            request,
            version=version,
            listener_name=listener_name,
            respond=lambda said: _settle(response, said),
        )
        driver.call(lambda: driver.core.receive(driver.now(), token=token, request=asked))
        try:
            return await response
        finally:
            if not response.done() or response.cancelled():
                driver.inbound.drop(token)
                driver.core.forget(token)

    async def create_snapshot(
        self,
        *,
        end_offset: int,
        epoch: int,
        last_contained_log_timestamp_ms: int,
        values: Iterable[Sequence[bytes]],
    ) -> bool:
        """Write a snapshot of everything below `end_offset`; each item of `values` is a batch.

        False where there is one already, or the log starts behind it. `epoch` is that of the last
        record in it. `values` is consumed in another thread. Raises StorageError.
        """
        driver = self._running_driver()
        writer = driver.log.create_snapshot(
            SnapshotId(end_offset, epoch), high_watermark=driver.applier.next_offset
        )
        if writer is None:
            return False
        history = driver.core.history
        controls = SnapshotControls(
            history.recorded_voters_at(end_offset), history.kraft_version_at(end_offset)
        )
        now_ms = self._clock.wall_ms()
        await asyncio.get_running_loop().run_in_executor(
            None if self._runtime is None else self._runtime.executor,
            lambda: write_snapshot(
                writer,
                controls=controls,
                last_contained_log_timestamp_ms=last_contained_log_timestamp_ms,
                values=values,
                now_ms=now_ms,
            ),
        )
        self.snapshot_bytes = writer.size
        driver.core.snapshot_created(OffsetAndEpoch(end_offset, epoch))
        return True

    async def clean_log(self) -> bool:
        """Drop snapshots and segments that retention allows to go; also runs every minute."""
        driver = self._running_driver()
        did_clean = clean(driver.log, now_ms=self._clock.wall_ms())
        if did_clean:
            driver.core.log_start_moved(driver.log.start_offset, snapshot_ids(driver.log))
            _LOG.info(Event("Cleaned the metadata log", log_start_offset=driver.log.start_offset))
        return did_clean

    async def _clean_now_and_then(self) -> None:
        while not self.is_stopped:
            await asyncio.sleep(CLEANING_INTERVAL_MS / 1000)
            if self.is_stopped or self._driver is None:
                return
            try:
                await self.clean_log()
            except Exception as error:  # noqa: BLE001 - a disk that fails stops the replica
                self._driver.fail(error)

    def _running_driver(self) -> Driver:
        if self._driver is None or self.is_stopped:
            raise RaftStoppedError("the replica does not run")
        return self._driver


def _settle(response: asyncio.Future[Message], said: Message | RaftStoppedError) -> None:
    """Pass on what was said, unless nobody waits for it any more."""
    if response.done():
        return
    if isinstance(said, RaftStoppedError):
        response.set_exception(said)
    else:
        response.set_result(said)
