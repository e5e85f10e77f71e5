"""The records in the metadata log of a running controller, read from its file as it grows."""

from pathlib import Path
from typing import NamedTuple

from kvorum.metadata.record_frame import decode_record
from kvorum.wire.json_form import Json, to_json
from kvorum.wire.records.batch import read_batches

FIRST_SEGMENT = "__cluster_metadata-0/00000000000000000000.log"
NO_OP = "NoOpRecord"


class LogRecord(NamedTuple):
    """A metadata record, in the form of Kafka's JSON converters."""

    offset: int
    type: str
    version: int
    data: Json


class LogTail:
    """Reads on where it stopped; the log must stay within its first segment."""

    def __init__(self, data_directory: Path) -> None:
        self.path = data_directory / FIRST_SEGMENT
        self.end_offset = 0
        self._position = 0

    def read(self) -> list[LogRecord]:
        """Return what came since the last call, without control and no-op records."""
        with self.path.open("rb") as file:
            file.seek(self._position)
            data = file.read()
        found: list[LogRecord] = []
        for batch in read_batches(data, is_cut_allowed=True):
            self._position += batch.size
            self.end_offset = batch.next_offset
            if batch.is_control:
                continue
            for record in batch.records():
                message, version = decode_record(record.value or b"")
                if message.NAME != NO_OP:
                    found.append(
                        LogRecord(record.offset, message.NAME, version, to_json(message, version))
                    )
        return found
