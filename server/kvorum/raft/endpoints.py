"""The endpoints at which a node listens, by the names of its listeners."""

from typing import NamedTuple, TypeAlias


class Endpoint(NamedTuple):
    """An address at which a node listens; `name` is the listener's name in upper case."""

    name: str
    host: str
    port: int


Endpoints: TypeAlias = tuple[Endpoint, ...]


def endpoint_named(endpoints: Endpoints, name: str) -> Endpoint | None:
    """Return the endpoint of the listener called `name`."""
    return next((endpoint for endpoint in endpoints if endpoint.name == name), None)
