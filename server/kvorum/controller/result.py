"""What the controller makes of a request: records to commit and the answer to give then."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

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


MAX_RECORDS_PER_USER_OPERATION = 10_000
"""Kafka refuses requests that would write more, so that one request cannot stall the log."""
