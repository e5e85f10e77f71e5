"""The response to a request, as the connection that it came by sends it."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from kvorum.node.serving.frame_writer import FramePart


class ResponseFrame(NamedTuple):
    """The response to a request, in parts, and the time for which nothing is read after it.

    `parts` is None without a response. `on_sent` is called once the response has left. The
    connection ends after one that `is_last`.

    Kafka mutes the channel of a client that exceeded its quota for the throttle time, so that
    clients that ignore it, or get no response, are slowed down as well (KIP-219).
    """

    parts: Sequence[FramePart] | None
    pause_ms: int = 0
    on_sent: Callable[[], None] | None = None
    is_last: bool = False
