"""Records without the times that a broker gives the ends of transactions."""

from typing import Final

from kvorum.wire.records.batch import CONTROL, read_right_batches

_ATTRIBUTES_LOW: Final = 22
"""The place in a batch of the byte that says whether it is a control batch."""
_BROKER_GIVEN: Final = frozenset((*range(17, 21), *range(27, 43)))
"""The places of the checksum and both times."""


def without_broker_times(records: bytes) -> bytes:
    """Return records, of which the last may be cut off, with neither times nor checksums of ends.

    All that producers have sent, and all else that a broker writes, stays as it is.
    """
    parts: list[bytes] = []
    end = 0
    for batch in read_right_batches(memoryview(records), 0):
        parts.append(_compared(bytes(batch.data)))
        end = batch.position + batch.size
    return b"".join((*parts, _compared(records[end:])))


def _compared(batch: bytes) -> bytes:
    if len(batch) <= _ATTRIBUTES_LOW or not batch[_ATTRIBUTES_LOW] & CONTROL:
        return batch
    return bytes(0 if place in _BROKER_GIVEN else byte for place, byte in enumerate(batch))
