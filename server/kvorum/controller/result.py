"""The result of a request: records to commit, and the response to send after that."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Final, Generic, TypeAlias, TypeVar

from kvorum.metadata.record_types import RecordAndVersion

Response_co = TypeVar("Response_co", covariant=True)


@dataclass(frozen=True, slots=True)
class ControllerResult(Generic[Response_co]):
    """Records, and the response that may be sent once they are committed.

    Atomic records go into the log as one append; others may be split between appends. A response
    without records waits for the records that are pending, and is sent at once without any.
    A `kraft_version` is the new one of the quorum; it goes into the log before the records.
    """

    response: Response_co
    records: tuple[RecordAndVersion, ...] = ()
    is_atomic: bool = True
    kraft_version: int | None = None


Result = TypeVar("Result")
Pieces: TypeAlias = Generator[None, None, Result]
"""Work that pauses now and then, so that other work can be done, and then returns its result."""

Steps: TypeAlias = Iterator[RecordAndVersion | None]
"""Records in order, and None where the work may pause without one."""

PIECE_RECORDS: Final = 1000
"""The number of records that are decided on between two pauses: some 20 ms."""


def at_once(pieces: Pieces[Result]) -> Result:
    """Return the result of `pieces` without a pause."""
    while True:
        try:
            next(pieces)
        except StopIteration as done:
            result: Result = done.value
            return result


def gather(records: list[RecordAndVersion], steps: Steps) -> Iterator[None]:
    """Append the records of `steps` to `records`, with a pause now and then."""
    until_stop = PIECE_RECORDS
    for record in steps:
        if record is not None:
            records.append(record)
            until_stop -= 1
        if record is None or until_stop == 0:
            until_stop = PIECE_RECORDS
            yield


def records_of(steps: Steps) -> Iterator[RecordAndVersion]:
    """Yield the records of `steps` without a pause."""
    return (record for record in steps if record is not None)


MAX_RECORDS_PER_USER_OPERATION = 10_000
"""The limit of one request, as in Kafka: a single request cannot stall the log."""
