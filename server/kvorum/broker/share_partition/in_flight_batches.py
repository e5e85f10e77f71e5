"""The batches in flight of a share partition, in the order of their offsets."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from kvorum.broker.share_partition.in_flight_batch import InFlightBatch


class InFlightBatches:
    """Batches that do not overlap, found by their first offsets."""

    def __init__(self) -> None:
        self._first_offsets: list[int] = []
        self._batches: list[InFlightBatch] = []

    def __len__(self) -> int:
        return len(self._batches)

    def __iter__(self) -> Iterator[InFlightBatch]:
        return iter(self._batches)

    @property
    def first(self) -> InFlightBatch:
        """The first batch; IndexError without one."""
        return self._batches[0]

    @property
    def last(self) -> InFlightBatch:
        """The last batch; IndexError without one."""
        return self._batches[-1]

    def floor(self, offset: int) -> InFlightBatch | None:
        """Return the last batch that begins at an offset or before it; None without one."""
        index = bisect_right(self._first_offsets, offset) - 1
        return None if index < 0 else self._batches[index]

    def begun_between(self, first_offset: int, last_offset: int) -> list[InFlightBatch]:
        """Return the batches that begin between two offsets, both included."""
        begin = bisect_left(self._first_offsets, first_offset)
        end = bisect_right(self._first_offsets, last_offset)
        return self._batches[begin:end]

    def first_offset_after(self, offset: int) -> int:
        """Return where the first batch begins that begins after an offset; IndexError if none."""
        return self._first_offsets[bisect_right(self._first_offsets, offset)]

    def put(self, batch: InFlightBatch) -> None:
        """Add a batch, in place of one that begins where it does."""
        index = bisect_left(self._first_offsets, batch.first_offset)
        is_known = self._first_offsets[index : index + 1] == [batch.first_offset]
        if is_known:
            self._batches[index] = batch
            return
        self._first_offsets.insert(index, batch.first_offset)
        self._batches.insert(index, batch)

    def remove_begun_before(self, offset: int) -> None:
        """Forget the batches that begin before an offset."""
        end = bisect_left(self._first_offsets, offset)
        del self._first_offsets[:end]
        del self._batches[:end]

    def clear(self) -> None:
        """Forget all batches."""
        self._first_offsets.clear()
        self._batches.clear()
