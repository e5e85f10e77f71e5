"""Has the quorum reassigned while there is a wish for other voters (KIP-642).

It waits for a wish, and for this node to be the active controller; the steps are taken by a
`QuorumReassignment`.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING

from kvorum.metadata.request_error import RequestError
from kvorum.metadata.target_voters import recorded_target_voters
from kvorum.node.clock import Clock
from kvorum.node.controller.quorum_controller import QuorumController
from kvorum.node.errors import NotControllerError
from kvorum.node.metadata_loader import MetadataLoader
from kvorum.node.raft import RaftNode, RaftStoppedError

if TYPE_CHECKING:
    from kvorum.controller.quorum_reassignment.description import ReassignmentDescription
    from kvorum.node.controller.quorum_reassignment import QuorumReassignment

_log = logging.getLogger(__name__)


class QuorumReassignmentManager:
    """Works towards the target voters while this controller is the active one."""

    def __init__(
        self, controller: QuorumController, *, raft: RaftNode, loader: MetadataLoader, clock: Clock
    ) -> None:
        self._controller = controller
        self._raft = raft
        self._loader = loader
        self._clock = clock
        self._running: asyncio.Task[None] | None = None
        self._current: QuorumReassignment | None = None

    def start(self) -> None:
        """Begin to look for a wish; the replica must have been opened."""
        self._running = asyncio.create_task(self._run(), name="reassign the quorum")

    async def close(self) -> None:
        """Take no further step."""
        if self._running is not None:
            self._running.cancel()
            with suppress(asyncio.CancelledError):
                await self._running
            self._running = None

    def describe(self) -> ReassignmentDescription | None:
        """Return how far the reassignment is; None without a wish, and where no leader is active.

        A leader that is not active yet may lack records, so that it could miss or invent a wish.
        """
        text = recorded_target_voters(self._loader.published)
        if text is None or not self._controller.is_active or not self._raft.is_leader:
            return None
        return (self._current or self._begin()).describe(text)

    def _begin(self) -> QuorumReassignment:
        # Imported with the first wish: most quorums never have one, and every start would be later.
        from kvorum.node.controller.quorum_reassignment import (  # noqa: PLC0415 - see above
            QuorumReassignment,
        )

        return QuorumReassignment(
            self._controller, raft=self._raft, loader=self._loader, clock=self._clock
        )

    async def _run(self) -> None:
        while True:
            await self._loader.wait_for(lambda image: recorded_target_voters(image) is not None)
            await self._controller.wait_until_active()
            self._current = self._begin()
            pause_seconds = self._current.pause_seconds
            try:
                await self._current.take_steps()
            except RaftStoppedError:
                return
            except NotControllerError:
                pass
            except RequestError:
                _log.exception("A step of the reassignment of the quorum failed")
            finally:
                self._current = None
            # The replica knows first that it leads no longer, the controller a moment later.
            await asyncio.sleep(pause_seconds)
