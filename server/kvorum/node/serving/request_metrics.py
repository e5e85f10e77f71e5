"""The number of requests, how long they took and how they ended (Kafka's RequestMetrics)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar, cast

from kvorum.node.metrics.sensors import Distribution, LatestRows
from kvorum.wire.api_keys import ApiKey
from kvorum.wire.apis import API_SPECS
from kvorum.wire.json_form import element_class, fields_of
from kvorum.wire.primitives import Message, Struct

if TYPE_CHECKING:
    # A start does not need the message.
    from kvorum.wire.messages.fetch import FetchRequest

Value = TypeVar("Value")
FETCH_CONSUMER: Final = "FetchConsumer"
FETCH_FOLLOWER: Final = "FetchFollower"
ERROR_CODE: Final = "error_code"


class RequestTimes(NamedTuple, Generic[Value]):
    """The times of a request in milliseconds, and its size without header; or what is known of all.

    `local_time` is the event loop's, `remote_time` what the request waited for, `send_time` that of
    encoding and sending its response, and `throttle_time` how long its client has to wait.
    """

    total_time: Value
    local_time: Value
    remote_time: Value
    send_time: Value
    throttle_time: Value
    request_bytes: Value


@dataclass(slots=True)
class RequestMetrics:
    """The requests of one API since the start."""

    by_version: dict[int, int] = field(default_factory=dict[int, int])
    errors: dict[int, int] = field(default_factory=dict[int, int])
    rows: LatestRows = field(default_factory=lambda: LatestRows(len(RequestTimes._fields)))

    def update(self, version: int, times: RequestTimes[float]) -> None:
        """Count a request."""
        self.by_version[version] = self.by_version.get(version, 0) + 1
        self.rows.record(times)

    @property
    def times(self) -> RequestTimes[Distribution]:
        """The distributions of the times and sizes."""
        return RequestTimes(*self.rows.distributions())


class RequestChannelMetrics:
    """The requests of a process, by the names that Kafka gives them."""

    def __init__(self) -> None:
        self.by_name: dict[str, RequestMetrics] = {}
        """The figures of each kind of requests."""

    def update(self, key: int, version: int, body: Message, times: RequestTimes[float]) -> None:
        """Count a request whose response is sent."""
        self._of(API_SPECS[key].name).update(version, times)
        if key == ApiKey.FETCH:
            self._of(_kind_of(cast("FetchRequest", body))).update(version, times)

    def update_errors(self, key: int, error_counts: Mapping[int, int]) -> None:
        """Add how often each error code is in a response."""
        errors = self._of(API_SPECS[key].name).errors
        for code, count in error_counts.items():
            errors[code] = errors.get(code, 0) + count

    def _of(self, name: str) -> RequestMetrics:
        metrics = self.by_name.get(name)
        if metrics is None:
            metrics = self.by_name[name] = RequestMetrics()
        return metrics


def _kind_of(fetch: FetchRequest) -> str:
    is_follower = max(fetch.replica_id, fetch.replica_state.replica_id) >= 0
    return FETCH_FOLLOWER if is_follower else FETCH_CONSUMER


class _Places(NamedTuple):
    """The places of the codes of a class of structs: in itself, and in attributes with structs."""

    is_here: bool
    inside: tuple[str, ...]


def count_errors(response: Message) -> Mapping[int, int]:
    """Return how often each error code is in a response, 0 for what went well included."""
    counts: dict[int, int] = {}
    _add_errors(response, counts)
    return counts


def _add_errors(value: Struct, counts: dict[int, int]) -> None:
    places = _places(type(value))  # type: ignore[arg-type] # classes can be hashed
    if places.is_here:
        code: int = getattr(value, ERROR_CODE)
        counts[code] = counts.get(code, 0) + 1
    for attribute in places.inside:
        found: Struct | list[Struct] | None = getattr(value, attribute)
        if isinstance(found, list):
            for one in found:
                _add_errors(one, counts)
        elif found is not None:
            _add_errors(found, counts)


@cache
def _places(kind: type[Struct]) -> _Places:
    is_here = False
    inside: list[str] = []
    for one in fields_of(kind):
        if one.attribute == ERROR_CODE:
            is_here = True
        element = element_class(kind, one.kind)
        if element is not None and any(_places(element)):  # type: ignore[arg-type] # as above
            inside.append(one.attribute)
    return _Places(is_here, tuple(inside))
