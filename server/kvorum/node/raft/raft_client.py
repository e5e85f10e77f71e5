"""Kafka's RaftClient: one replica of the metadata log, with its directory, core and driver.

This is the interface of the quorum to the rest of a node, and the life of a replica: it begins,
writes snapshots, cleans its log and ends. It does not depend on an event loop: time, turns and
threads come from a `Runtime`, and a caller that waits passes a callback. A process runs it as a
`RaftNode`; a simulation runs this class itself.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from random import Random

from kvorum.controller.quorum_description import NO_QUORUM, QuorumDescription, ReplicaState
from kvorum.metadata.address import Address
from kvorum.metadata.voters import VoterKey
from kvorum.node.events.log_event import LogEvent
from kvorum.node.raft.applier import write_snapshot
from kvorum.node.raft.driver import Driver
from kvorum.node.raft.errors import ProposalTooLargeError, RaftStoppedError
from kvorum.node.raft.inbound_requests import Respond, read_request
from kvorum.node.raft.links import Connect
from kvorum.node.raft.listener import RaftListener
from kvorum.node.raft.opened_directory import OpenedDirectory
from kvorum.node.raft.settings import RaftSettings, identity_of
from kvorum.node.raft.snapshot_controls import SnapshotControls
from kvorum.node.runtime import Runtime, Timer
from kvorum.raft import KRaftVersionUpgradeError, OffsetAndEpoch, RaftCore
from kvorum.raft.endpoints import endpoint_named
from kvorum.raft.leader_contact import LeaderContact
from kvorum.raft.messages import Error, ReplicaProgress
from kvorum.raft.metrics import RaftMetrics
from kvorum.raft.roles import Follower, Leader
from kvorum.raft.voter_set import VoterSet
from kvorum.storage.metadata_log.retention import clean
from kvorum.wire.primitives import Message

_LOG = logging.getLogger(__name__)
BATCH_BYTES_MAX = 8 * 1024 * 1024
"""The maximum size of a batch of the metadata log, as in Kafka."""
CLEANING_INTERVAL_MS = 60_000
WhenDone = Callable[[Exception | None], None]
"""Takes the error with which a piece of work ended, or None."""


def describe_quorum(core: RaftCore, now_ms: float) -> QuorumDescription:
    """Return what a replica knows of the quorum as its leader; without replicas elsewhere."""
    known = core.describe_quorum(now_ms)
    leader_id = core.role.leader_id
    if known.error is not Error.NONE or leader_id is None:
        return NO_QUORUM
    return QuorumDescription(
        leader_id=leader_id,
        kraft_version=core.history.kraft_version,
        may_change=core.may_change_voters,
        log_end_offset=core.log.end_offset,
        voters=tuple(map(_replica_state, known.voters)),
        observers=tuple(map(_replica_state, known.observers)),
    )


def _replica_state(progress: ReplicaProgress) -> ReplicaState:
    return ReplicaState(
        key=VoterKey(progress.key.id, progress.key.directory_id),
        log_end_offset=progress.log_end_offset,
        last_fetch_age_ms=progress.last_fetch_age_ms,
    )


class RaftClient:
    """A voter or observer of the metadata quorum on an open directory; `begin` starts it.

    Only the thread in which its runtime calls back may use it.
    """

    def __init__(
        self,
        settings: RaftSettings,
        *,
        opened: OpenedDirectory,
        listener: RaftListener,
        runtime: Runtime,
        connect: Connect,
        random: Random,
        cleaning_interval_ms: float = CLEANING_INTERVAL_MS,
    ) -> None:
        """Create core and driver; close the directory if the core refuses its content."""
        self.settings = settings
        self.snapshot_bytes = 0
        """Size of the latest snapshot that this replica wrote, 0 without one."""
        self._runtime = runtime
        self._cleaning_interval_ms = cleaning_interval_ms
        self._cleaning: Timer | None = None
        self._end_patience: Callable[[], None] | None = None
        core = RaftCore(
            identity_of(settings),
            config=settings.raft,
            log=opened.view,
            history=opened.history,
            random=random,
        )
        try:
            self._first = core.start(runtime.monotonic_ms(), stored=opened.stored)
        except BaseException:
            opened.log.local_log.close()
            raise
        self._driver = Driver(
            core=core, opened=opened, listener=listener, runtime=runtime, connect=connect
        )
        self.core = core
        """The core, for observers."""
        self.log = opened.log
        """The log, for observers."""
        self.measures = self._driver.measures
        """The measurements of the running replica."""

    # --- state ---

    @property
    def metrics(self) -> RaftMetrics:
        """The current metrics of the replica."""
        return self.core.metrics(self._driver.now())

    @property
    def failure(self) -> Exception | None:
        """The failure that stopped the replica, None if nothing failed."""
        return self._driver.failure

    @property
    def is_stopped(self) -> bool:
        """Whether the replica does not run any more: it was closed, or has failed."""
        return self._driver.is_stopped

    @property
    def epoch(self) -> int:
        """The current leader epoch."""
        return self.core.role.epoch

    @property
    def leader_id(self) -> int | None:
        """The leader of the current epoch, as far as is known; may be this node."""
        return self.core.role.leader_id

    @property
    def is_leader(self) -> bool:
        """Whether this node leads the current epoch (its first batch may not be committed yet)."""
        return isinstance(self.core.role, Leader)

    @property
    def has_leader(self) -> bool:
        """Whether this node leads, or has contact with a leader; False during an election."""
        return isinstance(self.core.role, Leader | Follower)

    @property
    def is_in_touch(self) -> bool:
        """Whether this node leads, or has heard from its leader within the fetch timeout."""
        role = self.core.role
        if isinstance(role, Follower):
            return role.contact is LeaderContact.ALIVE
        return isinstance(role, Leader)

    @property
    def high_watermark(self) -> int | None:
        """The offset below which everything is committed; None if not yet known."""
        return self.core.high_watermark

    @property
    def leader_high_watermark(self) -> int | None:
        """The leader's high watermark, which this replica's log may not have reached.

        None if it is not known: without a leader, or before it has answered a fetch.
        """
        role = self.core.role
        if isinstance(role, Follower):
            return role.leader_high_watermark
        return self.core.high_watermark if isinstance(role, Leader) else None

    @property
    def log_end_offset(self) -> int:
        """The offset of the next record."""
        return self.core.log.end_offset

    @property
    def kraft_version(self) -> int:
        """The finalized kraft.version: 0 with static voters, 1 with a voter set in the log."""
        return self.core.history.kraft_version

    @property
    def voters(self) -> VoterSet:
        """The voters as of the log's end."""
        return self.core.history.voters

    def committed_voters(self) -> frozenset[VoterKey] | None:
        """Return the latest voters in this replica's log, None unless they are committed."""
        if not self.core.are_voters_committed:
            return None
        return frozenset(VoterKey(one.key.id, one.key.directory_id) for one in self.voters.voters)

    def describe_quorum(self) -> QuorumDescription:
        """Return what this replica knows of the quorum as its leader; without replicas elsewhere.

        Observers that their nodes have given up are left out.
        """
        known = describe_quorum(self.core, self._driver.now())
        return known.without_superseded(within_ms=self.settings.raft.fetch_timeout_ms)

    def voter_ids(self) -> frozenset[int]:
        """Return the ids of the current voters."""
        return frozenset(self.voters.ids)

    def leader_endpoint(self, listener_name: str | None = None) -> Address | None:
        """Return the leader's address on a listener, by default on the controller listener."""
        leader_id = self.leader_id
        if leader_id is None:
            return None
        name = listener_name or self.settings.controller_listener
        found = endpoint_named(self.core.role.leader_endpoints, name)
        found = found or self.voters.endpoint_of(leader_id, name)
        return None if found is None else Address(found.host, found.port)

    def why_no_leader(self) -> str:
        """Return in words why no leader is known: what is wrong with the peers that were asked."""
        problems = sorted(self._driver.problems.values())
        return "; ".join(["no leader of the quorum is known", *problems])

    # --- requests and proposals ---

    def begin(self) -> None:
        """Pass the latest snapshot to the listener, and take part in the quorum.

        A lone voter begins to lead at once.
        """
        self._driver.begin(self._first)
        self._clean_later()

    def receive(
        self, request: Message, *, version: int, listener_name: str, respond: Respond
    ) -> int | None:
        """Handle a request of a peer; `respond` gets its response once, now or later.

        Handles Vote, BeginQuorumEpoch, EndQuorumEpoch, Fetch, FetchSnapshot, DescribeQuorum,
        AddRaftVoter, RemoveRaftVoter and UpdateRaftVoter. Returns the token for `forget`, None
        if the request was refused at once. Raises RaftStoppedError.
        """
        driver = self._running_driver()
        asked = read_request(request, cluster_id=self.settings.cluster_id)
        if isinstance(asked, Message):
            respond(asked)
            return None
        token = driver.inbound.add(
            request, version=version, listener_name=listener_name, respond=respond
        )
        driver.call(lambda: driver.core.receive(driver.now(), token=token, request=asked))
        return token

    def forget(self, token: int) -> None:
        """Drop a request whose response is no longer needed."""
        self._driver.inbound.drop(token)
        self.core.forget(token)

    def propose(self, values: Sequence[bytes], *, epoch: int) -> int:
        """Append records in one batch and return the offset of the last one.

        The batch is committed, or lost with the leadership, as a whole; the listener receives it.
        Raises NotLeaderError unless this node leads in `epoch`, ProposalTooLargeError above 8 MiB,
        RaftStoppedError.
        """
        driver = self._running_driver()
        if not values:
            raise ValueError("a proposal without records")
        if sum(map(len, values)) > BATCH_BYTES_MAX:
            raise ProposalTooLargeError(f"the records take more than {BATCH_BYTES_MAX} bytes")
        return driver.propose(values, epoch=epoch) + len(values) - 1

    def kraft_upgrade_problem(self, kraft_version: int) -> str | None:
        """Return why the quorum cannot be upgraded to a kraft.version, None if it can be.

        Raises NotLeaderError.
        """
        try:
            self.upgrade_kraft_version(kraft_version, epoch=self.epoch, validate_only=True)
        except KRaftVersionUpgradeError as error:
            return str(error)
        return None

    def upgrade_kraft_version(
        self, kraft_version: int, *, epoch: int, validate_only: bool = False
    ) -> bool:
        """Upgrade the quorum to a kraft.version; return False if it has that version already.

        Raises NotLeaderError unless this node leads in `epoch`, KRaftVersionUpgradeError if
        `kraft_upgrade_problem` returns a reason.
        """
        driver = self._running_driver()
        is_new, effects = driver.core.upgrade_kraft_version(
            driver.now(), epoch=epoch, kraft_version=kraft_version, validate_only=validate_only
        )
        driver.run(effects)
        return is_new

    def resign(self, epoch: int) -> None:
        """Give up the leadership of `epoch`, if this node still has it."""
        driver = self._running_driver()
        driver.call(lambda: driver.core.resign(driver.now(), epoch=epoch))

    def write_snapshot(
        self,
        snapshot_id: OffsetAndEpoch,
        *,
        last_contained_log_timestamp_ms: int,
        values: Iterable[Sequence[bytes]],
        then: WhenDone,
    ) -> bool:
        """Write a snapshot of everything below the offset of `snapshot_id`, in another thread.

        Returns False if the snapshot exists already, or the log starts after it: then nothing is
        written and `then` is not called. Each item of `values` is a batch. Raises StorageError.
        """
        driver = self._running_driver()
        writer = driver.log.create_snapshot(snapshot_id, high_watermark=driver.applier.next_offset)
        if writer is None:
            return False
        history, end_offset = driver.core.history, snapshot_id.offset
        controls = SnapshotControls(
            history.recorded_voters_at(end_offset), history.kraft_version_at(end_offset)
        )
        now_ms = self._runtime.wall_ms()

        def written(error: Exception | None) -> None:
            if error is None and not self.is_stopped:
                self.snapshot_bytes = writer.size
                driver.core.snapshot_created(snapshot_id)
            then(error)

        self._runtime.run_blocking(
            lambda: write_snapshot(
                writer,
                controls=controls,
                last_contained_log_timestamp_ms=last_contained_log_timestamp_ms,
                values=values,
                now_ms=now_ms,
            ),
            written,
        )
        return True

    # --- maintenance ---

    def clean(self) -> bool:
        """Delete snapshots and segments as retention allows; return whether any was deleted.

        A thread removes their files, and those whose delay is over.
        """
        driver, now_ms = self._running_driver(), self._runtime.wall_ms()
        did_clean = clean(driver.log, now_ms=now_ms)
        local_log = driver.log.local_log
        if local_log.has_files_to_update(now_ms=now_ms):
            self._runtime.run_blocking(
                lambda: local_log.update_files(now_ms=now_ms), self._files_removed
            )
        if did_clean:
            log_start_offset = driver.log.log_start_offset
            driver.core.log_start_moved(log_start_offset, driver.log.snapshots.ids())
            _LOG.info(LogEvent("Cleaned the metadata log", log_start_offset=log_start_offset))
        return did_clean

    def _files_removed(self, error: Exception | None) -> None:
        if error is not None:
            self._driver.fail(error)

    def _clean_later(self) -> None:
        deadline_ms = self._runtime.monotonic_ms() + self._cleaning_interval_ms
        self._cleaning = self._runtime.call_at(deadline_ms, self._clean_now_and_then)

    def _clean_now_and_then(self) -> None:
        if self.is_stopped:
            return
        try:
            self.clean()
        except Exception as error:  # noqa: BLE001 - the failure of a disk stops the replica
            self._driver.fail(error)
        else:
            self._clean_later()

    # --- end ---

    def shut_down(self, then: WhenDone, *, hands_over: bool = True) -> None:
        """Hand over leadership, stop, and close the directory cleanly; may be called once.

        Without `hands_over` nothing is sent to other replicas, as if the process had died.
        """
        driver = self._driver
        if self._cleaning is None:
            # The replica never took part: no other replica depends on it.
            hands_over = False
        else:
            self._cleaning.cancel()
        if not hands_over or driver.is_stopped:
            self._stop(then)
            return
        self._end_patience = partial(self._stop, then)
        patience = self._runtime.call_at(
            driver.now() + self.settings.raft.shutdown_timeout_ms, self._end_patience
        )

        def complete() -> None:
            patience.cancel()
            self._runtime.call_soon(lambda: self._stop(then))

        driver.shut_down(complete)

    def end_waits(self) -> None:
        """Have a `shut_down` that is under way wait no longer for another leader."""
        if self._end_patience is not None:
            self._end_patience()

    def _stop(self, then: WhenDone) -> None:
        """Wait for blocking work that is under way, and close the log."""
        if self._driver.is_closed:
            return
        self._driver.stop()
        self._runtime.when_idle(lambda: self._leave(then))

    def _leave(self, then: WhenDone) -> None:
        self._driver.leave()
        self._runtime.run_blocking(self._driver.log.local_log.close, then)

    def _running_driver(self) -> Driver:
        if self.is_stopped:
            raise RaftStoppedError("the replica does not run")
        return self._driver
