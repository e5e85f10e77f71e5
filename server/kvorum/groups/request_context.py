"""The client of a request, as a shard of groups sees it."""

from collections.abc import Callable, Collection
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RequestContext:
    """The facts about a request that a shard needs beside its fields.

    `client_host` is Java's text of an address: a slash and the literal, ``/127.0.0.1``.
    `describable_topics` returns those topics, by their names, that the client may know of.
    """

    version: int
    client_id: str = ""
    client_host: str = ""
    describable_topics: Callable[[Collection[str]], frozenset[str]] = frozenset
