"""The decision of a group."""

from dataclasses import dataclass

from kvorum.coordinator.record import CoordinatorRecord
from kvorum.coordinator.result import Append


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision of a group: records, and what follows on their append.

    `replay_records` is True where the records change the group. A classic group changes as it is
    decided on, before its records.
    """

    records: tuple[CoordinatorRecord, ...] = ()
    append: Append | None = None
    replay_records: bool = False


NO_DECISION = Decision()
