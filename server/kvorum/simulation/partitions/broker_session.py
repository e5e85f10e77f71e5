"""One process of a simulated broker: it registers, sends heartbeats, and follows the metadata."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from kvorum.broker.lifecycle import BrokerIdentity, BrokerLifecycle, BrokerState, LocalView
from kvorum.broker.partition import Partition
from kvorum.broker.partition_leader.partition_state import IsrProposal
from kvorum.metadata.cluster_image import Endpoint
from kvorum.metadata.features import supported_features
from kvorum.metadata.image import MetadataImage
from kvorum.simulation.disk import MountedDisk
from kvorum.simulation.partitions.controller_channel import ControllerChannel
from kvorum.simulation.partitions.isr_changes import IsrChanges
from kvorum.simulation.partitions.network import CONTROLLERS, Reply
from kvorum.simulation.partitions.process import Process
from kvorum.simulation.partitions.replicas import ROOT, ReplicaOwner, Replicas
from kvorum.simulation.partitions.requests import RequestHandler
from kvorum.simulation.partitions.settings import (
    CLUSTER_ID,
    HEARTBEAT_MS,
    LAG_MAX_MS,
    directory_id,
)
from kvorum.simulation.partitions.surroundings import Surroundings
from kvorum.storage.directory.log_dir_failure_channel import LogDirFailureChannel
from kvorum.storage.directory.log_directory import LogDirectory
from kvorum.storage.directory.log_directory_files import LogDirectoryFiles
from kvorum.storage.directory.open_files import OpenFiles
from kvorum.storage.errors import DiskError
from kvorum.storage.small_files.clean_shutdown import take_clean_shutdown
from kvorum.storage.topic_log.unified_log import UnifiedLog
from kvorum.wire.messages.broker_heartbeat import BrokerHeartbeatResponse
from kvorum.wire.messages.broker_registration import BrokerRegistrationResponse
from kvorum.wire.primitives import Message

OPEN_FILES_MAX: Final = 4
"""Fewer than the logs have, so that files are let go and opened again."""
PUMP_MS: Final = 10


class BrokerSession:
    """The state of a process; it is gone when the process ends.

    `on_failure` is called with what the broker ends for. Construction and every callback may raise
    what the disk raises.
    """

    def __init__(
        self,
        broker_id: int,
        around: Surroundings,
        process: Process,
        disk: MountedDisk,
        on_failure: Callable[[BaseException], None],
    ) -> None:
        self._id = broker_id
        self._around, self._process, self._disk = around, process, disk
        self._on_failure = on_failure
        self.image = MetadataImage()
        self._applied = 0
        self.replicas: Replicas | None = None
        self._channel = ControllerChannel(broker_id, around, process)
        self._isr_changes = IsrChanges(broker_id, around, self._channel, self._partition_of)
        self._unflushed: set[UnifiedLog] = set()
        shutdown = take_clean_shutdown(ROOT, disk)
        self._was_clean = shutdown.was_clean
        self._lifecycle = BrokerLifecycle(
            self._identity(shutdown.broker_epoch),
            heartbeat_interval_ms=HEARTBEAT_MS,
            now_ms=around.now_ms,
        )

    def _identity(self, previous_epoch: int | None) -> BrokerIdentity:
        return BrokerIdentity(
            node_id=self._id,
            cluster_id=CLUSTER_ID,
            incarnation_id=bytes([self._id]) + self._process.incarnation.to_bytes(15, "big"),
            listeners=(Endpoint("PLAIN", f"b{self._id}", 9092, 0),),
            supported_features=supported_features(),
            rack=None,
            directory_ids=(directory_id(self._id),),
            previous_epoch=-1 if previous_epoch is None else previous_epoch,
        )

    @property
    def is_stopping(self) -> bool:
        """Whether a controlled shutdown is under way."""
        return self._lifecycle.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN

    @property
    def epoch(self) -> int:
        """The broker epoch, -1 before the registration."""
        return self._lifecycle.epoch

    def begin(self) -> None:
        """Do everything that a broker does again and again."""
        every, random = self._process.every, self._around.random
        every(lambda: random.uniform(1, 25), self._read_metadata)
        every(lambda: PUMP_MS, self._pump)
        every(lambda: LAG_MAX_MS / 2, self._on_replicas(Replicas.shrink_isrs))
        every(lambda: random.uniform(3, 16), self._on_replicas(Replicas.fetch))
        every(lambda: random.uniform(60, 400), self._on_replicas(Replicas.flush))
        every(lambda: random.uniform(40, 300), self._on_replicas(Replicas.tidy))
        every(lambda: random.uniform(5, 40), self._flush_finished_segments)

    def _on_replicas(self, action: Callable[[Replicas], None]) -> Callable[[], None]:
        return lambda: None if self.replicas is None else action(self.replicas)

    def _flush_finished_segments(self) -> None:
        logs, self._unflushed = self._unflushed, set()
        for log in sorted(logs, key=lambda log: str(log.topic_partition)):
            if not log.is_closed:
                log.flush()

    def stop(self) -> None:
        """Ask for a controlled shutdown."""
        self._lifecycle.begin_shutdown(self._around.now_ms)

    def handle(self, request: Message, reply: Reply) -> None:
        """Answer a request of another broker or a client; the connection breaks without logs."""
        if self.replicas is None:
            reply(None)
            return
        handler = RequestHandler(self._id, self.replicas, self._around, self._process.guard)
        handler.handle(request, reply)

    # --- the controller ---------------------------------------------------------------------

    def _pump(self) -> None:
        """Send what is due, and end where the controller lets this broker go."""
        self._beat()
        if self._lifecycle.state is BrokerState.SHUTTING_DOWN:
            self._shut_down()
        else:
            self._isr_changes.send_due(self.epoch, self.image)

    def _beat(self) -> None:
        due_ms = self._lifecycle.next_due_ms
        if due_ms is not None and due_ms <= self._around.now_ms:
            view = LocalView(self._applied - 1, None, self.replicas is not None)
            self._channel.ask(self._lifecycle.due(view), self._on_beat)

    def _on_beat(self, answer: Message | None) -> None:
        lifecycle, now_ms = self._lifecycle, self._around.now_ms
        match answer:
            case BrokerRegistrationResponse():
                lifecycle.on_registration(answer, now_ms)
            case BrokerHeartbeatResponse():
                lifecycle.on_heartbeat(answer, now_ms)
            case _:
                lifecycle.on_failure(now_ms)

    def _shut_down(self) -> None:
        if self.replicas is not None:
            self.replicas.shutdown(broker_epoch=self.epoch)
        self._process.end(is_power_cut=False)

    # --- the metadata and the logs ----------------------------------------------------------

    def _read_metadata(self) -> None:
        around = self._around
        if around.network.is_cut(self._id, CONTROLLERS):
            return
        committed = around.quorum.committed
        count = around.random.choice((1, 5, len(committed)))
        records = committed[self._applied : self._applied + count]
        self.image = self.image.apply_all(
            (message, version, self._applied + index)
            for index, (message, version) in enumerate(records)
        )
        self._applied += len(records)
        broker = self.image.cluster.brokers.get(self._id)
        # A broker does nothing before it has read its own registration.
        if self.replicas is not None:
            self.replicas.apply(self.image)
        elif broker is not None and broker.epoch == self.epoch:
            self._open_logs()

    def _open_logs(self) -> None:
        owner = ReplicaOwner(
            broker_id=self._id,
            broker_epoch=lambda: self.epoch,
            image=lambda: self.image,
            alter_partition=self._isr_changes.submit,
            guard=self._process.guard_reply,
            flush_later=self._unflushed.add,
        )
        failures = LogDirFailureChannel(self._on_log_dir_failure)
        files = LogDirectoryFiles(self._disk, ROOT, failures, OpenFiles(OPEN_FILES_MAX))
        directory = LogDirectory(ROOT, directory_id(self._id), files, was_clean=self._was_clean)
        replicas = Replicas(owner, self._around, directory)
        replicas.startup(self.image)
        self.replicas = replicas

    def _on_log_dir_failure(self, _: Path, error: DiskError) -> None:
        """End as a broker does whose only log directory has failed, once it gets to it."""
        self._around.events.after(0, self._process.guard(lambda: self._on_failure(error)))

    def _partition_of(self, proposal: IsrProposal) -> Partition | None:
        return None if self.replicas is None else self.replicas.partitions.get(proposal.key)
