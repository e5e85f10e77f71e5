"""The use that a request makes of its client's quotas, and the wait for it (RequestHandlerHelper).

Produce and Fetch decide for themselves, about bytes too; every other API when it is answered.
"""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from kvorum.broker.quota.client_quota_manager import UNLIMITED, QuotaClient, QuotaManagers
from kvorum.node.broker.forwarding_manager import read_response
from kvorum.node.clock import Clock
from kvorum.node.serving.request import IncomingRequest
from kvorum.node.serving.request_handler import EncodedResponse, HandlerResponse
from kvorum.wire.headers import encode_response_frame
from kvorum.wire.primitives import Message


@runtime_checkable
class _Throttled(Protocol):
    """A response with a throttle time."""

    throttle_time_ms: int


class RequestHandlerHelper:
    """Records requests for the quotas of their clients; returned times are in milliseconds."""

    def __init__(self, quotas: QuotaManagers, clock: Clock) -> None:
        self._quotas = quotas
        self._clock = clock

    def throttle_produce(self, request: IncomingRequest[Message], *, is_acknowledged: bool) -> int:
        """Record what was produced; return how long the client has to wait.

        As in Kafka, the time of a request without acknowledgement does not count.
        """
        quotas = self._quotas
        if not (quotas.produce.quotas_enabled or quotas.request.quotas_enabled):
            request.progress.throttle_time_ms = 0
            return 0
        client = client_of(request)
        now_ms = self._clock.monotonic_ms()
        throttle_ms = quotas.produce.maybe_record_and_get_throttle_time_ms(
            client, len(request.frame), now_ms
        )
        if is_acknowledged:
            throttle_ms = max(throttle_ms, self._throttle_time(request, now_ms))
        request.progress.throttle_time_ms = throttle_ms
        return throttle_ms

    def throttle_fetch(
        self, request: IncomingRequest[Message], response_bytes: Callable[[], int]
    ) -> int:
        """Record what a consumer is to get; return how long it has to wait, for nothing.

        A consumer that has to wait gets no records, and they do not count.
        """
        fetch, client, now_ms = self._quotas.fetch, client_of(request), self._clock.monotonic_ms()
        throttle_ms = self._throttle_time(request, now_ms)
        if fetch.quotas_enabled:
            size = response_bytes()
            throttle_ms = max(
                throttle_ms, fetch.maybe_record_and_get_throttle_time_ms(client, size, now_ms)
            )
            if throttle_ms > 0:
                fetch.unrecord_quota_sensor(client, size, now_ms)
        request.progress.throttle_time_ms = throttle_ms
        return throttle_ms

    def fetch_bytes_max(self, request: IncomingRequest[Message]) -> int:
        """Return the most bytes that a consumer can get without having to wait for sure."""
        fetch = self._quotas.fetch
        if not fetch.quotas_enabled:
            return int(UNLIMITED)
        return int(fetch.max_value_in_quota_window(client_of(request)))

    def throttle(
        self, request: IncomingRequest[Message], response: HandlerResponse
    ) -> HandlerResponse:
        """Record the time of a request without a decision; return its response."""
        if request.progress.throttle_time_ms is not None:
            return response
        throttle_ms = self._throttle_time(request, self._clock.monotonic_ms())
        request.progress.throttle_time_ms = throttle_ms
        if throttle_ms == 0 or response is None:
            return response
        if not isinstance(response, EncodedResponse):
            set_throttle_time(response, throttle_ms)
            return response
        if throttle_ms <= response.throttle_time_ms:
            return response
        body = read_response(request, response.frame)
        set_throttle_time(body, throttle_ms)
        frame = encode_response_frame(
            body, version=request.version, correlation_id=request.header.correlation_id
        )
        return EncodedResponse(frame, throttle_ms)

    def _throttle_time(self, request: IncomingRequest[Message], now_ms: float) -> int:
        quota = self._quotas.request
        if not quota.quotas_enabled:
            return 0
        return quota.maybe_record_request_time(
            client_of(request), request.progress.local_time_ms, now_ms
        )


def client_of(request: IncomingRequest[Message]) -> QuotaClient:
    """Return the client whose quotas count."""
    return QuotaClient(request.principal.name, request.header.client_id or "")


def set_throttle_time(response: Message, throttle_time_ms: int) -> None:
    """Set the throttle time of a response; some classes of responses have none."""
    if isinstance(response, _Throttled):
        response.throttle_time_ms = max(response.throttle_time_ms, throttle_time_ms)
