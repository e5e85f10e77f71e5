"""The states of a transactional id (Kafka's TransactionState)."""

from enum import Enum
from typing import Final


class TransactionState(Enum):
    """A state, by its number in the log."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    """In memory only, in Kafka: of an id that is about to expire."""
    PREPARE_EPOCH_FENCE = 7
    """In memory only, in Kafka: of an id whose producer is about to be fenced."""

    @property
    def wire_name(self) -> str:
        """The name in requests and responses, as ``PrepareCommit``."""
        return self.name.title().replace("_", "")

    @property
    def is_prepared(self) -> bool:
        """Whether the outcome is decided, and the partitions get their markers."""
        return self in {TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT}

    @property
    def is_at_rest(self) -> bool:
        """Whether no transaction is open."""
        return self in {
            TransactionState.EMPTY,
            TransactionState.COMPLETE_COMMIT,
            TransactionState.COMPLETE_ABORT,
        }


STATES_BY_WIRE_NAME: Final = {state.wire_name: state for state in TransactionState}
