"""The limit of a stream over a quorum: the offsets that a micro-batch ends at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from kvorum.quorum_client.client import QuorumClient
from kvorum.quorum_client.errors import QuorumError
from kvorum.quorum_client.fetch import LONG_POLL_MS, PEEK_BYTES, fetch
from kvorum.spark.errors import OptionError
from kvorum.spark.streaming.options import Starting
from kvorum.wire.offset_and_epoch import OffsetAndEpoch

BEGINNING = OffsetAndEpoch(0, 0)
"""Before the first record of a log."""


class QuorumOffset(NamedTuple):
    """A place in the log of a cluster; `cluster_id` is None where it is not known."""

    cluster_id: str | None
    end: OffsetAndEpoch
    snapshot: OffsetAndEpoch | None = None

    def to_checkpoint(self) -> dict[str, Any]:
        """Return the place as the checkpoint has it; equal places make equal text."""
        found: dict[str, Any] = {
            "clusterId": self.cluster_id,
            "offset": self.end.offset,
            "epoch": self.end.epoch,
        }
        if self.snapshot is not None:
            found["snapshotOffset"] = self.snapshot.offset
            found["snapshotEpoch"] = self.snapshot.epoch
        return found

    @staticmethod
    def from_checkpoint(found: Mapping[str, Any]) -> QuorumOffset:
        """Return the place; `QuorumError` for a checkpoint of anything else."""
        try:
            snapshot = None
            if "snapshotOffset" in found:
                snapshot = OffsetAndEpoch(int(found["snapshotOffset"]), int(found["snapshotEpoch"]))
            end = OffsetAndEpoch(int(found["offset"]), int(found["epoch"]))
            return QuorumOffset(found["clusterId"], end, snapshot)
        except (KeyError, TypeError, ValueError):
            raise QuorumError(
                f"the checkpoint's offset {dict(found)} is not one of a quorum: was the stream "
                "started with other options?"
            ) from None


class QuorumPlanner:
    """Finds the places where micro-batches begin and end; it reads no records.

    All its methods raise `QuorumError`.
    """

    def __init__(self, client: QuorumClient, *, offsets_max: int | None) -> None:
        self._client = client
        self._offsets_max = offsets_max
        self._has_asked = False

    def first(self, starting: Starting | int) -> QuorumOffset:
        """Return where a stream without a checkpoint begins.

        An offset within a batch means the whole batch; one that the log does not have any more
        means the snapshot. `OptionError` for one that is not committed yet.
        """
        cluster_id = self._client.cluster_id
        if cluster_id is None:
            cluster_id = self._client.cluster_id = self._client.find_cluster_id()
        if starting is Starting.EARLIEST or starting == 0:
            return QuorumOffset(cluster_id, BEGINNING)
        seen = fetch(self._client, BEGINNING, size_bytes=PEEK_BYTES)
        offset = seen.high_watermark if isinstance(starting, Starting) else starting
        if offset > seen.high_watermark:
            raise OptionError(
                f"option 'startingOffsets' is {offset}: the log is committed up to "
                f"{seen.high_watermark} only"
            )
        if offset == 0:
            return QuorumOffset(cluster_id, BEGINNING)
        place = self._batch_start(offset, seen.high_watermark, seen.snapshot)
        return QuorumOffset(cluster_id, place)

    def next_end(self, begin: QuorumOffset) -> QuorumOffset:
        """Return where a micro-batch from `begin` on ends: `begin` itself where nothing is new.

        The leader is given a moment to get something new.
        """
        seen = fetch(self._client, begin.end, size_bytes=PEEK_BYTES, wait_ms=LONG_POLL_MS)
        # The voters' addresses are learnt in case those of the options all go. A change of the
        # voters or of the leader is a record, so without news they are the same.
        if seen.high_watermark > begin.end.offset or not self._has_asked:
            self._client.learn_voters()
            self._has_asked = True
        start = begin.end if seen.snapshot is None else seen.snapshot
        end_offset = seen.high_watermark
        if self._offsets_max is not None:
            end_offset = min(end_offset, start.offset + self._offsets_max)
        end = self._end_of_batch(end_offset, start) if end_offset > start.offset else start
        return begin if end == begin.end else QuorumOffset(begin.cluster_id, end, seen.snapshot)

    def _end_of_batch(self, end_offset: int, start: OffsetAndEpoch) -> OffsetAndEpoch:
        """Return where the batch with the last offset before `end_offset` ends."""
        last = end_offset - 1
        # The begin of a log is only given to a reader that knows the epoch before it.
        epoch = start.epoch if last == start.offset else self._client.leader_epoch
        seen = fetch(
            self._client, OffsetAndEpoch(last, epoch), size_bytes=PEEK_BYTES, reach=end_offset
        )
        if not seen.batches:
            # A snapshot was made, and the log before it deleted, since the planning began.
            return start
        batch = seen.batches[0]
        return OffsetAndEpoch(batch.next_offset, batch.partition_leader_epoch)

    def _batch_start(
        self, offset: int, high_watermark: int, snapshot: OffsetAndEpoch | None
    ) -> OffsetAndEpoch:
        """Return where the batch with `offset` begins, with the epoch of the record before it."""
        if offset < high_watermark:
            place = OffsetAndEpoch(offset, self._client.leader_epoch)
            seen = fetch(self._client, place, size_bytes=PEEK_BYTES)
            if not seen.batches or seen.batches[0].base_offset == 0:
                return OffsetAndEpoch(offset, 0) if not seen.batches else BEGINNING
            offset = seen.batches[0].base_offset
        if snapshot is not None and snapshot.offset == offset:
            return snapshot
        seen = fetch(
            self._client, OffsetAndEpoch(offset - 1, self._client.leader_epoch),
            size_bytes=PEEK_BYTES, reach=offset,
        )  # fmt: skip
        if not seen.batches:
            return OffsetAndEpoch(offset, 0)
        return OffsetAndEpoch(offset, seen.batches[0].partition_leader_epoch)
