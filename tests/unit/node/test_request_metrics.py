"""The measures of a request, and the windows and quantiles that they are kept in."""

import asyncio
import gc
import math
import weakref
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest
from tests.support.waiting import StandingClock

from kvorum.node.coroutines import GiveUp, Take, Task, Wait
from kvorum.node.metrics.sensors import (
    LATEST_COUNT,
    WINDOW_MS,
    LatestRows,
    LatestValues,
    WindowedSensor,
)
from kvorum.node.serving.request import RequestProgress
from kvorum.node.serving.request_metrics import RequestChannelMetrics, RequestTimes, count_errors
from kvorum.wire.api_keys import ApiKey
from kvorum.wire.messages.api_versions import ApiVersionsRequest
from kvorum.wire.messages.fetch import FetchRequest, FetchResponse
from kvorum.wire.messages.heartbeat import HeartbeatResponse


def test_a_window_knows_mean_and_maximum() -> None:
    sensor = WindowedSensor(0)
    for value in (1.0, 2.0, 6.0):
        sensor.record(value, 10)
    assert sensor.average(20) == 3
    assert sensor.maximum(20) == 6


def test_without_values_the_mean_is_undefined() -> None:
    sensor = WindowedSensor(0)
    assert math.isnan(sensor.average(0))
    assert math.isnan(sensor.maximum(0))
    assert sensor.rate_per_second(0) == 0


def test_a_rate_is_of_a_whole_window_at_least() -> None:
    sensor = WindowedSensor(0)
    sensor.record(60, 1_000)
    # As in Kafka: a window that is not there yet counts as if it had been empty.
    assert sensor.rate_per_second(10_000) == pytest.approx(60 * 1000 / (10_000 + WINDOW_MS))
    assert sensor.rate_per_second(40_000) == pytest.approx(60 * 1000 / 40_000)


def test_two_windows_are_kept_and_no_more() -> None:
    sensor = WindowedSensor(0)
    sensor.record(100, 0)
    sensor.record(1, WINDOW_MS)
    assert sensor.maximum(WINDOW_MS) == 100
    sensor.record(2, 2 * WINDOW_MS)
    assert sensor.maximum(2 * WINDOW_MS) == 2


def test_what_is_long_ago_is_forgotten_without_anything_new() -> None:
    sensor = WindowedSensor(0)
    sensor.record(5, 0)
    assert sensor.maximum(2 * WINDOW_MS - 1) == 5
    assert math.isnan(sensor.maximum(2 * WINDOW_MS))
    assert sensor.rate_per_second(2 * WINDOW_MS) == 0


def test_quantiles_lie_between_values_in_proportion() -> None:
    values = LatestValues()
    for value in range(1, 100):
        values.record(value)
    known = values.distribution()
    assert (known.count, known.total) == (99, 4950)
    assert dict(known.quantiles)[0.5] == 50
    assert dict(known.quantiles)[0.95] == 95
    assert dict(known.quantiles)[0.999] == 99


def test_quantiles_are_of_the_latest_values_but_the_count_is_of_all() -> None:
    values = LatestValues()
    for _ in range(LATEST_COUNT):
        values.record(1_000)
    for _ in range(LATEST_COUNT):
        values.record(1)
    known = values.distribution()
    assert known.count == 2 * LATEST_COUNT
    assert {quantile for _, quantile in known.quantiles} == {1}


def test_no_values_have_no_quantiles() -> None:
    assert LatestValues().distribution().quantiles == ()


def test_rows_have_a_distribution_of_each_column() -> None:
    rows = LatestRows(2)
    assert [each.count for each in rows.distributions()] == [0, 0]
    for value in range(1, 100):
        rows.record((value, 7))
    first, second = rows.distributions()
    assert (first.count, first.total, dict(first.quantiles)[0.5]) == (99, 4950, 50)
    assert (second.count, second.total, dict(second.quantiles)[0.5]) == (99, 693, 7)
    for _ in range(LATEST_COUNT + 5):
        rows.record((3, 4))
    first, _ = rows.distributions()
    assert (first.count, {quantile for _, quantile in first.quantiles}) == (LATEST_COUNT + 104, {3})


def test_work_and_waiting_are_counted_apart() -> None:
    clock = StandingClock()
    progress = RequestProgress(clock)
    clock.now_ms += 1

    async def work() -> str:
        clock.now_ms += 20
        await wait()
        clock.now_ms += 3
        return "done"

    async def wait() -> None:
        asyncio.get_running_loop().call_soon(setattr, clock, "now_ms", clock.now_ms + 400)
        await asyncio.sleep(0)

    async def run() -> str:
        return await progress.measured(work())

    assert asyncio.run(run()) == "done"
    assert progress.local_time_ms == 24
    progress.has_response(clock.now_ms)
    clock.now_ms += 7
    assert progress.times(clock.now_ms, 50) == RequestTimes(431, 24, 400, 7, 0, 50)


def test_what_the_work_waits_for_comes_to_it() -> None:
    takes: list[Take[str]] = []

    def begin(take: Take[str]) -> GiveUp:
        takes.append(take)
        return takes.clear

    async def work() -> str:
        return await Wait(begin) + await Wait(begin)

    said: list[object] = []
    Task(measured(work()), said.append)
    takes[0]("one, ")
    takes[1]("two")
    assert said == ["one, two"]
    Task(measured(work()), said.append).close()
    assert takes == []


async def measured(work: Coroutine[Any, Any, str]) -> str:
    return await RequestProgress(StandingClock()).measured(work)


def test_work_that_is_cancelled_hears_of_it() -> None:
    heard: list[str] = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            heard.append("cancelled")
            raise

    async def run() -> None:
        progress = RequestProgress(StandingClock())

        async def measured() -> None:
            await progress.measured(work())

        task = asyncio.create_task(measured())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    assert heard == ["cancelled"]


def test_an_error_of_the_work_comes_out() -> None:
    async def work() -> None:
        await asyncio.sleep(0)
        raise KeyError

    async def run() -> None:
        await RequestProgress(StandingClock()).measured(work())

    with pytest.raises(KeyError):
        asyncio.run(run())


def test_nothing_keeps_an_error_that_was_waited_for() -> None:
    """Its traceback has the frames of the request, and so the request and its bytes."""

    class Kept:
        """Something that the work has to do with."""

    def refuse(kept: Kept) -> None:
        raise KeyError(id(kept))

    async def work(thread: ThreadPoolExecutor) -> weakref.ref[Kept]:
        kept = Kept()
        with suppress(KeyError):
            await asyncio.get_running_loop().run_in_executor(thread, refuse, kept)
        return weakref.ref(kept)

    async def run() -> weakref.ref[Kept]:
        with ThreadPoolExecutor(1) as thread:
            return await RequestProgress(StandingClock()).measured(work(thread))

    gc.collect()
    gc.disable()
    try:
        assert asyncio.run(run())() is None
    finally:
        gc.enable()


def test_every_error_code_of_a_response_counts() -> None:
    partitions = [
        FetchResponse.PartitionData(index, error_code=code) for index, code in ((0, 6), (1, 0))
    ]
    response = FetchResponse(
        responses=[FetchResponse.FetchableTopicResponse("t", partitions=partitions)]
    )
    assert count_errors(response) == {0: 2, 6: 1}
    metrics = RequestChannelMetrics()
    for one in (response, response, HeartbeatResponse(error_code=25)):
        metrics.update_errors(ApiKey.FETCH, count_errors(one))
    assert metrics.by_name["Fetch"].errors == {0: 4, 6: 2, 25: 1}


def test_fetches_of_consumers_and_followers_have_names_of_their_own() -> None:
    metrics = RequestChannelMetrics()
    times = RequestTimes(1.0, 1.0, 0.0, 0.0, 0.0, 9.0)
    metrics.update(ApiKey.FETCH, 12, FetchRequest(), times)
    metrics.update(ApiKey.FETCH, 12, FetchRequest(replica_id=3), times)
    metrics.update(
        ApiKey.FETCH, 17, FetchRequest(replica_state=FetchRequest.ReplicaState(4)), times
    )
    metrics.update(ApiKey.API_VERSIONS, 4, ApiVersionsRequest(), times)
    assert {name: dict(one.by_version) for name, one in metrics.by_name.items()} == {
        "FetchConsumer": {12: 1},
        "FetchFollower": {12: 1, 17: 1},
        "Fetch": {12: 2, 17: 1},
        "ApiVersions": {4: 1},
    }
    known = metrics.by_name["Fetch"].times
    assert (known.total_time.count, known.request_bytes.total) == (3, 27)
