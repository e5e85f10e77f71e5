"""Addresses of servers: the one pair of host and port above the protocol."""

from typing import NamedTuple


class Address(NamedTuple):
    """A host, not resolved, and a port; an `Endpoint` has the name of a listener as well."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"
