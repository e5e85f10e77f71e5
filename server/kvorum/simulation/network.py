"""The network, whose paths carry frames: they delay, lose, double and hold them back."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import TypeAlias
from zlib import crc32

from kvorum.node.outbound.client_connection import ClientConnectionError
from kvorum.simulation.events import Events
from kvorum.simulation.faults import FaultKind
from kvorum.simulation.trace import Trace

_LATE_MS_MIN = 20.0
"""The least by which a message is late: other messages take less than that, mostly."""
Route: TypeAlias = tuple[int, int]
"""The ids of the sender and the receiver of a path."""
Reply: TypeAlias = bytes | ClientConnectionError
"""The frame of a response, or the error that ends its connection."""
OnReply: TypeAlias = Callable[[Reply], None]
"""Takes a response where it arrives."""
Serve: TypeAlias = Callable[[bytes, OnReply], None]
"""Takes the frame of a request where it arrives; may respond later, or never."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """The shares of messages that a path loses, doubles or holds up, and how long others take."""

    loss: float = 0.0
    duplication: float = 0.0
    mean_delay_ms: float = 0.5
    late: float = 0.0
    """The share of messages that take longer, by up to `late_ms_max`."""
    late_ms_max: float = 0.0


Usual: TypeAlias = Callable[[Route], Conditions]
HEALTHY = Conditions()


def always_healthy(_: Route) -> Conditions:
    """Return the conditions of a path in a network in which nothing fails by itself."""
    return HEALTHY


@dataclass(slots=True)
class Path:
    """The state of one direction between two places."""

    conditions: Conditions
    is_cut: bool = False
    is_clogged: bool = False
    held: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])


class Network:
    """All paths between nodes, clients and operators, each at the place of its id.

    `faults` counts each message that is lost or doubled; `trace` hashes the frames of requests.
    `usual` returns the conditions of a path that no fault has changed.
    """

    def __init__(
        self,
        events: Events,
        random: Random,
        faults: Counter[FaultKind],
        trace: Trace,
        usual: Usual,
    ) -> None:
        self.usual: Usual = usual
        self._events = events
        self._random = random
        self._faults = faults
        self._trace = trace
        self._paths: dict[Route, Path] = {}

    def path(self, sender: int, receiver: int) -> Path:
        """Return the path from one place to another, which the caller may change."""
        route = sender, receiver
        path = self._paths.get(route)
        if path is None:
            path = self._paths[route] = Path(self.usual(route))
        return path

    def is_cut(self, sender: int, receiver: int) -> bool:
        """Return whether the path from one place to another is cut."""
        return self.path(sender, receiver).is_cut

    def cut(self, sender: int, receiver: int) -> None:
        """Cut the path from one place to another; messages under way are lost too."""
        path = self.path(sender, receiver)
        path.is_cut = True
        path.held.clear()

    def heal(self, sender: int, receiver: int) -> None:
        """End the cut of a path."""
        self.path(sender, receiver).is_cut = False

    def clog(self, sender: int, receiver: int) -> None:
        """Hold back every message from one place to another."""
        self.path(sender, receiver).is_clogged = True

    def unclog(self, sender: int, receiver: int) -> None:
        """Deliver all held messages at once."""
        path = self.path(sender, receiver)
        path.is_clogged = False
        held, path.held = path.held, []
        for arrive in held:
            self._events.after(0.0, arrive)

    def calm(self) -> None:
        """Remove every fault from every path, the usual ones too."""
        before = self.usual

        def delayed(route: Route) -> Conditions:
            return Conditions(mean_delay_ms=before(route).mean_delay_ms)

        self.usual = delayed
        for route in sorted(self._paths):
            self.unclog(*route)
            path = self._paths[route]
            path.is_cut = False
            path.conditions = self.usual(route)

    def request(
        self, sender: int, receiver: int, frame: bytes, *, serve: Serve, reply: OnReply
    ) -> None:
        """Carry a request to `serve`, and each response back; a response may never come."""
        self._trace.mix(f"{sender}>{receiver}", b"%d" % crc32(frame))

        def respond(said: Reply) -> None:
            if isinstance(said, bytes):
                self._trace.mix(f"{receiver}>{sender}", b"%d" % crc32(said))
            self.carry(receiver, sender, lambda: reply(said))

        self.carry(sender, receiver, lambda: serve(frame, respond))

    def carry(self, sender: int, receiver: int, arrive: Callable[[], None]) -> None:
        """Carry a message; `arrive` is called at its arrival: once, twice or never."""
        path = self.path(sender, receiver)
        if path.is_cut:
            return
        now = path.conditions
        if now.loss and self._random.random() < now.loss:
            self._faults[FaultKind.LOST_MESSAGES] += 1
            return
        copies = 1
        if now.duplication and self._random.random() < now.duplication:
            self._faults[FaultKind.DOUBLED_MESSAGES] += 1
            copies = 2
        for _ in range(copies):
            delay_ms = self._random.expovariate(1.0) * now.mean_delay_ms
            if now.late and self._random.random() < now.late:
                delay_ms += self._random.uniform(_LATE_MS_MIN, now.late_ms_max)
            self._events.after(delay_ms, lambda: self._come(path, arrive))

    def _come(self, path: Path, arrive: Callable[[], None]) -> None:
        if path.is_cut:
            return
        if path.is_clogged:
            path.held.append(arrive)
        else:
            arrive()
