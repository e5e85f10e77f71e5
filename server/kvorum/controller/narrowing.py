"""A request without what its client may not ask for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

Request = TypeVar("Request")
Response = TypeVar("Response")


class Narrowed(NamedTuple, Generic[Request, Response]):
    """What is left of a request, and what has to be added to the response to that."""

    request: Request
    complete: Callable[[Response], None]
