"""Has the quorum reassigned while there are target voters (KIP-642).

It waits for target voters. While this node is the active controller, a `QuorumReassignment` takes
the steps; while another node leads, a `QuorumReassignmentProxy` watches whether that one does.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from kvorum.metadata.api import RequestError
from kvorum.metadata.voters import recorded_target_voters
from kvorum.node.controller.quorum_controller import QuorumController
from kvorum.node.coroutines import ClosableTasks, sleep
from kvorum.node.errors import NotControllerError
from kvorum.node.events.log_event import LogEvent
from kvorum.node.metadata_loader import MetadataLoader, PublishedImages
from kvorum.node.outbound.outgoing import Outgoing
from kvorum.node.raft import RaftNode, RaftStoppedError
from kvorum.node.runtime import Runtime

if TYPE_CHECKING:
    from kvorum.controller.quorum_reassignment.plan import ReassignmentDescription
    from kvorum.node.controller.quorum_reassignment import QuorumReassignment
    from kvorum.node.controller.quorum_reassignment_proxy import QuorumReassignmentProxy

FAILURE_PAUSE_MS: Final = 10_000
"""The pause after an unexpected error, so that a lasting one does not fill the log."""
PAUSE_MS: Final = 50
"""Between the end of a leadership and the next look at who leads: neither knows of it at once."""
_log = logging.getLogger(__name__)


class QuorumReassignmentManager:
    """Works towards the target voters, as the active controller or in place of a leader."""

    def __init__(
        self,
        controller: QuorumController,
        *,
        raft: RaftNode,
        loader: MetadataLoader,
        images: PublishedImages,
        runtime: Runtime,
        outgoing: Outgoing,
        failure_pause_ms: float = FAILURE_PAUSE_MS,
    ) -> None:
        self._controller = controller
        self._raft = raft
        self._loader = loader
        self._images = images
        self._runtime = runtime
        self._outgoing = outgoing
        self._failure_pause_ms = failure_pause_ms
        self._tasks = ClosableTasks()
        self._current: QuorumReassignment | None = None
        self._proxy: QuorumReassignmentProxy | None = None

    def start(self) -> None:
        """Begin to look for target voters; the replica must have been opened."""
        self._tasks.start(self._run())

    def close(self) -> None:
        """Take no further step."""
        self._tasks.close()

    def describe(self) -> ReassignmentDescription | None:
        """Return how far the reassignment is; None without target voters or an active leader.

        A leader that is not active yet may lack records, so that it could miss or invent target
        voters.
        """
        text = recorded_target_voters(self._loader.published)
        if text is None or not self._controller.is_active or not self._raft.is_leader:
            return None
        return (self._current or self._begin()).describe(text)

    def describe_as_proxy(self) -> ReassignmentDescription | None:
        """Return how far it is under another leader, None where that one sees to it itself."""
        text = recorded_target_voters(self._loader.published)
        return None if text is None or self._proxy is None else self._proxy.describe(text)

    def _begin(self) -> QuorumReassignment:
        # Imported with the first target voters: most quorums never have any, and every start would
        # be later.
        from kvorum.node.controller.quorum_reassignment import QuorumReassignment  # noqa: PLC0415 - see above

        return QuorumReassignment(
            self._controller, raft=self._raft, loader=self._loader, runtime=self._runtime
        )

    async def _run(self) -> None:
        while True:
            await self._images.wait_for(lambda image: recorded_target_voters(image) is not None)
            try:
                await self._take_steps()
            except RaftStoppedError:
                return
            except NotControllerError:
                pass
            except RequestError:
                _log.exception("A step of the reassignment of the quorum failed")
            except Exception:  # noqa: BLE001 - target voters must not take the node down, see below
                await self._after_failure()
            # The replica knows first that it leads no longer, the controller a moment later.
            await sleep(self._runtime, PAUSE_MS)

    async def _take_steps(self) -> None:
        """Take steps until the leadership changes, or there are no target voters any more."""
        if self._raft.is_leader:
            await self._take_steps_as_leader()
            return
        from kvorum.node.controller.quorum_reassignment_proxy import QuorumReassignmentProxy  # noqa: PLC0415 - see above

        self._proxy = QuorumReassignmentProxy(
            self._controller,
            raft=self._raft,
            loader=self._loader,
            images=self._images,
            runtime=self._runtime,
            outgoing=self._outgoing,
        )
        try:
            await self._proxy.take_steps()
        finally:
            self._proxy = None

    async def _take_steps_as_leader(self) -> None:
        await self._controller.wait_until_active(PAUSE_MS)
        self._current = self._begin()
        try:
            await self._current.take_steps()
        finally:
            self._current = None

    async def _after_failure(self) -> None:
        """Report an unexpected error, and pause before the next try.

        The node goes on, as it does when an operation of its controller fails. The target voters
        outlive the process: a node that ended here would end after every start, and so would each
        one that leads after it, so that no client could cancel them.
        """
        self._controller.measures.failure_count += 1
        _log.exception(
            LogEvent(
                "The reassignment of the quorum failed, and is tried again",
                target_voters=recorded_target_voters(self._loader.published),
            )
        )
        await sleep(self._runtime, self._failure_pause_ms)
