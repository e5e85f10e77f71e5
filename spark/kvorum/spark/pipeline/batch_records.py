"""The records of batches, decoded: many batches at once, and one by one where that is not possible.

A batch in which a record cannot be read gives the records before that one, and then a `Damage`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, groupby

from kvorum.metadata.errors import MetadataError
from kvorum.metadata.record_frame import SHORT_HEADER_BYTES, decode_record
from kvorum.spark.columnar.batch_block import block_of
from kvorum.spark.columnar.record_run import RecordRun, read_run
from kvorum.spark.files.damage import Damage, DamageKind
from kvorum.spark.history.log_record import LogRecord
from kvorum.spark.metadata_source.decoded_rows import decode
from kvorum.wire.errors import WireError
from kvorum.wire.records import RecordBatch


def decoded_records(path: str, batches: Sequence[RecordBatch]) -> Iterator[LogRecord | Damage]:
    """Yield the records of batches that follow each other; a damage is the last value."""
    for is_control, group in groupby(batches, key=lambda batch: batch.is_control):
        together = list(group)
        records = None if is_control else _at_once(together)
        if records is not None:
            yield from records
            continue
        for batch in together:
            for item in _one_by_one(path, batch):
                yield item
                if isinstance(item, Damage):
                    return


def _at_once(batches: Sequence[RecordBatch]) -> list[LogRecord] | None:
    """Return the records of batches without control records; None where one is unusual."""
    try:
        run = read_run(block_of(batches))
        if run is None or run.offsets.tolist() != _offsets(batches):
            return None
        return _of_run(run)
    except (WireError, MetadataError):
        return None


def _offsets(batches: Sequence[RecordBatch]) -> list[int]:
    return list(chain.from_iterable(range(each.base_offset, each.next_offset) for each in batches))


def _of_run(run: RecordRun) -> list[LogRecord]:
    data = run.data.tobytes()
    records: list[LogRecord] = []
    for offset, epoch, time, start, end in zip(
        run.offsets.tolist(),
        run.epochs.tolist(),
        run.timestamps.tolist(),
        run.starts.tolist(),
        run.ends.tolist(),
        strict=True,
    ):
        message, version = decode_record(data[start - SHORT_HEADER_BYTES : end])
        records.append(LogRecord(offset, epoch, time, message, version))
    return records


def _one_by_one(path: str, batch: RecordBatch) -> Iterator[LogRecord | Damage]:
    expected = batch.base_offset
    reason = f"the batch holds {batch.record_count} records"
    try:
        for record in batch.records():
            if record.offset != expected:
                reason = f"a record of offset {record.offset} where {expected} belongs"
                break
            decoded = decode(record, is_control=batch.is_control)
            epoch, time = batch.partition_leader_epoch, record.timestamp
            yield LogRecord(expected, epoch, time, decoded.message, decoded.version)
            expected += 1
    except (WireError, MetadataError) as error:
        reason = str(error)
    if expected < batch.next_offset:
        position, last = batch.position, batch.last_offset
        yield Damage(DamageKind.DAMAGED, path, position, expected, last, reason)
