"""The renewal of what a node has from elsewhere, before that is too old."""

from collections.abc import Callable
from typing import Protocol


class RenewalFailedError(Exception):
    """Something that could not be had; the text is for the operator."""


class Renewable(Protocol):
    """A token or a key set, which is had by blocking work."""

    renew_at_ms: int
    """The time at which it is to be had again, in milliseconds since 1970."""

    @property
    def name(self) -> str:
        """A name for the operator."""
        ...

    def watch(self, on_due: Callable[[], None]) -> None:
        """Call `on_due` whenever the time at which it is to be had comes nearer."""
        ...

    def renew(self, wall_s: Callable[[], float], pause_s: Callable[[float], None]) -> None:
        """Have it again, which may block; raises RenewalFailedError, and keeps the one before.

        `wall_s` has the seconds since 1970, `pause_s` waits for seconds.
        """
        ...
