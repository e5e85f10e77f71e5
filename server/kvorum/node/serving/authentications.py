"""The numbers of clients that a listener has let in, has not, and has closed at a session's end."""

import json
import logging

from kvorum.node.events.log_event import LogEvent, RareEvents
from kvorum.node.metrics.sensors import WindowedSensor
from kvorum.node.runtime import Runtime

_log = logging.getLogger(__name__)


class Authentications:
    """Counts the authentications of one listener, and logs those that fail, as Kafka does.

    A client on a PLAINTEXT listener is not authenticated, and not counted.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._failures = RareEvents()
        self.repeat_latency_ms = WindowedSensor(runtime.monotonic_ms())
        self.successful_count = 0
        self.unrepeatable_count = 0
        self.failed_count = 0
        self.repeated_count = 0
        self.failed_repeat_count = 0
        self.expired_count = 0

    def succeed(self, *, can_repeat: bool) -> None:
        """Count a client that is let in, and whether it knows how to authenticate again."""
        self.successful_count += 1
        self.unrepeatable_count += not can_repeat

    def succeed_again(self, latency_ms: float) -> None:
        """Count a client that has authenticated again, and the time that it took."""
        self.repeated_count += 1
        self.repeat_latency_ms.record(latency_ms, self._runtime.monotonic_ms())

    def expire(self) -> None:
        """Count a client that is closed because its session has ended."""
        self.expired_count += 1

    def fail_handshake(self, host: str, listener: str, reason: str) -> None:
        """Count a handshake of TLS that failed, and log it with its reason."""
        self.failed_count += 1
        self._log(f"Failed authentication with /{host} (SSL handshake failed)", listener, reason)

    def fail(self, host: str, listener: str, reason: str, *, is_repeated: bool) -> None:
        """Count a client that SASL has not let in, at first or again, and log it."""
        self.failed_repeat_count += is_repeated
        self.failed_count += not is_repeated
        attempt = "re-authentication" if is_repeated else "authentication"
        self._log(f"Failed {attempt} with /{host} ({json.dumps(reason)[1:-1]})", listener, None)

    def _log(self, text: str, listener: str, reason: str | None) -> None:
        """Log a failure unless such a line was logged a moment ago."""
        suppressed_count = self._failures.happened(self._runtime.monotonic_ms())
        if suppressed_count is None:
            return
        _log.info(
            LogEvent(
                text,
                listener=listener,
                reason=reason,
                others=suppressed_count or None,
            )
        )
