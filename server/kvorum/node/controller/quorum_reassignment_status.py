"""The reason why a reassignment of the quorum waits, as this controller knows it (KIP-642)."""

from __future__ import annotations

import logging

from kvorum.controller.quorum_reassignment.next_step import Blocked
from kvorum.node.events.log_event import LogEvent

_log = logging.getLogger(__name__)


class ReassignmentStatus:
    """The latest reason to wait; a new one is logged."""

    def __init__(self) -> None:
        self._target_text: str | None = None
        self._blocked: Blocked | None = None

    def blocked_for(self, target_text: str) -> Blocked | None:
        """Return what the way to these targets waits for, None while there is progress."""
        return self._blocked if target_text == self._target_text else None

    def wait(self, target_text: str, blocked: Blocked) -> None:
        """Keep what is waited for, and log it when it changes."""
        before = self.blocked_for(target_text)
        if before is None or before.reason is not blocked.reason:
            _log.info(
                LogEvent(
                    "The reassignment of the quorum waits",
                    target_voters=target_text,
                    reason=blocked.text,
                )
            )
        self._target_text, self._blocked = target_text, blocked

    def advance(self, target_text: str) -> None:
        """Take note of progress towards these targets."""
        self._target_text, self._blocked = target_text, None
