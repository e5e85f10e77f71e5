"""The batches of aborted transactions among fetched ones, which no share group is given."""

from collections.abc import Iterable, Sequence

from kvorum.storage.log.transaction_index import AbortedTransaction
from kvorum.wire.messages.share_fetch import ShareFetchResponse
from kvorum.wire.records.batch import RecordBatch
from kvorum.wire.records.control import ControlRecordType, decode_control_record
from kvorum.wire.records.legacy import Entry


def aborted_batches(
    batches: Iterable[Entry], aborted: Sequence[AbortedTransaction]
) -> list[RecordBatch]:
    """Return the batches with records of aborted transactions, in their order."""
    if not aborted:
        return []
    transactions = sorted(aborted, key=lambda one: one.first_offset, reverse=True)
    producer_ids: set[int] = set()
    found: list[RecordBatch] = []
    for batch in batches:
        if not isinstance(batch, RecordBatch) or not batch.has_producer_id:
            continue
        while transactions and transactions[-1].first_offset <= batch.last_offset:
            producer_ids.add(transactions.pop().producer_id)
        if _has_abort_marker(batch):
            producer_ids.discard(batch.producer_id)
        elif batch.is_transactional and batch.producer_id in producer_ids:
            found.append(batch)
    return found


def without_batches(
    acquired: Iterable[ShareFetchResponse.AcquiredRecords], batches: Sequence[RecordBatch]
) -> list[ShareFetchResponse.AcquiredRecords]:
    """Return what is left of acquired records without those of `batches`; both are in order."""
    kept: list[ShareFetchResponse.AcquiredRecords] = []
    index = 0
    for one in acquired:
        first = one.first_offset
        while index < len(batches) and batches[index].last_offset < first:
            index += 1
        place = index
        while place < len(batches) and batches[place].base_offset <= one.last_offset:
            gone = batches[place]
            if first < gone.base_offset:
                kept.append(_part(one, first, gone.base_offset - 1))
            first = gone.last_offset + 1
            place += 1
        if first <= one.last_offset:
            kept.append(_part(one, first, one.last_offset))
    return kept


def _part(
    acquired: ShareFetchResponse.AcquiredRecords, first_offset: int, last_offset: int
) -> ShareFetchResponse.AcquiredRecords:
    return ShareFetchResponse.AcquiredRecords(first_offset, last_offset, acquired.delivery_count)


def _has_abort_marker(batch: RecordBatch) -> bool:
    if not batch.is_control:
        return False
    record = next(batch.records(), None)
    return record is not None and decode_control_record(record).type is ControlRecordType.ABORT
