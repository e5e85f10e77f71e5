"""Requests that are repeated: which are handled again, and which are answered as before."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import pytest
from tests.support.waiting import StandingClock

from kvorum.metadata.api import NONE, refused_by_code
from kvorum.metadata.standard_authorizer import (
    ANONYMOUS,
    UNRESTRICTED,
    Access,
    AuthorizerRules,
    Principal,
)
from kvorum.node.serving.repeated_answers import ANSWERS_MAX, RESPONSE_BYTES_MAX, Basis
from kvorum.node.serving.request import IncomingRequest
from kvorum.node.serving.request_handler import (
    EncodedResponse,
    HandlerResponse,
    ListenerApi,
    RequestHandler,
    ServedApi,
)
from kvorum.node.serving.request_metrics import RequestChannelMetrics
from kvorum.node.serving.response_frame import ResponseFrame
from kvorum.node.serving.session import UNAUTHENTICATED, Session
from kvorum.security.security_protocol import SecurityProtocol
from kvorum.wire.api_keys import ApiKey
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.headers import decode_response_frame, encode_request_frame
from kvorum.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from kvorum.wire.primitives import Message

VERSION = 1
RULES = AuthorizerRules(frozenset(), allows_without_entries=True)


@dataclass
class Node:
    """A node whose answers count how often it has answered itself."""

    basis: Basis = (object(),)
    error: ErrorCode = ErrorCode.NONE
    name_size: int = 1
    handled: list[str] = field(default_factory=list[str])


async def answer(request: IncomingRequest[Message], node: Node) -> Message:
    node.handled.append(request.listener)
    return DescribeClusterResponse(
        error_code=node.error, controller_id=len(node.handled), cluster_id="c" * node.name_size
    )


API: ListenerApi[Node, Message] = ListenerApi(
    request=DescribeClusterRequest,
    permission=NONE,
    answer=answer,
    refuse=refused_by_code(DescribeClusterResponse),
    basis=lambda node: node.basis,
)


class Listener:
    """A listener that serves one API; `throttle_ms` is its clients' throttle time."""

    def __init__(self) -> None:
        self.node = Node()
        self.access: Access = UNRESTRICTED
        self.throttle_ms = 0
        self.metrics = RequestChannelMetrics()
        served = ServedApi(ApiKey.DESCRIBE_CLUSTER, 0, 2, 0, lambda: API)
        apis: Mapping[int, ServedApi[Node]] = MappingProxyType({served.key: served})
        self._handler = RequestHandler(
            apis,
            self.node,
            self._access,
            clock=StandingClock(),
            metrics=self.metrics,
            throttle=self._throttle,
        )

    def _access(self, _principal: Principal, _host: str, _request: str) -> Access:
        return self.access

    def _throttle(
        self, request: IncomingRequest[Message], response: HandlerResponse
    ) -> HandlerResponse:
        request.progress.throttle_time_ms = self.throttle_ms
        if isinstance(response, EncodedResponse):
            return EncodedResponse(response.frame, self.throttle_ms)
        return response

    def respond(
        self,
        *,
        endpoint_type: int = 1,
        correlation_id: int = 1,
        listener: str = "A",
        client_id: str = "",
        principal: Principal = ANONYMOUS,
    ) -> ResponseFrame:
        request = DescribeClusterRequest(endpoint_type=endpoint_type)
        frame = encode_request_frame(
            request, version=VERSION, correlation_id=correlation_id, client_id=client_id
        )
        session = Session(listener, SecurityProtocol.SSL, "host", principal)
        coroutine = self._handler.answer(frame, session)
        with pytest.raises(StopIteration) as end:
            coroutine.send(None)
        response: ResponseFrame = end.value.value
        if response.on_sent is not None:
            response.on_sent()
        return response

    def ask(self, **request: object) -> tuple[int, int]:
        """Return the correlation id of a response, and which answer of the node's it has."""
        parts = self.respond(**request).parts  # type: ignore[arg-type] # those of `respond`
        assert parts is not None
        frame = b"".join(bytes(part) for part in parts)
        header, response = decode_response_frame(
            frame, response_class=DescribeClusterResponse, version=VERSION
        )
        return header.correlation_id, response.controller_id


@pytest.fixture
def listener() -> Listener:
    return Listener()


def test_a_repeated_request_is_answered_as_before(listener: Listener) -> None:
    assert listener.ask(correlation_id=7) == (7, 1)
    assert listener.ask(correlation_id=8, client_id="another") == (8, 1)
    metrics = listener.metrics.by_name["DescribeCluster"]
    assert metrics.errors == {0: 2}
    assert metrics.by_version == {VERSION: 2}


def test_another_request_and_another_listener_are_answered_by_themselves(
    listener: Listener,
) -> None:
    assert listener.ask() == (1, 1)
    assert listener.ask(endpoint_type=2) == (1, 2)
    assert listener.ask(listener="B") == (1, 3)
    assert [listener.ask(), listener.ask(endpoint_type=2), listener.ask(listener="B")] == [
        (1, 1), (1, 2), (1, 3),
    ]  # fmt: skip


def test_what_one_user_was_answered_is_not_shown_to_another(listener: Listener) -> None:
    assert listener.ask(principal=Principal("User", "alice")) == (1, 1)
    assert listener.ask() == (1, 2)
    assert listener.ask(principal=Principal("User", "alice", is_token_authenticated=True)) == (1, 3)
    assert listener.ask(principal=Principal("User", "alice")) == (1, 1)


def test_what_the_answer_depends_on_has_changed(listener: Listener) -> None:
    assert listener.ask() == (1, 1)
    listener.node.basis = (object(),)
    assert listener.ask() == (1, 2)
    assert listener.ask() == (1, 2)
    listener.node.basis = (*listener.node.basis, object())
    assert listener.ask() == (1, 3)


def test_an_answer_with_an_error_is_not_kept(listener: Listener) -> None:
    listener.node.error = ErrorCode.BROKER_NOT_AVAILABLE
    assert [listener.ask(), listener.ask()] == [(1, 1), (1, 2)]


def test_nothing_is_kept_where_permissions_count(listener: Listener) -> None:
    listener.access = Access(RULES, None, Principal("User", "a"), "host")
    assert [listener.ask(), listener.ask()] == [(1, 1), (1, 2)]


def test_what_is_known_is_not_for_those_who_need_a_permission(listener: Listener) -> None:
    assert listener.ask() == (1, 1)
    listener.access = Access(RULES, None, Principal("User", "a"), "host")
    assert listener.ask() == (1, 2)


def test_a_client_waits_for_an_answer_that_is_known_too(listener: Listener) -> None:
    assert listener.respond().pause_ms == 0
    listener.throttle_ms = 50
    assert listener.respond().pause_ms == 50
    assert listener.node.handled == ["A"]


def test_a_client_that_has_not_logged_in_uses_no_quota_of_those_that_have(
    listener: Listener,
) -> None:
    listener.throttle_ms = 50
    answers = [listener.respond(principal=UNAUTHENTICATED) for _ in range(2)]
    assert [answer.pause_ms for answer in answers] == [0, 0]
    assert listener.node.handled == ["A"], "the second one is known"
    assert listener.metrics.by_name["DescribeCluster"].errors == {}
    assert listener.respond().pause_ms == 50


def test_a_large_answer_is_not_kept(listener: Listener) -> None:
    listener.node.name_size = RESPONSE_BYTES_MAX
    assert [listener.ask(), listener.ask()] == [(1, 1), (1, 2)]


def test_only_so_many_answers_are_kept(listener: Listener) -> None:
    for number in range(ANSWERS_MAX + 1):
        listener.ask(listener=str(number))
    assert listener.ask(listener=str(ANSWERS_MAX - 1)) == (1, ANSWERS_MAX)
    assert listener.ask(listener=str(ANSWERS_MAX)) == (1, ANSWERS_MAX + 2)
