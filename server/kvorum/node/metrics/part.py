"""The part of a node that tells others how it is: /metrics, /healthz and /readyz over HTTP."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from http import HTTPStatus

from kvorum.node.broker.part import BrokerPart
from kvorum.node.controller.part import ControllerPart
from kvorum.node.core import NodeCore
from kvorum.node.errors import NodeStartError
from kvorum.node.health import Health, facts, liveness, readiness
from kvorum.node.metrics import catalogue
from kvorum.node.metrics.http_request import HttpAnswer, HttpRequest
from kvorum.node.metrics.http_server import Answerer, HttpServer
from kvorum.node.metrics.names import Reading
from kvorum.node.metrics.readings import (
    batch_readings,
    loader_readings,
    raft_readings,
    stall_readings,
    supported_readings,
)
from kvorum.node.metrics.role_readings import (
    broker_readings,
    controller_readings,
    snapshot_readings,
)
from kvorum.node.snapshot_keeper import SnapshotKeeper

LISTENER_NAME = "kvorum.metrics.listener"
JSON_TYPE = "application/json"


class MetricsPart:
    """Looks at a node when it is asked to; roles are None until they are started.

    It serves from before the log is opened, so that a node that is long in starting can be told
    from one that is dead.
    """

    def __init__(self, core: NodeCore) -> None:
        self.controller: ControllerPart | None = None
        self.broker: BrokerPart | None = None
        self.keeper: SnapshotKeeper | None = None
        self._core = core
        # One thread: pages are written one after the other, and the loop goes on meanwhile.
        self._thread = ThreadPoolExecutor(1, "metrics")
        self._server = HttpServer(
            {
                "/metrics": _metrics_answerer(self.readings, self._thread),
                "/healthz": self._answer_healthz,
                "/readyz": self._answer_readyz,
            }
        )

    async def start(self, bound: socket.socket) -> None:
        """Answer on a bound socket, which is closed with this part. Raises NodeStartError."""
        try:
            await self._server.start(bound)
        except OSError as error:
            reason = error.strerror or str(error)
            raise NodeStartError(f"Cannot listen on {LISTENER_NAME}: {reason}") from error

    async def stop(self) -> None:
        """Answer no more."""
        await self._server.stop()
        self._thread.shutdown(wait=False, cancel_futures=True)

    def readings(self) -> list[Reading]:
        """Return the value of everything that can be measured of this node now."""
        core = self._core
        now_ms = core.clock.monotonic_ms()
        readings = [
            *raft_readings(core.raft, now_ms),
            *loader_readings(core.loader, core.raft, now_ms),
            *supported_readings(core.supported_features),
            *stall_readings(core.raft),
        ]
        if self.keeper is not None:
            readings.extend(snapshot_readings(core, self.keeper))
        if self.controller is not None:
            readings.extend(controller_readings(core, self.controller))
        if self.broker is not None:
            readings.extend(batch_readings(core.loader))
            readings.extend(broker_readings(core, self.broker))
        is_ready = readiness(core, self.controller, self.broker).is_good
        readings.append(catalogue.OWN.reading("is_alive", int(liveness(core).is_good)))
        readings.append(catalogue.OWN.reading("is_ready", int(is_ready)))
        return readings

    async def _answer_healthz(self, request: HttpRequest) -> HttpAnswer:
        del request
        return self._health_answer(liveness(self._core))

    async def _answer_readyz(self, request: HttpRequest) -> HttpAnswer:
        del request
        return self._health_answer(readiness(self._core, self.controller, self.broker))

    def _health_answer(self, health: Health) -> HttpAnswer:
        status = HTTPStatus.OK if health.is_good else HTTPStatus.SERVICE_UNAVAILABLE
        said = {
            "status": "ok" if health.is_good else "unavailable",
            "reasons": list(health.reasons),
            **facts(self._core, self.broker),
        }
        return HttpAnswer(status, f"{json.dumps(said)}\n".encode(), JSON_TYPE)


def _metrics_answerer(readings: Callable[[], list[Reading]], thread: Executor) -> Answerer:
    """Return what answers a scrape; raises NodeStartError without the Prometheus client."""
    try:
        # A third of a start's imports, for those only who have it looked at.
        from kvorum.node.metrics.exposition import Exposition  # noqa: PLC0415 - optional
    except ImportError as error:
        raise NodeStartError(
            f"{LISTENER_NAME} needs the package prometheus-client, which is not installed here. "
            "Install kvorum[metrics] or remove the key"
        ) from error
    exposition = Exposition()

    async def answer(request: HttpRequest) -> HttpAnswer:
        body, content_type = await asyncio.get_running_loop().run_in_executor(
            thread, exposition.render, readings(), request.accept
        )
        return HttpAnswer(HTTPStatus.OK, body, content_type)

    return answer
