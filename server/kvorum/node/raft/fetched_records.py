"""The records of a fetch response: their bytes, and the core's view of them."""

from typing import NamedTuple

from kvorum.node.raft.control_records import quorum_controls
from kvorum.raft.messages import BatchSummary
from kvorum.wire.records import read_batches


class FetchedRecords(NamedTuple):
    """Records of a response: their bytes, the core's view of them, and the end of each batch."""

    data: memoryview
    batches: tuple[BatchSummary, ...]
    ends: tuple[int, ...]

    def first(self, batch_count: int) -> memoryview:
        """Return the bytes of the first batches."""
        return self.data[: self.ends[batch_count - 1]]


def read_fetched(data: memoryview) -> FetchedRecords:
    """Validate fetched records; raises CorruptBatchError for records that must not be stored.

    An incomplete batch at the end, where the response reached its maximum size, is left out.
    """
    summaries: list[BatchSummary] = []
    ends: list[int] = []
    for batch in read_batches(data, is_cut_allowed=True):
        batch.verify()
        controls = quorum_controls(batch)
        summaries.append(
            BatchSummary(
                base_offset=batch.base_offset,
                last_offset=batch.last_offset,
                epoch=batch.partition_leader_epoch,
                voters=controls.voters,
                kraft_versions=controls.kraft_versions,
            )
        )
        ends.append(batch.position + batch.size)
    return FetchedRecords(data, tuple(summaries), tuple(ends))
