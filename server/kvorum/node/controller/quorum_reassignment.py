"""The steps of a reassignment of the quorum, taken while this is the active controller (KIP-642).

The decisions are those of `kvorum.controller.quorum_reassignment`. The steps are what an operator
could do: AddRaftVoter, RemoveRaftVoter, and a resignation. Nothing of a reassignment is kept here:
the next active controller reads the wish from the metadata and goes on.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from dataclasses import dataclass
from typing import Final

from kvorum.controller.quorum_reassignment.catch_up import CatchUp
from kvorum.controller.quorum_reassignment.description import (
    ReassignmentDescription,
    describe_reassignment,
)
from kvorum.controller.quorum_reassignment.next_step import (
    AddVoter,
    Blocked,
    BlockReason,
    Circumstances,
    HandOver,
    Reached,
    RemoveVoter,
    Step,
    assignment_of,
    next_step,
)
from kvorum.controller.quorum_reassignment.wish import clear_reached_targets
from kvorum.controller.result import ControllerResult
from kvorum.controller.settings import ControllerRequestContext
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.target_voters import (
    InvalidTargetVotersError,
    parse_target_voters,
    recorded_target_voters,
)
from kvorum.metadata.voter_key import VoterKey
from kvorum.node.clock import Clock
from kvorum.node.controller.quorum_controller import QuorumController
from kvorum.node.events.log_event import LogEvent
from kvorum.node.metadata_loader import MetadataLoader
from kvorum.node.raft import RaftNode
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.add_raft_voter import (
    AddRaftVoterRequest,
    AddRaftVoterRequestListener,
    AddRaftVoterResponse,
)
from kvorum.wire.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from kvorum.wire.uuid_text import ZERO_UUID

LOOKS_PER_ELECTION_TIMEOUT: Final = 20
"""How often the targets' progress is looked at; a round that is missed by a look is timed late."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ReassignmentStatus:
    """What is wanted, and what is waited for; `blocked` is None while there is progress."""

    target_text: str
    blocked: Blocked | None


class QuorumReassignment:
    """Takes one step after the other from the present voters to the target voters."""

    def __init__(
        self, controller: QuorumController, *, raft: RaftNode, loader: MetadataLoader, clock: Clock
    ) -> None:
        self._controller = controller
        self._raft = raft
        self._loader = loader
        self._clock = clock
        self._status: ReassignmentStatus | None = None

    @property
    def pause_seconds(self) -> float:
        """How long to wait before the quorum is looked at again."""
        timeout_ms = self._raft.settings.raft.election_timeout_ms
        return timeout_ms / 1000 / LOOKS_PER_ELECTION_TIMEOUT

    def describe(self, text: str) -> ReassignmentDescription:
        """Return how far the quorum is from the target voters that `text` lists."""
        status = self._status
        blocked = status.blocked if status is not None and status.target_text == text else None
        return describe_reassignment(
            text, self._raft.describe_quorum(), blocked, now_ms=self._clock.wall_ms()
        )

    async def take_steps(self) -> None:
        """Take steps while this is the active controller and there is a wish."""
        catch_up = CatchUp(election_timeout_ms=self._raft.settings.raft.election_timeout_ms)
        refusals = Counter[VoterKey]()
        while self._controller.is_active and self._raft.is_leader:
            text = recorded_target_voters(self._loader.published)
            if text is None:
                _log.info(LogEvent("No reassignment of the quorum is wanted any more"))
                return
            step = self._next_step(text, catch_up, refusals)
            if not isinstance(step, Blocked):
                _log.info(LogEvent("Reassigning the quorum", target_voters=text, step=str(step)))
                refusal = await self._take(step, text)
                if refusal is not None and isinstance(step, AddVoter):
                    refusals[step.key] += 1
                step = refusal or step
            if isinstance(step, Blocked):
                self._note(text, step)
                await asyncio.sleep(self.pause_seconds)
            else:
                self._status = ReassignmentStatus(text, None)

    def _next_step(self, text: str, catch_up: CatchUp, refusals: Counter[VoterKey]) -> Step:
        try:
            targets = parse_target_voters(text)
        except InvalidTargetVotersError as error:
            return Blocked(BlockReason.UNREADABLE, str(error))
        quorum, now_ms = self._raft.describe_quorum(), self._clock.monotonic_ms()
        catch_up.observe(quorum, assignment_of(targets, quorum).new, now_ms)
        circumstances = Circumstances(
            controllers=self._loader.published.cluster.controllers,
            fetch_timeout_ms=self._raft.settings.raft.fetch_timeout_ms,
            has_caught_up=lambda key: catch_up.has_caught_up(key, now_ms),
            progress_text=lambda key: catch_up.describe(key, now_ms),
            refusals=refusals,
        )
        return next_step(targets, quorum, circumstances)

    def _note(self, text: str, blocked: Blocked) -> None:
        """Keep what is waited for, and log it when it changes."""
        before = self._status
        is_known = (
            before is not None
            and before.target_text == text
            and before.blocked is not None
            and before.blocked.reason is blocked.reason
        )
        if not is_known:
            _log.info(
                LogEvent(
                    "The reassignment of the quorum waits", target_voters=text, reason=blocked.text
                )
            )
        self._status = ReassignmentStatus(text, blocked)

    async def _take(self, step: Step, text: str) -> Blocked | None:
        """Take a step; return the refusal if it is refused."""
        match step:
            case AddVoter():
                return await self._add(step)
            case RemoveVoter():
                return await self._remove(step.key)
            case HandOver():
                self._raft.resign(self._raft.epoch)
            case Reached():
                await self._controller.run_task(lambda image, context: _clear(image, context, text))
            case Blocked():
                return step
        return None

    async def _add(self, step: AddVoter) -> Blocked | None:
        request = AddRaftVoterRequest(
            cluster_id=self._raft.settings.cluster_id,
            voter_id=step.key.id,
            voter_directory_id=step.key.directory_id or ZERO_UUID,
            listeners=[
                AddRaftVoterRequestListener(one.listener, one.host, one.port)
                for one in step.registration.listeners
            ],
        )
        response = await self._ask(request)
        assert isinstance(response, AddRaftVoterResponse)
        return _refusal(step, response.error_code, response.error_message)

    async def _remove(self, key: VoterKey) -> Blocked | None:
        request = RemoveRaftVoterRequest(
            cluster_id=self._raft.settings.cluster_id,
            voter_id=key.id,
            voter_directory_id=key.directory_id or ZERO_UUID,
        )
        response = await self._ask(request)
        assert isinstance(response, RemoveRaftVoterResponse)
        return _refusal(RemoveVoter(key), response.error_code, response.error_message)

    async def _ask(
        self, request: AddRaftVoterRequest | RemoveRaftVoterRequest
    ) -> AddRaftVoterResponse | RemoveRaftVoterResponse:
        """Put a request to this node's own replica, which leads, as an operator would."""
        response = await self._raft.handle_request(
            request,
            version=request.MAX_VERSION,
            listener_name=self._raft.settings.controller_listener,
        )
        assert isinstance(response, AddRaftVoterResponse | RemoveRaftVoterResponse)
        return response


def _refusal(step: Step, error_code: int, message: str | None) -> Blocked | None:
    if error_code == ErrorCode.NONE:
        return None
    cause = message or f"error {error_code}"
    return Blocked(BlockReason.REFUSED, f"the leader refuses to {step}: {cause}")


def _clear(
    image: MetadataImage, context: ControllerRequestContext, text: str
) -> ControllerResult[None]:
    """Return the record that clears the wish, unless it is another one by now."""
    del context
    return ControllerResult(None, tuple(clear_reached_targets(image, text)))
