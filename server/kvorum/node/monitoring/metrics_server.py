"""The HTTP server of a node: /metrics, /healthz and /readyz."""

import json
import socket
from collections.abc import Callable, Coroutine, Iterator, Sequence
from functools import partial
from http import HTTPStatus
from typing import Any

from kvorum.node.asyncio_runtime import AsyncioRuntime
from kvorum.node.clock import Clock
from kvorum.node.coroutines import OneAtATime, Wait
from kvorum.node.errors import NodeStartError
from kvorum.node.metrics import catalogue
from kvorum.node.metrics.http_server import Answerer, HttpAnswer, HttpRequest, HttpServer
from kvorum.node.metrics.names import Reading
from kvorum.node.monitoring.health import facts, reasons_not_alive, reasons_not_ready
from kvorum.node.monitoring.readings import (
    batch_readings,
    broker_readings,
    controller_readings,
    loader_readings,
    raft_readings,
    record_readings,
    request_readings,
    snapshot_readings,
    stall_readings,
    supported_readings,
)
from kvorum.node.sockets import let_port_be_reused
from kvorum.node.started_roles import StartedRoles
from kvorum.node.tasks import run

LISTENER_NAME = "kvorum.metrics.listener"
JSON_TYPE = "application/json"
_LOG_IS_SHUT = ("the metadata log is not open yet",)


class MetricsServer:
    """Serves metrics and health of a server; `roles` returns its parts that are started by then.

    It serves even before the log is open, when `roles` returns None, so that a node that starts
    slowly can be distinguished from a dead one.
    """

    def __init__(
        self, node_id: int, roles: Callable[[], StartedRoles | None], clock: Clock
    ) -> None:
        self._node_id = node_id
        self._roles = roles
        # One thread: pages are encoded one after the other, while the event loop continues.
        self._thread = AsyncioRuntime(clock, thread_name="metrics", thread_count=1)
        self._server = HttpServer(
            {
                "/metrics": _metrics_answerer(self.readings, OneAtATime(self._thread)),
                "/healthz": self._answer_healthz,
                "/readyz": self._answer_readyz,
            }
        )

    async def start(self, bound: socket.socket) -> None:
        """Serve on a bound socket, which this server closes. Raises NodeStartError."""
        let_port_be_reused(bound)
        try:
            await self._server.start(bound)
        except OSError as error:
            reason = error.strerror or str(error)
            raise NodeStartError(f"Cannot listen on {LISTENER_NAME}: {reason}") from error

    async def stop(self) -> None:
        """Stop serving."""
        await self._server.stop()
        self._thread.close()

    def readings(self) -> list[Reading]:
        """Return the current values of all metrics of this node."""
        roles = self._roles()
        if roles is None:
            # The scrape shows a node that runs and is not ready.
            return [*_state_readings(is_alive=True, is_ready=False)]
        shared = roles.shared
        now_ms = shared.clock.monotonic_ms()
        readings = [
            *raft_readings(shared.raft, now_ms),
            *loader_readings(shared.loader, shared.raft, now_ms),
            *supported_readings(shared.supported_features),
            *stall_readings(shared.raft),
            *snapshot_readings(shared, roles.snapshots),
            *request_readings(shared.request_metrics),
        ]
        if roles.controller is not None:
            readings.extend(controller_readings(shared, roles.controller))
        if roles.broker is not None:
            readings.extend(batch_readings(shared.loader))
            readings.extend(broker_readings(shared, roles.broker))
            readings.extend(record_readings(shared, roles.broker))
        is_ready = not reasons_not_ready(roles)
        readings += _state_readings(is_alive=not reasons_not_alive(shared), is_ready=is_ready)
        return readings

    async def _answer_healthz(self, request: HttpRequest) -> HttpAnswer:
        del request
        roles = self._roles()
        return self._health_answer(roles, () if roles is None else reasons_not_alive(roles.shared))

    async def _answer_readyz(self, request: HttpRequest) -> HttpAnswer:
        del request
        roles = self._roles()
        return self._health_answer(
            roles, _LOG_IS_SHUT if roles is None else reasons_not_ready(roles)
        )

    def _health_answer(self, roles: StartedRoles | None, reasons: Sequence[str]) -> HttpAnswer:
        """Return the response of a probe, with the reasons against it; none if all is well."""
        status = HTTPStatus.SERVICE_UNAVAILABLE if reasons else HTTPStatus.OK
        content = {
            "status": "unavailable" if reasons else "ok",
            "reasons": list(reasons),
            **facts(self._node_id, roles),
        }
        return HttpAnswer(status, f"{json.dumps(content)}\n".encode(), JSON_TYPE)


def _state_readings(*, is_alive: bool, is_ready: bool) -> Iterator[Reading]:
    yield catalogue.OWN.reading("is_alive", int(is_alive))
    yield catalogue.OWN.reading("is_ready", int(is_ready))


def _metrics_answerer(readings: Callable[[], list[Reading]], pages: OneAtATime) -> Answerer:
    """Return the answerer of scrapes; raises NodeStartError without the Prometheus client."""
    try:
        # Imported only where metrics are served: it takes a third of the time of all imports.
        from kvorum.node.metrics.exposition import Exposition  # noqa: PLC0415 - optional
    except ImportError as error:
        raise NodeStartError(
            f"{LISTENER_NAME} needs the package prometheus-client, which is not installed here. "
            "Install prometheus-client or remove the key"
        ) from error
    exposition = Exposition()

    async def page(accept: str) -> HttpAnswer:
        rendering: Wait[tuple[bytes, str]] = pages.in_thread(
            partial(exposition.render, readings(), accept)
        )
        body, content_type = await rendering
        return HttpAnswer(HTTPStatus.OK, body, content_type)

    def answer(request: HttpRequest) -> Coroutine[Any, Any, HttpAnswer]:
        return run(page(request.accept))

    return answer
