"""The APIs of a listener, and the way of a request from its frame to the handler and back.

All facts of one API on one kind of listener are one value. It is created in the module that answers
the API, or from the value of the package that decides on it (`kvorum.node.handlers.adapters`). The
dispatcher has no other knowledge of an API.
"""

import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import Api, RequestError
from kvorum.metadata.standard_authorizer import UNRESTRICTED, Access, Principal
from kvorum.node.clock import Clock
from kvorum.node.coroutines import Wait
from kvorum.node.errors import CloseConnectionError, NotControllerError
from kvorum.node.serving.repeated_answers import (
    REQUEST_BYTES_MAX,
    Basis,
    Question,
    RepeatedAnswer,
    RepeatedAnswers,
)
from kvorum.node.serving.request import IncomingRequest, RequestProgress
from kvorum.node.serving.request_metrics import RequestChannelMetrics, count_errors
from kvorum.node.serving.response_frame import ResponseFrame
from kvorum.node.serving.session import Session
from kvorum.wire.api_keys import ApiKey
from kvorum.wire.apis import API_SPECS
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.errors import EncodeError, WireError
from kvorum.wire.headers import (
    decode_request_header,
    encode_response_frame,
    encode_response_header,
    encode_response_parts,
)
from kvorum.wire.json_form import fields_of
from kvorum.wire.messages.api_versions import ApiVersionsResponse
from kvorum.wire.messages.request_header import RequestHeader
from kvorum.wire.primitives import STRING_BYTES_MAX, Message, Struct

Services = TypeVar("Services")
Request = TypeVar("Request", bound=Message)
ERROR_MESSAGE: Final = "error_message"
GiveAccess: TypeAlias = Callable[[Principal, str, str], Access]
"""Returns the access of a principal at a host, for a request of an API."""
_log = logging.getLogger(__name__)


class EncodedResponse(NamedTuple):
    """A whole response frame, of another node or of an earlier answer, and its throttle time."""

    frame: bytes
    throttle_time_ms: int = 0


HandlerResponse: TypeAlias = Message | EncodedResponse | None
"""The result of an API: a response, one that is encoded already, or no response."""
Throttle: TypeAlias = Callable[[IncomingRequest[Message], HandlerResponse], HandlerResponse]
"""Decides about the client's quotas: returns the response, with the time to wait set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerApi(Api[Request], Generic[Services, Request]):
    """One API on one kind of listener. Every field without a default must be given.

    - `answer`: answers a request, with the services of the node. It may raise RequestError.
    - `refuse`: returns the response that refuses the whole request, in a version.
    - `form_problem`: returns why a request that fits its schema is invalid all the same, else None;
      an invalid request is handled as an unreadable one.
    - `throttle_time_ms`: returns the throttle time of a response. The connection is not read for as
      long, because not every client obeys the throttle time.
    - `basis`: returns all that a response without an error depends on, but for the request and its
      listener; None where that is more. Nothing else may happen because of such a request.
    """

    answer: Callable[
        [IncomingRequest[Request], Services], Coroutine[Wait[Any], Any, HandlerResponse]
    ]
    refuse: Callable[[Request, RequestError, int], Message]
    form_problem: Callable[[Request], str | None] | None = None
    throttle_time_ms: Callable[[Message], int] | None = None
    basis: Callable[[Services], Basis] | None = None


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


def encode_answer(response: Message, *, version: int, correlation_id: int) -> bytes:
    """Return the frame of `response`, with all records in memory; see `encode_answer_parts`."""
    return b"".join(encode_answer_parts(response, version=version, correlation_id=correlation_id))


def encode_answer_parts(
    response: Message, *, version: int, correlation_id: int
) -> Sequence[bytes | memoryview]:
    """Return the frame of `response` in parts; records are parts of their own.

    An error message that quotes a name of maximum length is itself longer than a string can be.
    Such a message is cut; Kafka answers such requests with UNKNOWN_SERVER_ERROR.
    """
    try:
        return encode_response_parts(response, version=version, correlation_id=correlation_id)
    except EncodeError:
        cut_error_messages(response)
        return encode_response_parts(response, version=version, correlation_id=correlation_id)


def cut_error_messages(value: Struct) -> None:
    """Cut every error message inside `value` to the maximum length of a string."""
    for field in fields_of(type(value)):
        own: str | Struct | list[object] | None = getattr(value, field.attribute)
        if field.attribute == ERROR_MESSAGE and isinstance(own, str):
            cut = own.encode()[:STRING_BYTES_MAX].decode(errors="ignore")
            setattr(value, field.attribute, cut)
        for inner in own if isinstance(own, list) else [own]:
            if isinstance(inner, Struct):
                cut_error_messages(inner)


def _unthrottled(request: IncomingRequest[Message], response: HandlerResponse) -> HandlerResponse:
    del request
    return response


class RequestHandler(Generic[Services]):
    """Answers the requests of one listener; `node` has the services that handlers use."""

    def __init__(
        self,
        apis: ServedApis[Services],
        node: Services,
        give_access: GiveAccess,
        *,
        clock: Clock,
        metrics: RequestChannelMetrics,
        throttle: Throttle = _unthrottled,
    ) -> None:
        self._apis = apis
        self._node = node
        self._give_access = give_access
        self._clock = clock
        self._metrics = metrics
        self._throttle = throttle
        self._repeated = RepeatedAnswers()

    async def answer(self, frame: bytes, session: Session) -> ResponseFrame:
        """Return the response frame; raises CloseConnectionError."""
        progress = RequestProgress(self._clock)
        header, body_start = self._read_header(frame)
        if header.request_api_key == ApiKey.API_VERSIONS and not self._serves(header):
            return ResponseFrame((self._unknown_api_versions(header),))
        arrival = (session, progress)
        body_bytes = len(frame) - body_start
        lookup = self._lookup(header, frame, body_start, session)
        known = None if lookup is None else self._repeated.find(*lookup)
        if known is not None:
            request = self._incoming(known.request, header, frame, arrival)
            return self._repeat(known, request, partial(self._record, request, body_bytes))
        request = self._read_request(frame, header, body_start, arrival)
        api = self._api_of(request)
        try:
            response = await progress.measured(self.handle(request))
        except NotControllerError as error:
            refusal = RequestError(ErrorCode.NOT_CONTROLLER, str(error))
            response = api.refuse(request.body, refusal, request.version)
        response = self._throttled(request, response)
        progress.has_response(self._clock.monotonic_ms())
        on_sent = partial(self._record, request, body_bytes)
        if response is None or isinstance(response, EncodedResponse):
            return _as_encoded(response, progress, on_sent)
        try:
            parts = _encoded(request, response)
        except EncodeError:
            # As in Kafka. The id of a group's member, which begins with its client's, may be such.
            response = _failed(api, request)
            parts = _encoded(request, response)
        error_counts = count_errors(response)
        self._update_errors(request, error_counts)
        own_pause_ms = 0 if api.throttle_time_ms is None else api.throttle_time_ms(response)
        pause_ms = max(progress.throttle_time_ms or 0, own_pause_ms)
        if lookup is not None and pause_ms == 0 and error_counts.keys() <= {ErrorCode.NONE}:
            without_header = b"".join(parts[1:])
            self._repeated.keep(*lookup, RepeatedAnswer(request.body, without_header, error_counts))
        return ResponseFrame(parts, pause_ms, on_sent)

    def _lookup(
        self, header: RequestHeader, frame: bytes, body_start: int, session: Session
    ) -> tuple[Question, Basis] | None:
        """Return what a known answer is found by; None for a request that is to be handled."""
        key = header.request_api_key
        served = self._apis.get(key)
        basis = None if served is None else served.load().basis
        if basis is None or len(frame) - body_start > REQUEST_BYTES_MAX:
            return None
        if self._access(session, key) is not UNRESTRICTED:
            return None
        question = Question(
            api_key=key,
            api_version=header.request_api_version,
            listener=session.listener,
            principal=session.principal,
            body=frame[body_start:],
        )
        return question, basis(self._node)

    def _repeat(
        self, known: RepeatedAnswer, request: IncomingRequest[Message], on_sent: Callable[[], None]
    ) -> ResponseFrame:
        """Return a known answer as the response to `request`."""
        header = request.header
        progress = request.progress
        progress.pause()
        own_header = encode_response_header(
            header.request_api_key, header.request_api_version, header.correlation_id
        )
        response = self._throttled(request, EncodedResponse(own_header + known.response))
        progress.has_response(self._clock.monotonic_ms())
        self._update_errors(request, known.error_counts)
        assert isinstance(response, EncodedResponse)
        return _as_encoded(response, progress, on_sent)

    def _throttled(
        self, request: IncomingRequest[Message], response: HandlerResponse
    ) -> HandlerResponse:
        """Count the time of a request for the quota of its client, unless that is not known yet."""
        return self._throttle(request, response) if request.session.is_authenticated else response

    def _update_errors(
        self, request: IncomingRequest[Message], error_counts: Mapping[int, int]
    ) -> None:
        if request.session.is_authenticated:
            self._metrics.update_errors(request.header.request_api_key, error_counts)

    def _record(self, request: IncomingRequest[Message], body_bytes: int) -> None:
        key, body = request.header.request_api_key, request.body
        times = request.progress.times(self._clock.monotonic_ms(), body_bytes)
        self._metrics.update(key, request.version, body, times)

    def read(self, frame: bytes, session: Session) -> IncomingRequest[Message]:
        """Return the request in a frame, to be handled or refused; raises CloseConnectionError."""
        header, body_start = self._read_header(frame)
        progress = RequestProgress(self._clock)
        return self._read_request(frame, header, body_start, (session, progress))

    def refuse(self, frame: bytes, session: Session, error: RequestError) -> ResponseFrame:
        """Return the response that refuses a request as a whole; raises CloseConnectionError."""
        request = self.read(frame, session)
        response = self._api_of(request).refuse(request.body, error, request.version)
        return ResponseFrame(_encoded(request, response))

    async def handle(self, request: IncomingRequest[Message]) -> HandlerResponse:
        """Return the response of the API; an unexpected error of a handler is logged and answered.

        Raises CloseConnectionError and NotControllerError, whose effect differs between direct and
        forwarded requests.
        """
        api = self._api_of(request)
        try:
            if isinstance(api.permission, AclOperation):
                request.access.require_on_cluster(api.permission, request=request.body.NAME)
            return await api.answer(request, self._node)
        except RequestError as error:
            return api.refuse(request.body, error, request.version)
        except (CloseConnectionError, NotControllerError):
            raise
        except Exception:  # noqa: BLE001 - any error is answered
            return _failed(api, request)

    def _api_of(self, request: IncomingRequest[Message]) -> ListenerApi[Services, Message]:
        return self._apis[request.header.request_api_key].load()

    def _serves(self, header: RequestHeader) -> bool:
        api, version = self._apis.get(header.request_api_key), header.request_api_version
        return api is not None and api.min_version <= version <= api.max_version

    def _read_header(self, frame: bytes) -> tuple[RequestHeader, int]:
        try:
            return decode_request_header(frame)
        except WireError as error:
            raise CloseConnectionError(f"no request header: {error}") from error

    def _read_request(
        self,
        frame: bytes,
        header: RequestHeader,
        body_start: int,
        arrival: tuple[Session, RequestProgress],
    ) -> IncomingRequest[Message]:
        key, version = header.request_api_key, header.request_api_version
        if not self._serves(header):
            raise CloseConnectionError(
                f"version {version} of {API_SPECS[key].name} (key {key}) is not served here"
            )
        api = self._apis[key].load()
        try:
            body, _ = api.request.decode_from(frame, body_start, version)
        except WireError as error:
            raise CloseConnectionError(f"not a request: {error}") from error
        problem = None if api.form_problem is None else api.form_problem(body)
        if problem is not None:
            raise CloseConnectionError(f"not a {body.NAME}: {problem}")
        return self._incoming(body, header, frame, arrival)

    def _incoming(
        self,
        body: Message,
        header: RequestHeader,
        frame: bytes,
        arrival: tuple[Session, RequestProgress],
    ) -> IncomingRequest[Message]:
        session, progress = arrival
        return IncomingRequest(
            header=header,
            body=body,
            frame=frame,
            progress=progress,
            session=session,
            access=self._access(session, header.request_api_key),
        )

    def _access(self, session: Session, key: int) -> Access:
        return self._give_access(session.principal, session.client_host, API_SPECS[key].name)

    def _unknown_api_versions(self, header: RequestHeader) -> bytes:
        """Return, in version 0, only the range of versions of ApiVersions itself."""
        own = self._apis[ApiKey.API_VERSIONS]
        response = ApiVersionsResponse(
            error_code=ErrorCode.UNSUPPORTED_VERSION,
            api_keys=[ApiVersionsResponse.ApiVersion(own.key, own.min_version, own.max_version)],
        )
        return encode_response_frame(response, version=0, correlation_id=header.correlation_id)


def _as_encoded(
    response: EncodedResponse | None, progress: RequestProgress, on_sent: Callable[[], None]
) -> ResponseFrame:
    """Return the frame of an encoded response; without a response it has no parts."""
    pause_ms = progress.throttle_time_ms or 0
    if response is None:
        return ResponseFrame(None, pause_ms, on_sent)
    progress.throttle_time_ms = max(pause_ms, response.throttle_time_ms)
    return ResponseFrame((response.frame,), progress.throttle_time_ms, on_sent)


def _failed(api: ListenerApi[Services, Message], request: IncomingRequest[Message]) -> Message:
    """Log the error that is being handled, and return the response about it."""
    _log.exception(
        "Answering %s (version %d) of %s on %s failed",
        request.body.NAME,
        request.version,
        request.client_host,
        request.listener,
    )
    unknown = RequestError.with_default_message(ErrorCode.UNKNOWN_SERVER_ERROR)
    return api.refuse(request.body, unknown, request.version)


def _encoded(request: IncomingRequest[Message], response: Message) -> Sequence[bytes | memoryview]:
    return encode_answer_parts(
        response, version=request.version, correlation_id=request.header.correlation_id
    )
