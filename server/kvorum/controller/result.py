"""What the controller makes of a request: records to commit and the answer to give then."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
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


def gather(records: list[RecordAndVersion], more: Iterable[RecordAndVersion]) -> Iterator[None]:
    """Append `more` to `records`, with a stop after every `PIECE_RECORDS`."""
    for count, record in enumerate(more, 1):
        records.append(record)
        if count % PIECE_RECORDS == 0:
            yield


MAX_RECORDS_PER_USER_OPERATION = 10_000
"""Kafka refuses requests that would write more, so that one request cannot stall the log."""
