"""The first use of a segment whose file was taken as sound without being read.

Its indexes are loaded, and checked with the batches after the last entry. If they do not match the
file they are rebuilt from all of its batches.
"""

from typing import NamedTuple

from kvorum.storage.log.batch_header import HEADER_SIZE, continues, header_at
from kvorum.storage.log.indexes import RELATIVE_OFFSET_MAX
from kvorum.storage.log.log_file import LogFile
from kvorum.storage.log.segment_indexes import SegmentIndexes
from kvorum.storage.log.segment_scan import BadBatchError, scan_batches


class _Reached(NamedTuple):
    """The end of the batches that were noted: its position, and its offset."""

    position: int
    end_offset: int


class AdoptedSegment(NamedTuple):
    """A segment of which only the size is known, and the offset where its batches have to end.

    With `may_end_before` they may end before that offset too.
    """

    log: LogFile
    size: int
    end_offset: int
    may_have_gaps: bool
    may_end_before: bool

    def load(self, indexes: SegmentIndexes) -> int:
        """Load or rebuild the indexes; return the offset where the batches end.

        Raises BadBatchError if they do not reach the end, or OSError.
        """
        first = header_at(self.log.file.read_at(0, min(HEADER_SIZE, self.size)))
        if first is not None:
            indexes.first_timestamp = first.max_timestamp
        if indexes.load():
            reached = self._note_behind_last_entry(indexes)
            if reached is not None and self._is_end(reached):
                return reached.end_offset
        reached = self._note_anew(indexes)
        if not self._is_end(reached):
            problem = f"the batches end at offset {reached.end_offset}, not at {self.end_offset}"
            raise BadBatchError(reached.position, problem)
        indexes.store_all()
        return reached.end_offset

    def _is_end(self, reached: _Reached) -> bool:
        if reached.position != self.size:
            return False
        if self.may_end_before:
            return reached.end_offset <= self.end_offset
        return reached.end_offset == self.end_offset

    def _note_behind_last_entry(self, indexes: SegmentIndexes) -> _Reached | None:
        """Note the batches from the last indexed one on; return None if it is not there."""
        position, last_offset = indexes.offset.last
        if last_offset is None:
            return self._note_from(_Reached(0, indexes.offset.base_offset), indexes)
        header = header_at(self.log.file.read_at(position, HEADER_SIZE))
        if header is None or header.last_offset != last_offset:
            return None
        return self._note_from(_Reached(position, header.base_offset), indexes)

    def _note_anew(self, indexes: SegmentIndexes) -> _Reached:
        """Note every batch."""
        indexes.forget()
        return self._note_from(_Reached(0, indexes.offset.base_offset), indexes)

    def _note_from(self, reached: _Reached, indexes: SegmentIndexes) -> _Reached:
        """Note batches as long as they are whole, in order and within reach of the indexes."""
        base_offset = indexes.offset.base_offset
        try:
            for position, header in scan_batches(
                self.log.file, position=reached.position, end=self.size, verify=False
            ):
                is_next = continues(
                    header.base_offset, reached.end_offset, may_have_gaps=self.may_have_gaps
                )
                if not is_next or header.last_offset - base_offset > RELATIVE_OFFSET_MAX:
                    break
                indexes.note(position, header)
                reached = _Reached(position + header.size, header.next_offset)
        except BadBatchError:
            pass
        return reached
