"""The requests of a broker's lifecycle in simulated time: what is waited for, and for how long."""

from collections.abc import Callable
from functools import partial
from random import Random
from typing import cast

import pytest
from immutables import Map

from kvorum.broker.lifecycle import BrokerIdentity, BrokerState
from kvorum.metadata.cluster_image import BrokerRegistration, ClusterImage, Endpoint
from kvorum.metadata.image import MetadataImage
from kvorum.node.broker.broker_lifecycle_manager import (
    CONTROLLED_SHUTDOWN_TIMEOUT_MS,
    QUIET_MS,
    TOLD_INTERVAL_MS,
    BrokerLifecycleManager,
)
from kvorum.node.config import BrokerSettings
from kvorum.node.coroutines import GiveUp, Take, Task, Wait, sleep
from kvorum.node.errors import NodeStartError
from kvorum.node.metadata_loader import MetadataLoader
from kvorum.node.outbound.node_to_controller_channel_manager import NodeToControllerChannelManager
from kvorum.node.raft import CommittedBatch
from kvorum.simulation.events import Events, NodeClock
from kvorum.simulation.runtime import SimulatedRuntime
from kvorum.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from kvorum.wire.messages.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from kvorum.wire.primitives import Message

SETTINGS = BrokerSettings(
    rack=None,
    heartbeat_interval_ms=2000,
    session_timeout_ms=9000,
    registration_timeout_ms=60_000,
    log_dir_failure_timeout_ms=30_000,
    is_controlled_shutdown_enabled=True,
    cordoned_log_directories=(),
)
IDENTITY = BrokerIdentity(
    node_id=4,
    cluster_id="some cluster",
    incarnation_id=bytes(range(16)),
    listeners=(Endpoint("PLAINTEXT", "here", 9092, 0),),
    rack=None,
    directory_ids=(b"\x7f" * 16,),
)
EPOCH = 42
RECOVERY_MS = 500
ROUNDED_MS = 10
"""The steps in which times are compared: turns of the loop take none of it."""
WAITS = "The broker waits for the active controller to let it leave"
GIVES_UP = "The broker stops: the controller did not let it leave in time"
Answer = Callable[[Message], Message | Exception | None]


def grant(request: Message) -> Message:
    """Answer as a controller that grants everything."""
    if isinstance(request, BrokerRegistrationRequest):
        return BrokerRegistrationResponse(broker_epoch=EPOCH)
    assert isinstance(request, BrokerHeartbeatRequest)
    return BrokerHeartbeatResponse(
        is_caught_up=True, is_fenced=request.want_fence, should_shut_down=request.want_shut_down
    )


def keep(request: Message) -> Message:
    """Answer as a controller that lets no broker leave."""
    answer = grant(request)
    if isinstance(answer, BrokerHeartbeatResponse):
        answer.should_shut_down = False
    return answer


def say_nothing(_: Message) -> None:
    """Answer as a controller that cannot be reached."""


class PretendedChannel:
    """A channel whose requests a test answers."""

    failure = "nobody leads"

    def __init__(self, runtime: SimulatedRuntime) -> None:
        self.answer: Answer = grant
        self.asked: list[Message] = []
        self._runtime = runtime

    def send(self, message: Message, _: type[Message]) -> Wait[Message]:
        def begin(take: Take[Message]) -> GiveUp:
            self.asked.append(message)
            answer = self.answer(message)
            if answer is not None:
                self._runtime.call_soon(partial(take, answer))
            return lambda: None

        return Wait(begin)


class World:
    """A broker with its controller; `said` is what has happened, with the time of it."""

    def __init__(self) -> None:
        self.events = Events()
        self.runtime = SimulatedRuntime(
            self.events, NodeClock(self.events), Random(1), turn=lambda callback: callback()
        )
        self.channel = PretendedChannel(self.runtime)
        self.loader = MetadataLoader()
        self.said: list[tuple[object, int]] = []
        self.failures: list[Exception] = []
        self.broker = BrokerLifecycleManager(
            IDENTITY,
            SETTINGS,
            channel=cast("NodeToControllerChannelManager", self.channel),
            loader=self.loader,
            runtime=self.runtime,
            on_failure=self.failures.append,
        )

    def note(self, what: object) -> None:
        self.said.append((what, round(self.events.now_ms / ROUNDED_MS) * ROUNDED_MS))

    def run(self, duration_ms: float) -> None:
        until_ms = self.events.now_ms + duration_ms
        while (callback := self.events.take_next(until_ms)) is not None:
            callback()

    def start(self) -> Task[None]:
        return Task(self.broker.start(self._recover), self.note)

    def stop(self) -> Task[None]:
        return Task(self.broker.stop(), lambda _: self.note("stopped"))

    def publish_unfenced(self) -> None:
        """Let the metadata have the broker as the controller has unfenced it."""
        registration = BrokerRegistration(
            id=IDENTITY.node_id,
            epoch=EPOCH,
            incarnation_id=IDENTITY.incarnation_id,
            listeners=IDENTITY.listeners,
            supported_features=Map(),
            rack=None,
            is_fenced=False,
            is_in_controlled_shutdown=False,
            is_migrating_zk_broker=False,
            directories=IDENTITY.directory_ids,
            cordoned_directories=None,
        )
        brokers = Map({IDENTITY.node_id: registration})
        self.loader.image = MetadataImage(cluster=ClusterImage(brokers=brokers))
        batch = CommittedBatch(
            base_offset=0,
            last_offset=0,
            epoch=1,
            append_timestamp_ms=0,
            values=(),
            is_control=True,
            size_bytes=1,
        )
        self.loader.commit([batch])

    async def _recover(self) -> None:
        self.note("recovers")
        await sleep(self.runtime, RECOVERY_MS)
        self.note("recovered")


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def running() -> World:
    world = World()
    world.start()
    world.publish_unfenced()
    world.run(4000)
    assert world.broker.state is BrokerState.RUNNING
    world.said.clear()
    return world


def lines(log: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in log.records if one.levelname == "WARNING"]


def test_it_has_started_once_the_metadata_has_it_unfenced(world: World) -> None:
    world.start()
    # It waits for the features of the cluster first, for one interval.
    world.run(10_000)
    recovered_ms = SETTINGS.heartbeat_interval_ms + RECOVERY_MS
    expected: list[tuple[object, int]] = [
        ("recovers", SETTINGS.heartbeat_interval_ms), ("recovered", recovered_ms),
    ]  # fmt: skip
    assert world.said == expected
    assert world.broker.state is BrokerState.RUNNING
    assert not world.broker.is_unfenced
    world.publish_unfenced()
    world.run(0)
    assert world.said == [*expected, (None, 10_000)]


def test_it_gives_up_where_no_controller_registers_it_in_time(world: World) -> None:
    world.channel.answer = say_nothing
    world.start()
    world.run(2 * SETTINGS.registration_timeout_ms)
    ((error, at_ms),) = world.said
    assert isinstance(error, NodeStartError)
    assert "could not register" in str(error)
    assert "nobody leads" in str(error)
    assert at_ms == SETTINGS.registration_timeout_ms
    assert world.broker.state is BrokerState.SHUTTING_DOWN
    assert len(world.channel.asked) == 1


def test_what_its_requests_fail_with_ends_the_start(world: World) -> None:
    world.channel.answer = lambda _: ValueError("a field that cannot be written")
    world.start()
    world.run(10_000)
    ((error, _),) = world.said
    assert isinstance(error, ValueError)


def test_a_start_that_is_ended_ends_what_it_waits_for(world: World) -> None:
    starting = world.start()
    world.run(SETTINGS.heartbeat_interval_ms + RECOVERY_MS / 2)
    starting.close()
    world.run(10_000)
    assert world.said == [("recovers", SETTINGS.heartbeat_interval_ms)]


def test_a_stop_that_is_granted_at_once_is_not_worth_a_line(
    running: World, caplog: pytest.LogCaptureFixture
) -> None:
    running.stop()
    running.run(10 * QUIET_MS)
    assert [what for what, _ in running.said] == ["stopped"]
    assert lines(caplog) == []


def test_a_stop_says_what_it_waits_for_and_gives_up_at_last(
    running: World, caplog: pytest.LogCaptureFixture
) -> None:
    running.channel.answer = keep
    begun_ms = running.events.now_ms
    running.stop()
    running.run(2 * CONTROLLED_SHUTDOWN_TIMEOUT_MS)
    assert running.said == [("stopped", begun_ms + CONTROLLED_SHUTDOWN_TIMEOUT_MS)]
    *waits, last = lines(caplog)
    assert len(waits) == (CONTROLLED_SHUTDOWN_TIMEOUT_MS - QUIET_MS) // TOLD_INTERVAL_MS + 1
    assert all(line.startswith(WAITS) for line in waits)
    assert last == GIVES_UP


def test_a_stop_under_way_ends_without_leave_when_told_to(
    running: World, caplog: pytest.LogCaptureFixture
) -> None:
    running.channel.answer = say_nothing
    running.stop()
    running.run(QUIET_MS / 2)
    running.broker.end_waits()
    running.run(10 * QUIET_MS)
    assert running.said == [("stopped", 4000 + QUIET_MS / 2)]
    assert running.broker.state is BrokerState.SHUTTING_DOWN
    assert lines(caplog) == []


@pytest.mark.parametrize("is_told", [True, False])
def test_a_broker_ends_that_cannot_tell_of_a_failed_directory(
    running: World, is_told: bool
) -> None:
    running.channel.answer = grant if is_told else say_nothing
    running.broker.propagate_directory_failure(IDENTITY.directory_ids[0])
    running.run(2 * SETTINGS.log_dir_failure_timeout_ms)
    assert bool(running.failures) is not is_told


def test_a_broker_that_has_ended_asks_for_nothing(running: World) -> None:
    running.channel.answer = keep
    running.broker.propagate_directory_failure(IDENTITY.directory_ids[0])
    running.broker.end_waits()
    running.stop()
    running.run(0)
    asked_count = len(running.channel.asked)
    running.run(2 * SETTINGS.log_dir_failure_timeout_ms)
    assert running.failures == []
    assert len(running.channel.asked) == asked_count
