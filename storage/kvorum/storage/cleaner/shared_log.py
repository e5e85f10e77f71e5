"""A log that a cleaner works on in its thread, while the thread that owns the log goes on."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from kvorum.storage.errors import CleaningAbortedError
from kvorum.storage.log.local_log import LocalLog
from kvorum.storage.log.log_config import LogConfig
from kvorum.storage.log.segment import Segment

RunInOwner: TypeAlias = Callable[[Callable[[], None]], None]
"""Runs something in the thread that owns the log; returns, or raises, when that is done."""


class SharedLog:
    """A view of a log for one pass, which may replace segments as long as the log did not change.

    Truncating, deleting segments and closing are such changes; appending is not.
    """

    def __init__(self, log: LocalLog, run_in_owner: RunInOwner = lambda work: work()) -> None:
        self.directory: Path = log.directory
        self.config: LogConfig = log.config
        self._log = log
        self._run_in_owner = run_in_owner
        self._seen_removals = log.removal_count

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The segments, oldest first; the last one is active."""
        return self._log.segments

    @property
    def log_start_offset(self) -> int:
        """The offset of the first record that may be read."""
        return self._log.log_start_offset

    @property
    def log_end_offset(self) -> int:
        """One more than the offset of the last record."""
        return self._log.log_end_offset

    @property
    def has_changed(self) -> bool:
        """Whether the owner has removed something that the pass may have read."""
        return self._log.is_closed or self._log.removal_count != self._seen_removals

    def replace_segments(self, new: Segment, old: Sequence[Segment], *, now_ms: int) -> None:
        """Put a cleaned segment, which is durable, in the place of segments that follow each other.

        Raises CleaningAbortedError, and does nothing, if the log has changed. The owner does not
        wait for the disk: that is done here.
        """
        self._log.finish_writes()
        self._run_in_owner(lambda: self._replace(new, old, now_ms))
        self._log.sync_names()
        if self._log.is_closed:
            raise CleaningAbortedError(f"{self.directory} was closed before it was durable")

    def _replace(self, new: Segment, old: Sequence[Segment], now_ms: int) -> None:
        # A truncation that was handed over is a change once it is done.
        self._log.finish_writes()
        if self.has_changed:
            raise CleaningAbortedError(f"{self.directory} has changed since the pass began")
        self._log.replace_segments(new, old, now_ms=now_ms)
        self._seen_removals = self._log.removal_count
