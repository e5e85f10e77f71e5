"""A broker's requests to the controller: its own node's while that is active, else another one."""

from collections.abc import Coroutine
from typing import Any, cast

from kvorum.metadata.standard_authorizer import ANONYMOUS, UNRESTRICTED, Principal
from kvorum.node.broker.forwarding_manager import ForwardingManager
from kvorum.node.coroutines import Task, Wait
from kvorum.node.errors import NotControllerError
from kvorum.node.serving.request import IncomingRequest
from kvorum.node.serving.session import Session
from kvorum.security.security_protocol import SecurityProtocol
from kvorum.wire.api_keys import ApiKey
from kvorum.wire.messages.describe_quorum import DescribeQuorumRequest
from kvorum.wire.messages.envelope import EnvelopeRequest, EnvelopeResponse
from kvorum.wire.messages.request_header import RequestHeader
from kvorum.wire.primitives import Message

FRAME = b"the frame of a request"
BY_CHANNEL = b"the answer over the channel"
BY_OWN = b"the answer of the own controller"


class Channel:
    """A channel to the active controller that notes what it has carried."""

    def __init__(self) -> None:
        self.carried: list[EnvelopeRequest] = []

    async def send(self, message: EnvelopeRequest, _: type[EnvelopeResponse]) -> EnvelopeResponse:
        self.carried.append(message)
        return EnvelopeResponse(response_data=BY_CHANNEL)


class Controller:
    """The controller of the broker's node, which may lose its leadership while it answers."""

    def __init__(self, *, is_active: bool, keeps_leading: bool = True) -> None:
        self.is_active = is_active
        self.asked: list[tuple[bytes, Principal, str]] = []
        self._keeps_leading = keeps_leading

    async def answer_forwarded(self, frame: bytes, principal: Principal, host: str) -> bytes:
        self.asked.append((frame, principal, host))
        if not self._keeps_leading:
            raise NotControllerError("another node leads the quorum")
        return BY_OWN


def forwarded(channel: Channel, controller: Controller | None) -> bytes:
    manager = ForwardingManager(cast("Any", channel), controller)
    request = IncomingRequest[Message](
        header=RequestHeader(ApiKey.DESCRIBE_QUORUM, 2, 7, "client"),
        body=DescribeQuorumRequest(),
        frame=FRAME,
        progress=cast("Any", None),
        session=Session("PLAINTEXT", SecurityProtocol.PLAINTEXT, "fe80::1%eth0", ANONYMOUS),
        access=UNRESTRICTED,
    )
    return result_of(manager.forward(request))


def result_of(work: Coroutine[Wait[Any], Any, bytes]) -> bytes:
    """Return the result of what need not wait."""
    results: list[bytes | Exception] = []
    Task(work, results.append)
    (result,) = results
    assert isinstance(result, bytes)
    return result


def test_the_controller_of_the_same_node_is_asked_without_a_connection() -> None:
    channel = Channel()
    controller = Controller(is_active=True)
    assert forwarded(channel, controller) == BY_OWN
    assert controller.asked == [(FRAME, ANONYMOUS, "fe80::1")]
    assert channel.carried == []


def test_another_node_is_asked_where_the_own_controller_is_not_active() -> None:
    channel = Channel()
    controller = Controller(is_active=False)
    assert forwarded(channel, controller) == BY_CHANNEL
    assert controller.asked == []
    (envelope,) = channel.carried
    assert envelope.request_data == FRAME


def test_another_node_is_asked_where_the_own_controller_leads_no_longer() -> None:
    channel = Channel()
    assert forwarded(channel, Controller(is_active=True, keeps_leading=False)) == BY_CHANNEL


def test_a_node_without_a_controller_asks_the_active_one() -> None:
    assert forwarded(Channel(), None) == BY_CHANNEL
