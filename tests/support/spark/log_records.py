"""Logs as the fold reads them: of golden directories, and of a controller in memory."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from kvorum.metadata.record_frame import decode_record
from kvorum.metadata.record_types import RecordAndVersion
from kvorum.spark.history import LogRecord, MetadataHistory
from kvorum.wire.messages.leader_change_message import LeaderChangeMessage
from kvorum.wire.records import decode_control_record, read_batches


def file_records(file: Path) -> Iterator[LogRecord]:
    """Yield the records of a segment or a snapshot, control records too."""
    for batch in read_batches(file.read_bytes()):
        for record in batch.records():
            if batch.is_control:
                _, message, version = decode_control_record(record)
            else:
                assert record.value is not None
                message, version = decode_record(record.value)
            yield LogRecord(
                record.offset, batch.partition_leader_epoch, record.timestamp, message, version
            )


def directory_records(directory: Path) -> list[LogRecord]:
    """Return the records of all segments of a metadata log, in their order."""
    return [
        record for segment in sorted(directory.glob("*.log")) for record in file_records(segment)
    ]


def snapshot_files(directory: Path) -> list[tuple[int, int, Path]]:
    """Return end offset, epoch and file of each snapshot in a metadata log, by offset."""
    names = [(file.stem.split("-"), file) for file in directory.glob("*-*.checkpoint")]
    return sorted((int(offset), int(epoch), file) for (offset, epoch), file in names)


def begun_history(directory: Path, first_offset: int) -> MetadataHistory:
    """Return the history that a log with this first offset goes on with: of a snapshot, or new."""
    if first_offset == 0:
        return MetadataHistory()
    end, epoch, file = next(each for each in snapshot_files(directory) if each[0] >= first_offset)
    return MetadataHistory.from_snapshot(file_records(file), end_offset=end, epoch=epoch)


def written_records(records: Iterable[RecordAndVersion]) -> list[LogRecord]:
    """Return what a controller wrote as a log that begins with the leader's own record.

    A record a second, so that times are as different as offsets.
    """
    begin = LogRecord(0, 1, 0, LeaderChangeMessage(leader_id=1), 0)
    return [
        begin,
        *(
            LogRecord(offset, 1, offset * 1000, message, version)
            for offset, (message, version) in enumerate(records, start=1)
        ),
    ]
