"""One API that the controller decides on: all its facts in one value, and its results.

Each module of `kvorum.controller.apis` ends with such a value, below the functions that it names.
`kvorum.controller.requests` finds the value by the API's key. The node's listeners read from it the
permission, the check of the form, the quota, and how the whole request is refused.
"""

from collections.abc import Callable, Generator, Iterator, Sized
from dataclasses import dataclass
from typing import Final, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from kvorum.controller.settings import ControllerRequestContext
from kvorum.metadata.api import Api, RequestError
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.record_frame import RecordAndVersion
from kvorum.metadata.standard_authorizer import Access, Principal
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.primitives import Message

Response_co = TypeVar("Response_co", covariant=True)
Request = TypeVar("Request", bound=Message)
Response = TypeVar("Response", bound=Message)

Result = TypeVar("Result")
Pieces: TypeAlias = Generator[None, None, Result]
"""Work that pauses now and then, so that other work can be done, and then returns its result."""

Steps: TypeAlias = Iterator[RecordAndVersion | None]
"""Records in order, and None where the work may pause without one."""

PIECE_RECORDS: Final = 1000
"""The number of records that are decided on between two pauses: some 20 ms."""

MAX_RECORDS_PER_USER_OPERATION = 10_000
"""The limit of one request, as in Kafka: a single request cannot stall the log."""


@dataclass(frozen=True, slots=True)
class ControllerResult(Generic[Response_co]):
    """Records, and the response that may be sent once they are committed.

    Atomic records go into the log as one append; others may be split between appends. A response
    without records waits for the records that are pending, and is sent at once without any.
    A `kraft_version` is the new one of the quorum; it goes into the log before the records.
    """

    response: Response_co
    records: tuple[RecordAndVersion, ...] = ()
    is_atomic: bool = True
    kraft_version: int | None = None


def at_once(pieces: Pieces[Result]) -> Result:
    """Return the result of `pieces` without a pause."""
    while True:
        try:
            next(pieces)
        except StopIteration as done:
            result: Result = done.value
            return result


def gather(records: list[RecordAndVersion], steps: Steps) -> Iterator[None]:
    """Append the records of `steps` to `records`, with a pause now and then."""
    until_stop = PIECE_RECORDS
    for record in steps:
        if record is not None:
            records.append(record)
            until_stop -= 1
        if record is None or until_stop == 0:
            until_stop = PIECE_RECORDS
            yield


def records_of(steps: Steps) -> Iterator[RecordAndVersion]:
    """Yield the records of `steps` without a pause."""
    return (record for record in steps if record is not None)


def check_record_count(records: Sized) -> None:
    """Raise `RequestError` POLICY_VIOLATION for more records than the limit of one request."""
    if len(records) > MAX_RECORDS_PER_USER_OPERATION:
        raise RequestError(
            ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation."
        )


class Filtered(NamedTuple, Generic[Request, Response]):
    """The permitted part of a request, and a function that adds the refused rest."""

    request: Request
    complete: Callable[[Response], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Requester:
    """The facts about a client that are known before its request is decided on.

    `may_ask_about_tokens` is true for a client that has authenticated by other means than a token.
    """

    principal: Principal
    access: Access
    api_version: int
    may_ask_about_tokens: bool


class _Throttled(Protocol):
    """A response with a throttle time."""

    throttle_time_ms: int


class _Timed(Protocol):
    """A request with a timeout."""

    timeout_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MutationQuotaTerms:
    """The use that an API makes of the controller mutation quota (KIP-599).

    From version `strict_since` on, a request beyond the quota is refused. A client of an older
    version only gets a throttle time. `response` is the class of the response that carries it.
    """

    strict_since: int
    response: type[_Throttled]

    def throttle(self, response: Message, throttle_time_ms: int) -> None:
        """Set the throttle time of a response."""
        assert isinstance(response, self.response)
        response.throttle_time_ms = throttle_time_ms

    def throttle_time_ms(self, response: Message) -> int:
        """Return the throttle time of a response."""
        assert isinstance(response, self.response)
        return response.throttle_time_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerApi(Api[Request], Generic[Request, Response]):
    """One API of the controller; fields with a default are for few APIs.

    - `decide`: returns records and the response, from the pending image. It may raise RequestError.
      For an API whose records have no limit it pauses now and then, so that other work can be done.
    - `refuse`: returns the response that refuses a whole request, for a version.
    - `admit`: the checks that every controller makes, active or not; a response from it is final.
    - `is_admitted_by_brokers`: whether a broker makes these checks too, before it forwards.
    - `filter_by_authorization`: removes the parts of a request that its client has no permission
      for, and adds them to the response as refused.
    - `timeout_ms`: returns the timeout of a request.
    - `mutation_quota`: the use that it makes of the controller mutation quota.
    - `form_problem`: returns the violation of a rule that the schema cannot express, or None; a
      request with one is treated as unreadable.
    - `is_for_any_controller`: whether controllers that are not active answer the request as well.
    """

    decide: Callable[
        [MetadataImage, Request, ControllerRequestContext],
        ControllerResult[Response] | Pieces[ControllerResult[Response]],
    ]
    refuse: Callable[[Request, RequestError, int], Response]
    admit: Callable[[Request, Requester], Response | None] | None = None
    is_admitted_by_brokers: bool = False
    filter_by_authorization: (
        Callable[[MetadataImage, Request, Access], Filtered[Request, Response]] | None
    ) = None
    timeout_ms: Callable[[Request], int] | None = None
    mutation_quota: MutationQuotaTerms | None = None
    form_problem: Callable[[Request], str | None] | None = None
    is_for_any_controller: bool = False

    def demand_time_left(self, request: Request) -> None:
        """Raise `RequestError` for a request whose timeout is zero or negative.

        The controller decides on a request at once, so any positive timeout suffices. As in Kafka,
        the time until its records are committed does not count.
        """
        if self.timeout_ms is not None and self.timeout_ms(request) <= 0:
            raise RequestError(ErrorCode.REQUEST_TIMED_OUT)


def own_timeout_ms(request: _Timed) -> int:
    """Return the timeout of a request."""
    return request.timeout_ms
