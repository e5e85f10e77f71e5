"""The moment at which a thread begins to read a log that its owner goes on to change."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from kvorum.storage.log.local_log import LocalLog


class ReadMoment(NamedTuple):
    """A log, and how often something was removed from it by then.

    What a read has found, or the error that it met, counts if nothing was removed until it is used
    by the log's owner: compaction, a deletion or a move closes files beneath a reader.
    """

    log: LocalLog
    removal_count: int

    @classmethod
    def of(cls, log: LocalLog) -> ReadMoment:
        """Return the present moment."""
        return cls(log, log.removal_count)

    def lasts_in(self, log: LocalLog) -> bool:
        """Return whether the partition's log is still the same, and nothing was removed from it."""
        return self.log is log and self.removal_count == log.removal_count
