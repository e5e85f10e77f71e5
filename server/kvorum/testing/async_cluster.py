"""A cluster that lives in the running event loop."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from kvorum.node.embedded.cluster import EmbeddedCluster
from kvorum.node.embedded.node import ClusterSize
from kvorum.node.process import Node


class AsyncCluster:
    """Controllers and brokers, formatted and started by `start`, or on entering.

    One controller and one broker are one combined node, 1. In every other cluster the controllers
    are 1, 2, 3 ... and the brokers 101, 102 ... `overrides` are put over every node's properties.
    Without a `folder` the data is temporary and gone after `stop`; the data in a given one is used
    again. Raises WrongSizeError, a ValueError, for a size that cannot be or is not the data's.
    """

    def __init__(
        self,
        *,
        controllers: int = 1,
        brokers: int = 1,
        folder: Path | None = None,
        overrides: Mapping[str, str] | None = None,
    ) -> None:
        self._size = ClusterSize(controllers=controllers, brokers=brokers)
        self._given_folder = folder
        self._overrides = dict(overrides or {})
        self._resources = ExitStack()
        self._cluster: EmbeddedCluster | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()

    @property
    def bootstrap_servers(self) -> str:
        """Where clients find the brokers that run."""
        return self._running.bootstrap_servers

    @property
    def controller_servers(self) -> str:
        """Where tools find the controllers that run."""
        return self._running.controller_servers

    @property
    def leader_id(self) -> int | None:
        """The id of the active controller, None while there is none."""
        return None if self._cluster is None else self._cluster.leader_id

    @property
    def node_ids(self) -> tuple[int, ...]:
        """The ids of the nodes that run, controllers first."""
        return tuple(sorted(self._running.nodes))

    @property
    def cluster_id(self) -> str:
        """The id that the directories were formatted with."""
        return self._running.cluster_id

    @property
    def folder(self) -> Path:
        """Where properties and data lie; there is none before `start`."""
        return self._running.folder

    def node(self, node_id: int) -> Node:
        """Return a running node, for tests that look inside."""
        return self._running.nodes[node_id].node

    async def start(self) -> None:
        """Format what is not formatted, start, and return when the cluster serves."""
        folder = self._given_folder or self._temporary_folder()
        try:
            self._cluster = EmbeddedCluster(folder, size=self._size, overrides=self._overrides)
            await self._cluster.start()
        except BaseException:
            self._cluster = None
            self._resources.close()
            raise

    async def stop(self) -> None:
        """Stop in good order and remove temporary data. Stopping twice is allowed."""
        cluster, self._cluster = self._cluster, None
        if cluster is not None:
            await cluster.stop()
        self._resources.close()

    async def wait_for_leader(self, *, other_than: int | None = None) -> int:
        """Return the id of the active controller, once there is one, or one `other_than` that."""
        return await self._running.wait_for_leader(other_than=other_than)

    async def kill(self, node_id: int) -> None:
        """Take a node away without a word: nobody is asked, and connections just end.

        Raises KeyError for a node that does not run.
        """
        await self._running.kill(node_id)

    async def restart(self, node_id: int) -> None:
        """Start a node that was killed, or stop and start one that runs, on the same addresses.

        A broker is waited for until it serves. Raises KeyError for a node there never was.
        """
        await self._running.restart(node_id)

    def partition(self, *groups: Iterable[int]) -> None:
        """Let nodes of one group have no connections to those of another, until `heal`.

        Nodes in no group reach everyone. Clients of the test are not concerned. A later call takes
        the place of an earlier one. Raises ValueError for unknown nodes, or one in two groups.
        """
        self._running.partition(*groups)

    def heal(self) -> None:
        """Undo every partition."""
        self._running.heal()

    @property
    def _running(self) -> EmbeddedCluster:
        if self._cluster is None:
            raise RuntimeError("the cluster is not started")
        return self._cluster

    def _temporary_folder(self) -> Path:
        name = self._resources.enter_context(tempfile.TemporaryDirectory(prefix="kvorum-test-"))
        return Path(name)
