"""Clusters for tests: in the current event loop, or in a thread of their own."""

from __future__ import annotations

import asyncio
import os
import weakref
from collections.abc import Coroutine, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol, Self, TypeVar

from kvorum.node.embedded import topics
from kvorum.node.embedded.client_security.client_access import LIBRDKAFKA
from kvorum.node.embedded.client_security.mode import security_mode
from kvorum.node.embedded.cluster import LEADER_PATIENCE_SECONDS, EmbeddedCluster, listed
from kvorum.node.embedded.node import ClusterSize
from kvorum.node.embedded.overrides import OverrideValue, override_texts, texts_of
from kvorum.node.embedded.temporary_folder import TemporaryFolder, make_temporary_folder
from kvorum.node.embedded.topics import TOPIC_PATIENCE_SECONDS
from kvorum.node.kafka_raft_server import KafkaRaftServer
from kvorum.testing.loop_thread import LoopThread

NOT_STARTED = "the cluster does not run: start() starts it, and so does a with statement"
ALREADY_STARTED = "the cluster is started already: stop() comes before another start()"
FOLDER_PREFIX = "kvorum-test-"
SHORT_TIMEOUTS: Mapping[str, str] = MappingProxyType(
    {"broker.session.timeout.ms": "2000", "broker.heartbeat.interval.ms": "200"}
)
"""The time-outs of tests: a killed broker is noticed in two seconds, not in nine."""
_NOTHING: Mapping[str, OverrideValue] = MappingProxyType({})
Result = TypeVar("Result")


class ClusterFactory(Protocol):
    """The fixture `kvorum_cluster_factory`: starts a cluster, which is stopped after the test."""

    def __call__(
        self,
        *,
        controllers: int = 1,
        brokers: int = 1,
        folder: str | os.PathLike[str] | None = None,
        overrides: Mapping[str, OverrideValue] | None = None,
        security: str | None = None,
    ) -> Cluster:
        """Return a started cluster; `AsyncCluster` has the arguments."""
        ...


class _ClusterOfNodes:
    """The size and the properties of a cluster, and the nodes of a started one.

    It belongs to the process that made it. A child that has inherited it can read its addresses;
    what would change it raises RuntimeError there, and `stop` has no effect.
    """

    def __init__(
        self,
        *,
        controllers: int = 1,
        brokers: int = 1,
        folder: str | os.PathLike[str] | None = None,
        overrides: Mapping[str, OverrideValue] | None = None,
        security: str | None = None,
    ) -> None:
        self._security = None if security is None else security_mode(security)
        self._size = ClusterSize(controllers=controllers, brokers=brokers)
        self._given_folder = None if folder is None else Path(folder)
        self._overrides = {**SHORT_TIMEOUTS, **override_texts(overrides or {})}
        self._process_id = os.getpid()
        self._removal: weakref.finalize[[TemporaryFolder, int], Any] | None = None
        self._cluster: EmbeddedCluster | None = None

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of the running brokers, for clients."""
        return self._running.bootstrap_servers

    def client_settings(self, form: str = LIBRDKAFKA) -> dict[str, str]:
        """Return the settings of clients: the addresses, and what the cluster's security asks for.

        `form` is librdkafka, java, or python, which are the arguments of kafka-python's clients.
        Raises ValueError for another form.
        """
        return self._running.client_settings(form)

    @property
    def controller_servers(self) -> str:
        """The addresses of the running controllers, for tools."""
        return self._running.controller_servers

    @property
    def leader_id(self) -> int | None:
        """The id of the active controller, None without one."""
        return None if self._cluster is None else self._cluster.leader_id

    @property
    def node_ids(self) -> tuple[int, ...]:
        """The ids of the running nodes, controllers first."""
        return tuple(sorted(self._running.nodes))

    @property
    def cluster_id(self) -> str:
        """The id that the directories were formatted with."""
        return self._running.cluster_id

    @property
    def folder(self) -> Path:
        """The folder of properties and data; it does not exist before `start`."""
        return self._running.folder

    def leader_of(self, topic: str, partition: int = 0) -> int | None:
        """Return the id of the broker that leads a partition, None without one.

        Raises LookupError for an unknown topic or partition.
        """
        return topics.leader_of(list(self._running.nodes.values()), topic, partition)

    def node(self, node_id: int) -> KafkaRaftServer:
        """Return a running node, for tests of its internals; raises KeyError without it."""
        return self._running.running_node(node_id).node

    def __repr__(self) -> str:
        size = self._size
        kind = type(self).__name__
        sizes = f"{_counted(size.controllers, 'controller')} and {_counted(size.brokers, 'broker')}"
        cluster = self._cluster
        if cluster is None:
            return f"<{kind} of {sizes}, not running>"
        facts = [f"<{kind} of {sizes} at {cluster.bootstrap_servers or 'no address'}"]
        leader_id = cluster.leader_id
        facts.append("no leader" if leader_id is None else f"leader {leader_id}")
        if cluster.stopped_ids:
            facts.append(f"not running: {listed(cluster.stopped_ids)}")
        if cluster.paused_ids:
            facts.append(f"paused: {listed(cluster.paused_ids)}")
        return f"{', '.join(facts)}>"

    async def _create_topic(
        self,
        name: str,
        partitions: int,
        replication_factor: int,
        configs: Mapping[str, OverrideValue],
        timeout_s: float,
    ) -> None:
        await self._own.create_topic(
            name,
            partitions=partitions,
            replication_factor=replication_factor,
            configs=texts_of(configs),
            timeout_s=timeout_s,
        )

    async def _start(self) -> None:
        if self._cluster is not None:
            raise RuntimeError(ALREADY_STARTED)
        folder = self._given_folder or self._temporary_folder()
        try:
            self._cluster = EmbeddedCluster(
                folder, size=self._size, overrides=self._overrides, security=self._security
            )
            await self._cluster.start()
        except BaseException:
            self._cluster = None
            self._remove_temporary_folder()
            raise

    async def _stop(self) -> None:
        cluster, self._cluster = self._cluster, None
        if cluster is not None:
            await cluster.stop()
        self._remove_temporary_folder()

    @property
    def _is_inherited(self) -> bool:
        return os.getpid() != self._process_id

    def _check_owner(self) -> None:
        if self._is_inherited:
            raise RuntimeError(
                f"the cluster belongs to process {self._process_id}, which made it; this process, "
                f"{os.getpid()}, can make one of its own"
            )

    @property
    def _running(self) -> EmbeddedCluster:
        if self._cluster is None:
            raise RuntimeError(NOT_STARTED)
        return self._cluster

    @property
    def _own(self) -> EmbeddedCluster:
        self._check_owner()
        return self._running

    def _temporary_folder(self) -> Path:
        folder = make_temporary_folder(FOLDER_PREFIX)
        # The nodes use it as long as their loop runs, though the cluster may be forgotten before.
        loop = asyncio.get_running_loop()
        self._removal = weakref.finalize(loop, _remove_folder, folder, os.getpid())
        return folder.path

    def _remove_temporary_folder(self) -> None:
        if self._removal is not None:
            self._removal()


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _remove_folder(folder: TemporaryFolder, process_id: int) -> None:
    # A forked child that ends has the same things to do at its end as its parent.
    if os.getpid() == process_id:
        folder.remove()


class AsyncCluster(_ClusterOfNodes):
    """Controllers and brokers, formatted and started by `start`, or on entering the context.

    One controller and one broker are one combined node, 1. In every other cluster the controllers
    are 1, 2, 3 ... and the brokers 101, 102 ... `overrides` replace properties of every node;
    values are strings, numbers or booleans, and an unknown key raises ConfigError, a ValueError.
    Without a `folder` the data is temporary, and `stop` removes it; existing data in a given folder
    is used again. With a `security` of "tls", "mtls", "scram" or "oauth" clients connect by TLS,
    with a certificate, a user's password or an issuer's token of their own: `client_settings` has
    what they need, and nodes talk to each other in plain text on the loopback interface. A child
    that is forked in the loop has to end with `os._exit`, or to become another program: asyncio
    demands it. Raises WrongSizeError, a ValueError, for an impossible size, and for one that
    differs from that of the existing data; WrongSecurityError, a ValueError, for another security
    than it has.
    """

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Format what is not formatted, start, and return when the cluster serves."""
        self._check_owner()
        await self._start()

    async def stop(self) -> None:
        """Stop every node cleanly and remove temporary data; a second call has no effect."""
        if not self._is_inherited:
            await self._stop()

    async def wait_for_leader(
        self, *, other_than: int | None = None, timeout_s: float = LEADER_PATIENCE_SECONDS
    ) -> int:
        """Wait for an active controller, whose id is not `other_than`, and return its id.

        Raises TimeoutError after `timeout_s`; it says which controllers run.
        """
        return await self._own.wait_for_leader(other_than=other_than, timeout_s=timeout_s)

    async def kill(self, node_id: int) -> None:
        """Stop a node abruptly: without controlled shutdown, and connections just end.

        Raises KeyError for a node that is not running.
        """
        await self._own.kill(node_id)

    async def restart(self, node_id: int) -> None:
        """Start a killed node, or stop and start a running one, on the same addresses.

        This returns when a restarted broker serves clients. Raises KeyError for an unknown node.
        """
        await self._own.restart(node_id)

    def pause(self, node_id: int) -> None:
        """Let a node do nothing until `resume`, as if its process had got a SIGSTOP.

        Its connections stay, and it answers no request. Raises KeyError for a node that is not
        running, and RuntimeError unless the loop is a `PausableEventLoop`.
        """
        self._own.pause(node_id)

    def resume(self, node_id: int) -> None:
        """Let a paused node go on where it was; `kill`, `restart` and `stop` do so too.

        Raises KeyError for an unknown node.
        """
        self._own.resume(node_id)

    def partition(self, *groups: Iterable[int]) -> None:
        """Prevent connections between nodes of different groups, until `heal`.

        Nodes in no group reach all nodes. Clients of the test are not affected. A later call
        replaces an earlier one. Raises ValueError for unknown nodes, or for one in two groups.
        """
        self._own.partition(*groups)

    def heal(self) -> None:
        """Remove every partition."""
        self._own.heal()

    def fill_disk(self, node_id: int) -> None:
        """Let a node's disk be full until `free_disk`; when that ends the node, it is as if killed.

        Raises KeyError for a node that is not running.
        """
        self._own.fill_disk(node_id)

    def free_disk(self, node_id: int) -> None:
        """Let a node's disk take bytes again; `restart` starts a node that has ended."""
        self._own.free_disk(node_id)

    async def create_topic(
        self,
        name: str,
        partitions: int = 1,
        *,
        replication_factor: int = 1,
        configs: Mapping[str, OverrideValue] = _NOTHING,
        timeout_s: float = TOPIC_PATIENCE_SECONDS,
    ) -> None:
        """Create a topic; return when each partition has a leader that every broker knows.

        Raises RuntimeError with Kafka's error. After `timeout_s` that is a TimeoutError as well,
        which says which controllers run.
        """
        await self._create_topic(name, partitions, replication_factor, configs, timeout_s)


class Cluster(_ClusterOfNodes):
    """A cluster whose event loop runs in a thread of its own; `AsyncCluster` has the arguments.

    A node is for reading only: it runs in the other thread.
    """

    _thread: LoopThread | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Format what is not formatted, start, and return when the cluster serves."""
        self._check_owner()
        if self._thread is not None:
            raise RuntimeError(ALREADY_STARTED)
        self._thread = LoopThread("kvorum-cluster")
        try:
            self._call(self._start())
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop every node cleanly and remove temporary data; a second call has no effect.

        Any thread may call this at any time, and it takes a moment whatever state the cluster is
        in. Calls that are under way in other threads raise RuntimeError.
        """
        thread, self._thread = self._thread, None
        if thread is None or self._is_inherited:
            return
        try:
            thread.call(self._stop())
        finally:
            thread.end()

    def wait_for_leader(
        self, *, other_than: int | None = None, timeout_s: float = LEADER_PATIENCE_SECONDS
    ) -> int:
        """Wait for an active controller, whose id is not `other_than`, and return its id.

        Raises TimeoutError after `timeout_s`; it says which controllers run.
        """
        return self._call(self._own.wait_for_leader(other_than=other_than, timeout_s=timeout_s))

    def kill(self, node_id: int) -> None:
        """Stop a node abruptly: without controlled shutdown, and connections just end.

        Raises KeyError for a node that is not running.
        """
        self._call(self._own.kill(node_id))

    def restart(self, node_id: int) -> None:
        """Start a killed node, or stop and start a running one, on the same addresses.

        This returns when a restarted broker serves clients. Raises KeyError for an unknown node.
        """
        self._call(self._own.restart(node_id))

    def pause(self, node_id: int) -> None:
        """Let a node do nothing until `resume`, as if its process had got a SIGSTOP.

        Its connections stay, and it answers no request. Raises KeyError for a node that is not
        running.
        """
        self._call(self._pause(node_id))

    def resume(self, node_id: int) -> None:
        """Let a paused node go on where it was; `kill`, `restart` and `stop` do so too.

        Raises KeyError for an unknown node.
        """
        self._call(self._resume(node_id))

    def partition(self, *groups: Iterable[int]) -> None:
        """Prevent connections between nodes of different groups, until `heal`.

        Nodes in no group reach all nodes. Clients of the test are not affected. A later call
        replaces an earlier one. Raises ValueError for unknown nodes, or for one in two groups.
        """
        self._call(self._partition(groups))

    def heal(self) -> None:
        """Remove every partition."""
        self._call(self._partition(()))

    def fill_disk(self, node_id: int) -> None:
        """Let a node's disk be full until `free_disk`; when that ends the node, it is as if killed.

        Raises KeyError for a node that is not running.
        """
        self._call(self._fill_disk(node_id))

    def free_disk(self, node_id: int) -> None:
        """Let a node's disk take bytes again; `restart` starts a node that has ended."""
        self._own.free_disk(node_id)

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        *,
        replication_factor: int = 1,
        configs: Mapping[str, OverrideValue] = _NOTHING,
        timeout_s: float = TOPIC_PATIENCE_SECONDS,
    ) -> None:
        """Create a topic; return when each partition has a leader that every broker knows.

        Raises RuntimeError with Kafka's error. After `timeout_s` that is a TimeoutError as well,
        which says which controllers run.
        """
        self._call(self._create_topic(name, partitions, replication_factor, configs, timeout_s))

    async def _pause(self, node_id: int) -> None:
        self._own.pause(node_id)

    async def _resume(self, node_id: int) -> None:
        self._own.resume(node_id)

    async def _fill_disk(self, node_id: int) -> None:
        self._own.fill_disk(node_id)

    async def _partition(self, groups: tuple[Iterable[int], ...]) -> None:
        self._own.partition(*groups)

    def _call(self, work: Coroutine[Any, Any, Result]) -> Result:
        thread = self._thread
        if thread is None or self._is_inherited:
            work.close()
            self._check_owner()
            raise RuntimeError(NOT_STARTED)
        return thread.call(work)
