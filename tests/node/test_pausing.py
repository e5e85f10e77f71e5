"""Nodes that are paused and go on, in the loop that can do that, and in a cluster."""

import asyncio
import socket
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager, closing, suppress
from typing import Any

import pytest
from tests.support.raw_client import RawClient
from tests.support.record_requests import batch, produce
from tests.support.waiting import wait_for, wait_for_async

from kvorum.node.asyncio_runtime import AsyncioRuntime
from kvorum.node.clock import SystemClock
from kvorum.node.embedded.pausable_loop import Gate, PausableEventLoop, behind
from kvorum.testing import AsyncCluster, Cluster
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

SILENCE_S = 0.3
"""The time that a paused node is given for an answer, which would take a millisecond."""


# -- the loop ----------------------------------------------------------------------------------


def in_pausable_loop(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """Have a test run in the loop that this file is about."""

    def run() -> None:
        with asyncio.Runner(loop_factory=PausableEventLoop) as runner:
            runner.run(test())

    return run


def running_loop() -> PausableEventLoop:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, PausableEventLoop)
    return loop


async def some_turns() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


@in_pausable_loop
async def test_a_closed_gate_holds_what_began_behind_it_and_nothing_else() -> None:
    loop = running_loop()
    gate = Gate()
    done = list[str]()

    async def work(name: str) -> None:
        for step in range(3):
            done.append(f"{name}{step}")
            await asyncio.sleep(0)

    with behind(gate):
        held = asyncio.ensure_future(work("held"))
    loop.close_gate(gate)
    await work("free")
    await some_turns()
    assert done == ["free0", "free1", "free2"]
    loop.open_gate(gate)
    await held
    assert done[3:] == ["held0", "held1", "held2"]


@in_pausable_loop
async def test_callbacks_that_are_overdue_come_in_their_order_and_cancelled_ones_never() -> None:
    loop = running_loop()
    gate = Gate()
    done = list[str]()
    now = loop.time()
    with behind(gate):
        loop.call_at(now + 0.002, done.append, "second")
        loop.call_at(now + 0.001, done.append, "first")
        cancelled = loop.call_at(now + 0.001, done.append, "cancelled")
        loop.call_soon_threadsafe(done.append, "soon")
    loop.close_gate(gate)
    await asyncio.sleep(0.01)
    cancelled.cancel()
    assert done == []
    loop.open_gate(gate)
    await some_turns()
    assert done == ["soon", "first", "second"]


@in_pausable_loop
async def test_a_task_that_is_cancelled_behind_a_closed_gate_ends_once_that_is_open() -> None:
    loop = running_loop()
    gate = Gate()
    with behind(gate):
        task = asyncio.ensure_future(asyncio.sleep(3600))
    await some_turns()
    loop.close_gate(gate)
    task.cancel()
    await some_turns()
    assert not task.done()
    loop.open_gate(gate)
    with pytest.raises(asyncio.CancelledError):
        await task


@in_pausable_loop
async def test_results_of_threads_wait_too() -> None:
    loop = running_loop()
    gate = Gate()
    ready = threading.Event()
    done = list[str]()
    with behind(gate):
        runtime = AsyncioRuntime(SystemClock(), thread_name="blocking")

    def work() -> None:
        ready.wait()
        runtime.call_soon_threadsafe(lambda: done.append("while it worked"))

    with closing(runtime), behind(gate):
        runtime.run_blocking(work, lambda error: done.append(f"worked: {error}"))
    loop.close_gate(gate)
    ready.set()
    await asyncio.sleep(SILENCE_S)
    assert done == []
    loop.open_gate(gate)
    await wait_for_async(lambda: len(done) == 2 or None, "the thread has called back")
    assert done == ["while it worked", "worked: None"]


@asynccontextmanager
async def echo() -> AsyncGenerator[tuple[Gate, tuple[str, int]]]:
    """Run a server behind a gate that sends back what comes; yield the gate and its address."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with closing(writer), suppress(ConnectionError):
            while data := await reader.read(100):
                writer.write(data)

    gate = Gate()
    with behind(gate):
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
    yield gate, server.sockets[0].getsockname()
    running_loop().open_gate(gate)
    server.close()
    await server.wait_closed()


@in_pausable_loop
async def test_sockets_of_a_closed_gate_keep_what_arrives() -> None:
    loop = running_loop()
    async with echo() as (gate, address):
        known, its_end = await asyncio.open_connection(*address)
        its_end.write(b"before")
        assert await known.read(100) == b"before"
        loop.close_gate(gate)
        later, its_own_end = await asyncio.open_connection(*address)
        for end in (its_end, its_own_end):
            end.write(b"meanwhile")
        reads = [asyncio.ensure_future(one.read(100)) for one in (known, later)]
        done, _ = await asyncio.wait(reads, timeout=SILENCE_S)
        assert not done
        loop.open_gate(gate)
        assert await asyncio.gather(*reads) == [b"meanwhile"] * 2
        for end in (its_end, its_own_end):
            end.close()


@in_pausable_loop
async def test_a_connection_may_end_while_its_gate_is_closed() -> None:
    loop = running_loop()
    async with echo() as (gate, address):
        for _ in range(3):
            _, end = await asyncio.open_connection(*address)
            loop.close_gate(gate)
            end.transport.abort()
            await some_turns()
            loop.open_gate(gate)
        reader, end = await asyncio.open_connection(*address)
        end.write(b"after")
        assert await reader.read(100) == b"after"
        end.close()


# -- a cluster ---------------------------------------------------------------------------------


def is_silent(client: RawClient) -> bool:
    """Tell whether an answer that has been asked for does not come."""
    client.socket.settimeout(SILENCE_S)
    try:
        return not client.socket.recv(1, socket.MSG_PEEK)
    except TimeoutError:
        return True
    finally:
        client.socket.settimeout(None)


def test_a_paused_broker_answers_once_it_goes_on() -> None:
    with Cluster() as cluster, RawClient(cluster.bootstrap_servers) as client:
        cluster.create_topic("orders")
        cluster.pause(1)
        client.send(ApiVersionsRequest(), 0)
        with RawClient(cluster.bootstrap_servers) as late:
            late.send(ApiVersionsRequest(), 0)
            assert is_silent(client)
            assert is_silent(late)
            cluster.resume(1)
            for each in (client, late):
                answer = each.response(ApiVersionsResponse, 0)
                assert answer.error_code == ErrorCode.NONE
        assert produce(client, "orders", batch(b"apple")).error_code == ErrorCode.NONE


def test_another_controller_leads_while_the_leader_is_paused() -> None:
    with Cluster(controllers=3, brokers=1) as cluster:
        paused = cluster.wait_for_leader()
        cluster.pause(paused)
        assert repr(cluster).endswith(f", no leader, paused: {paused}>")
        successor = cluster.wait_for_leader()
        assert successor != paused
        # A request that a broker sends to the silent controller is not sent again for long.
        raft = cluster.node(101).shared_server.raft
        wait_for(lambda: raft.leader_id == successor or None, "the broker follows the successor")
        cluster.create_topic("orders")
        cluster.resume(paused)
        loader = cluster.node(paused).shared_server.loader
        wait_for(lambda: loader.published.topics.by_name("orders"), "it has caught up")
        assert not cluster.node(paused).is_active_controller
        assert cluster.leader_id == successor


def test_a_paused_broker_is_fenced_and_comes_back() -> None:
    with Cluster(controllers=1, brokers=2) as cluster:
        cluster.create_topic("orders", replication_factor=2)
        paused = cluster.leader_of("orders")
        assert paused is not None
        cluster.pause(paused)
        leader = {101: 102, 102: 101}[paused]
        wait_for(lambda: cluster.leader_of("orders") == leader or None, "the other one leads")
        cluster.resume(paused)
        image = cluster.node(1).shared_server.loader

        def in_sync_replicas() -> set[int]:
            topic = image.published.topics.by_name("orders")
            return set() if topic is None else {*topic.partitions[0].isr}

        wait_for(lambda: in_sync_replicas() == {101, 102} or None, "both are in sync again")


@pytest.mark.parametrize("paused", [(1,), (101,), (1, 2, 3), (1, 2, 3, 101)])
def test_paused_nodes_do_not_delay_the_end(paused: tuple[int, ...]) -> None:
    with Cluster(controllers=3, brokers=1) as cluster:
        for node_id in paused:
            cluster.pause(node_id)
            cluster.pause(node_id)
    with pytest.raises(RuntimeError, match="does not run"):
        cluster.pause(1)


def test_a_paused_node_can_be_killed_and_started_again() -> None:
    with Cluster(controllers=3, brokers=1) as cluster:
        for node_id in (1, 101):
            cluster.pause(node_id)
            cluster.kill(node_id)
            with pytest.raises(KeyError, match="does not run"):
                cluster.pause(node_id)
            cluster.restart(node_id)
            cluster.pause(node_id)
            cluster.restart(node_id)
        cluster.create_topic("orders")


def test_a_wait_for_a_leader_names_the_paused_controllers() -> None:
    with Cluster(controllers=3, brokers=0) as cluster:
        cluster.pause(1)
        cluster.pause(2)
        cluster.pause(3)
        with pytest.raises(
            TimeoutError, match=r"running controllers: 1, 2, 3 .*; paused: 1, 2, 3$"
        ):
            cluster.wait_for_leader(timeout_s=0.1)


@in_pausable_loop
async def test_nodes_in_a_loop_of_ones_own_can_be_paused_too() -> None:
    async with AsyncCluster(controllers=3, brokers=0) as cluster:
        paused = await cluster.wait_for_leader()
        cluster.pause(paused)
        assert await cluster.wait_for_leader() != paused
        cluster.resume(paused)


def test_another_loop_says_which_one_can_pause() -> None:
    async def pause() -> None:
        async with AsyncCluster() as cluster:
            cluster.resume(1)
            cluster.pause(1)

    with (
        asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner,
        pytest.raises(RuntimeError, match=r"only in a kvorum\.testing\.PausableEventLoop"),
    ):
        runner.run(pause())
