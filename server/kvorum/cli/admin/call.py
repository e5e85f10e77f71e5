"""Calls of the admin client: the request, how its response is read, and how failures are named."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from kvorum.cli.admin.errors import NotSupportedByNodeError, failed
from kvorum.cli.admin.nodes import ClusterNode
from kvorum.node.outbound.client_connection import (
    ClientConnection,
    ClientConnectionError,
    NoCommonVersionError,
)
from kvorum.wire.errors import EncodeError
from kvorum.wire.primitives import Message

Answer = TypeVar("Answer")
Response = TypeVar("Response", bound=Message)
_INNER_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Generic[Response, Answer]):
    """A request and the reading of its response.

    `name` is the call's name in Kafka's admin client. `request` gets the milliseconds that are left
    before the deadline. `read` raises CallFailedError for a response with an error. `node_id` is
    the node that the call goes to, None for any.
    """

    name: str
    request: Callable[[int], Message]
    response_class: type[Response]
    read: Callable[[Response], Answer]
    node_id: int | None = None


async def ask(
    call: Call[Response, Answer],
    node: ClusterNode,
    connection: ClientConnection,
    *,
    timeout_ms: int,
    request_number: int = 0,
) -> Answer:
    """Send a call to a node and return its result; CallFailedError has Kafka's message."""
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
