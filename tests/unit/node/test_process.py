"""The process of a node: garbage, open files, imports, tasks, and its end."""

import asyncio
import itertools
import resource
import subprocess
import sys

import pytest

from kvorum.node.errors import NodeFailedError
from kvorum.node.garbage import PAUSE_MS_MAX, PauseLimit
from kvorum.node.open_file_limit import (
    RESERVED_DESCRIPTORS,
    connection_count_max,
    log_file_count_max,
)
from kvorum.node.runtime import run_until_stopped
from kvorum.node.tasks import cancel_and_wait, wait_for_end

JUST_TOO_LONG_SECONDS = (PAUSE_MS_MAX + 1) / 1000
SHORT_SECONDS = (PAUSE_MS_MAX - 1) / 1000
MANY = 2**31 - 1
PROGRAM = """
import asyncio, sys
from kvorum.controller.requests import controller_apis as decided_apis
from kvorum.metadata.request_error import RequestError
from kvorum.node.handlers.registry import controller_apis
from kvorum.node.warm_up import warm_up
from kvorum.wire.apis import METADATA_RECORDS, record_class, request_class, response_class
from kvorum.wire.error_codes import ErrorCode

asyncio.run(warm_up(wait_seconds=0, pause_seconds=0))
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


def test_what_outlives_a_long_full_collection_is_exempt() -> None:
    collector = Collector(JUST_TOO_LONG_SECONDS)
    collector.collect(2)
    assert collector.frozen_count == 1


def test_after_a_short_one_nothing_is() -> None:
    collector = Collector(SHORT_SECONDS)
    collector.collect(2)
    assert collector.frozen_count == 0


def test_collections_of_young_objects_do_not_count() -> None:
    collector = Collector(JUST_TOO_LONG_SECONDS)
    collector.collect(0)
    collector.collect(1)
    assert collector.frozen_count == 0


def limit_open_files(monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    def getrlimit(_: int) -> tuple[int, int]:
        return limit, limit

    monkeypatch.setattr(resource, "getrlimit", getrlimit)


@pytest.mark.parametrize("limit", [64, 256, 1024, 20_000, 1_000_000])
@pytest.mark.parametrize("wanted", [7, 1_000, MANY])
def test_connections_and_logs_share_what_is_not_reserved(
    limit: int, wanted: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit_open_files(monkeypatch, limit)
    connections = connection_count_max(wanted, has_logs=True)
    log_files = log_file_count_max(wanted)
    assert 0 < connections <= min(wanted, 3 * log_files + 3)
    assert log_files >= limit // 8
    assert connections + log_files <= limit - min(RESERVED_DESCRIPTORS, limit // 2)
    assert connections + log_files >= limit // 2


def test_a_controller_has_all_of_it_for_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    limit_open_files(monkeypatch, 1024)
    assert connection_count_max(MANY, has_logs=False) == 1024 - RESERVED_DESCRIPTORS
    assert connection_count_max(7, has_logs=False) == 7


def test_without_a_limit_nothing_is_lowered(monkeypatch: pytest.MonkeyPatch) -> None:
    limit_open_files(monkeypatch, resource.RLIM_INFINITY)
    assert connection_count_max(10**6, has_logs=True) == 10**6
    assert log_file_count_max() >= 10**8


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
    await wait_for_end([ending])
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

    async def failed(self) -> NodeFailedError:
        return NodeFailedError("the disk is full")


def test_a_node_that_has_failed_closes_everything() -> None:
    """Once, and without being interrupted."""
    node = FailingNode()
    with pytest.raises(NodeFailedError, match="the disk is full"):
        asyncio.run(run_until_stopped(node))
    assert node.steps == ["started", "closed connections", "closed logs"]
