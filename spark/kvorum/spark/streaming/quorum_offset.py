"""A place in a quorum's log, as Spark's checkpoint has it.

    {"clusterId": "q1Sh-9_ISia_zwGINzRvyQ", "offset": 812, "epoch": 3}

`offset` is the next one to read, `epoch` the leader epoch of the record before it. A place behind
the rows of a snapshot also has `snapshotOffset` and `snapshotEpoch`, the snapshot's id: the batch
that ends there begins with that snapshot.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from kvorum.spark.errors import QuorumError
from kvorum.wire.offset_and_epoch import OffsetAndEpoch


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
        """Return the place; `QuorumError` for a checkpoint that is none of a quorum's."""
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


BEGINNING = OffsetAndEpoch(0, 0)
"""Before the first record of a log."""
