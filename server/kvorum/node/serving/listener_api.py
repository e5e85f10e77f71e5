"""All facts of one API on one kind of listener, in one value; and the APIs of a listener.

A value is created in the module that answers the API, or from the value of the package that decides
on it (`kvorum.node.handlers.adapters`). The dispatcher has no other knowledge of an API.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from kvorum.metadata.api_modules import Api
from kvorum.metadata.request_error import RequestError
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.api_keys import ApiKey
from kvorum.wire.primitives import Message

Services = TypeVar("Services")
Request = TypeVar("Request", bound=Message)


class ForwardedResponse(NamedTuple):
    """A whole response frame of another node, and its throttle time."""

    frame: bytes
    throttle_time_ms: int = 0


HandlerResponse: TypeAlias = Message | ForwardedResponse | None
"""The result of an API: a response, the response of another node, or no response."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerApi(Api[Request], Generic[Services, Request]):
    """One API on one kind of listener. Every field without a default must be given.

    - `answer`: answers a request, with the services of the node. It may raise RequestError.
    - `refuse`: returns the response that refuses the whole request, in a version.
    - `form_problem`: returns why a request that fits its schema is invalid all the same, else None;
      an invalid request is handled as an unreadable one.
    - `throttle_time_ms`: returns the throttle time of a response. The connection is not read for as
      long, because not every client obeys the throttle time.
    """

    answer: Callable[[IncomingRequest[Request], Services], Awaitable[HandlerResponse]]
    refuse: Callable[[Request, RequestError, int], Message]
    form_problem: Callable[[Request], str | None] | None = None
    throttle_time_ms: Callable[[Message], int] | None = None


@dataclass(frozen=True, slots=True)
class ServedApi(Generic[Services]):
    """An API of a listener: its versions, and the function that loads its value.

    `min_listed` is the lowest version that ApiVersions lists.
    """

    key: ApiKey
    min_version: int
    max_version: int
    min_listed: int
    load: Callable[[], ListenerApi[Services, Message]]


ServedApis: TypeAlias = Mapping[int, ServedApi[Services]]
"""The APIs of a listener, by key."""
