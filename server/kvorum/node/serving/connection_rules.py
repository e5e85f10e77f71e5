"""The settings that all connections of a listener share."""

from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple, TypeAlias

from kvorum.metadata.api import RequestError
from kvorum.node.coroutines import Wait
from kvorum.node.runtime import Runtime
from kvorum.node.serving.connection_quotas import ConnectionQuotas
from kvorum.node.serving.listener_sasl import ListenerSasl
from kvorum.node.serving.listener_tls import ListenerTls
from kvorum.node.serving.response_frame import ResponseFrame
from kvorum.node.serving.session import Session
from kvorum.security.security_protocol import SecurityProtocol

Answer: TypeAlias = Callable[[bytes, Session], Coroutine[Wait[Any], Any, ResponseFrame]]
"""Returns the response to a frame without its size; raises CloseConnectionError."""
Refuse: TypeAlias = Callable[[bytes, Session, RequestError], ResponseFrame]
"""Returns the response that refuses the request in a frame; raises CloseConnectionError."""


class ConnectionRules(NamedTuple):
    """The settings that all connections of a listener share.

    `answer` and `refuse` raise CloseConnectionError if the connection is to be closed.
    `handshakes` has the threads for those of TLS; without it they are `runtime`'s.
    """

    listener: str
    protocol: SecurityProtocol
    frame_bytes_max: int
    answer: Answer
    refuse: Refuse
    limits: ConnectionQuotas
    runtime: Runtime
    tls: ListenerTls | None = None
    sasl: ListenerSasl | None = None
    handshakes: Runtime | None = None
