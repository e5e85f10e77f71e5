"""What the controller makes of a request: records to commit and the answer to give then."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Generic, Protocol, TypeVar

from kvorum.metadata.record_types import RecordAndVersion


class Message(Protocol):
    """What the generated class of every request and response offers."""

    NAME: ClassVar[str]
    API_KEY: ClassVar[int | None]

    def encode(self, version: int) -> bytes:
        """Return the body in `version`."""
        ...


Response = TypeVar("Response", covariant=True)


@dataclass(frozen=True, slots=True)
class ControllerResult(Generic[Response]):
    """Records, and the answer that may leave once they are committed.

    Atomic records go into the log as one append; others may be split between appends. Without
    records the answer waits for what is pending before it, or leaves at once if nothing is.
    """

    response: Response
    records: tuple[RecordAndVersion, ...] = ()
    is_atomic: bool = True


MAX_RECORDS_PER_USER_OPERATION = 10_000
"""Kafka refuses requests that would write more, so that one request cannot stall the log."""
