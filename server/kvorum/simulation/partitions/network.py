"""The network between brokers, clients and controllers: frames are late, doubled, lost, cut off.

A frame that is late may arrive behind ones that were sent after it.
"""

from collections.abc import Callable
from random import Random
from typing import Final, TypeAlias, TypeVar

from kvorum.node.coroutines import GiveUp, Take, Wait
from kvorum.simulation.events import Events
from kvorum.simulation.partitions.settings import CLIENT_ID
from kvorum.wire.apis import response_class
from kvorum.wire.headers import decode_response_frame, encode_request_frame
from kvorum.wire.primitives import Message

CONTROLLERS: Final = 0
"""The place of the controllers; brokers are at their ids, which are above it."""
CLIENTS: Final = -1
"""The place of producers and consumers."""

Response = TypeVar("Response", bound=Message)
OnAnswer: TypeAlias = Callable[[Message | None], None]
"""Takes the answer, or None where the connection breaks."""
Reply: TypeAlias = Callable[[bytes | None], None]
"""Takes the frame of the answer, or None where the connection breaks."""


def answer(
    kind: type[Response], ask: Callable[[OnAnswer], None], otherwise: Exception
) -> Wait[Response]:
    """Return the wait for an answer of a kind to what `ask` asks; any other raises `otherwise`."""

    def begin(take: Take[Response]) -> GiveUp:
        ask(lambda answered: take(answered if isinstance(answered, kind) else otherwise))
        return lambda: None

    return Wait(begin)


def request_frame(request: Message, version: int) -> bytes:
    """Return the frame of a request in a version."""
    return encode_request_frame(request, version=version, correlation_id=1, client_id=CLIENT_ID)


def decoded_answer(request: Message, version: int, frame: bytes) -> Message:
    """Return the answer in the frame of a response to a request of a version."""
    assert request.API_KEY is not None
    kind = response_class(request.API_KEY)
    return decode_response_frame(frame, response_class=kind, version=version)[1]


class Network:
    """The links between places, which deliver frames or lose them."""

    def __init__(
        self,
        events: Events,
        random: Random,
        *,
        loss: float,
        duplication: float,
        late: tuple[float, int],
    ) -> None:
        """`late` has the share of messages that are late, and by how many milliseconds at most."""
        self._events, self._random = events, random
        self._loss, self._duplication = loss, duplication
        self._late, self._late_ms_max = late
        self._cut: set[frozenset[int]] = set()
        self.lost = 0

    def ask(
        self,
        link: tuple[int, int],
        request: Message,
        serve: Callable[[bytes, Reply], None],
        on_answer: OnAnswer,
        *,
        timeout_ms: float,
        version: int | None = None,
        delay_ms: float = 0.0,
    ) -> None:
        """Have the frame of a request served at the link's other end; pass on exactly one answer.

        That is None once the time is over. The frame has a version, by default the latest, and may
        arrive twice.
        """
        source, target = link
        chosen = request.MAX_VERSION if version is None else version
        frame = request_frame(request, chosen)
        is_answered = False

        def tell(response: bytes | None) -> None:
            nonlocal is_answered
            if not is_answered:
                is_answered = True
                on_answer(None if response is None else decoded_answer(request, chosen, response))

        def reply(response: bytes | None) -> None:
            self.send(target, source, lambda: tell(response))

        for _ in range(1 + (self._random.random() < self._duplication)):
            self.send(source, target, lambda: serve(frame, reply), delay_ms=delay_ms)
        self._events.after(timeout_ms, lambda: tell(None))

    def send(
        self, source: int, target: int, deliver: Callable[[], None], *, delay_ms: float = 0.0
    ) -> None:
        """Deliver a call after a delay, unless it is lost or the link is cut; calls may reorder."""
        if self._random.random() < self._loss:
            self.lost += 1
            return
        latency_ms = self._random.uniform(0.5, 8)
        if self._random.random() < self._late:
            latency_ms += self._random.uniform(20, self._late_ms_max)
        link = frozenset((source, target))

        def arrive() -> None:
            if link in self._cut:
                self.lost += 1
            else:
                deliver()

        self._events.after(latency_ms + delay_ms, arrive)

    def cut(self, source: int, target: int) -> None:
        """Cut a link in both directions."""
        self._cut.add(frozenset((source, target)))

    def is_cut(self, source: int, target: int) -> bool:
        """Return whether a link is cut."""
        return frozenset((source, target)) in self._cut

    def mend(self, source: int, target: int) -> None:
        """End the cut of a link."""
        self._cut.discard(frozenset((source, target)))

    def heal(self) -> None:
        """End all cuts and losses, and long delays."""
        self._cut.clear()
        self._loss = self._duplication = self._late = 0.0
