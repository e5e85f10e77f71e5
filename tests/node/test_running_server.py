"""A server is closed in the opposite order of its start, whatever fails meanwhile."""

import asyncio
from pathlib import Path

import pytest
from tests.node.embedded_cluster import prepare_node

from kvorum.node.running_server import ServerClosing, ServerFault
from kvorum.storage.errors import StorageError


class Log:
    """A replica that cannot be closed."""

    def __init__(self, error: Exception | None = None) -> None:
        self.hands_over: list[bool] = []
        self._error = error

    async def close(self, *, hands_over: bool) -> None:
        self.hands_over.append(hands_over)
        if self._error is not None:
            raise self._error


async def test_the_first_failure_counts() -> None:
    fault = ServerFault()
    waiting = asyncio.create_task(fault.wait())
    await asyncio.sleep(0)
    assert fault.error is None
    assert not waiting.done()
    fault.note(OSError("the disk"))
    fault.note(OSError("what came of it"))
    assert str(await waiting) == "the disk"


@pytest.mark.parametrize("hands_over", [True, False])
async def test_what_started_last_is_closed_first_and_sockets_after_all(hands_over: bool) -> None:
    closed: list[str] = []
    closing = ServerClosing(ServerFault())
    closing.resources.callback(closed.append, "socket")

    async def close(name: str) -> None:
        closed.append(name)

    log = Log()
    closing.roles.push_async_callback(close, "metrics")
    closing.add_log(log.close)
    closing.roles.push_async_callback(close, "broker")
    await closing.close(hands_over=hands_over)
    await closing.close()
    assert closed == ["broker", "metrics", "socket"]
    assert log.hands_over == [hands_over]


async def test_a_log_that_cannot_be_closed_keeps_nothing_else_open() -> None:
    closed: list[str] = []
    closing = ServerClosing(ServerFault())
    closing.resources.callback(closed.append, "socket")
    closing.add_log(Log(StorageError("no space", file=Path("log"))).close)
    with pytest.raises(StorageError, match="no space"):
        await closing.close()
    assert closed == ["socket"]


async def test_after_a_failure_it_is_not_news_that_the_log_cannot_be_closed() -> None:
    fault = ServerFault()
    fault.note(OSError("the disk"))
    closing = ServerClosing(fault)
    closing.add_log(Log(StorageError("no space", file=Path("log"))).close)
    await closing.close()


async def test_a_server_has_its_parts_only_while_it_runs(tmp_path: Path) -> None:
    server = prepare_node(tmp_path, broker_port=0).node
    with pytest.raises(RuntimeError, match="not started"):
        _ = server.shared_server
    with pytest.raises(RuntimeError, match="not started"):
        await server.wait_until_active_controller()
    await server.start()
    assert server.is_running
    assert server.is_active_controller
    assert server.shared_server.raft.is_leader
    await server.stop()
    await server.stop()
    assert not server.is_running
    assert not server.is_active_controller
