"""The controller of a simulated process: a real one's decisions about some kinds of requests."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Final, TypeAlias

from kvorum.controller.api import ControllerResult
from kvorum.controller.broker_heartbeat_manager import BrokerHeartbeatManager
from kvorum.controller.requests import controller_api, handle
from kvorum.controller.settings import ControllerRequestContext, ControllerSettings
from kvorum.metadata.api import RequestError
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.record_frame import encode_record
from kvorum.metadata.standard_authorizer import ANONYMOUS, UNRESTRICTED
from kvorum.node.raft.errors import RaftStoppedError
from kvorum.node.raft.raft_client import RaftClient
from kvorum.node.runtime import Runtime
from kvorum.raft import NotLeaderError
from kvorum.simulation.application import Application
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest
from kvorum.wire.messages.alter_partition import AlterPartitionRequest
from kvorum.wire.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from kvorum.wire.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest
from kvorum.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from kvorum.wire.messages.broker_registration import BrokerRegistrationRequest
from kvorum.wire.messages.controller_registration import ControllerRegistrationRequest
from kvorum.wire.messages.create_partitions import CreatePartitionsRequest
from kvorum.wire.messages.create_topics import CreateTopicsRequest
from kvorum.wire.messages.delete_topics import DeleteTopicsRequest
from kvorum.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from kvorum.wire.primitives import Message

Task: TypeAlias = Callable[
    [MetadataImage, ControllerRequestContext], ControllerResult[Message | None]
]
HANDLED: Final = (
    AllocateProducerIdsRequest,
    AlterPartitionReassignmentsRequest,
    AlterPartitionRequest,
    AssignReplicasToDirsRequest,
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    ControllerRegistrationRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
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
