"""A request in the form that handlers receive, and how far it is."""

from collections.abc import Coroutine, Generator
from types import coroutine
from typing import Any, Generic, NamedTuple, TypeVar, cast

from kvorum.metadata.standard_authorizer import Access, Principal
from kvorum.node.clock import Clock
from kvorum.node.serving.request_metrics import RequestTimes
from kvorum.node.serving.session import Session
from kvorum.wire.messages.request_header import RequestHeader
from kvorum.wire.primitives import Message

Request_co = TypeVar("Request_co", bound=Message, covariant=True)
Result = TypeVar("Result")


class RequestProgress:
    """The times of one request, from its frame to its response; in milliseconds.

    `throttle_time_ms` is None until a handler has decided about the client's quotas.
    """

    __slots__ = (
        "_clock",
        "_responded_ms",
        "_resumed_ms",
        "_started_ms",
        "_worked_ms",
        "throttle_time_ms",
    )

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._started_ms = clock.monotonic_ms()
        self._resumed_ms: float | None = self._started_ms
        self._responded_ms = self._started_ms
        self._worked_ms = 0.0
        self.throttle_time_ms: int | None = None

    @property
    def local_time_ms(self) -> float:
        """The time that the event loop has worked on the request; what it waited for is not in."""
        if self._resumed_ms is None:
            return self._worked_ms
        return self._worked_ms + self._clock.monotonic_ms() - self._resumed_ms

    def has_response(self, now_ms: float) -> None:
        """Take note that there is a response, which is to be sent."""
        self._responded_ms = now_ms

    def times(self, now_ms: float, body_bytes: int) -> RequestTimes[float]:
        """Return all times of a request whose response is sent now."""
        remote_ms = self._responded_ms - self._started_ms - self._worked_ms
        return RequestTimes(
            total_time=now_ms - self._started_ms,
            local_time=self._worked_ms,
            remote_time=max(remote_ms, 0.0),
            send_time=now_ms - self._responded_ms,
            throttle_time=self.throttle_time_ms or 0,
            request_bytes=body_bytes,
        )

    @coroutine
    def measured(self, work: Coroutine[Any, Any, Result]) -> Generator[Any, Any, Result]:
        """Do `work`, and count the time of its steps."""
        result: Any = None
        thrown: BaseException | None = None
        while True:
            try:
                awaited = work.send(result) if thrown is None else work.throw(thrown)
            except StopIteration as end:
                return cast("Result", end.value)
            finally:
                # A frame that keeps the error that passes through it lives on with it.
                result = thrown = None
                self.pause()
            try:
                result = yield awaited
            except BaseException as error:  # noqa: BLE001 - the work's own affair
                thrown = error
            finally:
                # So does one that keeps the future with the error that is raised further in.
                del awaited
            self._resumed_ms = self._clock.monotonic_ms()

    def pause(self) -> None:
        """Count no time until the work goes on."""
        if self._resumed_ms is not None:
            self._worked_ms += self._clock.monotonic_ms() - self._resumed_ms
            self._resumed_ms = None


class IncomingRequest(NamedTuple, Generic[Request_co]):
    """A request with its header, and the session of its client.

    `frame` has the original header and body, to be forwarded. `access` decides what the principal
    of the session may do.
    """

    header: RequestHeader
    body: Request_co
    frame: bytes
    progress: RequestProgress
    session: Session
    access: Access

    @property
    def listener(self) -> str:
        """The name of the listener that the request came to."""
        return self.session.listener

    @property
    def client_host(self) -> str:
        """The address of the client, also where a broker forwarded the request."""
        return self.session.client_host

    @property
    def principal(self) -> Principal:
        """The user that the client is."""
        return self.session.principal

    @property
    def is_forwarded(self) -> bool:
        """Whether a broker forwarded the request."""
        return self.session.is_forwarded

    @property
    def version(self) -> int:
        """The version of the request."""
        return self.header.request_api_version
