"""A batch of records in the same state in a share partition (Kafka's PersisterStateBatch)."""

from collections.abc import Iterable
from typing import NamedTuple, Protocol


class StateBatch(Protocol):
    """A batch in any of the messages that have batches."""

    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int


class PersisterStateBatch(NamedTuple):
    """The offsets of records, both included, the number of their state and their deliveries."""

    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int


def persister_state_batches(batches: Iterable[StateBatch]) -> tuple[PersisterStateBatch, ...]:
    """Return the batches of a message."""
    return tuple(
        PersisterStateBatch(
            one.first_offset, one.last_offset, one.delivery_state, one.delivery_count
        )
        for one in batches
    )
