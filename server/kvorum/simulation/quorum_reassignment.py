"""The reassignment of a simulated quorum: a real node's decisions.

Its steps are those of `Pursuit`, as the requests that a real node puts to itself. Only the waiting
is written again: by callbacks, where a real node has a task of the event loop.
"""

from collections.abc import Callable

from kvorum.controller.api import ControllerResult
from kvorum.controller.quorum_reassignment.next_step import (
    AddVoter,
    Blocked,
    BlockReason,
    HandOver,
    Reached,
    RemoveVoter,
)
from kvorum.controller.quorum_reassignment.pursuit import Decision, Pursuit, pause_ms
from kvorum.controller.quorum_reassignment.quorum_targets import clear_reached_targets
from kvorum.controller.quorum_reassignment.requests import VoterChange, refusal_of, request_of
from kvorum.controller.settings import ControllerRequestContext
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.voters import recorded_target_voters
from kvorum.node.raft.errors import RaftStoppedError
from kvorum.node.raft.inbound_requests import Respond
from kvorum.simulation.controller import Controller
from kvorum.simulation.properties.node_facts import ObservedNode
from kvorum.simulation.surroundings import StepMoment, Surroundings
from kvorum.wire.messages.add_raft_voter import AddRaftVoterResponse
from kvorum.wire.messages.remove_raft_voter import RemoveRaftVoterResponse
from kvorum.wire.primitives import Message


class QuorumReassignment:
    """Takes one step after the other from the present voters to the target voters.

    `put` hands a request to this process's own replica. `reach` notes that a moment of a step is
    reached, at which the process may crash.
    """

    def __init__(
        self,
        controller: Controller,
        node: ObservedNode,
        around: Surroundings,
        *,
        put: Callable[[Message, Respond], None],
        reach: Callable[[StepMoment], None],
    ) -> None:
        self._controller, self._node = controller, node
        self._around = around
        self._put, self._reach = put, reach
        self._pursuit: Pursuit | None = None
        # The step under way, and where the latest voter record was when it began.
        self._step: VoterChange | None = None
        self._voters_offset: int | None = None
        self._waits_for: BlockReason | None = None

    def wake(self) -> None:
        """Begin to look at the quorum, if this process leads and there are target voters."""
        application = self._controller.application
        is_wanted = recorded_target_voters(application.image) is not None
        if self._pursuit is None and is_wanted and application.leading_epoch is not None:
            timeouts = self._node.settings.raft
            self._pursuit = Pursuit(
                election_timeout_ms=timeouts.election_timeout_ms,
                fetch_timeout_ms=timeouts.fetch_timeout_ms,
            )
            self._controller.runtime.call_soon(self._look)

    def after_turn(self) -> None:
        """Note the moment when the record of the step under way is in the log."""
        step = self._step
        if step is None or self._latest_voters_offset() == self._voters_offset:
            return
        self._step = None
        is_addition = isinstance(step, AddVoter)
        self._reach(StepMoment.ADDITION_WRITTEN if is_addition else StepMoment.REMOVAL_WRITTEN)

    def _look(self) -> None:
        """Take the next step, or look again after a while."""
        controller, node = self._controller, self._node
        client, application = controller.client, controller.application
        decision: Decision | None = None
        if self._pursuit is not None and application.leading_epoch is not None and client.is_leader:
            quorum, now_ms = client.describe_quorum(), controller.runtime.monotonic_ms()
            decision = self._pursuit.decide(application.image, quorum, now_ms)
        if decision is None:
            # This controller is active no longer, or nothing is wanted any more.
            self._pursuit = self._step = self._waits_for = None
            return
        text, step = decision.target_text, decision.step
        if isinstance(step, Blocked):
            self._wait(text, step)
            return
        self._waits_for = None
        self._around.trace.say(f"{node.node_id} works towards {text}: {step}")
        self._around.properties.step_taken(node, text, step, application.next_offset)
        self._take(step, text)

    def _wait(self, text: str, blocked: Blocked) -> None:
        if self._waits_for is not blocked.reason:
            self._waits_for = blocked.reason
            self._around.trace.say(f"{self._node.node_id} works towards {text}: {blocked}")
        delay_ms = pause_ms(self._node.settings.raft.election_timeout_ms)
        runtime = self._controller.runtime
        runtime.call_at(runtime.monotonic_ms() + delay_ms, self._look)

    def _take(self, step: AddVoter | RemoveVoter | HandOver | Reached, text: str) -> None:
        client = self._controller.client
        match step:
            case AddVoter() | RemoveVoter():
                self._change_voters(step, text)
            case HandOver():
                client.resign(client.epoch)
                self._reach(StepMoment.HANDED_OVER)
                self._controller.runtime.call_soon(self._look)
            case Reached():
                self._clear(text)

    def _change_voters(self, step: VoterChange, text: str) -> None:
        """Put a step to this process's own replica, which leads, as an operator would."""
        self._step, self._voters_offset = step, self._latest_voters_offset()

        def answered(response: Message | RaftStoppedError) -> None:
            self._step = None
            if isinstance(response, RaftStoppedError):
                return
            assert isinstance(response, AddRaftVoterResponse | RemoveRaftVoterResponse)
            refusal = refusal_of(step, response)
            if refusal is None:
                is_addition = isinstance(step, AddVoter)
                self._reach(
                    StepMoment.ADDITION_COMMITTED if is_addition else StepMoment.REMOVAL_COMMITTED
                )
                self._controller.runtime.call_soon(self._look)
            else:
                if self._pursuit is not None:
                    self._pursuit.refused(step)
                self._wait(text, refusal)

        self._put(request_of(step, cluster_id=self._node.settings.cluster_id), answered)

    def _clear(self, text: str) -> None:
        """Write the end of the target voters, unless there are others by now; then look again."""
        controller = self._controller

        def clear(
            image: MetadataImage, context: ControllerRequestContext
        ) -> ControllerResult[Message | None]:
            del context
            return ControllerResult(None, tuple(clear_reached_targets(image, text)))

        def cleared(response: Message | None) -> None:
            del response
            controller.runtime.call_soon(self._look)

        if controller.run(clear, cleared):
            self._reach(StepMoment.TARGETS_CLEARED)
        else:
            controller.runtime.call_soon(self._look)

    def _latest_voters_offset(self) -> int | None:
        return self._controller.client.core.history.voters_offset
