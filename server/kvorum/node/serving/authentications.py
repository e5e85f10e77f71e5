"""The numbers of clients that a listener has let in, and has not."""

import json
import logging

from kvorum.node.events.log_event import LogEvent, RareEvents
from kvorum.node.runtime import Runtime

_log = logging.getLogger(__name__)


class Authentications:
    """Counts the authentications of one listener, and logs those that fail, as Kafka does.

    A client on a PLAINTEXT listener is not authenticated, and not counted.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._failures = RareEvents()
        self.successful_count = 0
        self.failed_count = 0

    def succeed(self) -> None:
        """Count a client that is let in."""
        self.successful_count += 1

    def fail_handshake(self, host: str, listener: str, reason: str) -> None:
        """Count a handshake of TLS that failed, and log it with its reason."""
        self._fail(f"/{host} (SSL handshake failed)", listener, reason)

    def fail(self, host: str, listener: str, reason: str) -> None:
        """Count a client that SASL has not let in, and log it."""
        self._fail(f"/{host} ({json.dumps(reason)[1:-1]})", listener, None)

    def _fail(self, client: str, listener: str, reason: str | None) -> None:
        """Count a failure; log it unless such a line was logged a moment ago."""
        self.failed_count += 1
        suppressed_count = self._failures.happened(self._runtime.monotonic_ms())
        if suppressed_count is None:
            return
        _log.info(
            LogEvent(
                f"Failed authentication with {client}",
                listener=listener,
                reason=reason,
                others=suppressed_count or None,
            )
        )
