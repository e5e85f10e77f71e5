"""The parts of a world that all its brokers and clients share."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Protocol

from kvorum.metadata.image import MetadataImage
from kvorum.simulation.events import WALL_START_MS, Events
from kvorum.simulation.network import OnReply
from kvorum.simulation.partitions.group_ledger import GroupLedger
from kvorum.simulation.partitions.ledger import PartitionLedger
from kvorum.simulation.partitions.places import Places
from kvorum.simulation.partitions.quorum import ControllerQuorum
from kvorum.simulation.partitions.settings import WorldSettings
from kvorum.simulation.properties.catalogue import Checks
from kvorum.simulation.requests import Requests


class Server(Protocol):
    """A broker as others see it."""

    @property
    def is_up(self) -> bool:
        """Whether a process runs."""
        ...

    @property
    def incarnation(self) -> int:
        """The number of processes so far, the present one included."""
        ...

    @property
    def image(self) -> MetadataImage:
        """The metadata that the broker knows."""
        ...

    def receive(self, frame: bytes, reply: OnReply) -> None:
        """Handle the frame of a request; there may be no answer."""
        ...


@dataclass(frozen=True, slots=True)
class BrokerSurroundings:
    """A world's time, chance, controllers and books.

    `releases` draws the versions of older clients; without it all are of the latest release.
    `on_expansion` gets the ids of a leader and of the replica that is about to join its ISR, and
    returns for how long the request is delayed.
    """

    settings: WorldSettings
    events: Events
    random: Random
    disk_random: Random
    """The chance by which disks are slow, apart so that the rest of a seed is as it was."""
    requests: Requests
    client_ids: Iterator[int]
    """The places of clients in the network that are not taken yet."""
    quorum: ControllerQuorum
    ledger: PartitionLedger
    places: Places
    servers: Mapping[int, Server]
    groups: dict[str, GroupLedger]
    releases: Random | None
    on_expansion: Callable[[int, int], float]

    @property
    def checks(self) -> Checks:
        """The number of times each property of brokers was checked."""
        return self.ledger.checks

    @property
    def now_ms(self) -> float:
        """The world's time."""
        return self.events.now_ms

    def wall_ms(self) -> int:
        """Return the time of day."""
        return WALL_START_MS + int(self.events.now_ms)
