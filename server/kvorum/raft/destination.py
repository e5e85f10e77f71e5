"""The destination of a request: a node by its id, or a bootstrap server by its address."""

from typing import NamedTuple


class Destination(NamedTuple):
    """The target of a request. Servers known by address only have ids of -2 and below."""

    id: int
    host: str
    port: int

    @property
    def is_known_by_address_only(self) -> bool:
        """Whether this is a bootstrap server: which replica it leads to is not known."""
        return self.id < 0
