"""The offsets that a stored state leaves out between its batches (Kafka's GapWindow)."""

from dataclasses import dataclass


@dataclass(slots=True)
class GapWindow:
    """The part of a share partition in which records may have no state yet.

    It ends at the end offset that was loaded, and counts only while that is the end offset.
    `gap_start_offset` is the first offset that may be without a state.
    """

    end_offset: int
    gap_start_offset: int
