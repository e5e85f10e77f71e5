"""The place of records that were found in a log, and that are read when they are sent."""

from typing import NamedTuple

from kvorum.storage.log.file_records import FileRecords
from kvorum.storage.log.segment import Segment


class LogRange(NamedTuple):
    """Bytes of a log, and the segment that they belong to."""

    segment: Segment
    records: FileRecords
