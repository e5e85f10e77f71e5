"""The parts of a world that all its brokers and clients share."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Final, Protocol

from kvorum.metadata.image import MetadataImage
from kvorum.simulation.events import WALL_START_MS, Events
from kvorum.simulation.network import OnReply, Serve
from kvorum.simulation.operator import OPERATOR_ID
from kvorum.simulation.partitions.client_history import ClientHistory
from kvorum.simulation.partitions.consumer_group_ledger import ConsumerGroupLedger
from kvorum.simulation.partitions.group_ledger import GroupLedger
from kvorum.simulation.partitions.ledger import PartitionLedger
from kvorum.simulation.partitions.login_book import LoginBook
from kvorum.simulation.partitions.open_connection import OpenConnection
from kvorum.simulation.partitions.places import Places
from kvorum.simulation.partitions.settings import ClusterSettings
from kvorum.simulation.partitions.share_group_ledger import ShareGroupLedger
from kvorum.simulation.properties.catalogue import Checks
from kvorum.simulation.quorum import SimulatedQuorum
from kvorum.simulation.requests import OnAnswer, Requests
from kvorum.simulation.trace import Trace
from kvorum.wire.primitives import Message

OPERATOR_WAITS_MS: Final = 260
END_IS_KNOWN_MS_MAX: Final = 60
"""The longest time after which a broker learns that a client has ended a connection."""


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

    def receive(
        self, frame: bytes, reply: OnReply, connection: OpenConnection | None = None
    ) -> None:
        """Handle the frame of a request; there may be no answer.

        Without a `connection` the request has one of its own, whose end has no listener.
        """
        ...

    def end_connection(self, connection: OpenConnection) -> None:
        """Have the process of a connection act upon its end, if it still runs."""
        ...

    def connect(self, connection: OpenConnection) -> Serve:
        """Return what takes the frames of a new connection, whose client logs in."""
        ...


@dataclass(frozen=True, slots=True)
class BrokerSurroundings:
    """A cluster's settings, chance, controllers and books.

    `releases` draws the versions of older clients; without it all are of the latest release.
    `logins` is the book of the users, in a world where some clients log in.
    `closing` draws when a broker learns of a connection's end, in a world where those who give up a
    request close its connection.
    `on_expansion` gets the ids of a leader and of the replica that is about to join its ISR, and
    returns for how long the request is delayed; `on_outcome` gets the id of a coordinator that is
    asked to end a transaction.
    """

    settings: ClusterSettings
    random: Random
    disk_random: Random
    """The chance by which disks are slow, apart so that the rest of a seed is as it was."""
    requests: Requests
    client_ids: Iterator[int]
    """The places of clients in the network that are not taken yet."""
    quorum: SimulatedQuorum
    ledger: PartitionLedger
    history: ClientHistory
    places: Places
    servers: Mapping[int, Server]
    groups: dict[str, GroupLedger]
    consumer_groups: dict[str, ConsumerGroupLedger]
    share_groups: dict[str, ShareGroupLedger]
    releases: Random | None
    logins: LoginBook | None
    closing: Random | None
    on_expansion: Callable[[int, int], float]
    on_outcome: Callable[[int], None]

    @property
    def events(self) -> Events:
        """The world's events to come."""
        return self.quorum.around.events

    @property
    def trace(self) -> Trace:
        """The world's trace."""
        return self.quorum.around.trace

    @property
    def committed_image(self) -> MetadataImage:
        """The metadata that the quorum has committed."""
        return self.quorum.committed_image

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

    def random_for(self, name: str) -> Random:
        """Return the random generator of one part of the world."""
        return self.quorum.around.random_for(name)

    def first_ms(self, interval_ms: float) -> float:
        """Draw the time to the first of actions that have an interval between them."""
        return interval_ms * self.random.uniform(0.5, 1.5)

    def every(self, interval_ms: float, action: Callable[[], None]) -> None:
        """Repeat an action for as long as the world lasts."""

        def again() -> None:
            action()
            self.events.after(interval_ms, again)

        self.events.after(self.first_ms(interval_ms), again)

    def end_connection_soon(self, broker: int, connection: OpenConnection) -> None:
        """Have a broker learn of a connection's end, in a world with ends."""
        assert self.closing is not None
        self.ledger.counts["connections given up"] += 1
        end = partial(self.servers[broker].end_connection, connection)
        self.events.after(self.closing.uniform(0, END_IS_KNOWN_MS_MAX), end)

    def ask_leader(self, request: Message, on_answer: OnAnswer) -> None:
        """Send an operator's request to the quorum's leader; None is the answer if none comes."""
        leader = self.quorum.leader()
        if leader is None:
            on_answer(None)
            return
        link = OPERATOR_ID, leader.node_id
        self.requests.ask(
            link, request, leader.take_request, on_answer, timeout_ms=OPERATOR_WAITS_MS
        )
