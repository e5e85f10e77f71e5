"""The network between the nodes, which delays, loses, doubles and holds back messages."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from kvorum.simulation.events import Events
from kvorum.simulation.faults import FaultKind

USUAL_DELAY_MS = 0.5
Route = tuple[int, int]
"""The sending and the receiving node of a path."""


@dataclass(slots=True)
class Path:
    """The state of one direction between two nodes."""

    loss: float = 0.0
    duplication: float = 0.0
    mean_delay_ms: float = USUAL_DELAY_MS
    is_cut: bool = False
    is_clogged: bool = False
    held: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])


class Network:
    """All paths. `faults` counts each fault that strikes a message."""

    def __init__(self, events: Events, random: Random, faults: Counter[FaultKind]) -> None:
        self._events = events
        self._random = random
        self._faults = faults
        self._paths: dict[Route, Path] = {}

    def path(self, sender: int, receiver: int) -> Path:
        """Return the path from one node to another, which the caller may change."""
        return self._paths.setdefault((sender, receiver), Path())

    def is_cut(self, sender: int, receiver: int) -> bool:
        """Return whether the path from one node to another is cut."""
        return self.path(sender, receiver).is_cut

    def cut(self, sender: int, receiver: int) -> None:
        """Cut the path from one node to another; messages under way are lost too."""
        path = self.path(sender, receiver)
        path.is_cut = True
        path.held.clear()

    def heal(self, sender: int, receiver: int) -> None:
        """End the cut of a path."""
        self.path(sender, receiver).is_cut = False

    def clog(self, sender: int, receiver: int) -> None:
        """Hold back every message from one node to another."""
        self.path(sender, receiver).is_clogged = True

    def unclog(self, sender: int, receiver: int) -> None:
        """Deliver all held messages at once."""
        path = self.path(sender, receiver)
        path.is_clogged = False
        held, path.held = path.held, []
        for arrive in held:
            self._events.after(0.0, arrive)

    def calm(self) -> None:
        """Remove every fault from every path."""
        for sender, receiver in sorted(self._paths):
            self.unclog(sender, receiver)
            path = self._paths[sender, receiver]
            path.is_cut = False
            path.loss = path.duplication = 0.0
            path.mean_delay_ms = USUAL_DELAY_MS

    def carry(self, sender: int, receiver: int, arrive: Callable[[], None]) -> None:
        """Carry a message; `arrive` is called at its arrival: once, twice or never."""
        path = self.path(sender, receiver)
        if path.is_cut:
            return
        if path.loss and self._random.random() < path.loss:
            self._faults[FaultKind.LOST_MESSAGES] += 1
            return
        copies = 1
        if path.duplication and self._random.random() < path.duplication:
            self._faults[FaultKind.DOUBLED_MESSAGES] += 1
            copies = 2
        for _ in range(copies):
            delay_ms = self._random.expovariate(1.0) * path.mean_delay_ms
            self._events.after(delay_ms, lambda: self._come(path, arrive))

    def _come(self, path: Path, arrive: Callable[[], None]) -> None:
        if path.is_cut:
            return
        if path.is_clogged:
            path.held.append(arrive)
        else:
            arrive()
