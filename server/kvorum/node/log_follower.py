"""What a node does when its log moves: first the metadata, then the controller."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from kvorum.node.controller.shell import ControllerShell
from kvorum.node.events.event import Event
from kvorum.node.metadata_loader import MetadataLoader
from kvorum.node.raft import CommittedBatch, LoadedSnapshot
from kvorum.node.raft.listener import InPieces

_log = logging.getLogger(__name__)


class LogFollower:
    """The listener of a node's replica; `shell` is None without the controller role."""

    def __init__(self, loader: MetadataLoader, on_failure: Callable[[Exception], None]) -> None:
        self.shell: ControllerShell | None = None
        self._loader = loader
        self._on_failure = on_failure

    def on_snapshot(self, snapshot: LoadedSnapshot) -> InPieces:
        """Take the snapshot for everything known."""
        return self._loader.load_in_pieces(snapshot)

    def on_commit(self, batches: Sequence[CommittedBatch]) -> InPieces:
        """Fold in what is committed, and let answers go that waited for it."""
        yield from self._loader.commit_in_pieces(batches)
        if self.shell is not None:
            self.shell.committed()

    def on_leadership_gained(self, epoch: int) -> None:
        """Become the active controller."""
        if self.shell is not None:
            self.shell.lead(epoch)

    def on_leadership_lost(self, epoch: int) -> None:  # noqa: ARG002 - there is one at a time
        """Stop being it."""
        if self.shell is not None:
            self.shell.renounce()

    def on_leader_change(self, leader_id: int | None, epoch: int) -> None:
        """Log it; who needs the leader asks for it."""
        if leader_id is None:
            _log.info(Event("No leader of the quorum is known", epoch=epoch))
            return
        if self.shell is not None:
            self.shell.measures.new_leader_count += 1
        _log.info(Event("The quorum has a leader", leader=leader_id, epoch=epoch))

    def on_failure(self, error: Exception) -> None:
        """Have the node stop: it cannot go on without its log."""
        self._on_failure(error)
