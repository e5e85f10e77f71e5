"""Kafka's QuorumController: writes one after the other, and responses that wait for commits.

A write has these steps: the controller computes records and a response from the pending image;
the records are applied to the pending image and proposed to the log; when they are committed,
the response is sent. A loss of the leadership discards the pending image and refuses the requests
that still wait.

A write to very many partitions is done in pieces, between which the event loop has time for
heartbeats, fetches and reads. Other writes wait until the last piece is done, so that the order of
writes is the same as without the pieces. It is completed even if its client goes meanwhile.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import TypeAlias, TypeVar

from kvorum.controller.activation_records_generator import activation_records
from kvorum.controller.api import ControllerApi, ControllerResult, Pieces, at_once
from kvorum.controller.broker_heartbeat_manager import BrokerHeartbeatManager
from kvorum.controller.controller_mutation_quota import MutationQuota, MutationQuotas
from kvorum.controller.quorum_description import NO_QUORUM, QuorumDescription
from kvorum.controller.requests import handle, handle_in_pieces
from kvorum.controller.settings import ControllerRequestContext, ControllerSettings
from kvorum.metadata.api import RequestError
from kvorum.metadata.bootstrap import BootstrapMetadata
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.record_frame import RecordAndVersion, encode_record
from kvorum.metadata.standard_authorizer import ANONYMOUS, UNRESTRICTED
from kvorum.node.coroutines import Lock, Promise, Signal, other_work
from kvorum.node.deferred_event_queue import DeferredEventQueue
from kvorum.node.errors import NotControllerError
from kvorum.node.events.log_event import LogEvent
from kvorum.node.metadata_loader import MetadataLoader
from kvorum.node.metrics.sensors import LatestValues, WindowedSensor
from kvorum.node.raft import ProposalTooLargeError, RaftNode, RaftStoppedError
from kvorum.node.runtime import Runtime
from kvorum.node.serving.request import IncomingRequest
from kvorum.node.shield import shield
from kvorum.raft import NotLeaderError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from kvorum.wire.primitives import Message

RECORDS_PER_BATCH_MAX = 10_000
Response = TypeVar("Response")
Decided: TypeAlias = ControllerResult[Response] | Pieces[ControllerResult[Response]]
Task = Callable[[MetadataImage, ControllerRequestContext], Decided[Response]]
APPENDED_PER_PIECE = 2000
"""The number of records that are applied and encoded in one turn: some 20 ms."""
_log = logging.getLogger(__name__)


class QuorumControllerMetrics:
    """The QuorumController's measurements; `last_append_ms` is wall-clock time, None at first."""

    def __init__(self, now_ms: float) -> None:
        self.operation_count = 0
        self.late_count = 0
        self.failure_count = 0
        self.new_leader_count = 0
        self.waiting_ms = LatestValues()
        self.processing_ms = LatestValues()
        self.busy_ms = WindowedSensor(now_ms)
        self.last_append_ms: int | None = None

    def waited(self, duration_ms: float) -> None:
        """Record how long a request or task waited for its turn."""
        self.waiting_ms.record(duration_ms)

    def processed(self, *, started_ms: float, ended_ms: float) -> None:
        """Record the time in which the controller worked on one request or task."""
        self.operation_count += 1
        duration_ms = ended_ms - started_ms
        self.processing_ms.record(duration_ms)
        self.busy_ms.record(duration_ms, ended_ms)

    def idle_ratio(self, now_ms: float) -> float:
        """Return the share of time in which the controller was idle."""
        return max(1 - self.busy_ms.rate_per_second(now_ms) / 1000, 0.0)


@dataclass(slots=True)
class _Claim:
    """The state that exists only while this node is the active controller."""

    epoch: int
    pending: MetadataImage
    sessions: BrokerHeartbeatManager


@dataclass(slots=True)
class _Batch:
    """Records to be proposed, with the image that they lead to."""

    base_offset: int
    values: list[bytes]
    image: MetadataImage

    def add(self, records: Sequence[RecordAndVersion]) -> None:
        """Append records to the batch."""
        first = self.base_offset + len(self.values)
        self.image = self.image.apply_all(
            (message, version, first + index) for index, (message, version) in enumerate(records)
        )
        self.values += [encode_record(message, version) for message, version in records]


class QuorumController:
    """The controller of a node: runs the decisions of `kvorum.controller` against the log."""

    def __init__(
        self,
        settings: ControllerSettings,
        bootstrap: BootstrapMetadata,
        *,
        raft: RaftNode,
        loader: MetadataLoader,
        runtime: Runtime,
        random: Random,
        mutation_quotas: MutationQuotas | None = None,
    ) -> None:
        self.settings = settings
        self._mutation_quotas = mutation_quotas or MutationQuotas()
        self._bootstrap = bootstrap
        self._raft = raft
        self._loader = loader
        self._runtime = runtime
        self.measures = QuorumControllerMetrics(runtime.monotonic_ms())
        self._random = random
        self._claim: _Claim | None = None
        self._is_claimed = Signal(runtime)
        self._deferred = DeferredEventQueue[NotControllerError]()
        self._turn = Lock(runtime)

    @property
    def is_active(self) -> bool:
        """Whether this node is the active controller."""
        return self._claim is not None

    @property
    def epoch(self) -> int | None:
        """The epoch in which this node is the active controller, None if it is not."""
        return None if self._claim is None else self._claim.epoch

    @property
    def applied_offset(self) -> int:
        """The last offset that decisions depend on; on the active controller a proposed one."""
        pending_offset = -1 if self._claim is None else self._claim.pending.last_offset
        return max(pending_offset, self._loader.last_offset)

    def last_contacts_ms(self) -> Mapping[tuple[int, int], float] | None:
        """Return the time of each broker's (id and epoch) last heartbeat; None if not active."""
        return None if self._claim is None else self._claim.sessions.last_contacts_ms()

    def leave_out_of_sessions(self, delay_ms: float) -> None:
        """Leave a time in which this process had no turn out of the brokers' sessions."""
        if self._claim is not None:
            self._claim.sessions.leave_out(delay_ms)

    async def wait_until_active(self, timeout_ms: float | None = None) -> bool:
        """Wait until this node is the active controller; return whether it is in time."""
        return await self._is_claimed.wait(timeout_ms)

    async def write(
        self, request: IncomingRequest[Message], api: ControllerApi[Message, Message]
    ) -> Message:
        """Answer a request that may change metadata, once its records are committed.

        Raises NotControllerError if this controller is not, or no longer, the active one.
        """
        body = request.body
        claim = self._active_claim()
        try:
            api.demand_time_left(body)
        except RequestError:
            self.measures.late_count += 1
            raise
        if isinstance(body, BrokerHeartbeatRequest):
            claim.sessions.contact(body.broker_id, body.broker_epoch, self._runtime.monotonic_ms())
        quota = self._mutation_quota(request, api)
        response = await self._run(
            claim,
            lambda image, context: handle_in_pieces(
                image, body, replace(context, mutation_quota=quota)
            ),
            request=request,
        )
        if api.mutation_quota is not None and quota is not None:
            throttle_time_ms = quota.throttle_time_ms(int(self._runtime.monotonic_ms()))
            api.mutation_quota.throttle(response, throttle_time_ms)
        return response

    def _mutation_quota(
        self, request: IncomingRequest[Message], api: ControllerApi[Message, Message]
    ) -> MutationQuota | None:
        """Return the mutation quota of the client of `request`, None for an unlimited one."""
        if api.mutation_quota is None:
            return None
        return self._mutation_quotas.quota_for(
            self._loader.published.client_quotas,
            user=request.principal.name,
            client_id=request.header.client_id or "",
            is_strict=request.version >= api.mutation_quota.strict_since,
            now_ms=int(self._runtime.monotonic_ms()),
        )

    def read(self, request: IncomingRequest[Message]) -> Message:
        """Answer, from the committed metadata, a request that any controller may answer."""
        context = self._context(BrokerHeartbeatManager(self.settings.session_timeout_ms), request)
        return handle(self._loader.published, request.body, context).response

    async def run_task(self, task: Task[Response]) -> Response | None:
        """Run a periodic task; return None if this controller is not the active one."""
        if self._claim is None:
            return None
        return await self._run(self._claim, task)

    def lead(self, epoch: int) -> None:
        """Become the active controller: everything before this epoch is in the loader's image."""
        sessions = BrokerHeartbeatManager(self.settings.session_timeout_ms)
        sessions.start(self._loader.image.cluster, self._runtime.monotonic_ms())
        claim = _Claim(epoch=epoch, pending=self._loader.image, sessions=sessions)
        self._claim = claim
        self._is_claimed.set()
        result = activation_records(claim.pending, self._bootstrap, self.settings)
        first_records = len(result.records) or None
        _log.info(
            LogEvent("Became the active controller", epoch=epoch, first_records=first_records)
        )
        try:
            at_once(self._append(claim, result))
        except (NotLeaderError, RaftStoppedError):
            self.renounce()

    def renounce(self) -> None:
        """Stop being the active controller; waiting requests get NOT_CONTROLLER."""
        claim, self._claim = self._claim, None
        self._is_claimed.clear()
        if claim is None:
            return
        _log.info(LogEvent("Stopped being the active controller", epoch=claim.epoch))
        self._deferred.fail_all(self._not_controller())

    def committed(self) -> None:
        """Send the responses whose records the loader has applied."""
        self._deferred.complete_up_to(self._loader.published.last_offset)

    def leader_found(self) -> None:
        """Count that the quorum has another leader, or the same one in a new epoch."""
        self.measures.new_leader_count += 1

    def close(self) -> None:
        """Refuse the requests that still wait: the node stops."""
        self._claim = None
        self._deferred.fail_all(self._not_controller())

    async def _run(
        self,
        claim: _Claim,
        task: Task[Response],
        *,
        request: IncomingRequest[Message] | None = None,
    ) -> Response:
        in_turn = self._in_turn(claim, task, request)
        # A client that goes must not leave half of its change in the log, and a broker that does
        # not wait for a long change would begin it again for ever.
        response, committed = await (in_turn if request is None else shield(self._runtime, in_turn))
        if committed is not None:
            await committed.result()
        return response

    async def _in_turn(
        self, claim: _Claim, task: Task[Response], request: IncomingRequest[Message] | None
    ) -> tuple[Response, Promise[None] | None]:
        """Run `task` after the writes before it; return its response, and what that waits for."""
        came_ms = self._runtime.monotonic_ms()
        async with self._turn:
            self._demand_leadership(claim)
            started_ms = self._runtime.monotonic_ms()
            self.measures.waited(started_ms - came_ms)
            try:
                result = await self._decide(claim, task, request)
            finally:
                ended_ms = self._runtime.monotonic_ms()
                self.measures.processed(started_ms=started_ms, ended_ms=ended_ms)
            # In the same turn: a leadership that is lost before the next one fails it.
            return result.response, self._commit_of(claim)

    def _commit_of(self, claim: _Claim) -> Promise[None] | None:
        """Return the commit of all that is pending, None where all is committed."""
        if claim.pending.last_offset <= self._loader.published.last_offset:
            return None
        committed: Promise[None] = Promise(self._runtime)
        self._deferred.add(claim.pending.last_offset, committed.settle)
        return committed

    async def _decide(
        self, claim: _Claim, task: Task[Response], request: IncomingRequest[Message] | None
    ) -> ControllerResult[Response]:
        """Return the response of `task`, its records proposed; resign after an unexpected error."""
        try:
            result = task(claim.pending, self._context(claim.sessions, request))
            if not isinstance(result, ControllerResult):
                result = await self._go_through(claim, result)
            await self._go_through(claim, self._append(claim, result))
        except (NotControllerError, RequestError):
            raise
        except ProposalTooLargeError as error:
            raise RequestError(ErrorCode.RECORD_LIST_TOO_LARGE, str(error)) from error
        except (NotLeaderError, RaftStoppedError) as error:
            self.renounce()
            raise self._not_controller() from error
        except Exception:  # noqa: BLE001 - the pending state may be wrong: start from the log again
            _log.exception(LogEvent("The controller failed and resigns", epoch=claim.epoch))
            self.measures.failure_count += 1
            self.renounce()
            self._raft.resign(claim.epoch)
            raise RequestError.with_default_message(ErrorCode.UNKNOWN_SERVER_ERROR) from None
        return result

    async def _go_through(self, claim: _Claim, pieces: Pieces[Response]) -> Response:
        """Return the result of `pieces`, with a turn for other work after each piece."""
        while True:
            try:
                next(pieces)
            except StopIteration as done:
                result: Response = done.value
                return result
            await other_work(self._runtime)
            self._demand_leadership(claim)

    def _append(self, claim: _Claim, result: ControllerResult[Response]) -> Pieces[None]:
        """Apply the records of `result` to the pending image and propose them."""
        if result.kraft_version is not None:
            self._raft.upgrade_kraft_version(result.kraft_version, epoch=claim.epoch)
        for number, records in enumerate(_split(result.records, is_atomic=result.is_atomic)):
            if number:
                yield
            batch = yield from self._batch(claim, records)
            last_offset = self._raft.propose(batch.values, epoch=claim.epoch)
            if last_offset != batch.base_offset + len(records) - 1:
                raise AssertionError(
                    f"records meant for {batch.base_offset} ended at {last_offset}"
                )
            claim.pending = batch.image
            self.measures.last_append_ms = self._runtime.wall_ms()

    def _batch(self, claim: _Claim, records: Sequence[RecordAndVersion]) -> Pieces[_Batch]:
        """Return `records` as a batch for the log, with the pending image that they lead to."""
        while True:
            batch = _Batch(self._raft.log_end_offset, [], claim.pending)
            for first in range(0, len(records), APPENDED_PER_PIECE):
                batch.add(records[first : first + APPENDED_PER_PIECE])
                if first + APPENDED_PER_PIECE < len(records):
                    yield
            if self._raft.log_end_offset == batch.base_offset:
                return batch
            # The quorum has appended a batch of its own: other offsets, another image.

    def _context(
        self, sessions: BrokerHeartbeatManager, request: IncomingRequest[Message] | None
    ) -> ControllerRequestContext:
        leader_id = self._raft.leader_id
        context = ControllerRequestContext(
            settings=self.settings,
            sessions=sessions,
            random=self._random,
            now_ms=self._runtime.monotonic_ms(),
            next_offset=self._raft.log_end_offset,
            # Those of the controller itself, unless a client asks.
            access=UNRESTRICTED,
            principal=ANONYMOUS,
            kraft_version=self._raft.kraft_version,
            leader_id=-1 if leader_id is None else leader_id,
            describe_quorum=self._describe_quorum,
            kraft_upgrade_problem=self._raft.kraft_upgrade_problem,
            wall_clock_ms=self._runtime.wall_ms(),
        )
        if request is None:
            return context
        return replace(
            context,
            api_version=request.version,
            listener=request.listener,
            is_forwarded=request.is_forwarded,
            access=request.access,
            principal=request.principal,
        )

    def _describe_quorum(self) -> QuorumDescription:
        """Return the quorum; raise NotControllerError if the replica leads no longer.

        The replica knows that first. What it could still describe would refuse every target.
        """
        quorum = self._raft.describe_quorum()
        if quorum is NO_QUORUM:
            raise self._not_controller()
        return quorum

    def _active_claim(self) -> _Claim:
        if self._claim is None:
            raise self._not_controller()
        return self._claim

    def _demand_leadership(self, claim: _Claim) -> None:
        if self._claim is not claim:
            raise self._not_controller()

    def _not_controller(self) -> NotControllerError:
        leader_id = self._raft.leader_id
        if leader_id is None or leader_id == self.settings.node_id:
            return NotControllerError("No controller appears to be active.")
        return NotControllerError(f"The active controller appears to be node {leader_id}.")


def _split(
    records: Sequence[RecordAndVersion], *, is_atomic: bool
) -> list[Sequence[RecordAndVersion]]:
    """Return the records of each append to the log."""
    if not records:
        return []
    if is_atomic or len(records) <= RECORDS_PER_BATCH_MAX:
        return [records]
    return [
        records[start : start + RECORDS_PER_BATCH_MAX]
        for start in range(0, len(records), RECORDS_PER_BATCH_MAX)
    ]
