"""The batches of the metadata log, read from its files."""

from collections.abc import Iterator

from kvorum.storage.errors import CorruptLogError
from kvorum.storage.metadata_log.metadata_log import MetadataLog
from kvorum.wire.errors import WireError
from kvorum.wire.records import RecordBatch, read_batches

READ_BYTES = 8 * 1024 * 1024
"""The bytes of the log that are read at once: as many as the biggest batch has."""


def log_batches(log: MetadataLog, offset: int) -> Iterator[RecordBatch]:
    """Yield the batches of a log from `offset` to its current end."""
    end_offset = log.log_end_offset
    while offset < end_offset:
        for batch in batches_of(log, log.local_log.read(offset, READ_BYTES, end_offset=end_offset)):
            yield batch
            offset = batch.next_offset


def batches_of(log: MetadataLog, data: memoryview) -> Iterator[RecordBatch]:
    """Yield the batches in bytes of a log; raises CorruptLogError for invalid bytes."""
    try:
        for batch in read_batches(data):
            batch.verify()
            yield batch
    except WireError as error:
        raise CorruptLogError(
            f"the log returned other bytes than were written: {error}", file=log.local_log.directory
        ) from error
