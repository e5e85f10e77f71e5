"""The admin client: calls with retries and a deadline, and the node that each goes to."""

import random
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Generic, Self, TypeVar

from kvorum.cli.admin.errors import (
    ERRORS_PACKAGE,
    CallFailedError,
    Failure,
    NotSupportedByNodeError,
    failed,
    refusal,
)
from kvorum.cli.admin.nodes import AdminClock, AdminSettings, Backoff, ClusterNode, Connections
from kvorum.metadata.address import Address
from kvorum.node.outbound.client_connection import (
    ClientConnection,
    ClientConnectionError,
    NoCommonVersionError,
)
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.errors import EncodeError
from kvorum.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from kvorum.wire.messages.metadata import MetadataRequest, MetadataResponse
from kvorum.wire.primitives import Message

_INNER_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")
Answer = TypeVar("Answer")
Response = TypeVar("Response", bound=Message)
_TIMEOUT = f"{ERRORS_PACKAGE}.TimeoutException"
CONTROLLER_ENDPOINT = 2
_FATAL = frozenset(
    f"{ERRORS_PACKAGE}.{name}"
    for name in (
        "ClusterAuthorizationException",
        "MismatchedEndpointTypeException",
        "SaslAuthenticationException",
        "SecurityDisabledException",
        "UnsupportedEndpointTypeException",
        "UnsupportedVersionException",
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Generic[Response, Answer]):
    """A request and the reading of its response.

    `name` is the call's name in Kafka's admin client. `request` gets the milliseconds that are left
    before the deadline. `read` raises CallFailedError for a response with an error.
    `controller_codes` reads the error codes which may say that another node is the active
    controller. `node_id` is the node that the call goes to, None for any.
    """

    name: str
    request: Callable[[int], Message]
    response_class: type[Response]
    read: Callable[[Response], Answer]
    controller_codes: Callable[[Response], Collection[int]] = lambda _: ()
    node_id: int | None = None


async def ask(
    call: Call[Response, Answer],
    node: ClusterNode,
    connection: ClientConnection,
    *,
    timeout_ms: int,
    request_number: int = 0,
    moved_codes: Sequence[int] = (),
) -> Answer:
    """Send a call to a node and return its result; CallFailedError has Kafka's message.

    `moved_codes` are the error codes after which the active controller is looked up again.
    """
    message = call.request(timeout_ms)
    try:
        response = await connection.request(message, call.response_class, timeout_ms=timeout_ms)
    except NoCommonVersionError:
        raise _not_supported(message, connection) from None
    except EncodeError as error:
        raise NotSupportedByNodeError(str(error)) from error
    except ClientConnectionError as error:
        raise failed(
            "DisconnectException",
            f"Cancelled {call.name} request with correlation id {request_number} due to node "
            f"{node.node_id} being disconnected",
            can_be_retried=True,
        ) from error
    codes = call.controller_codes(response)
    for code in moved_codes:
        if code in codes:
            raise CallFailedError(replace(refusal(code, None).failure, is_elsewhere=True))
    return call.read(response)


def _not_supported(message: Message, connection: ClientConnection) -> NotSupportedByNodeError:
    name = message.NAME.removesuffix("Request")
    problem = f"The node does not support {_INNER_CAPITAL.sub('_', name).upper()}"
    offered = connection.peer_versions.get(-1 if message.API_KEY is None else message.API_KEY)
    if offered is not None:
        problem += (
            f" with version in range [{message.MIN_VERSION},{message.MAX_VERSION}]. The supported "
            f"range is [{offered[0]},{offered[1]}]."
        )
    return NotSupportedByNodeError(problem)


class AdminClient:
    """A client of one cluster; use it as an asynchronous context manager.

    `asks_controllers` is whether calls go to the active controller instead of any broker.
    """

    def __init__(self, settings: AdminSettings, *, warn: Callable[[str], None]) -> None:
        chance = random.SystemRandom()
        self._settings = settings
        self.asks_controllers = settings.asks_controllers
        self._moved_codes = [ErrorCode.NOT_CONTROLLER]
        if settings.asks_controllers:
            self._moved_codes.append(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self._clock = AdminClock()
        self._backoff = Backoff(settings, chance)
        self._connections = Connections(settings, clock=self._clock, warn=warn)
        self._finder = NodeFinder(
            settings, connections=self._connections, clock=self._clock, chance=chance
        )
        self._requests_sent = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._connections.close()

    async def call(self, call: Call[Response, Answer]) -> Answer:
        """Return the result of a call; CallFailedError if it is refused or the deadline passes."""
        deadline_ms = self._clock.now_ms() + self._settings.api_timeout_ms
        tries = 0
        while True:
            try:
                return await self._attempt(call, deadline_ms)
            except CallFailedError as error:
                if error.failure.is_elsewhere:
                    self._finder.forget()
                pause_ms = self._backoff.pause_ms(tries)
                tries += 1
                is_late = self._clock.left_ms(deadline_ms) == 0
                if not is_late and not error.failure.is_retriable:
                    raise
                if is_late or tries > self._settings.retries_max:
                    raise self._given_up(call.name, deadline_ms, tries, pause_ms, error) from error
                await self._clock.pause(pause_ms, deadline_ms=deadline_ms)

    async def _attempt(self, call: Call[Response, Answer], deadline_ms: int) -> Answer:
        node, connection = await self._finder.find(
            call.name, node_id=call.node_id, deadline_ms=deadline_ms
        )
        self._requests_sent += 1
        timeout_ms = min(self._clock.left_ms(deadline_ms), self._settings.request_timeout_ms)
        return await ask(
            call,
            node,
            connection,
            timeout_ms=timeout_ms,
            request_number=self._requests_sent,
            moved_codes=self._moved_codes,
        )

    def _given_up(
        self, name: str, deadline_ms: int, tries: int, pause_ms: int, error: CallFailedError
    ) -> CallFailedError:
        if error.failure.class_name == _TIMEOUT:
            return error
        now_ms = self._clock.now_ms()
        call = (
            f"Call(callName={name}, deadlineMs={deadline_ms}, tries={tries}, "
            f"nextAllowedTryMs={now_ms + pause_ms})"
        )
        text = f"{call} timed out at {now_ms} after {tries} attempt(s)"
        return CallFailedError(Failure(class_name=_TIMEOUT, text=text), cause=error.failure)


class NodeFinder:
    """The known nodes of the cluster, and the nodes that calls go to.

    With bootstrap brokers, a call goes to any broker. With bootstrap controllers, it goes to the
    active controller only, whose id every controller reports.
    """

    def __init__(
        self,
        settings: AdminSettings,
        *,
        connections: Connections,
        clock: AdminClock,
        chance: random.Random,
    ) -> None:
        self._settings = settings
        self._connections = connections
        self._clock = clock
        self._chance = chance
        self._backoff = Backoff(settings, chance)
        self._bootstrap = tuple(
            ClusterNode(-1 - index, address) for index, address in enumerate(settings.addresses)
        )
        self._nodes: tuple[ClusterNode, ...] = ()
        self._targets: tuple[ClusterNode, ...] = ()

    async def find(
        self, call_name: str, *, deadline_ms: int, node_id: int | None = None
    ) -> tuple[ClusterNode, ClientConnection]:
        """Return a node to send a call to, with a connection; retry until the deadline.

        With `node_id` it is that node, as soon as the cluster knows it.
        """
        failures = 0
        while self._clock.left_ms(deadline_ms) > 0:
            if not self._targets:
                await self._learn(deadline_ms)
            targets = self._targets
            if node_id is not None:
                targets = tuple(node for node in self._nodes if node.node_id == node_id)
            for node in self._connections.in_order(targets, self._chance):
                connection = await self._connections.to(node, deadline_ms=deadline_ms)
                if connection is not None:
                    return node, connection
            self.forget()
            pause_ms = self._backoff.pause_ms(failures)
            await self._clock.pause(pause_ms, deadline_ms=deadline_ms)
            failures += 1
        problem = f"Timed out waiting for a node assignment. Call: {call_name}"
        raise failed("TimeoutException", problem, can_be_retried=True)

    def forget(self) -> None:
        """Discard the nodes that calls go to; the next call looks them up again."""
        self._targets = ()

    async def _learn(self, deadline_ms: int) -> None:
        """Look up the cluster's nodes; raise an error that no retry can resolve."""
        candidates = dict.fromkeys((*self._nodes, *self._bootstrap))
        for node in self._connections.in_order(candidates, self._chance):
            connection = await self._connections.to(node, deadline_ms=deadline_ms)
            if connection is None:
                continue
            timeout_ms = min(self._clock.left_ms(deadline_ms), self._settings.request_timeout_ms)
            try:
                await self._learn_from(node, connection, timeout_ms)
            except CallFailedError as error:
                if error.failure.class_name in _FATAL:
                    raise
            if self._targets:
                return

    async def _learn_from(
        self, node: ClusterNode, connection: ClientConnection, timeout_ms: int
    ) -> None:
        if not self._settings.asks_controllers:
            nodes = await ask(_BROKERS, node, connection, timeout_ms=timeout_ms)
            self._nodes = self._targets = nodes or self._nodes
            return
        nodes, active = await ask(_CONTROLLERS, node, connection, timeout_ms=timeout_ms)
        self._nodes = nodes or self._nodes
        self._targets = () if active is None else (active,)


def _brokers(response: MetadataResponse) -> tuple[ClusterNode, ...]:
    if response.error_code != ErrorCode.NONE:
        raise refusal(response.error_code, None)
    return tuple(ClusterNode(one.node_id, Address(one.host, one.port)) for one in response.brokers)


def _controllers(
    response: DescribeClusterResponse,
) -> tuple[tuple[ClusterNode, ...], ClusterNode | None]:
    if response.error_code != ErrorCode.NONE:
        raise refusal(response.error_code, response.error_message)
    if response.endpoint_type != CONTROLLER_ENDPOINT:
        raise failed(
            "MismatchedEndpointTypeException",
            "Expected response from CONTROLLER endpoint, but got response from endpoint type "
            f"{response.endpoint_type}",
        )
    nodes = {
        one.broker_id: ClusterNode(one.broker_id, Address(one.host, one.port))
        for one in response.brokers
    }
    return tuple(nodes.values()), nodes.get(response.controller_id)


_BROKERS = Call(
    name="fetchMetadata",
    request=lambda _: MetadataRequest(topics=[]),
    response_class=MetadataResponse,
    read=_brokers,
)
_CONTROLLERS = Call(
    name="describeCluster",
    request=lambda _: DescribeClusterRequest(endpoint_type=CONTROLLER_ENDPOINT),
    response_class=DescribeClusterResponse,
    read=_controllers,
)
