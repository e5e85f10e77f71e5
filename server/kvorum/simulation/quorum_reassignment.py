"""A simulated controller's registration, and the reassignment of the quorum: real decisions.

A voter is added by a reassignment only where its controller has registered.

The steps of a reassignment are those of `Pursuit`, as the requests that a real node puts to itself.
Only the waiting is written again: by callbacks, where a real node has a task of the event loop.
"""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Final, TypeAlias

from kvorum.controller.api import ControllerResult
from kvorum.controller.broker_heartbeat_manager import BrokerHeartbeatManager
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
from kvorum.controller.requests import controller_api, handle
from kvorum.controller.settings import ControllerRequestContext, ControllerSettings
from kvorum.metadata.api import RequestError
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.record_frame import encode_record
from kvorum.metadata.standard_authorizer import ANONYMOUS, UNRESTRICTED
from kvorum.metadata.voters import recorded_target_voters
from kvorum.node.raft.errors import RaftStoppedError
from kvorum.node.raft.inbound_requests import Respond
from kvorum.node.raft.raft_client import RaftClient
from kvorum.node.runtime import Runtime
from kvorum.raft import NotLeaderError
from kvorum.simulation.application import Application
from kvorum.simulation.properties.node_facts import ObservedNode
from kvorum.simulation.surroundings import StepMoment, Surroundings
from kvorum.simulation.transport import Reply
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.headers import encode_request_frame
from kvorum.wire.messages.add_raft_voter import AddRaftVoterResponse
from kvorum.wire.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from kvorum.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from kvorum.wire.messages.controller_registration import ControllerRegistrationRequest
from kvorum.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from kvorum.wire.messages.remove_raft_voter import RemoveRaftVoterResponse
from kvorum.wire.primitives import Message

Task: TypeAlias = Callable[
    [MetadataImage, ControllerRequestContext], ControllerResult[Message | None]
]
HANDLED: Final = (
    AlterPartitionReassignmentsRequest,
    ControllerRegistrationRequest,
    IncrementalAlterConfigsRequest,
)
"""The requests that a simulated controller takes in frames."""


@dataclass(slots=True)
class _Claim:
    """The leadership of one epoch, with the image that this controller's own records lead to."""

    epoch: int
    pending: MetadataImage


class Controller:
    """The controller of one process, active while the process leads.

    As on a real node, requests are decided on the image with what is proposed but not committed,
    and answered once the records are committed.
    """

    def __init__(
        self,
        client: RaftClient,
        application: Application,
        runtime: Runtime,
        settings: ControllerSettings,
        random: Random,
    ) -> None:
        self.client, self.application, self.runtime = client, application, runtime
        """The replica of the process, its state machine, and its time."""
        self._settings = settings
        self._random = random
        self._sessions = BrokerHeartbeatManager(settings.session_timeout_ms)
        self._claim: _Claim | None = None

    @property
    def pending(self) -> MetadataImage | None:
        """The metadata with what is proposed; None where this controller is not active."""
        claim = self._active_claim()
        return None if claim is None else claim.pending

    def handle(self, request: Message, version: int, respond: Callable[[Message], None]) -> None:
        """Handle a request of an operator, a broker or another controller; call in a turn."""

        def decide(
            image: MetadataImage, context: ControllerRequestContext
        ) -> ControllerResult[Message | None]:
            if isinstance(request, BrokerHeartbeatRequest):
                context.sessions.contact(request.broker_id, request.broker_epoch, context.now_ms)
            result = handle(image, request, context)
            return ControllerResult(result.response, result.records, result.is_atomic)

        def on_answer(response: Message | None) -> None:
            respond(_not_controller(request, version) if response is None else response)

        if not self.run(decide, on_answer, version=version):
            on_answer(None)

    def run(
        self, task: Task, on_answer: Callable[[Message | None], None], *, version: int = 0
    ) -> bool:
        """Propose the records of a task; return whether this controller is active.

        `on_answer` gets the response once what the decision rests on is committed, None if the
        leadership is lost before that.
        """
        claim = self._active_claim()
        if claim is None:
            return False
        result = task(claim.pending, self._context(version))
        if result.records and not self._append(claim, result):
            return False
        last_offset = claim.pending.last_offset
        if last_offset <= self.application.image.last_offset:
            on_answer(result.response)
        else:
            self.application.wait_for(
                last_offset,
                epoch=claim.epoch,
                on_commit=lambda at: on_answer(None if at is None else result.response),
            )
        return True

    def _active_claim(self) -> _Claim | None:
        application = self.application
        epoch = application.leading_epoch
        if epoch is None or not self.client.is_leader:
            return None
        if self._claim is None or self._claim.epoch != epoch:
            self._claim = _Claim(epoch, application.image)
            self._sessions = BrokerHeartbeatManager(self._settings.session_timeout_ms)
            self._sessions.start(application.image.cluster, self.runtime.monotonic_ms())
        return self._claim

    def _append(self, claim: _Claim, result: ControllerResult[Message | None]) -> bool:
        """Propose records; return False if this node leads no longer."""
        records = result.records
        for batch in [records] if result.is_atomic else [(record,) for record in records]:
            values = [encode_record(message, version) for message, version in batch]
            try:
                last_offset = self.client.propose(values, epoch=claim.epoch)
            except (NotLeaderError, RaftStoppedError):
                return False
            base_offset = last_offset - len(batch) + 1
            claim.pending = claim.pending.apply_all(
                (*record, offset) for offset, record in enumerate(batch, base_offset)
            )
        return True

    def _context(self, version: int) -> ControllerRequestContext:
        client = self.client
        return ControllerRequestContext(
            settings=self._settings,
            sessions=self._sessions,
            random=self._random,
            now_ms=self.runtime.monotonic_ms(),
            next_offset=client.log_end_offset,
            access=UNRESTRICTED,
            principal=ANONYMOUS,
            api_version=version,
            kraft_version=client.kraft_version,
            leader_id=self._settings.node_id,
            describe_quorum=client.describe_quorum,
        )


def is_handled(request: Message) -> bool:
    """Return whether a request is one for the controller."""
    return isinstance(request, HANDLED)


def _not_controller(request: Message, version: int) -> Message:
    error = RequestError.with_default_message(ErrorCode.NOT_CONTROLLER)
    return controller_api(request).refuse(request, error, version)


FIRST_PAUSE_MS = 200.0
PAUSE_MS = 1_000.0


class Registration:
    """Asks the active controller for a registration until its own log has it.

    A node registers once for each directory: its address never changes. `carry` takes a request to
    the leader, and returns False where none is known.
    """

    def __init__(
        self,
        controller: Controller,
        node: ObservedNode,
        carry: Callable[[bytes, Callable[[Reply], None]], bool],
    ) -> None:
        self._controller, self._node = controller, node
        self._carry = carry
        self._number = 0

    def begin(self) -> None:
        """Look for the registration before long."""
        self._later(FIRST_PAUSE_MS)

    def _later(self, pause_ms: float) -> None:
        runtime = self._controller.runtime
        runtime.call_at(runtime.monotonic_ms() + pause_ms, self._look)

    def _look(self) -> None:
        node = self._node
        known = self._controller.application.image.cluster.controllers.get(node.node_id)
        if known is not None and known.incarnation_id == node.directory_id:
            return
        self._number += 1
        request = ControllerRegistrationRequest(
            controller_id=node.node_id,
            incarnation_id=node.directory_id,
            listeners=[
                ControllerRegistrationRequest.Listener(name=one.name, host=one.host, port=one.port)
                for one in node.settings.local_listeners
            ],
        )
        frame = encode_request_frame(
            request,
            version=request.MAX_VERSION,
            correlation_id=self._number,
            client_id=f"controller-{node.node_id}",
        )
        # The record in the log counts, not the response.
        self._carry(frame, lambda _said: None)
        self._later(PAUSE_MS)


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
