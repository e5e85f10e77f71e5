"""Requests between brokers, clients and controllers: framed, and answered once or given up."""

from collections.abc import Callable
from typing import TypeAlias, TypeVar

from kvorum.node.coroutines import GiveUp, Take, Wait
from kvorum.simulation.events import Events
from kvorum.simulation.network import Network, Reply, Route, Serve
from kvorum.wire.apis import response_class
from kvorum.wire.headers import decode_response_frame, encode_request_frame
from kvorum.wire.primitives import Message

CLIENT_ID = "client"
"""The id of every client, which the ids of members begin with that have no instance id."""
Response = TypeVar("Response", bound=Message)
OnAnswer: TypeAlias = Callable[[Message | None], None]
"""Takes the answer, or None where the connection breaks."""


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


class Requests:
    """Sends requests over a network, each on a connection of its own."""

    def __init__(self, network: Network, events: Events) -> None:
        self._network = network
        self._events = events

    def ask(
        self,
        link: Route,
        request: Message,
        serve: Serve,
        on_answer: OnAnswer,
        *,
        timeout_ms: float,
        version: int | None = None,
    ) -> None:
        """Have a request served at the link's other end, and pass on exactly one answer.

        That is None once the time is over. The request has a version, by default the latest, and
        may arrive twice, or after its time.
        """
        chosen = request.MAX_VERSION if version is None else version

        def decode(said: bytes | None) -> None:
            on_answer(None if said is None else decoded_answer(request, chosen, said))

        self.ask_frame(link, request_frame(request, chosen), serve, decode, timeout_ms=timeout_ms)

    def ask_frame(
        self,
        link: Route,
        frame: bytes,
        serve: Serve,
        on_reply: Callable[[bytes | None], None],
        *,
        timeout_ms: float,
    ) -> None:
        """Have the request in a frame served as `ask` does; pass on the frame of the answer."""
        is_answered = False

        def tell(said: Reply | None) -> None:
            nonlocal is_answered
            if not is_answered:
                is_answered = True
                time_out.cancel()
                on_reply(said if isinstance(said, bytes) else None)

        time_out = self._events.after(timeout_ms, lambda: tell(None))
        self._network.request(*link, frame, serve=serve, reply=tell)
