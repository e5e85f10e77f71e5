"""A part of a node that is imported and made only when it is needed."""

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar


class Closable(Protocol):
    """A part that ends with the node."""

    def close(self) -> None:
        """Answer all who wait, and begin nothing more."""
        ...


PartT = TypeVar("PartT", bound=Closable)


class OnDemand(Generic[PartT]):
    """Makes the part with its first use; one that is made after the end is closed at once."""

    def __init__(self, make: Callable[[], PartT]) -> None:
        self._make = make
        self._made: PartT | None = None
        self._is_closed = False

    @property
    def part(self) -> PartT:
        """The part."""
        if self._made is None:
            self._made = self._make()
            if self._is_closed:
                self._made.close()
        return self._made

    @property
    def part_if_made(self) -> PartT | None:
        """The part; None before its first use."""
        return self._made

    def close(self) -> None:
        """End the part, if it was made."""
        self._is_closed = True
        if self._made is not None:
            self._made.close()
