"""A cluster for tests without asyncio: its event loop runs in a thread of its own."""

import asyncio
import threading
from collections.abc import Coroutine, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from kvorum.node.kafka_raft_server import KafkaRaftServer
from kvorum.testing.async_cluster import AsyncCluster

Result = TypeVar("Result")


class Cluster:
    """A blocking interface to an `AsyncCluster`, which documents the arguments."""

    def __init__(
        self,
        *,
        controllers: int = 1,
        brokers: int = 1,
        folder: Path | None = None,
        overrides: Mapping[str, str] | None = None,
    ) -> None:
        self._cluster = AsyncCluster(
            controllers=controllers, brokers=brokers, folder=folder, overrides=overrides
        )
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of the running brokers, for clients."""
        return self._cluster.bootstrap_servers

    @property
    def controller_servers(self) -> str:
        """The addresses of the running controllers, for tools."""
        return self._cluster.controller_servers

    @property
    def leader_id(self) -> int | None:
        """The id of the active controller, None without one."""
        return self._cluster.leader_id

    @property
    def node_ids(self) -> tuple[int, ...]:
        """The ids of the running nodes, controllers first."""
        return self._cluster.node_ids

    @property
    def cluster_id(self) -> str:
        """The id that the directories were formatted with."""
        return self._cluster.cluster_id

    @property
    def folder(self) -> Path:
        """The folder of properties and data."""
        return self._cluster.folder

    def node(self, node_id: int) -> KafkaRaftServer:
        """Return a running node, for reading only: it runs in another thread."""
        return self._cluster.node(node_id)

    def start(self) -> None:
        """Format what is not formatted, start, and return when the cluster serves."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="kvorum-cluster", daemon=True
        )
        self._thread.start()
        try:
            self._call(self._cluster.start())
        except BaseException:
            self._end_loop()
            raise

    def stop(self) -> None:
        """Stop every node cleanly and remove temporary data; a second call has no effect."""
        if self._loop is None:
            return
        try:
            self._call(self._cluster.stop())
        finally:
            self._end_loop()

    def wait_for_leader(self, *, other_than: int | None = None) -> int:
        """Wait for an active controller, whose id is not `other_than`, and return its id."""
        return self._call(self._cluster.wait_for_leader(other_than=other_than))

    def kill(self, node_id: int) -> None:
        """Stop a node abruptly: without controlled shutdown, and connections just end."""
        self._call(self._cluster.kill(node_id))

    def restart(self, node_id: int) -> None:
        """Start a node again, on the same addresses and data."""
        self._call(self._cluster.restart(node_id))

    def partition(self, *groups: Iterable[int]) -> None:
        """Prevent connections between nodes of different groups, until `heal`.

        Nodes in no group reach all nodes. Clients of the test are not affected. A later call
        replaces an earlier one. Raises ValueError for unknown nodes, or for one in two groups.
        """
        self._call(self._partition(groups))

    def heal(self) -> None:
        """Remove every partition."""
        self._call(self._partition(()))

    async def _partition(self, groups: tuple[Iterable[int], ...]) -> None:
        self._cluster.partition(*groups)

    def _call(self, work: Coroutine[Any, Any, Result]) -> Result:
        if self._loop is None:
            work.close()
            raise RuntimeError("the cluster is not started")
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _end_loop(self) -> None:
        loop, thread = self._loop, self._thread
        self._loop = self._thread = None
        assert loop is not None
        assert thread is not None
        asyncio.run_coroutine_threadsafe(loop.shutdown_default_executor(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
