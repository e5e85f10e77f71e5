"""The listener of a node's metadata log: commits go to the loader first, then the controller."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Protocol

from kvorum.node.events.log_event import LogEvent
from kvorum.node.metadata_loader import MetadataLoader
from kvorum.node.raft.listener import CommittedBatch, InPieces, LoadedSnapshot

_log = logging.getLogger(__name__)


class QuorumListener(Protocol):
    """A listener to changes of leadership, and to commits that the loader has applied."""

    def committed(self) -> None:
        """Handle a commit that the loader has applied."""
        ...

    def lead(self, epoch: int) -> None:
        """Handle that this replica leads: the loader has everything before this epoch."""
        ...

    def renounce(self) -> None:
        """Handle that this replica leads no longer."""
        ...

    def leader_found(self) -> None:
        """Handle that the quorum has another leader, or the same one in a new epoch."""
        ...


class MetadataLogListener:
    """The listener of a node's replica, which passes each commit to the loader first.

    Further listeners are registered before the replica starts, as with Kafka's RaftClient.
    """

    def __init__(self, loader: MetadataLoader, on_failure: Callable[[Exception], None]) -> None:
        self._listeners: list[QuorumListener] = []
        self._loader = loader
        self._on_failure = on_failure

    def register(self, listener: QuorumListener) -> None:
        """Call `listener` for everything from now on, each time after the loader."""
        self._listeners.append(listener)

    def on_snapshot(self, snapshot: LoadedSnapshot) -> InPieces:
        """Replace the metadata by a snapshot."""
        return self._loader.load_in_pieces(snapshot)

    def on_commit(self, batches: Sequence[CommittedBatch]) -> InPieces:
        """Apply the committed batches, and send the responses that waited for them."""
        yield from self._loader.commit_in_pieces(batches)
        for listener in self._listeners:
            listener.committed()

    def on_leadership_gained(self, epoch: int) -> None:
        """Make this node's controller the active one."""
        for listener in self._listeners:
            listener.lead(epoch)

    def on_leadership_lost(self, epoch: int) -> None:  # noqa: ARG002 - there is one at a time
        """Make this node's controller inactive."""
        for listener in self._listeners:
            listener.renounce()

    def on_leader_change(self, leader_id: int | None, epoch: int) -> None:
        """Log the new leader; parts that need the leader ask the replica for it."""
        if leader_id is None:
            _log.info(LogEvent("No leader of the quorum is known", epoch=epoch))
            return
        for listener in self._listeners:
            listener.leader_found()
        _log.info(LogEvent("The quorum has a leader", leader=leader_id, epoch=epoch))

    def on_failure(self, error: Exception) -> None:
        """Record the failure, which stops the node: it cannot run without its log."""
        self._on_failure(error)
