"""A simulated broker: a machine, and the session of the process that runs on it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from kvorum.metadata.image import MetadataImage
from kvorum.simulation.disk import MountedDisk
from kvorum.simulation.node import SimulatedNode
from kvorum.simulation.partitions.broker_session import BrokerSession
from kvorum.simulation.partitions.ledger import Replica
from kvorum.simulation.partitions.network import Reply
from kvorum.simulation.partitions.process import Process
from kvorum.simulation.partitions.settings import ROOTS
from kvorum.simulation.partitions.surroundings import Surroundings
from kvorum.wire.primitives import Message


class Broker:
    """A broker that is started, stopped and ended again and again.

    `on_crash` is called with the error that has ended a process by itself.
    """

    def __init__(
        self,
        node: SimulatedNode,
        around: Surroundings,
        on_crash: Callable[[Broker, BaseException], None],
    ) -> None:
        self.id = node.node_id
        self._around = around
        self._on_error = partial(on_crash, self)
        self.process = Process(around.events, around.random, node, self._on_error)
        for disk, root in zip(self.process.disks, ROOTS, strict=True):
            disk.mount().make_directory(root)
        self._session: BrokerSession | None = None

    @property
    def is_up(self) -> bool:
        """Whether a process runs."""
        return self.process.is_up

    @property
    def is_stopping(self) -> bool:
        """Whether a controlled shutdown is under way."""
        return self._session is not None and self._session.is_stopping

    @property
    def epoch(self) -> int:
        """The broker epoch of this process, or of the last one; -1 before it is registered."""
        return -1 if self._session is None else self._session.epoch

    @property
    def is_registered(self) -> bool:
        """Whether this process, or the last one, has been given a broker epoch."""
        return self.epoch >= 0

    @property
    def image(self) -> MetadataImage:
        """The metadata that the process knows."""
        return MetadataImage() if self._session is None else self._session.image

    def start(self) -> None:
        """Start a process."""
        disks = self.process.begin()
        self.process.guard(lambda: self._begin(disks))()

    def _begin(self, disks: tuple[MountedDisk, ...]) -> None:
        session = BrokerSession(self.id, self._around, self.process, disks, self._on_error)
        self._session = session
        session.begin()

    def stop(self) -> None:
        """Ask for a controlled shutdown."""
        if self._session is not None:
            self._session.stop()

    def move_replica(self) -> bool:
        """Begin to move a replica to its broker's other directory, if there is one to move."""
        session = self._session
        if not self.is_up or session is None or not session.is_serving:
            return False
        self.process.guard(session.move_replica)()
        return True

    def replica(self, place: int) -> Replica | None:
        """Return a replica to look at, by its partition's number among those of all topics.

        None if the broker does not have it, or cannot read it.
        """
        session = self._session
        if not self.is_up or session is None:
            return None
        partition = session.replicas.partition(*self._around.settings.partition_at(place))
        if (
            partition is None
            or partition.log.local_log.poison.is_there
            or partition.log.local_log.is_closed
        ):
            return None
        return Replica(self.id, place, partition.log)

    def listed_groups(self) -> list[str]:
        """Return the groups that the broker lists (ListGroups)."""
        return [] if self._session is None else self._session.listed_groups()

    def receive(self, request: Message, reply: Reply, version: int | None = None) -> None:
        """Handle a request of another broker or a client."""
        session = self._session
        if self.is_up and session is not None:
            asked = type(request).MAX_VERSION if version is None else version
            self.process.guard(lambda: session.handle(request, reply, asked))()
