"""The offsets and owners of a group, and what is promised of them.

Offsets are numbers that grow with each commit. A commit without an answer may have happened, or may
yet be replayed by the next coordinator; one that is acknowledged is read from then on, until a
later one takes its place.
"""

from __future__ import annotations

from typing import Final

from kvorum.simulation.partitions import promises
from kvorum.simulation.properties.checks import PropertyViolatedError

NOTHING: Final = -1


class GroupLedger:
    """The offsets that one group has committed, and the owners of partitions by generation."""

    def __init__(self) -> None:
        self.sent = NOTHING
        self.acknowledged = NOTHING
        self._owners: dict[tuple[int, int], str] = {}

    def on_read(self, offset: int, told: str) -> None:
        """Check what the present coordinator has answered."""
        if offset < self.acknowledged:
            raise PropertyViolatedError(promises.OFFSETS_KEPT, told)
        if offset > self.sent:
            raise PropertyViolatedError(promises.OFFSETS_KNOWN, told)

    def on_assigned(self, generation: int, member: str, partitions: bytes) -> None:
        """Check what a member has got in a generation, a byte for each partition."""
        for partition in partitions:
            owner = self._owners.setdefault((generation, partition), member)
            if owner != member:
                told = f"generation {generation}, partition {partition}: {owner} and {member}"
                raise PropertyViolatedError(promises.ONE_OWNER, told)
