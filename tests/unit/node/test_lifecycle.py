"""The life of a node: a broker's states, step by step, and its process, tasks and end."""

import asyncio
import itertools
import os
import signal
import subprocess
import sys

import pytest
from tests.support.waiting import PATIENCE_S

from kvorum.broker.lifecycle import BrokerIdentity, BrokerLifecycle, BrokerState, LocalView
from kvorum.metadata.cluster_image import Endpoint
from kvorum.metadata.features import supported_features
from kvorum.metadata.metadata_version import LATEST_PRODUCTION_METADATA_VERSION
from kvorum.node.errors import NodeFailedError
from kvorum.node.garbage import PAUSE_MS_MAX, PauseLimit
from kvorum.node.process import run_until_stopped
from kvorum.node.stop_signals import SAME_ORDER_SECONDS, StopSignals
from kvorum.node.tasks import cancel_and_wait
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from kvorum.wire.messages.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)

INTERVAL_MS = 2000
IDENTITY = BrokerIdentity(
    node_id=4,
    cluster_id="some cluster",
    incarnation_id=bytes(range(16)),
    listeners=(Endpoint("PLAINTEXT", "here", 9092, 0),),
    rack="r1",
    directory_ids=(b"\x7f" * 16, b"\x90" * 16),
    previous_epoch=11,
)
VIEW = LocalView(
    supported_features=supported_features(), metadata_offset=77, cordoned_directories=()
)
FAILED = IDENTITY.directory_ids[0]
REGISTERED = BrokerRegistrationResponse(broker_epoch=42)
CAUGHT_UP = BrokerHeartbeatResponse(is_caught_up=True, is_fenced=True)
UNFENCED = BrokerHeartbeatResponse(is_caught_up=True, is_fenced=False)
BEHIND = BrokerHeartbeatResponse(is_caught_up=False, is_fenced=True)
LEAVE_GRANTED = BrokerHeartbeatResponse(should_shut_down=True)
JUST_TOO_LONG_SECONDS = (PAUSE_MS_MAX + 1) / 1000
SHORT_SECONDS = (PAUSE_MS_MAX - 1) / 1000
MANY = 2**31 - 1
PROGRAM = """
import sys
from kvorum.controller.requests import controller_apis as decided_apis
from kvorum.metadata.api import RequestError
from kvorum.node.handlers.registry import controller_apis
from kvorum.node.warm_up import warming_steps
from kvorum.wire.apis import METADATA_RECORDS, record_class, request_class, response_class
from kvorum.wire.error_codes import ErrorCode

for step in warming_steps():
    step()
before = set(sys.modules)
error = RequestError(ErrorCode.NOT_CONTROLLER, "")
for key, served in controller_apis().items():
    served.load().refuse(request_class(key)(), error, served.max_version)
    response_class(key)
for load in decided_apis().values():
    load()
for key in METADATA_RECORDS:
    record_class(key)
print(sorted(set(sys.modules) - before))
"""


def new() -> BrokerLifecycle:
    return BrokerLifecycle(IDENTITY, heartbeat_interval_ms=INTERVAL_MS, now_ms=0)


def running() -> BrokerLifecycle:
    broker = registered(0)
    for answer in (CAUGHT_UP, UNFENCED):
        broker.due(VIEW)
        broker.on_heartbeat(answer, 0)
    assert state(broker) is BrokerState.RUNNING
    return broker


def state(broker: BrokerLifecycle) -> BrokerState:
    return broker.state


def registration(broker: BrokerLifecycle) -> BrokerRegistrationRequest:
    request = broker.due(VIEW)
    assert isinstance(request, BrokerRegistrationRequest)
    return request


def registered(now_ms: int) -> BrokerLifecycle:
    broker = new()
    broker.due(VIEW)
    broker.on_registration(REGISTERED, now_ms)
    return broker


def beat(broker: BrokerLifecycle) -> BrokerHeartbeatRequest:
    request = broker.due(VIEW)
    assert isinstance(request, BrokerHeartbeatRequest)
    return request


def test_it_registers_with_all_that_it_is() -> None:
    request = registration(new())
    assert (request.broker_id, request.cluster_id, request.rack) == (4, "some cluster", "r1")
    assert request.previous_broker_epoch == 11
    assert [one.port for one in request.listeners] == [9092]
    assert {one.name: one.max_supported_version for one in request.features}[
        "metadata.version"
    ] == LATEST_PRODUCTION_METADATA_VERSION
    # Signed, as Kafka sorts them: 0x90… is below zero.
    assert request.log_dirs == [b"\x90" * 16, b"\x7f" * 16]


def test_from_start_to_running() -> None:
    broker = registered(5)
    assert broker.next_due_ms == 5

    first = beat(broker)
    assert (first.broker_epoch, first.current_metadata_offset) == (42, 77)
    assert first.want_fence
    assert first.cordoned_log_dirs is None
    broker.on_heartbeat(BEHIND, 10)
    assert state(broker) is BrokerState.STARTING
    assert broker.next_due_ms == 20

    beat(broker)
    broker.on_heartbeat(CAUGHT_UP, 20)
    assert state(broker) is BrokerState.RECOVERY
    assert broker.next_due_ms == 20

    ready = beat(broker)
    assert not ready.want_fence
    assert ready.cordoned_log_dirs == []
    broker.on_heartbeat(UNFENCED, 30)
    assert state(broker) is BrokerState.RUNNING
    assert broker.next_due_ms == 30 + INTERVAL_MS


def test_a_refused_registration_is_tried_again_an_interval_later() -> None:
    broker = new()
    broker.due(VIEW)
    refusal = BrokerRegistrationResponse(error_code=ErrorCode.DUPLICATE_BROKER_REGISTRATION)
    broker.on_registration(refusal, 7)
    assert not broker.is_registered
    assert broker.next_due_ms == 7 + INTERVAL_MS
    registration(broker)


def test_a_heartbeat_without_answer_is_tried_again_an_interval_later() -> None:
    broker = running()
    beat(broker)
    broker.on_failure(9)
    assert broker.next_due_ms == 9 + INTERVAL_MS
    assert state(broker) is BrokerState.RUNNING


def test_it_stops_when_the_controller_lets_it() -> None:
    broker = running()
    broker.begin_shutdown(100)
    assert state(broker) is BrokerState.PENDING_CONTROLLED_SHUTDOWN
    assert broker.next_due_ms == 100
    assert beat(broker).want_shut_down
    broker.on_heartbeat(UNFENCED, 110)
    assert broker.next_due_ms == 160
    beat(broker)
    broker.on_heartbeat(UNFENCED, 160)
    assert broker.next_due_ms == 160 + INTERVAL_MS
    beat(broker)
    broker.on_heartbeat(LEAVE_GRANTED, 170)
    assert state(broker) is BrokerState.SHUTTING_DOWN
    assert broker.next_due_ms is None


def test_the_wish_to_stop_waits_for_the_heartbeat_under_way() -> None:
    broker = running()
    beat(broker)
    broker.begin_shutdown(50)
    assert broker.next_due_ms is None
    broker.on_heartbeat(UNFENCED, 60)
    assert broker.next_due_ms == 110
    assert beat(broker).want_shut_down


@pytest.mark.parametrize("is_registered", [False, True])
def test_it_stops_at_once_where_it_never_ran(is_registered: bool) -> None:
    broker = registered(0) if is_registered else new()
    broker.begin_shutdown(1)
    assert state(broker) is BrokerState.SHUTTING_DOWN
    assert broker.next_due_ms is None


def test_a_late_answer_wakes_no_waiter_again() -> None:
    broker = running()
    beat(broker)
    broker.end()
    broker.on_heartbeat(UNFENCED, 1)
    assert state(broker) is BrokerState.SHUTTING_DOWN
    assert broker.next_due_ms is None


def test_it_registers_again_as_the_same_incarnation() -> None:
    broker = running()
    broker.register_again(500)
    assert broker.next_due_ms == 500
    assert registration(broker).incarnation_id == IDENTITY.incarnation_id
    broker.on_registration(REGISTERED, 510)
    assert state(broker) is BrokerState.RUNNING


def test_a_failed_directory_is_named_from_the_next_heartbeat_on() -> None:
    lifecycle = registered(1)
    in_flight = beat(lifecycle)
    lifecycle.propagate_directory_failure(FAILED, 2)
    assert in_flight.offline_log_dirs == []
    lifecycle.on_heartbeat(BrokerHeartbeatResponse(), 3)
    # That one was sent before the failure.
    assert not lifecycle.is_failure_known(FAILED)
    assert lifecycle.next_due_ms == 2
    for code, is_known in ((ErrorCode.NOT_CONTROLLER, False), (ErrorCode.NONE, True)):
        assert beat(lifecycle).offline_log_dirs == [FAILED]
        lifecycle.on_heartbeat(BrokerHeartbeatResponse(error_code=code), 4)
        assert lifecycle.is_failure_known(FAILED) is is_known


class Collector:
    """Counts how often everything was exempt, after collections that take as long as one says."""

    def __init__(self, seconds: float) -> None:
        self.frozen_count = 0
        times = itertools.count(start=0.0, step=seconds)
        self._limit = PauseLimit(freeze=self._freeze, used_seconds=lambda: next(times))

    def _freeze(self) -> None:
        self.frozen_count += 1

    def collect(self, generation: int) -> None:
        info = {"generation": generation, "collected": 0, "uncollectable": 0}
        self._limit("start", info)
        self._limit("stop", info)


@pytest.mark.parametrize(("seconds", "count"), [(JUST_TOO_LONG_SECONDS, 1), (SHORT_SECONDS, 0)])
def test_what_outlives_a_long_full_collection_is_exempt(seconds: float, count: int) -> None:
    collector = Collector(seconds)
    collector.collect(2)
    assert collector.frozen_count == count


def test_collections_of_young_objects_do_not_count() -> None:
    collector = Collector(JUST_TOO_LONG_SECONDS)
    collector.collect(0)
    collector.collect(1)
    assert collector.frozen_count == 0


@pytest.mark.process
def test_the_first_requests_have_nothing_left_to_import() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


async def test_a_caller_that_is_cancelled_does_not_go_on() -> None:
    """A broker that stopped waited forever for a task that had gone on to wait for metadata."""
    may_end = asyncio.Event()

    async def end_slowly() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await may_end.wait()

    ending = asyncio.create_task(end_slowly())
    await asyncio.sleep(0)
    caller = asyncio.create_task(cancel_and_wait(ending))
    await asyncio.sleep(0)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert not ending.done(), "the task is cancelled once, and ends as it wants to"
    may_end.set()
    await asyncio.wait([ending])
    assert ending.cancelled()


async def test_a_task_that_has_failed_is_reported() -> None:
    async def fail() -> None:
        raise OSError("the disk")

    failing = asyncio.create_task(fail())
    await asyncio.sleep(0)
    with pytest.raises(OSError, match="the disk"):
        await cancel_and_wait(failing, asyncio.create_task(asyncio.Event().wait()))


async def test_a_task_that_is_over_needs_no_waiting() -> None:
    over = asyncio.create_task(asyncio.sleep(0))
    await over
    await cancel_and_wait(over)
    await cancel_and_wait()


class FailingNode:
    """A node that cannot continue as soon as it runs; `steps` is what it did."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self._is_open = True

    async def start(self) -> None:
        self.steps.append("started")

    async def stop(self) -> None:
        if not self._is_open:
            return
        self._is_open = False
        for step in ("connections", "logs"):
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            self.steps.append(f"closed {step}")

    def end_waits(self) -> None:
        self.steps.append("ended waits")

    async def failed(self) -> NodeFailedError:
        return NodeFailedError("the disk is full")


def test_a_node_that_has_failed_closes_everything() -> None:
    """Once, and without being interrupted."""
    node = FailingNode()
    with pytest.raises(NodeFailedError, match="the disk is full"):
        asyncio.run(run_until_stopped(node))
    assert node.steps == ["started", "closed connections", "closed logs"]


class LastingNode(FailingNode):
    """A node that runs until it is told to stop."""

    async def failed(self) -> NodeFailedError:
        await asyncio.Event().wait()
        raise AssertionError("no event sets it")


def test_an_error_of_the_work_beside_a_node_stops_it_at_once() -> None:
    """It came to light at the stop, which it skipped: the node was not closed."""
    node = LastingNode()

    async def report() -> None:
        raise OSError("no space left")

    async def run() -> None:
        async with asyncio.timeout(PATIENCE_S):
            await run_until_stopped(node, when_started=report)

    with pytest.raises(OSError, match="no space left"):
        asyncio.run(run())
    assert node.steps == ["started", "closed connections", "closed logs"]


def test_a_node_goes_on_after_the_work_beside_it_has_ended() -> None:
    node = LastingNode()

    async def report() -> None:
        node.steps.append("reported")
        asyncio.get_running_loop().call_soon(os.kill, os.getpid(), signal.SIGTERM)

    assert asyncio.run(run_until_stopped(node, when_started=report)) is None
    assert node.steps == ["started", "reported", "closed connections", "closed logs"]


def test_a_signal_that_is_sent_twice_at_once_is_one_order() -> None:
    """Programs that end others send theirs to the process and to its group."""
    steps: list[str] = []
    signals = StopSignals(
        stop=lambda: steps.append("stop"), end_waits=lambda: steps.append("end waits")
    )
    signals.take(signal.SIGTERM, now=10.0)
    signals.take(signal.SIGTERM, now=10.0 + SAME_ORDER_SECONDS / 2)
    assert signals.second is None
    signals.take(signal.SIGINT, now=10.0 + 2 * SAME_ORDER_SECONDS)
    assert signals.second is signal.SIGINT
    assert steps == ["stop", "end waits"]
