"""The inhabitants of a world, as far as its run needs to know them."""

from collections.abc import Mapping
from typing import Protocol


class Inhabitants(Protocol):
    """Everything in a world that uses the quorum; each method may raise PropertyViolatedError."""

    @property
    def counts(self) -> Mapping[str, int]:
        """The number of times that things happened to them."""
        ...

    @property
    def checks(self) -> Mapping[str, int]:
        """The number of times that each of their own properties was checked, by its number."""
        ...

    def begin(self) -> None:
        """Begin to use the quorum, whose nodes start."""
        ...

    def settle(self) -> float:
        """Prepare for the end, now that faults have stopped.

        Returns the time until the quorum is looked at for the first time.
        """
        ...

    def check_end(self) -> None:
        """Check what must hold at the end."""
        ...
