"""What the controller makes of a request: records to commit and the answer to give then."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Final, Generic, TypeAlias, TypeVar

from kvorum.metadata.record_types import RecordAndVersion

Response_co = TypeVar("Response_co", covariant=True)


@dataclass(frozen=True, slots=True)
class ControllerResult(Generic[Response_co]):
    """Records, and the answer that may leave once they are committed.

    Atomic records go into the log as one append; others may be split between appends. Without
    records the answer waits for what is pending before it, or leaves at once if nothing is.
    A `kraft_version` is what the quorum is to work at; it goes into the log before the records.
    """

    response: Response_co
    records: tuple[RecordAndVersion, ...] = ()
    is_atomic: bool = True
    kraft_version: int | None = None


Result = TypeVar("Result")
Pieces: TypeAlias = Generator[None, None, Result]
"""Work that stops now and then, so that something else can be done, and returns its result."""

Steps: TypeAlias = Iterator[RecordAndVersion | None]
"""Records one after the other, and None where nothing was found for a while: a place to stop."""

PIECE_RECORDS: Final = 1000
"""How many records are decided on between two stops: some 20 ms."""


def at_once(pieces: Pieces[Result]) -> Result:
    """Return what `pieces` come to, without a stop."""
    while True:
        try:
            next(pieces)
        except StopIteration as done:
            result: Result = done.value
            return result


def gather(records: list[RecordAndVersion], steps: Steps) -> Iterator[None]:
    """Append what `steps` yield to `records`, with a stop now and then."""
    until_stop = PIECE_RECORDS
    for record in steps:
        if record is not None:
            records.append(record)
            until_stop -= 1
        if record is None or until_stop == 0:
            until_stop = PIECE_RECORDS
            yield


def records_of(steps: Steps) -> Iterator[RecordAndVersion]:
    """Yield the records of `steps` without a stop."""
    return (record for record in steps if record is not None)


MAX_RECORDS_PER_USER_OPERATION = 10_000
"""Kafka refuses requests that would write more, so that one request cannot stall the log."""
