"""Records that a thread has read for a fetch, before the partition serves it."""

from __future__ import annotations

from dataclasses import dataclass

from kvorum.storage.errors import StorageError
from kvorum.storage.log.read_moment import ReadMoment
from kvorum.storage.topic_log.unified_log import FetchDataInfo, UnifiedLog


@dataclass(frozen=True, slots=True)
class ReadAhead:
    """The result of a read of a log, its error in its place if there is one.

    It counts as long as nothing is removed from the log: only the partition knows, when it serves
    the fetch, whether it may still be served.
    """

    moment: ReadMoment
    found: FetchDataInfo | StorageError

    def counts_for(self, log: UnifiedLog) -> bool:
        """Return whether a read of `log` would have this result, or one that has more records."""
        return self.moment.lasts_in(log.local_log)

    def data(self) -> FetchDataInfo:
        """Return the records; raises the StorageError of the read."""
        if isinstance(self.found, StorageError):
            raise self.found
        return self.found


def read_ahead(log: UnifiedLog, offset: int, max_bytes: int, *, end_offset: int) -> ReadAhead:
    """Read as `UnifiedLog.read_range` does; in any thread."""
    moment = ReadMoment.of(log.local_log)
    found: FetchDataInfo | StorageError
    try:
        found = log.read_range(offset, max_bytes, end_offset=end_offset)
    except StorageError as error:
        found = error
    except IndexError as error:
        # An index was cut by another thread meanwhile, so that this does not count.
        if moment.lasts_in(log.local_log) and not log.local_log.is_removing:
            raise
        found = StorageError("the log was truncated while it was read")
        found.__cause__ = error
    return ReadAhead(moment, found)
