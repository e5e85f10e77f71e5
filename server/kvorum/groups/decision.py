"""The decision of a classic group."""

from dataclasses import dataclass

from kvorum.coordinator.record import CoordinatorRecord
from kvorum.coordinator.result import Append


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision of a group: records, and what follows on their append."""

    records: tuple[CoordinatorRecord, ...] = ()
    append: Append | None = None


NO_DECISION = Decision()
