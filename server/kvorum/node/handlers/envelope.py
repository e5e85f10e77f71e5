"""Envelope (58): a client's request that a broker forwards, answered as if it had come here."""

import ipaddress
from typing import Final

from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import RequestError, refused_by_code
from kvorum.node.errors import CloseConnectionError, NotControllerError
from kvorum.node.handlers.registry import controller_apis, forwardable_keys
from kvorum.node.principal_serde import decode_principal
from kvorum.node.services import ControllerListenerApi, ControllerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.node.serving.request_handler import EncodedResponse, RequestHandler, encode_answer
from kvorum.node.serving.session import Session
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.errors import WireError
from kvorum.wire.headers import decode_request_header
from kvorum.wire.messages.describe_quorum import DescribeQuorumResponse
from kvorum.wire.messages.envelope import EnvelopeRequest, EnvelopeResponse
from kvorum.wire.primitives import Message


async def answer(
    request: IncomingRequest[EnvelopeRequest], controller: ControllerServices
) -> Message:
    """Answer the request inside; an inactive controller answers the envelope NOT_CONTROLLER."""
    envelope = request.body
    try:
        frame = bytes(envelope.request_data)
        response = await answer_forwarded(frame, _session(request), controller)
    except CloseConnectionError:
        return EnvelopeResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    except NotControllerError:
        return EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER)
    except RequestError as error:
        return EnvelopeResponse(error_code=error.code)
    return EnvelopeResponse(response_data=response)


async def answer_forwarded(frame: bytes, session: Session, controller: ControllerServices) -> bytes:
    """Return the frame of the response to a request that a broker forwards.

    Raises NotControllerError where another controller has to answer, CloseConnectionError for a
    version that is not served, RequestError for an API that may not be forwarded.
    """
    # It is refused for this reason, even if it is not served here.
    if _key_of(frame) not in forwardable_keys():
        raise RequestError.with_default_message(ErrorCode.INVALID_REQUEST)
    dispatcher = _dispatcher(controller)
    inner = dispatcher.read(frame, session)
    response = await dispatcher.handle(inner)
    if isinstance(response, DescribeQuorumResponse) and _says_not_leader(response):
        raise NotControllerError("another node leads the quorum")
    if response is None or isinstance(response, EncodedResponse):
        raise RequestError.with_default_message(ErrorCode.UNKNOWN_SERVER_ERROR)
    return encode_answer(
        response, version=inner.version, correlation_id=inner.header.correlation_id
    )


def _session(request: IncomingRequest[EnvelopeRequest]) -> Session:
    """Return the client that an Envelope names; raises RequestError for no address."""
    envelope = request.body
    principal = decode_principal(bytes(envelope.request_principal or b""))
    try:
        host = str(ipaddress.ip_address(bytes(envelope.client_host_address)))
    except ValueError as error:
        raise RequestError.with_default_message(ErrorCode.INVALID_REQUEST) from error
    carrier = request.session
    return Session(carrier.listener, carrier.protocol, host, principal, is_forwarded=True)


def _key_of(frame: bytes) -> int:
    """Return the API key of a request; raises CloseConnectionError without a header."""
    try:
        header, _ = decode_request_header(frame)
    except WireError as error:
        raise CloseConnectionError(f"no request header: {error}") from error
    return header.request_api_key


def _dispatcher(controller: ControllerServices) -> RequestHandler[ControllerServices]:
    """Return the handler of the request inside, which treats it as one of this listener."""
    return RequestHandler(
        controller_apis(),
        controller,
        controller.give_access,
        clock=controller.runtime,
        metrics=controller.request_metrics,
    )


def _says_not_leader(response: DescribeQuorumResponse) -> bool:
    codes = [response.error_code]
    codes += [part.error_code for topic in response.topics for part in topic.partitions]
    return ErrorCode.NOT_LEADER_OR_FOLLOWER in codes


API: Final = ControllerListenerApi(
    request=EnvelopeRequest,
    permission=AclOperation.CLUSTER_ACTION,
    answer=answer,
    refuse=refused_by_code(EnvelopeResponse),
)
