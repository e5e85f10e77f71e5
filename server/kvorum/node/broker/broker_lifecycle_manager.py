"""Kafka's BrokerLifecycleManager: registration, heartbeats and the controlled shutdown."""

import logging
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final

from kvorum.broker.lifecycle import BrokerIdentity, BrokerLifecycle, BrokerState, LocalView
from kvorum.metadata.address import Address
from kvorum.metadata.features import offered_features
from kvorum.metadata.image import MetadataImage
from kvorum.node.config import BrokerSettings
from kvorum.node.coroutines import Pulse, Task, Wait, sleep
from kvorum.node.errors import NodeFailedError, NodeStartError
from kvorum.node.events.log_event import LogEvent
from kvorum.node.metadata_loader import MetadataLoader
from kvorum.node.outbound.client_connection import NoCommonVersionError
from kvorum.node.outbound.node_to_controller_channel_manager import (
    ControllerUnreachableError,
    NodeToControllerChannelManager,
)
from kvorum.node.runtime import Runtime, Timer
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from kvorum.wire.messages.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from kvorum.wire.uuid_text import uuid_to_text

CONTROLLED_SHUTDOWN_TIMEOUT_MS: Final = 300_000
"""As in Kafka: the controllers may come back, and a partition may need another leader first."""
QUIET_MS: Final = 1000
"""A controlled shutdown that takes less is not worth a line."""
TOLD_INTERVAL_MS: Final = 10_000
_log = logging.getLogger(__name__)


class BrokerLifecycleManager:
    """Drives a `BrokerLifecycle` over the heartbeat channel.

    `cordoned_directories` returns the ids of the log directories that get no new replicas now.
    `start` and `stop` are coroutines on the runtime; `abort`, which closes the channel, comes last.
    """

    def __init__(
        self,
        identity: BrokerIdentity,
        settings: BrokerSettings,
        *,
        channel: NodeToControllerChannelManager,
        loader: MetadataLoader,
        runtime: Runtime,
        on_failure: Callable[[Exception], None],
        cordoned_directories: Callable[[], tuple[bytes, ...]] = tuple,
        enable_unstable_features: bool = False,
    ) -> None:
        self._settings = settings
        self._channel = channel
        self._loader = loader
        self._runtime = runtime
        self._on_failure = on_failure
        self._cordoned_directories = cordoned_directories
        self._enable_unstable_features = enable_unstable_features
        self._lifecycle = BrokerLifecycle(
            identity,
            heartbeat_interval_ms=settings.heartbeat_interval_ms,
            now_ms=runtime.monotonic_ms(),
        )
        self._changes = Pulse(runtime)
        self._images = Pulse(runtime)
        self._task: Task[None] | None = None
        self._failure: Exception | None = None
        self._complaint: tuple[str, str] | None = None
        self._is_ready_to_unfence = False
        self._may_wait = True
        self._failure_timers: list[Timer] = []
        loader.subscribe(self._on_image)

    @property
    def state(self) -> BrokerState:
        """The state of the broker."""
        return self._lifecycle.state

    @property
    def epoch(self) -> int:
        """The broker epoch, -1 before the first registration."""
        return self._lifecycle.epoch

    @property
    def is_unfenced(self) -> bool:
        """Whether this incarnation is unfenced in the metadata that this node knows."""
        broker = self._loader.published.cluster.brokers.get(self._lifecycle.identity.node_id)
        return broker is not None and broker.epoch == self.epoch and not broker.is_fenced

    async def start(self, recover: Callable[[], Coroutine[Wait[Any], Any, None]]) -> None:
        """Register; return once the broker runs and is unfenced in its own metadata.

        `recover` is awaited before the broker asks to be unfenced, when it has the metadata: it
        opens the logs. Raises NodeStartError if the broker cannot register in time.
        """
        self._task = Task(self._run(), self._note_end)
        if not await self._wait_until(
            lambda: self._lifecycle.is_registered, self._settings.registration_timeout_ms
        ):
            self._end()
            known = self._channel.failure if self._complaint is None else self._complaint[1]
            cause = f": {known}" if known else ""
            raise NodeStartError(
                f"The broker could not register with the active controller within "
                f"{self._settings.registration_timeout_ms} ms "
                "(initial.broker.registration.timeout.ms). "
                f"Check that the controllers of the quorum run and can be reached{cause}"
            )
        await self._wait_until(lambda: self._lifecycle.state >= BrokerState.RECOVERY)
        if self._lifecycle.state is BrokerState.RECOVERY:
            await recover()
            self._is_ready_to_unfence = True
            self._lifecycle.hurry(self._runtime.monotonic_ms())
            self._changes.beat()
        await self._wait_until(lambda: self._lifecycle.state >= BrokerState.RUNNING)
        await self._images.until(lambda: self.is_unfenced)

    def propagate_directory_failure(self, directory_id: bytes) -> None:
        """Report to the controller that a log directory is offline (KIP-858).

        A broker ends that cannot report it in time: it would go on as the leader of what it lost.
        """
        now_ms = self._runtime.monotonic_ms()
        self._lifecycle.propagate_directory_failure(directory_id, now_ms)
        self._changes.beat()
        deadline_ms = now_ms + self._settings.log_dir_failure_timeout_ms
        demand = partial(self._demand_known, directory_id)
        self._failure_timers.append(self._runtime.call_at(deadline_ms, demand))

    def _demand_known(self, directory_id: bytes) -> None:
        if not self._lifecycle.is_failure_known(directory_id):
            directory = uuid_to_text(directory_id)
            problem = f"The controller could not be told that log directory {directory} is offline"
            _log.error(LogEvent(problem))
            self._on_failure(NodeFailedError(f"{problem} (log.dir.failure.timeout.ms)"))

    async def stop(self) -> None:
        """Ask the controller for a controlled shutdown, wait until it is granted, and end.

        The log says what is waited for. `end_waits`, now or earlier, ends the wait.
        """
        self._lifecycle.begin_shutdown(self._runtime.monotonic_ms())
        self._changes.beat()
        telling = Task(self._tell_what_is_waited_for(), _ignore)
        try:
            is_over = await self._wait_until(
                lambda: self.state is BrokerState.SHUTTING_DOWN or not self._may_wait,
                CONTROLLED_SHUTDOWN_TIMEOUT_MS,
            )
        finally:
            telling.close()
        if not is_over:
            _log.warning(LogEvent("The broker stops: the controller did not let it leave in time"))
        self._end()

    def end_waits(self) -> None:
        """Have `stop` end without the controller's leave: one under way, or a later one."""
        self._may_wait = False
        self._changes.beat()

    async def _tell_what_is_waited_for(self) -> None:
        begin_ms = self._runtime.monotonic_ms()
        await sleep(self._runtime, QUIET_MS)
        while True:
            waited_ms = self._runtime.monotonic_ms() - begin_ms
            error = None if self._complaint is None else self._complaint[1]
            _log.warning(
                LogEvent(
                    "The broker waits for the active controller to let it leave; "
                    "a second signal ends the wait",
                    waited_s=round(waited_ms / 1000),
                    waits_at_most_s=CONTROLLED_SHUTDOWN_TIMEOUT_MS // 1000,
                    error=error,
                )
            )
            await sleep(self._runtime, TOLD_INTERVAL_MS)

    def abort(self) -> None:
        """End without asking the controller, and close the channel."""
        self._end()
        self._channel.close()

    def _end(self) -> None:
        """Send nothing more; raises what the requests have failed with."""
        self._lifecycle.end()
        self._changes.beat()
        for timer in self._failure_timers:
            timer.cancel()
        if self._task is not None:
            self._task.close()
        self._check_not_failed()

    def _note_end(self, result: Exception | None) -> None:
        self._failure = result
        self._changes.beat()

    def _check_not_failed(self) -> None:
        if self._failure is not None:
            raise self._failure

    async def _run(self) -> None:
        await self._wait_for_features()
        while self._lifecycle.state is not BrokerState.SHUTTING_DOWN:
            due_ms = self._lifecycle.next_due_ms
            assert due_ms is not None
            wait_ms = due_ms - self._runtime.monotonic_ms()
            if wait_ms > 0:
                await self._changes.next(wait_ms)
                continue
            await self._communicate()
            self._changes.beat()

    async def _wait_for_features(self) -> None:
        """Wait for the cluster's features, by which the broker registers, for one interval at most.

        Without metadata it registers all the same: the refusal may say why there is none.
        """
        settings = self._settings
        patience_ms = min(settings.heartbeat_interval_ms, settings.registration_timeout_ms / 3)
        await self._images.until(
            lambda: self._loader.published.features.metadata_version is not None, patience_ms
        )

    async def _communicate(self) -> None:
        """Send the request that is due and apply its response."""
        before = self._lifecycle.state
        request = self._lifecycle.due(self._view())
        try:
            if isinstance(request, BrokerRegistrationRequest):
                await self._register(request)
            else:
                await self._beat(request)
        except (ControllerUnreachableError, NoCommonVersionError) as error:
            self._complain("The controller cannot be reached", str(error))
            self._lifecycle.on_failure(self._runtime.monotonic_ms())
        if self._lifecycle.state is not before:
            _log.info(
                LogEvent("The broker has changed its state", state=self._lifecycle.state.name)
            )

    async def _register(self, request: BrokerRegistrationRequest) -> None:
        response = await self._channel.send(request, BrokerRegistrationResponse)
        self._lifecycle.on_registration(response, self._runtime.monotonic_ms())
        if response.error_code == ErrorCode.NONE:
            self._complaint = None
            _log.info(
                LogEvent("The broker is registered", broker=request.broker_id, epoch=self.epoch)
            )
        else:
            self._complain("The registration was refused", self._refusal(response.error_code))

    def _refusal(self, code: int) -> str:
        """Return an error's name, with the address of the broker that has this node's id."""
        name = _error_name(code)
        other = self._loader.published.cluster.brokers.get(self._lifecycle.identity.node_id)
        if code != ErrorCode.DUPLICATE_BROKER_REGISTRATION or other is None:
            return name
        places = ", ".join(str(Address(one.host, one.port)) for one in other.listeners)
        return f"{name}: the broker at {places} has the same node.id {other.id}"

    async def _beat(self, request: BrokerHeartbeatRequest) -> None:
        response = await self._channel.send(request, BrokerHeartbeatResponse)
        self._lifecycle.on_heartbeat(response, self._runtime.monotonic_ms())
        if response.error_code == ErrorCode.NONE:
            if self._complaint is not None:
                _log.info(LogEvent("Heartbeats are answered again", broker=request.broker_id))
            self._complaint = None
        else:
            self._complain("A heartbeat was refused", _error_name(response.error_code))

    def _complain(self, sentence: str, error: str) -> None:
        """Log a problem once, not at every try, until it changes or is over."""
        if self._complaint != (sentence, error):
            self._complaint = sentence, error
            _log.warning(LogEvent(sentence, error=error))

    def _view(self) -> LocalView:
        features = self._loader.published.features
        version = features.metadata_version
        has_place = version is not None and version.supports_cordoned_log_dirs
        return LocalView(
            supported_features=offered_features(
                features.levels, enable_unstable=self._enable_unstable_features
            ),
            metadata_offset=self._loader.published_offset,
            cordoned_directories=self._cordoned_directories() if has_place else None,
            is_ready_to_unfence=self._is_ready_to_unfence,
        )

    def _on_image(self, image: MetadataImage) -> None:
        self._images.beat()
        self._check_registration(image)

    def _check_registration(self, image: MetadataImage) -> None:
        """Register again if the log has this incarnation without its directories."""
        version = image.features.metadata_version
        broker = image.cluster.brokers.get(self._lifecycle.identity.node_id)
        if (
            version is not None
            and version.supports_directory_assignment
            and broker is not None
            and broker.incarnation_id == self._lifecycle.identity.incarnation_id
            and not broker.directories
            and self._lifecycle.is_registered
        ):
            self._lifecycle.register_again(self._runtime.monotonic_ms())
            self._changes.beat()

    async def _wait_until(
        self, condition: Callable[[], bool], timeout_ms: float | None = None
    ) -> bool:
        """Return whether a condition holds before the time is over.

        Raises what the requests have failed with.
        """

        def is_over() -> bool:
            return condition() or self._failure is not None

        await self._changes.until(is_over, timeout_ms)
        if condition():
            return True
        self._check_not_failed()
        return False


def _ignore(_: Exception | None) -> None:
    pass


def _error_name(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:
        return f"error {code}"
