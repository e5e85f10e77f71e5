"""From a frame to the handler of its API, and back: what each listener does with a request."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final, Generic, TypeAlias, TypeVar

from kvorum.metadata.access import UNRESTRICTED, Access
from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.principal import ANONYMOUS, Principal
from kvorum.metadata.request_error import RequestError
from kvorum.node.errors import CloseConnectionError, NotControllerError
from kvorum.node.serving.answer_frame import encode_answer
from kvorum.node.serving.connection import Peer
from kvorum.node.serving.refusals import refusal_of
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.apis import API_SPECS, request_class
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.errors import WireError
from kvorum.wire.headers import (
    API_VERSIONS_KEY,
    decode_request_header,
    encode_response_frame,
)
from kvorum.wire.messages.api_versions import (
    ApiVersionsResponse,
    ApiVersionsResponseApiVersion,
)
from kvorum.wire.messages.request_header import RequestHeader
from kvorum.wire.primitives import Message

Node = TypeVar("Node")
GiveAccess: TypeAlias = Callable[[Principal, str], Access]
"""Tells what a principal at a host may do."""
Answer: TypeAlias = Message | bytes | None
"""What a handler gives: a response, a whole response frame of another node, or no response."""
KEYS_WITH_FORM: Final = frozenset({29, 30, 31})
"""Requests that have to be like more than their schema says."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ServedApi(Generic[Node]):
    """One API as a listener serves it; `min_listed` is what ApiVersions tells.

    Whoever asks must be allowed the `operation` on the cluster, where there is one.
    """

    key: int
    min_version: int
    max_version: int
    min_listed: int
    find_handler: Callable[[], Callable[[IncomingRequest, Node], Awaitable[Answer]]]
    operation: AclOperation | None = None


def _everything(principal: Principal, host: str) -> Access:
    del principal, host
    return UNRESTRICTED


class Dispatcher(Generic[Node]):
    """Answers the requests of one listener; `node` is what handlers work with."""

    def __init__(
        self,
        apis: Mapping[int, ServedApi[Node]],
        node: Node,
        give_access: GiveAccess = _everything,
    ) -> None:
        self._apis = apis
        self._node = node
        self._give_access = give_access

    async def answer(self, frame: bytes, peer: Peer) -> bytes | None:
        """Return the response frame, None for no response; raises CloseConnectionError."""
        header, body_start = self._read_header(frame)
        if header.request_api_key == API_VERSIONS_KEY and not self._serves(header):
            return self._unknown_api_versions(header)
        request = self._read_request(
            frame, header, body_start, listener=peer.listener, client_host=peer.host
        )
        try:
            response = await self.handle(request)
        except NotControllerError as error:
            response = self._refuse(request, RequestError(ErrorCode.NOT_CONTROLLER, str(error)))
        if response is None or isinstance(response, bytes):
            return response
        return encode_answer(
            response, version=request.version, correlation_id=header.correlation_id
        )

    def read(
        self, frame: bytes, *, listener: str, client_host: str, principal: Principal = ANONYMOUS
    ) -> IncomingRequest:
        """Return the request in a frame that a broker passed on; raises CloseConnectionError."""
        header, body_start = self._read_header(frame)
        return self._read_request(
            frame,
            header,
            body_start,
            listener=listener,
            client_host=client_host,
            principal=principal,
            is_forwarded=True,
        )

    async def handle(self, request: IncomingRequest) -> Answer:
        """Return what the handler says; a handler that breaks is answered for, and logged.

        Raises CloseConnectionError and NotControllerError: who asked knows what these mean to it.
        """
        api = self._apis[request.header.request_api_key]
        try:
            if api.operation is not None:
                request.access.require_on_cluster(api.operation, request=request.body.NAME)
            return await api.find_handler()(request, self._node)
        except RequestError as error:
            return self._refuse(request, error)
        except (CloseConnectionError, NotControllerError):
            raise
        except Exception:  # noqa: BLE001 - whatever it is, the client is told
            _log.exception(
                "Answering %s (version %d) of %s on %s failed",
                request.body.NAME,
                request.version,
                request.client_host,
                request.listener,
            )
            unknown = RequestError.with_default_message(ErrorCode.UNKNOWN_SERVER_ERROR)
            return self._refuse(request, unknown)

    def _refuse(self, request: IncomingRequest, error: RequestError) -> Message:
        response = refusal_of(request.body, error, version=request.version)
        if response is None:
            raise CloseConnectionError(f"{request.body.NAME} failed: {error}")
        return response

    def _serves(self, header: RequestHeader) -> bool:
        api = self._apis.get(header.request_api_key)
        return api is not None and api.min_version <= header.request_api_version <= api.max_version

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
        *,
        listener: str,
        client_host: str,
        principal: Principal = ANONYMOUS,
        is_forwarded: bool = False,
    ) -> IncomingRequest:
        key, version = header.request_api_key, header.request_api_version
        if not self._serves(header):
            raise CloseConnectionError(
                f"version {version} of {API_SPECS[key].name} (key {key}) is not served here"
            )
        kind = request_class(key)
        try:
            body, _ = kind.decode_from(frame, body_start, version)
        except WireError as error:
            raise CloseConnectionError(f"not a request: {error}") from error
        if key in KEYS_WITH_FORM:
            # Imported here, for a node that is never asked about access control entries.
            from kvorum.node.serving.request_form import check_form  # noqa: PLC0415 - see above

            check_form(body)
        return IncomingRequest(
            header=header,
            body=body,
            frame=frame,
            listener=listener,
            client_host=client_host,
            principal=principal,
            is_forwarded=is_forwarded,
            access=self._give_access(principal, client_host),
        )

    def _unknown_api_versions(self, header: RequestHeader) -> bytes:
        """Tell, in version 0, which versions of ApiVersions itself there are, and no more."""
        own = self._apis[API_VERSIONS_KEY]
        response = ApiVersionsResponse(
            error_code=ErrorCode.UNSUPPORTED_VERSION,
            api_keys=[
                ApiVersionsResponseApiVersion(API_VERSIONS_KEY, own.min_version, own.max_version)
            ],
        )
        return encode_response_frame(response, version=0, correlation_id=header.correlation_id)
