"""The effects of changes of state: writes, and copies of dead letters, with their results."""

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from kvorum.broker.share_partition.in_flight_batch import InFlightBatch
from kvorum.broker.share_partition.record_state import RecordState
from kvorum.metadata.api import RequestError
from kvorum.wire.messages.write_share_group_state import (
    WriteShareGroupStateRequest,
    WriteShareGroupStateRequestStateBatch,
)


class DeadLetterCause(Enum):
    """Why records go to the dead-letter queue, with the text that Kafka puts into their headers."""

    CLIENT_REJECT = "Offset rejected by client."
    DELIVERY_COUNT_EXCEEDED = "Offset delivery count exceeded the threshold."


class StateChange(NamedTuple):
    """A move of records of a batch; `delivery_state` is what they become."""

    batch: InFlightBatch
    first_offset: int
    last_offset: int
    delivery_state: RecordState
    delivery_count: int
    dead_letter_cause: DeadLetterCause | None = None

    @property
    def state_batch(self) -> WriteShareGroupStateRequestStateBatch:
        """The change as it is written."""
        return WriteShareGroupStateRequestStateBatch(
            self.first_offset, self.last_offset, self.delivery_state, self.delivery_count
        )


class DeadLetter(NamedTuple):
    """Records to copy to the dead-letter queue, for `SharePartition.complete_dead_letters`.

    `batch` is for the share partition alone.
    """

    first_offset: int
    last_offset: int
    delivery_count: int
    cause: DeadLetterCause
    batch: InFlightBatch


@dataclass(frozen=True, slots=True, eq=False)
class StateWrite:
    """A write that is due at the persister, for `SharePartition.complete_write`.

    `transitions` are taken back if it fails, `dead_letters` come after it in any case; both are
    for the share partition alone.
    """

    data: WriteShareGroupStateRequest.PartitionData
    transitions: tuple[StateChange, ...] = ()
    dead_letters: tuple[DeadLetter, ...] = ()


class CompletedWrite(NamedTuple):
    """The result of a write: a refusal for the request that waits for it, and what is due next."""

    refusal: RequestError | None
    dead_letters: tuple[DeadLetter, ...]


class ExpiredLocks(NamedTuple):
    """The result of locks that have expired: a write, and with it records for waiting fetches.

    `record_count` are the records of the locks, also of those whose records were written
    meanwhile.
    """

    write: StateWrite | None
    record_count: int
