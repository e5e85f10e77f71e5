"""The client of a request, as a shard of groups sees it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RequestContext:
    """The facts about a request that a shard needs beside its fields.

    `client_host` is Java's text of an address: a slash and the literal, ``/127.0.0.1``.
    """

    version: int
    client_id: str = ""
    client_host: str = ""
