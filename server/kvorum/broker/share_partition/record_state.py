"""The states of a record in flight, and the moves between them (Kafka's RecordState)."""

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Final


class RecordState(IntEnum):
    """A state, by its number in the share-group state."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVING = 3
    """On its way to the dead-letter queue; archived once it is there, or cannot be."""
    ARCHIVED = 4


TERMINAL_STATES: Final = frozenset({RecordState.ACKNOWLEDGED, RecordState.ARCHIVED})
"""The states that no record leaves."""

VALID_MOVES: Final[Mapping[RecordState, frozenset[RecordState]]] = MappingProxyType(
    {
        RecordState.AVAILABLE: frozenset({RecordState.ACQUIRED}),
        RecordState.ACQUIRED: frozenset(
            {
                RecordState.AVAILABLE,
                RecordState.ACKNOWLEDGED,
                RecordState.ARCHIVING,
                RecordState.ARCHIVED,
            }
        ),
        RecordState.ACKNOWLEDGED: frozenset(),
        RecordState.ARCHIVING: frozenset({RecordState.ARCHIVED}),
        RecordState.ARCHIVED: frozenset(),
    }
)
"""The states that a member's doing, or its lock's end, leads to.

Records that no member may have any more are archived from every state.
"""
