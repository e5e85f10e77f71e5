"""Kafka's NetworkChannel: sends requests to other replicas and returns results.

The connection to one peer for one purpose is opened on demand, again after a backoff.
"""

import asyncio
import logging
from collections.abc import Callable
from enum import Enum

from kvorum.metadata.address import Address
from kvorum.node.clock import Clock
from kvorum.node.events.log_event import LogEvent, RareEvents
from kvorum.node.outbound.client_connection import (
    ClientConnection,
    ClientConnectionError,
    ConnectionLostError,
    NobodyListensError,
    NoCommonVersionError,
)
from kvorum.node.outbound.outgoing import Outgoing
from kvorum.node.raft.outbound_requests import PeerResult, ask
from kvorum.node.raft.settings import RaftSettings
from kvorum.raft import messages as core
from kvorum.raft.destination import Destination
from kvorum.raft.effects import Send
from kvorum.wire.errors import WireError

RECONNECT_BACKOFF_MS_MIN = 50
RECONNECT_BACKOFF_MS_MAX = 500
LAST_BREATHS_MAX = 3
"""The number of connections that a dying process may still accept before it refuses one."""
_log = logging.getLogger(__name__)


class Purpose(Enum):
    """The purpose of a connection: a fetch that waits for records must not delay a vote."""

    FETCHING = "fetching"
    ELECTING = "electing"


class PeerLink:
    """At most one connection to one address, and the time of the next attempt."""

    def __init__(
        self, *, address: Address, client_id: str, timeout_ms: int, clock: Clock, outgoing: Outgoing
    ) -> None:
        self.address = address
        self._client_id = client_id
        self._timeout_ms = timeout_ms
        self._clock = clock
        self._outgoing = outgoing
        self._lock = asyncio.Lock()
        self._connection: ClientConnection | None = None
        self._failure: ClientConnectionError | None = None
        self._retry_at = 0.0
        self._backoff_ms = RECONNECT_BACKOFF_MS_MIN
        self._is_closed = False

    async def connection(self) -> ClientConnection:
        """Return an open connection; raises ClientConnectionError, at once while backing off."""
        async with self._lock:
            if self._connection is not None and self._connection.is_open:
                return self._connection
            if self._failure is not None and self._clock.monotonic_ms() < self._retry_at:
                raise self._failure
            return await self._connect()

    async def is_peer_gone(self) -> bool:
        """Return whether a reconnection is refused right after a connection was lost.

        In this case the peer's process has ended. A successful reconnection is kept.
        """
        async with self._lock:
            for _ in range(LAST_BREATHS_MAX):
                if self._is_closed or (self._connection is not None and self._connection.is_open):
                    return False
                try:
                    await self._connect()
                except NobodyListensError:
                    return True
                except ConnectionLostError:
                    # A listener that is being closed accepted the connection.
                    continue
                except ClientConnectionError:
                    return False
        return False

    def abort(self) -> None:
        """Close the connection finally, without waiting until it is closed."""
        self._is_closed = True
        if self._connection is not None:
            self._connection.abort()

    def abort_again(self) -> None:
        """Close a connection that was opened since `abort`, if that was called."""
        if self._is_closed:
            self.abort()

    async def close(self) -> None:
        """Close the connection finally."""
        self._is_closed = True
        if self._connection is not None:
            await self._connection.close()

    async def _connect(self) -> ClientConnection:
        self._retry_at = self._clock.monotonic_ms() + self._backoff_ms
        self._backoff_ms = min(2 * self._backoff_ms, RECONNECT_BACKOFF_MS_MAX)
        try:
            self._connection = await self._outgoing.open(
                self.address, client_id=self._client_id, timeout_ms=self._timeout_ms
            )
        except ClientConnectionError as error:
            self._failure = error
            raise
        self._failure = None
        self._backoff_ms = RECONNECT_BACKOFF_MS_MIN
        return self._connection


class NetworkChannel:
    """All connections of one replica to others; `on_result` is called once for each request."""

    def __init__(
        self,
        settings: RaftSettings,
        *,
        clock: Clock,
        outgoing: Outgoing,
        on_result: Callable[[int, PeerResult], None],
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._outgoing = outgoing
        self._on_result = on_result
        self._client_id = f"raft-client-{settings.node_id}"
        self._links: dict[tuple[int, Purpose], PeerLink] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._lost: set[int] = set()
        self._denials: dict[int, RareEvents] = {}

    def send(self, send: Send) -> None:
        """Send a request; connect first if necessary."""
        task = asyncio.create_task(self._exchange(send))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Close all connections; requests under way are dropped."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for link in self._links.values():
            await link.close()

    async def _exchange(self, send: Send) -> None:
        link = self._link_for(send)
        try:
            result = await self._ask(link, send)
        finally:
            # Another request may have had the link closed while this one was connecting.
            link.abort_again()
        self._note(send, result)
        self._on_result(send.number, result)

    async def _ask(self, link: PeerLink, send: Send) -> PeerResult:
        try:
            result = await ask(await link.connection(), send.request, settings=self._settings)
        except NoCommonVersionError as error:
            return PeerResult(core.RequestFailed(str(error), lacks_version=True))
        except NobodyListensError as error:
            return PeerResult(core.RequestFailed(str(error), is_peer_gone=True))
        except ConnectionLostError as error:
            is_gone = await link.is_peer_gone()
            return PeerResult(core.RequestFailed(str(error), is_peer_gone=is_gone))
        except (ClientConnectionError, WireError) as error:
            return PeerResult(core.RequestFailed(str(error)))
        self._let_go_of_bootstrap_server(send)
        return result

    def _let_go_of_bootstrap_server(self, send: Send) -> None:
        """Close a link whose address may be a balancer's: next time it may lead to another replica.

        It may have led to one that knows no leader, such as this replica itself. A leader that is
        found is asked at its own address.
        """
        if send.destination.is_known_by_address_only:
            link = self._links.pop((send.destination.id, _purpose_of(send.request)), None)
            if link is not None:
                link.abort()

    def _note(self, send: Send, result: PeerResult) -> None:
        """Log once, not at every try, that a peer is lost or can be reached again."""
        peer, response = send.destination, result.response
        is_known_lost = peer.id in self._lost
        if isinstance(response, core.RequestFailed):
            if response.is_denied:
                self._note_denial(peer)
            if not is_known_lost:
                self._lost.add(peer.id)
                where = str(_address_of(peer))
                reason = response.reason
                _log.info(LogEvent("A peer is lost", peer=peer.id, at=where, reason=reason))
        elif is_known_lost:
            self._lost.discard(peer.id)
            where = str(_address_of(peer))
            _log.info(LogEvent("A peer is reachable again", peer=peer.id, at=where))

    def _note_denial(self, peer: Destination) -> None:
        """Log, repeatedly, that a peer does not permit the requests of this replica.

        Only an operator can mend this, and until then this replica may take no part in the quorum.
        """
        denials = self._denials.setdefault(peer.id, RareEvents())
        suppressed_count = denials.happened(self._clock.monotonic_ms())
        if suppressed_count is not None:
            _log.warning(
                LogEvent(
                    "A peer does not permit this node's requests of the quorum: give the node's "
                    "user CLUSTER_ACTION there",
                    peer=peer.id,
                    at=str(_address_of(peer)),
                    others=suppressed_count or None,
                )
            )

    def _link_for(self, send: Send) -> PeerLink:
        """Return the link for a request; a link to an old address of the peer is closed."""
        destination, purpose = send.destination, _purpose_of(send.request)
        link = self._links.get((destination.id, purpose))
        address = _address_of(destination)
        if link is not None and link.address == address:
            return link
        if link is not None:
            link.abort()
        link = PeerLink(
            address=address,
            client_id=self._client_id,
            timeout_ms=self._settings.raft.request_timeout_ms,
            clock=self._clock,
            outgoing=self._outgoing,
        )
        self._links[destination.id, purpose] = link
        return link


def _address_of(peer: Destination) -> Address:
    return Address(peer.host, peer.port)


def _purpose_of(request: core.Request) -> Purpose:
    is_fetch = isinstance(request, core.FetchRequest | core.FetchSnapshotRequest)
    return Purpose.FETCHING if is_fetch else Purpose.ELECTING
