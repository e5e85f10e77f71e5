"""The steps of a reassignment of the quorum, taken while this is the active controller (KIP-642).

The decisions are those of `kvorum.controller.quorum_reassignment`. The steps are what an operator
could do: AddRaftVoter, RemoveRaftVoter, and a resignation. Nothing of a reassignment is kept here:
the next active controller reads the target voters from the metadata and goes on.
"""

import logging

from kvorum.controller.api import ControllerResult
from kvorum.controller.quorum_reassignment.next_step import (
    AddVoter,
    Blocked,
    HandOver,
    Reached,
    RemoveVoter,
    Step,
)
from kvorum.controller.quorum_reassignment.plan import (
    ReassignmentDescription,
    describe_reassignment,
)
from kvorum.controller.quorum_reassignment.pursuit import Pursuit, pause_ms
from kvorum.controller.quorum_reassignment.quorum_targets import clear_reached_targets
from kvorum.controller.quorum_reassignment.requests import (
    VoterRequest,
    VoterResponse,
    refusal_of,
    request_of,
)
from kvorum.controller.settings import ControllerRequestContext
from kvorum.metadata.image import MetadataImage
from kvorum.node.controller.quorum_controller import QuorumController
from kvorum.node.coroutines import sleep
from kvorum.node.events.log_event import LogEvent
from kvorum.node.metadata_loader import MetadataLoader
from kvorum.node.raft import RaftNode
from kvorum.node.runtime import Runtime
from kvorum.wire.messages.add_raft_voter import AddRaftVoterResponse
from kvorum.wire.messages.remove_raft_voter import RemoveRaftVoterResponse

_log = logging.getLogger(__name__)


class ReassignmentStatus:
    """The latest reason to wait; a new one is logged."""

    def __init__(self) -> None:
        self._target_text: str | None = None
        self._blocked: Blocked | None = None

    def blocked_for(self, target_text: str) -> Blocked | None:
        """Return what the way to these targets waits for, None while there is progress."""
        return self._blocked if target_text == self._target_text else None

    def wait(self, target_text: str, blocked: Blocked) -> None:
        """Keep what is waited for, and log it when it changes."""
        before = self.blocked_for(target_text)
        if before is None or before.reason is not blocked.reason:
            _log.info(
                LogEvent(
                    "The reassignment of the quorum waits",
                    target_voters=target_text,
                    reason=blocked.text,
                )
            )
        self._target_text, self._blocked = target_text, blocked

    def advance(self, target_text: str) -> None:
        """Take note of progress towards these targets."""
        self._target_text, self._blocked = target_text, None


class QuorumReassignment:
    """Takes one step after the other from the present voters to the target voters."""

    def __init__(
        self,
        controller: QuorumController,
        *,
        raft: RaftNode,
        loader: MetadataLoader,
        runtime: Runtime,
    ) -> None:
        self._controller = controller
        self._raft = raft
        self._loader = loader
        self._runtime = runtime
        self._status = ReassignmentStatus()

    def describe(self, text: str) -> ReassignmentDescription:
        """Return how far the quorum is from the target voters that `text` lists."""
        return describe_reassignment(
            text,
            self._raft.describe_quorum(),
            self._status.blocked_for(text),
            now_ms=self._runtime.wall_ms(),
        )

    async def take_steps(self) -> None:
        """Take steps while this is the active controller and there are target voters."""
        config = self._raft.settings.raft
        pursuit = Pursuit(
            election_timeout_ms=config.election_timeout_ms, fetch_timeout_ms=config.fetch_timeout_ms
        )
        refused: tuple[str, Step] | None = None
        while self._controller.is_active and self._raft.is_leader:
            decision = pursuit.decide(
                self._loader.published, self._raft.describe_quorum(), self._runtime.monotonic_ms()
            )
            if decision is None:
                _log.info(LogEvent("No reassignment of the quorum is wanted any more"))
                return
            text, step = decision.target_text, decision.step
            if not isinstance(step, Blocked):
                if (text, step) != refused:
                    event = LogEvent("Reassigning the quorum", target_voters=text, step=str(step))
                    _log.info(event)
                refusal = await self._take(step, text)
                refused = None if refusal is None else (text, step)
                if refusal is not None:
                    pursuit.refused(step)
                step = refusal or step
            if isinstance(step, Blocked):
                self._status.wait(text, step)
                await sleep(self._runtime, pause_ms(config.election_timeout_ms))
            else:
                self._status.advance(text)

    async def _take(self, step: Step, text: str) -> Blocked | None:
        """Take a step; return the refusal if it is refused."""
        match step:
            case AddVoter() | RemoveVoter():
                request = request_of(step, cluster_id=self._raft.settings.cluster_id)
                return refusal_of(step, await self._ask(request))
            case HandOver():
                self._raft.resign(self._raft.epoch)
            case Reached():
                await self._controller.run_task(lambda image, context: _clear(image, context, text))
            case Blocked():
                return step
        return None

    async def _ask(self, request: VoterRequest) -> VoterResponse:
        """Put a request to this node's own replica, which leads, as an operator would."""
        response = await self._raft.handle_request(
            request,
            version=request.MAX_VERSION,
            listener_name=self._raft.settings.controller_listener,
        )
        assert isinstance(response, AddRaftVoterResponse | RemoveRaftVoterResponse)
        return response


def _clear(
    image: MetadataImage, context: ControllerRequestContext, text: str
) -> ControllerResult[None]:
    """Return the record that clears the target voters, unless there are others by now."""
    del context
    return ControllerResult(None, tuple(clear_reached_targets(image, text)))
