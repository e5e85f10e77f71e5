"""The count of the checks, and the error of a broken property."""

from __future__ import annotations

from kvorum.simulation.properties.catalogue import ALL, Property


class PropertyViolatedError(Exception):
    """A property does not hold."""

    def __init__(self, broken: Property, text: str) -> None:
        self.broken = broken
        super().__init__(f"{broken.id} ({broken.meaning}) is broken: {text}")


class Checks:
    """The number of times each property was checked and held."""

    def __init__(self) -> None:
        self.counts = {one.id: 0 for one in ALL}

    def held(self, *properties: Property) -> None:
        """Note that properties were checked and hold."""
        for one in properties:
            self.counts[one.id] += 1

    def demand(self, checked: Property, text: str, *, holds: bool) -> None:
        """Count a check; raise PropertyViolatedError where it failed."""
        if not holds:
            raise PropertyViolatedError(checked, text)
        self.counts[checked.id] += 1
