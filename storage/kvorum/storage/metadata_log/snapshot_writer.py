"""The writer of a snapshot's content, in Kafka's order.

One control batch with SNAPSHOT_HEADER and, from kraft.version 1 on, KRAFT_VERSION and KRAFT_VOTERS;
then data batches of at most 1024 records; last a control batch with SNAPSHOT_FOOTER alone. Offsets
begin at 0 and go on across all batches, the epoch is the snapshot's, times are the wall clock's.
"""

from collections.abc import Iterable
from typing import Protocol

from kvorum.wire.messages.k_raft_version_record import KRaftVersionRecord
from kvorum.wire.messages.snapshot_footer_record import SnapshotFooterRecord
from kvorum.wire.messages.snapshot_header_record import SnapshotHeaderRecord
from kvorum.wire.messages.voters_record import VotersRecord
from kvorum.wire.records import (
    ControlRecord,
    ControlRecordType,
    build_control_batch,
    build_data_batch,
)

RECORDS_PER_BATCH_MAX = 1024
# Kafka's limit for one batch of the raft log, minus header and framing of records.
BATCH_BYTES_MAX = 8 * 1024 * 1024 - 64 * 1024


class SnapshotSink(Protocol):
    """The destination of the bytes: a RawSnapshotWriter, or a buffer."""

    def append(self, data: bytes) -> None:
        """Append the next bytes."""
        ...


class SnapshotWriter:
    """The writer of header, records and footer into a sink; `finish` must be the last call.

    The caller freezes the sink, and only after `finish`.
    """

    def __init__(
        self,
        sink: SnapshotSink,
        *,
        epoch: int,
        last_contained_timestamp_ms: int,
        now_ms: int,
        kraft_version: int = 0,
        voters: VotersRecord | None = None,
    ) -> None:
        self._sink = sink
        self._epoch = epoch
        self._next_offset = 0
        self._values: list[bytes] = []
        self._values_bytes = 0
        header = SnapshotHeaderRecord(
            version=0, last_contained_log_timestamp=last_contained_timestamp_ms
        )
        controls = [ControlRecord(ControlRecordType.SNAPSHOT_HEADER, header)]
        if kraft_version > 0:
            level = KRaftVersionRecord(version=0, k_raft_version=kraft_version)
            controls.append(ControlRecord(ControlRecordType.KRAFT_VERSION, level))
            if voters is not None:
                controls.append(ControlRecord(ControlRecordType.KRAFT_VOTERS, voters))
        self._append_controls(controls, now_ms)

    def append(self, values: Iterable[bytes], *, now_ms: int) -> None:
        """Add framed metadata records; batches are written as they fill up."""
        for value in values:
            is_full = len(self._values) == RECORDS_PER_BATCH_MAX
            if is_full or self._values_bytes + len(value) > BATCH_BYTES_MAX:
                self.flush(now_ms=now_ms)
            self._values.append(value)
            self._values_bytes += len(value)

    def finish(self, *, now_ms: int) -> None:
        """Write the buffered records, and the footer."""
        self.flush(now_ms=now_ms)
        footer = ControlRecord(ControlRecordType.SNAPSHOT_FOOTER, SnapshotFooterRecord(version=0))
        self._append_controls([footer], now_ms)

    def flush(self, *, now_ms: int) -> None:
        """Write the buffered records as one batch."""
        if not self._values:
            return
        values, self._values, self._values_bytes = self._values, [], 0
        data = build_data_batch(
            values, base_offset=self._next_offset, epoch=self._epoch, timestamp_ms=now_ms
        )
        self._next_offset += len(values)
        self._sink.append(data)

    def _append_controls(self, controls: list[ControlRecord], now_ms: int) -> None:
        data = build_control_batch(
            controls, base_offset=self._next_offset, epoch=self._epoch, timestamp_ms=now_ms
        )
        self._next_offset += len(controls)
        self._sink.append(data)
