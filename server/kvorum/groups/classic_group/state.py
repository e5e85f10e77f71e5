"""The states of a classic group, and the moves between them (Kafka's ClassicGroupState)."""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final


class ClassicGroupState(Enum):
    """States by the names that clients see."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


_EMPTY = ClassicGroupState.EMPTY
_PREPARING = ClassicGroupState.PREPARING_REBALANCE
_COMPLETING = ClassicGroupState.COMPLETING_REBALANCE
_STABLE = ClassicGroupState.STABLE

VALID_PREVIOUS_STATES: Final[Mapping[ClassicGroupState, frozenset[ClassicGroupState]]] = (
    MappingProxyType(
        {
            _EMPTY: frozenset({_PREPARING}),
            _PREPARING: frozenset({_STABLE, _COMPLETING, _EMPTY}),
            _COMPLETING: frozenset({_PREPARING}),
            _STABLE: frozenset({_COMPLETING}),
            ClassicGroupState.DEAD: frozenset(ClassicGroupState),
        }
    )
)
