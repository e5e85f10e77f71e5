"""A cluster that lives in the running event loop."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from kvorum.node.embedded import EmbeddedNode, prepare_node
from kvorum.node.process import Node


class AsyncCluster:
    """One combined node, formatted and started by `start`, or on entering.

    `controllers` and `brokers` can only be 1 yet: one node that is both. `overrides` are put over
    its properties. Without a `folder` the data is temporary and gone after `stop`.
    """

    def __init__(
        self,
        *,
        controllers: int = 1,
        brokers: int = 1,
        folder: Path | None = None,
        overrides: Mapping[str, str] | None = None,
    ) -> None:
        if controllers != 1 or brokers != 1:
            raise ValueError("only 1 controller and 1 broker, in one node, can be run for now")
        self._given_folder = folder
        self._overrides = dict(overrides or {})
        self._resources = ExitStack()
        self._folder: Path | None = None
        self._nodes: dict[int, EmbeddedNode] = {}

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
        """Where clients find the brokers."""
        return ",".join(node.bootstrap_servers for node in self._running())

    @property
    def controller_servers(self) -> str:
        """Where tools find the controllers."""
        return ",".join(node.controller_servers for node in self._running())

    @property
    def leader_id(self) -> int | None:
        """The id of the active controller, None while there is none."""
        for node_id, embedded in self._nodes.items():
            if embedded.node.is_active_controller:
                return node_id
        return None

    @property
    def cluster_id(self) -> str:
        """The id that the directories were formatted with."""
        return self._running()[0].node.core.directories.cluster_id

    @property
    def folder(self) -> Path:
        """Where properties and data lie; there is none before `start`."""
        if self._folder is None:
            raise RuntimeError("the cluster is not started")
        return self._folder

    def node(self, node_id: int) -> Node:
        """Return a running node, for tests that look inside."""
        return self._nodes[node_id].node

    async def start(self) -> None:
        """Format what is not formatted, start, and return when the cluster serves."""
        if self._folder is None:
            self._folder = self._given_folder or self._temporary_folder()
        try:
            await self._start_node()
        except BaseException:
            self._resources.close()
            raise

    async def stop(self) -> None:
        """Stop in good order and remove temporary data."""
        nodes, self._nodes = self._nodes, {}
        for embedded in nodes.values():
            await embedded.node.stop()
        self._folder = None
        self._resources.close()

    async def kill(self, node_id: int) -> None:
        """Take a node away without a word: nobody is asked, and connections just end."""
        await self._nodes.pop(node_id).node.abort()

    async def restart(self, node_id: int) -> None:
        """Start a node that was killed, or stop and start one that runs, on the same addresses."""
        embedded = self._nodes.pop(node_id, None)
        if embedded is not None:
            await embedded.node.stop()
        await self._start_node()

    def _running(self) -> list[EmbeddedNode]:
        if not self._nodes:
            raise RuntimeError("the cluster is not started")
        return list(self._nodes.values())

    async def _start_node(self) -> None:
        embedded = prepare_node(self.folder, overrides=self._overrides)
        await embedded.node.start()
        self._nodes[embedded.node.config.node_id] = embedded

    def _temporary_folder(self) -> Path:
        name = self._resources.enter_context(tempfile.TemporaryDirectory(prefix="kvorum-test-"))
        return Path(name)
