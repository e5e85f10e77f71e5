"""The registration of a simulated controller.

A voter is added by a reassignment only where its controller has registered.
"""

from collections.abc import Callable

from kvorum.simulation.controller import Controller
from kvorum.simulation.properties.node_facts import ObservedNode
from kvorum.wire.headers import encode_request_frame
from kvorum.wire.messages.controller_registration import ControllerRegistrationRequest

FIRST_PAUSE_MS = 200.0
"""The time from the start to the first look for the registration."""
PAUSE_MS = 1_000.0
"""The time from a request to the next look."""


class Registration:
    """Asks the active controller for a registration until its own log has it.

    A node registers once for each directory: its address never changes. `carry` takes a request to
    the leader that is known, if any is.
    """

    def __init__(
        self,
        controller: Controller,
        node: ObservedNode,
        carry: Callable[[bytes], None],
    ) -> None:
        self._controller, self._node = controller, node
        self._carry = carry
        self._number = 0

    def begin(self) -> None:
        """Look for the registration before long."""
        self._later(FIRST_PAUSE_MS)

    def _later(self, pause_ms: float) -> None:
        runtime = self._controller.runtime
        runtime.call_at(runtime.monotonic_ms() + pause_ms, self._look)

    def _look(self) -> None:
        node = self._node
        known = self._controller.application.image.cluster.controllers.get(node.node_id)
        if known is not None and known.incarnation_id == node.directory_id:
            return
        self._number += 1
        request = ControllerRegistrationRequest(
            controller_id=node.node_id,
            incarnation_id=node.directory_id,
            listeners=[
                ControllerRegistrationRequest.Listener(name=one.name, host=one.host, port=one.port)
                for one in node.settings.local_listeners
            ],
        )
        frame = encode_request_frame(
            request,
            version=request.MAX_VERSION,
            correlation_id=self._number,
            client_id=f"controller-{node.node_id}",
        )
        # The record in the log counts, not the response.
        self._carry(frame)
        self._later(PAUSE_MS)
