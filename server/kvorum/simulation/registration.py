"""The registration of a simulated controller with the active one: where other nodes reach it.

A voter is added by a reassignment only where its controller has registered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from kvorum.node.event_loop import Runtime
from kvorum.simulation.controller import Owner
from kvorum.simulation.properties.node_facts import ObservedNode
from kvorum.simulation.transport import Reply
from kvorum.wire.headers import encode_request_frame
from kvorum.wire.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationRequestListener,
)

FIRST_PAUSE_MS = 200.0
PAUSE_MS = 1_000.0


class RegisteringProcess(Owner, Protocol):
    """A process that registers its controller."""

    @property
    def node(self) -> ObservedNode:
        """The machine of the process."""
        ...

    @property
    def runtime(self) -> Runtime:
        """The time and the turns of the process."""
        ...


class Registration:
    """Asks the active controller for a registration until its own log has it.

    A node registers once for each directory: its address never changes. `carry` takes a request to
    the leader, and returns False where none is known.
    """

    def __init__(
        self,
        process: RegisteringProcess,
        *,
        carry: Callable[[bytes, Callable[[Reply], None]], bool],
    ) -> None:
        self._process = process
        self._carry = carry
        self._number = 0

    def begin(self) -> None:
        """Look for the registration before long."""
        self._later(FIRST_PAUSE_MS)

    def _later(self, pause_ms: float) -> None:
        runtime = self._process.runtime
        runtime.call_at(runtime.monotonic_ms() + pause_ms, self._look)

    def _look(self) -> None:
        process = self._process
        node = process.node
        known = process.application.image.cluster.controllers.get(node.node_id)
        if known is not None and known.incarnation_id == node.directory_id:
            return
        self._number += 1
        request = ControllerRegistrationRequest(
            controller_id=node.node_id,
            incarnation_id=node.directory_id,
            listeners=[
                ControllerRegistrationRequestListener(name=one.name, host=one.host, port=one.port)
                for one in node.settings.local_listeners
            ],
        )
        frame = encode_request_frame(
            request,
            version=request.MAX_VERSION,
            correlation_id=self._number,
            client_id=f"controller-{node.node_id}",
        )
        self._carry(frame, _forget)
        self._later(PAUSE_MS)


def _forget(_said: object) -> None:
    """Ignore the response: what counts is the record in the log."""
