"""A whole cluster in one event loop: nodes are parted, paused, killed and restarted."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from kvorum.metadata.address import Address
from kvorum.node.embedded.client_security.client_access import ClientAccess
from kvorum.node.embedded.client_security.mode import SecurityMode
from kvorum.node.embedded.disks import FillableDisk
from kvorum.node.embedded.existing_data import check_security, check_size
from kvorum.node.embedded.listeners import LOOPBACK, ON_LOOPBACK, ClientListener, secured
from kvorum.node.embedded.node import ClusterSize, EmbeddedNode, Place, places_of, prepare_nodes
from kvorum.node.embedded.pausable_loop import Gate, PausableEventLoop, behind
from kvorum.node.embedded.topics import TOPIC_PATIENCE_SECONDS, TopicTimeoutError, create_topic
from kvorum.node.errors import NodeFailedError
from kvorum.node.open_file_limit import log_file_count_max
from kvorum.storage.directory.open_files import OpenFiles

if TYPE_CHECKING:
    from kvorum.node.embedded.client_security.token_issuer import TokenIssuer

LOOK_SECONDS = 0.1
END_PATIENCE_SECONDS = 0.5
"""The patience with other nodes where all nodes stop: no partition gets another leader then."""
LEADER_PATIENCE_SECONDS = 60.0
"""An election takes a few seconds at most where a majority of the controllers is connected."""
RESTART_PATIENCE_SECONDS = 10.0
"""The patience where one node stops: its partitions may need other leaders, which catch up."""
NOT_PAUSABLE = (
    "nodes can be paused only in a kvorum.testing.PausableEventLoop, as in "
    "asyncio.Runner(loop_factory=PausableEventLoop)"
)
_NOTHING: Mapping[str, str] = MappingProxyType({})
_NO_TOPICS: Mapping[str, int] = MappingProxyType({})
Result = TypeVar("Result")


class UnknownNodeError(KeyError, ValueError):
    """The cluster has no such node, or it does not run; the text is one line for a person."""

    def __str__(self) -> str:
        # A KeyError shows the quoted form of its text.
        return str(self.args[0])


class NoLeaderError(TimeoutError):
    """No controller became the active one in time; the text says which of them run."""


class ClusterStoppedError(RuntimeError):
    """The cluster was stopped while the call was under way."""


class EmbeddedCluster:
    """A cluster of nodes on the loopback interface, with their data below `folder`.

    Existing data in `folder` is used. `size` is then None, or must have the same number of
    controllers; the number of brokers may change. `overrides` replace properties of every node, and
    `topics` are created by the start with so many partitions unless they exist. `security` is that
    of clients; existing data has to be of a cluster with the same one.
    Raises WrongSizeError, WrongSecurityError, NodeStartError, ConfigError, StorageError.
    """

    def __init__(
        self,
        folder: Path,
        *,
        size: ClusterSize,
        broker_port: int | None = None,
        clients: ClientListener = ON_LOOPBACK,
        security: SecurityMode | None = None,
        topics: Mapping[str, int] = _NO_TOPICS,
        overrides: Mapping[str, str] = _NOTHING,
    ) -> None:
        check_size(folder, size)
        check_security(folder, security)
        if security is not None:
            clients = secured(clients, security, folder)
        self.folder = folder
        self._overrides = overrides
        self._clients = clients
        self._topics = topics
        self._places = {place.node_id: place for place in places_of(folder, size)}
        # All nodes have the descriptors of one process.
        self._open_files = OpenFiles(log_file_count_max())
        self._disks = {node_id: FillableDisk() for node_id in self._places}
        self._gates = {node_id: Gate() for node_id in self._places}
        self._restarts = {node_id: asyncio.Lock() for node_id in self._places}
        try:
            self.nodes = prepare_nodes(
                folder,
                list(self._places.values()),
                broker_port=broker_port,
                clients=clients,
                overrides=overrides,
                disks=self._disks,
                open_files=self._open_files,
            )
        except BaseException:
            self._stop_issuer()
            raise
        """The running nodes, by id."""
        self._groups: tuple[frozenset[int], ...] = ()
        self._addresses = {
            node_id: frozenset(_addresses(embedded)) for node_id, embedded in self.nodes.items()
        }
        # Killed nodes, prepared again, so that no other process takes their ports meanwhile.
        self._waiting: dict[int, EmbeddedNode] = {}
        self._under_way: set[asyncio.Task[Any]] = set()

    @property
    def bootstrap_servers(self) -> str:
        """The bootstrap.servers of the running brokers."""
        return _joined(embedded.bootstrap_servers for embedded in self.nodes.values())

    @property
    def security(self) -> SecurityMode | None:
        """The security of clients, None for clients in plain text."""
        return None if self._clients.security is None else self._clients.security.mode

    def client_settings(self, form: str) -> dict[str, str]:
        """Return the settings of clients in a form of `ClientAccess`; raises ValueError."""
        security = self._clients.security
        access = ClientAccess() if security is None else security.access
        return access.settings(form, self.bootstrap_servers)

    @property
    def controller_servers(self) -> str:
        """The bootstrap.controllers of the running controllers."""
        return _joined(embedded.controller_servers for embedded in self.nodes.values())

    @property
    def leader_id(self) -> int | None:
        """The id of the active controller; if two claim it, that of the later epoch.

        A paused node does not count, though it may take itself for the leader.
        """
        active = [
            (embedded.node.shared_server.raft.epoch, node_id)
            for node_id, embedded in self.nodes.items()
            if embedded.node.is_active_controller and not self._gates[node_id].is_closed
        ]
        return max(active)[1] if active else None

    @property
    def stopped_ids(self) -> tuple[int, ...]:
        """The ids of the nodes that do not run: they were killed, or could not start again."""
        return tuple(sorted(self._places.keys() - self.nodes.keys()))

    @property
    def paused_ids(self) -> tuple[int, ...]:
        """The ids of the paused nodes."""
        return tuple(sorted(one for one, gate in self._gates.items() if gate.is_closed))

    @property
    def answering_nodes(self) -> list[EmbeddedNode]:
        """The nodes that are running and not paused."""
        return [
            embedded
            for node_id, embedded in self.nodes.items()
            if embedded.node.is_running and not self._gates[node_id].is_closed
        ]

    @property
    def cluster_id(self) -> str:
        """The cluster id in the nodes' directories; raises RuntimeError if no node runs."""
        for embedded in self.nodes.values():
            return embedded.node.shared_server.directories.cluster_id
        raise RuntimeError("no node is running")

    async def start(self) -> None:
        """Start all nodes; return when there is an active controller and every broker serves."""
        await self._unless_stopped(self._start())

    async def stop(self) -> None:
        """Do a controlled shutdown of all nodes, brokers first. May be repeated.

        Brokers ask for leave only where a majority of the controllers runs and can be reached, and
        only for a moment. Calls that are under way raise ClusterStoppedError.
        """
        self._resume_all()
        self._end_waits_of_starting_nodes()
        for task in self._under_way:
            task.cancel()
        if self._under_way:
            await asyncio.wait(self._under_way)
        await self._close()

    def end_waits(self) -> None:
        """Have `stop` wait for no controller, whether it is under way or comes later."""
        for embedded in self.nodes.values():
            embedded.node.end_waits()

    def discard(self) -> None:
        """Close the sockets of a cluster that will not be started."""
        self._stop_issuer()
        for embedded in self.nodes.values():
            embedded.node.discard()

    async def failed(self) -> NodeFailedError:
        """Wait until a node cannot continue, and return the reason."""
        waits = [asyncio.ensure_future(one.node.failed()) for one in self.nodes.values()]
        try:
            done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        return done.pop().result()

    async def wait_for_leader(
        self, *, other_than: int | None = None, timeout_s: float = LEADER_PATIENCE_SECONDS
    ) -> int:
        """Wait for an active controller (`other_than` the given one) and return its id.

        Raises NoLeaderError, a TimeoutError, after `timeout_s`.
        """
        return await self._unless_stopped(self._leader_in_time(other_than, timeout_s))

    async def _leader_in_time(self, other_than: int | None, timeout_s: float) -> int:
        try:
            async with asyncio.timeout(timeout_s):
                return await self._wait_for_leader(other_than)
        except TimeoutError:
            raise NoLeaderError(self._without_leader(other_than, timeout_s)) from None

    def _without_leader(self, other_than: int | None, timeout_s: float) -> str:
        """Return what is known of a cluster in which no controller became active in time."""
        other = "" if other_than is None else f" other than {other_than}"
        return f"no controller{other} leads after {timeout_s:g} s; {self._known_of_controllers()}"

    def _known_of_controllers(self) -> str:
        """Return which controllers run, how many have to, and which nodes are parted."""
        controllers = [place.node_id for place in self._places.values() if place.is_controller]
        running = [node_id for node_id in controllers if node_id in self.nodes]
        majority = len(controllers) // 2 + 1
        line = (
            f"running controllers: {listed(running)} (of {listed(controllers)}; a majority is "
            f"{majority})"
        )
        if self.paused_ids:
            line += f"; paused: {listed(self.paused_ids)}"
        if self._groups:
            parts = " from ".join(listed(sorted(group)) for group in self._groups)
            line += f"; parted: {parts}"
        return line

    async def _wait_for_leader(self, other_than: int | None) -> int:
        while True:
            waits = [
                asyncio.ensure_future(embedded.node.wait_until_active_controller())
                for embedded in self.answering_nodes
                if embedded.place.is_controller and embedded.place.node_id != other_than
            ]
            # Nodes may start and stop meanwhile: they are looked up again from time to time.
            looking = asyncio.ensure_future(asyncio.sleep(LOOK_SECONDS))
            await asyncio.wait([*waits, looking], return_when=asyncio.FIRST_COMPLETED)
            looking.cancel()
            for wait in waits:
                wait.cancel()
            leader_id = self.leader_id
            if leader_id is not None and leader_id != other_than:
                return leader_id

    async def create_topic(
        self,
        name: str,
        *,
        partitions: int,
        replication_factor: int = 1,
        configs: Mapping[str, str] = _NOTHING,
        may_exist: bool = False,
        timeout_s: float = TOPIC_PATIENCE_SECONDS,
    ) -> None:
        """Create a topic, as `topics.create_topic` does; a time-out says which controllers run."""
        try:
            await create_topic(
                self.answering_nodes,
                name,
                partitions=partitions,
                replication_factor=replication_factor,
                configs=configs,
                may_exist=may_exist,
                timeout_s=timeout_s,
            )
        except TopicTimeoutError as error:
            leader = "none" if self.leader_id is None else f"controller {self.leader_id}"
            known = f"leader of the quorum: {leader}; {self._known_of_controllers()}"
            raise TopicTimeoutError(f"{error}; {known}") from None

    async def kill(self, node_id: int) -> None:
        """Stop a node as if its process had died; raises UnknownNodeError if it does not run."""
        self.running_node(node_id)
        self.resume(node_id)
        await self._unless_stopped(self._kill(node_id))

    def running_node(self, node_id: int) -> EmbeddedNode:
        """Return a running node; raises UnknownNodeError, a KeyError, without it."""
        self._check_known(node_id)
        if node_id not in self.nodes:
            raise UnknownNodeError(
                f"node {node_id} does not run: it was killed, or could not start; "
                f"restart({node_id}) starts it"
            )
        return self.nodes[node_id]

    def _check_known(self, node_id: int | None) -> None:
        if node_id in self._places:
            return
        hint = ""
        if node_id is None:
            hint = " (leader_id is None while no controller leads: see wait_for_leader)"
        raise UnknownNodeError(
            f"there is no node {node_id!r}{hint}: the nodes are {listed(sorted(self._places))}"
        )

    async def _kill(self, node_id: int) -> None:
        # Until it is closed it is one of the nodes, which a stop of the cluster closes.
        embedded = self.nodes[node_id]
        with embedded.node.ports_held():
            await embedded.node.abort()
            self._set_aside(embedded)

    def _set_aside(self, ended: EmbeddedNode) -> None:
        """Prepare a node that has ended again, unless another call has done so."""
        node_id = ended.place.node_id
        if self.nodes.get(node_id) is ended:
            del self.nodes[node_id]
            self._waiting[node_id] = self._prepare(ended.place)

    async def restart(self, node_id: int) -> None:
        """Start a killed node, or stop and start a running one, on the same addresses.

        Raises UnknownNodeError for a node that the cluster does not have.
        """
        self._check_known(node_id)
        self.resume(node_id)
        await self._unless_stopped(self._restart(node_id))

    async def _restart(self, node_id: int) -> None:
        async with self._restarts[node_id]:
            await self._restart_alone(node_id)

    async def _restart_alone(self, node_id: int) -> None:
        running = self.nodes.get(node_id)
        if running is not None:
            with running.node.ports_held():
                await self._stop_node(running, patience_s=RESTART_PATIENCE_SECONDS)
                self._set_aside(running)
        embedded = self._waiting.pop(node_id, None) or self._prepare(self._places[node_id])
        self.nodes[node_id] = embedded
        self._cut()
        try:
            await self._start_node(embedded)
        except BaseException:
            if self.nodes.get(node_id) is embedded:
                del self.nodes[node_id]
            raise

    async def _start_node(self, embedded: EmbeddedNode) -> None:
        """Start a node; all that it does from then on is behind its gate."""
        with behind(self._gates[embedded.place.node_id]):
            starting = asyncio.ensure_future(embedded.node.start())
        await starting

    def pause(self, node_id: int) -> None:
        """Let a node do nothing until `resume`, as if its process had got a SIGSTOP.

        Raises UnknownNodeError if it does not run, RuntimeError in a loop that cannot pause.
        """
        self.running_node(node_id)
        loop = asyncio.get_running_loop()
        if not isinstance(loop, PausableEventLoop):
            raise RuntimeError(NOT_PAUSABLE)
        loop.close_gate(self._gates[node_id])

    def resume(self, node_id: int) -> None:
        """Let a paused node go on; raises UnknownNodeError without the node."""
        self._check_known(node_id)
        loop = asyncio.get_running_loop()
        if isinstance(loop, PausableEventLoop):
            loop.open_gate(self._gates[node_id])

    def _resume_all(self) -> None:
        for node_id in self.paused_ids:
            self.resume(node_id)

    def fill_disk(self, node_id: int) -> None:
        """Let a node's disk take no more bytes; when that ends the node, it is as if killed.

        Raises UnknownNodeError if it does not run.
        """
        embedded = self.running_node(node_id)
        self._disks[node_id].is_full = True
        task = asyncio.ensure_future(self._end_failed(embedded))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    def free_disk(self, node_id: int) -> None:
        """Let a node's disk take bytes again; raises UnknownNodeError without the node."""
        self._check_known(node_id)
        self._disks[node_id].is_full = False

    async def _end_failed(self, embedded: EmbeddedNode) -> None:
        await embedded.node.failed()
        node_id = embedded.place.node_id
        if self.nodes.get(node_id) is embedded:
            await self._kill(node_id)

    def partition(self, *groups: Iterable[int]) -> None:
        """Cut the connections between nodes of different groups; replaces earlier partitions.

        A node that is in no group keeps all connections. Raises ValueError for a node in two
        groups, or one that the cluster does not have.
        """
        try:
            parted = tuple(frozenset(group) for group in groups)
        except TypeError as error:
            text = "a group is a set of node ids, as in partition({1}, {2, 3})"
            raise TypeError(text) from error
        named = [node_id for group in parted for node_id in group]
        if len(named) != len(set(named)) or not set(named) <= self._places.keys():
            raise ValueError(f"each group needs nodes of its own out of {sorted(self._places)}")
        self._groups = parted
        self._cut()

    def heal(self) -> None:
        """Undo every partition."""
        self.partition()

    async def _start(self) -> None:
        issuer = self._issuer
        if issuer is not None:
            issuer.start()
        try:
            await _all_of(
                (partial(self._start_node, embedded) for embedded in self.nodes.values()),
                before_cancel=self._end_waits_of_starting_nodes,
            )
            await self._leader_in_time(None, LEADER_PATIENCE_SECONDS)
            for name, partitions in self._topics.items():
                await self.create_topic(name, partitions=partitions, may_exist=True)
        except BaseException:
            await self._close()
            raise

    async def _unless_stopped(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Return the result of `work`; raises ClusterStoppedError if `stop` cancels it."""
        task = asyncio.ensure_future(work)
        self._under_way.add(task)
        try:
            await asyncio.wait({task})
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            self._under_way.discard(task)
        if task.cancelled():
            raise ClusterStoppedError("the cluster was stopped meanwhile")
        return task.result()

    @property
    def _issuer(self) -> TokenIssuer | None:
        security = self._clients.security
        return None if security is None else security.issuer

    def _stop_issuer(self) -> None:
        issuer = self._issuer
        if issuer is not None:
            issuer.stop()

    async def _close(self) -> None:
        self._stop_issuer()
        nodes = list(self.nodes.values())
        for disk in self._disks.values():
            # They have to write their last state.
            disk.is_full = False
        self._release()
        try:
            await _all_of(
                partial(self._stop_node, one, patience_s=END_PATIENCE_SECONDS)
                for one in nodes
                if one.place.is_broker
            )
        finally:
            # All of them stop: no voter is left to take over the leadership.
            await _all_of(one.node.abort for one in nodes)
            self.nodes = {}

    async def _stop_node(self, embedded: EmbeddedNode, *, patience_s: float) -> None:
        """Stop a node, which waits for others only if they can answer, and not longer than told."""
        node = embedded.node
        if not self._is_answered(embedded):
            node.end_waits()
        patience = asyncio.get_running_loop().call_later(patience_s, node.end_waits)
        try:
            await node.stop()
        finally:
            patience.cancel()

    def _end_waits_of_starting_nodes(self) -> None:
        for embedded in self.nodes.values():
            if not embedded.node.is_running:
                embedded.node.end_waits()

    def _is_answered(self, broker: EmbeddedNode) -> bool:
        """Return whether a broker reaches a controller that a majority of them can elect."""
        running = [
            one.place.node_id
            for one in self.answering_nodes
            if one.place.is_controller and not one.node.has_failed
        ]
        all_count = sum(place.is_controller for place in self._places.values())
        return any(
            self._are_connected(broker.place.node_id, controller)
            and sum(self._are_connected(controller, one) for one in running) > all_count // 2
            for controller in running
        )

    def _are_connected(self, one: int, other: int) -> bool:
        return not any(
            one in group and other in another
            for group in self._groups
            for another in self._groups
            if another is not group
        )

    def _cut(self) -> None:
        for node_id, embedded in self.nodes.items():
            others = [group for group in self._groups if node_id not in group]
            if len(others) == len(self._groups):
                others = []
            cut_off = {
                address for group in others for one in group for address in self._addresses[one]
            }
            embedded.node.outgoing.cut_off(cut_off)

    def _prepare(self, place: Place) -> EmbeddedNode:
        nodes = prepare_nodes(
            self.folder,
            [place],
            clients=self._clients,
            overrides=self._overrides,
            disks=self._disks,
            open_files=self._open_files,
        )
        return nodes[place.node_id]

    def _release(self) -> None:
        """Close the sockets of killed nodes that were not restarted."""
        for embedded in self._waiting.values():
            embedded.node.discard()
        self._waiting = {}


def listed(ids: Iterable[int]) -> str:
    """Return node ids as a sentence has them."""
    return ", ".join(map(str, ids)) or "none"


async def _all_of(
    calls: Iterable[Callable[[], Awaitable[None]]],
    *,
    before_cancel: Callable[[], None] = lambda: None,
) -> None:
    """Run all of these at once; when one fails, cancel the others and raise its error."""
    tasks = [asyncio.ensure_future(call()) for call in calls]
    if not tasks:
        return
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        for task in tasks:
            if task.done():
                task.result()
    finally:
        before_cancel()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _addresses(embedded: EmbeddedNode) -> Iterable[Address]:
    if embedded.broker_port is not None:
        yield Address(embedded.clients.advertised, embedded.broker_port)
    if embedded.internal_address is not None:
        yield embedded.internal_address
    if embedded.controller_port is not None:
        yield Address(LOOPBACK, embedded.controller_port)


def _joined(servers: Iterable[str]) -> str:
    return ",".join(one for one in servers if one)
