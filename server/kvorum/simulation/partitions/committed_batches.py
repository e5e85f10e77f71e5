"""The batches that a consumer of committed records is given, and those that it leaves out."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from kvorum.wire.records import ControlRecordType, RecordBatch
from kvorum.wire.records.control import decode_control_record


class Aborted(NamedTuple):
    """An aborted transaction, as a fetch or a log returns it."""

    producer_id: int
    first_offset: int


def judged_batches(
    batches: Iterable[RecordBatch], aborted: Sequence[Aborted]
) -> Iterator[tuple[RecordBatch, bool]]:
    """Yield each batch of records, and whether a consumer of committed records is given it.

    The batches and the aborted transactions are those of one range of the log, in order.
    """
    waiting = sorted(aborted, key=lambda one: one.first_offset)
    left_out: set[int] = set()
    for batch in batches:
        while waiting and waiting[0].first_offset <= batch.last_offset:
            left_out.add(waiting.pop(0).producer_id)
        if batch.is_control:
            # Compaction may leave the batch of a marker empty.
            for record in batch.records():
                if decode_control_record(record).type is ControlRecordType.ABORT:
                    left_out.discard(batch.producer_id)
        else:
            yield batch, not batch.is_transactional or batch.producer_id not in left_out


def committed_batches(
    batches: Iterable[RecordBatch], aborted: Sequence[Aborted]
) -> Iterator[RecordBatch]:
    """Yield the batches that a consumer of committed records is given."""
    for batch, is_read in judged_batches(batches, aborted):
        if is_read:
            yield batch
