"""The active controller in its process: one order of events, and answers that wait for commits.

A write goes through these steps: the controller makes records and an answer out of the pending
image; the records are folded into the pending image and proposed to the log; when they are
committed, the answer leaves. Losing the leadership drops the pending image for the committed one
and refuses what was still waiting.

What touches very many partitions is done in pieces, between which the event loop has time for
heartbeats, fetches and reads. Writes do not come in between: they wait for their turn, so that the
order of events is what it would be without the pieces.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Protocol, TypeAlias, TypeVar, cast

from kvorum.controller.activation import activation_records
from kvorum.controller.deadlines import demand_time_left
from kvorum.controller.mutation_quota import STRICT_SINCE, MutationQuota, MutationQuotas
from kvorum.controller.requests import handle, handle_in_pieces
from kvorum.controller.result import ControllerResult, Pieces, at_once
from kvorum.controller.sessions import BrokerSessions
from kvorum.controller.settings import ControllerContext, ControllerSettings
from kvorum.metadata.bootstrap import BootstrapMetadata
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.record_frame import encode_record
from kvorum.metadata.record_types import RecordAndVersion
from kvorum.metadata.request_error import RequestError
from kvorum.node.controller.deferred import DeferredAnswers
from kvorum.node.controller.measures import ControllerMeasures
from kvorum.node.errors import NotControllerError
from kvorum.node.events.event import Event
from kvorum.node.metadata_loader import MetadataLoader
from kvorum.node.raft import (
    Clock,
    NotLeaderError,
    ProposalTooLargeError,
    RaftNode,
    RaftStoppedError,
)
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from kvorum.wire.primitives import Message

RECORDS_PER_BATCH_MAX = 10_000
Answer = TypeVar("Answer")
Decided: TypeAlias = ControllerResult[Answer] | Pieces[ControllerResult[Answer]]
Task = Callable[[MetadataImage, ControllerContext], Decided[Answer]]
APPENDED_PER_PIECE = 2000
"""How many records are folded and encoded before others have their turn: some 20 ms."""
_log = logging.getLogger(__name__)


class _Throttled(Protocol):
    """A response that can tell its client to wait."""

    throttle_time_ms: int


@dataclass(slots=True)
class _Claim:
    """What there is only while this node is the active controller."""

    epoch: int
    pending: MetadataImage
    sessions: BrokerSessions


@dataclass(slots=True)
class _Batch:
    """Records on their way into the log, with the image that they come to."""

    base_offset: int
    values: list[bytes]
    image: MetadataImage

    def add(self, records: Sequence[RecordAndVersion]) -> None:
        """Add records behind the others."""
        first = self.base_offset + len(self.values)
        self.image = self.image.apply_all(
            (message, version, first + index) for index, (message, version) in enumerate(records)
        )
        self.values += [encode_record(message, version) for message, version in records]


class ControllerShell:
    """Runs the pure controller against the log of this node."""

    def __init__(
        self,
        settings: ControllerSettings,
        bootstrap: BootstrapMetadata,
        *,
        raft: RaftNode,
        loader: MetadataLoader,
        clock: Clock,
        random: Random,
        mutation_quotas: MutationQuotas | None = None,
    ) -> None:
        self.settings = settings
        self._mutation_quotas = mutation_quotas or MutationQuotas()
        self._bootstrap = bootstrap
        self._raft = raft
        self._loader = loader
        self._clock = clock
        self.measures = ControllerMeasures(clock.monotonic_ms())
        self._random = random
        self._claim: _Claim | None = None
        self._is_claimed = asyncio.Event()
        self._deferred = DeferredAnswers()
        self._turn = asyncio.Lock()

    @property
    def is_active(self) -> bool:
        """Whether this node is the active controller."""
        return self._claim is not None

    @property
    def applied_offset(self) -> int:
        """The last offset that decisions rest on: proposed where this is the active controller."""
        pending_offset = -1 if self._claim is None else self._claim.pending.last_offset
        return max(pending_offset, self._loader.last_offset)

    def last_contacts_ms(self) -> Mapping[tuple[int, int], float] | None:
        """Return when each broker (id and epoch) was heard of; None without the leadership."""
        return None if self._claim is None else self._claim.sessions.last_contacts_ms()

    async def wait_until_active(self) -> None:
        """Return once this node is the active controller."""
        await self._is_claimed.wait()

    async def write(self, request: IncomingRequest) -> Message:
        """Answer a request that may change metadata, once what it wrote is committed.

        Raises NotControllerError where this controller is not, or no longer, the active one.
        """
        body = request.body
        claim = self._active_claim()
        try:
            demand_time_left(body)
        except RequestError:
            self.measures.late_count += 1
            raise
        if isinstance(body, BrokerHeartbeatRequest):
            claim.sessions.contact(body.broker_id, body.broker_epoch, self._clock.monotonic_ms())
        quota = self._mutation_quota(request)
        response = await self._run(
            claim,
            lambda image, context: handle_in_pieces(
                image, body, replace(context, mutation_quota=quota)
            ),
            request=request,
        )
        if quota is not None:
            now_ms = self._clock.monotonic_ms()
            cast("_Throttled", response).throttle_time_ms = quota.throttle_time_ms(now_ms)
        return response

    def _mutation_quota(self, request: IncomingRequest) -> MutationQuota | None:
        """Return what the client of `request` may create and delete, None for everything."""
        strict_since = STRICT_SINCE.get(request.header.request_api_key)
        if strict_since is None:
            return None
        return self._mutation_quotas.quota_for(
            self._loader.published.client_quotas,
            user=request.principal.name,
            client_id=request.header.client_id or "",
            is_strict=request.version >= strict_since,
            now_ms=self._clock.monotonic_ms(),
        )

    def read(self, request: IncomingRequest) -> Message:
        """Answer, out of what is committed, a request that any controller may answer."""
        context = self._context(BrokerSessions(self.settings.session_timeout_ms), request)
        return handle(self._loader.published, request.body, context).response

    async def run_task(self, task: Task[Answer]) -> Answer | None:
        """Run a periodic task of the active controller; None where this is not the one."""
        if self._claim is None:
            return None
        return await self._run(self._claim, task)

    def lead(self, epoch: int) -> None:
        """Become the active controller: everything before this epoch is in the loader's image."""
        sessions = BrokerSessions(self.settings.session_timeout_ms)
        sessions.start(self._loader.image.cluster, self._clock.monotonic_ms())
        claim = _Claim(epoch=epoch, pending=self._loader.image, sessions=sessions)
        self._claim = claim
        self._is_claimed.set()
        result = activation_records(claim.pending, self._bootstrap, self.settings)
        first_records = len(result.records) or None
        _log.info(Event("Became the active controller", epoch=epoch, first_records=first_records))
        try:
            at_once(self._append(claim, result))
        except (NotLeaderError, RaftStoppedError):
            self.renounce()

    def renounce(self) -> None:
        """Stop being the active controller; whoever still waits is told to ask another one."""
        claim, self._claim = self._claim, None
        self._is_claimed.clear()
        if claim is None:
            return
        _log.info(Event("Stopped being the active controller", epoch=claim.epoch))
        self._deferred.fail(self._not_controller())

    def committed(self) -> None:
        """Let answers go whose records the loader has folded in."""
        self._deferred.complete(self._loader.published.last_offset)

    def close(self) -> None:
        """Refuse whatever still waits: the node stops."""
        self._claim = None
        self._deferred.fail(self._not_controller())

    async def _run(
        self, claim: _Claim, task: Task[Answer], *, request: IncomingRequest | None = None
    ) -> Answer:
        came_ms = self._clock.monotonic_ms()
        async with self._turn:
            self._demand_leadership(claim)
            started_ms = self._clock.monotonic_ms()
            self.measures.waited(started_ms - came_ms)
            try:
                result = await self._decide(claim, task, request)
            finally:
                ended_ms = self._clock.monotonic_ms()
                self.measures.processed(started_ms=started_ms, ended_ms=ended_ms)
        if claim.pending.last_offset > self._loader.published.last_offset:
            await self._deferred.wait_for(claim.pending.last_offset)
        return result.response

    async def _decide(
        self, claim: _Claim, task: Task[Answer], request: IncomingRequest | None
    ) -> ControllerResult[Answer]:
        """Return what `task` decides, with its records proposed; in doubt, stop leading."""
        try:
            result = task(claim.pending, self._context(claim.sessions, request))
            if not isinstance(result, ControllerResult):
                result = await self._go_through(claim, result)
            await self._go_through(claim, self._append(claim, result))
        except NotControllerError:
            raise
        except RequestError:
            raise
        except ProposalTooLargeError as error:
            raise RequestError(ErrorCode.RECORD_LIST_TOO_LARGE, str(error)) from error
        except (NotLeaderError, RaftStoppedError) as error:
            self.renounce()
            raise self._not_controller() from error
        except Exception:  # noqa: BLE001 - the pending state may be wrong: start from the log again
            _log.exception(Event("The controller failed and resigns", epoch=claim.epoch))
            self.measures.failure_count += 1
            self.renounce()
            self._raft.resign(claim.epoch)
            raise RequestError.with_default_message(ErrorCode.UNKNOWN_SERVER_ERROR) from None
        return result

    async def _go_through(self, claim: _Claim, pieces: Pieces[Answer]) -> Answer:
        """Return what `pieces` come to, with a turn for others after each."""
        while True:
            try:
                next(pieces)
            except StopIteration as done:
                result: Answer = done.value
                return result
            await asyncio.sleep(0)
            self._demand_leadership(claim)

    def _append(self, claim: _Claim, result: ControllerResult[Answer]) -> Pieces[None]:
        """Fold the records of `result` into the pending image and propose them."""
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
            self.measures.last_append_ms = self._clock.wall_ms()

    def _batch(self, claim: _Claim, records: Sequence[RecordAndVersion]) -> Pieces[_Batch]:
        """Return what `records` are in the log, and what they make of the pending image."""
        while True:
            batch = _Batch(self._raft.log_end_offset, [], claim.pending)
            for first in range(0, len(records), APPENDED_PER_PIECE):
                batch.add(records[first : first + APPENDED_PER_PIECE])
                if first + APPENDED_PER_PIECE < len(records):
                    yield
            if self._raft.log_end_offset == batch.base_offset:
                return batch
            # The quorum has written something of its own: other offsets, another image.

    def _context(
        self, sessions: BrokerSessions, request: IncomingRequest | None
    ) -> ControllerContext:
        leader_id = self._raft.leader_id
        context = ControllerContext(
            settings=self.settings,
            sessions=sessions,
            random=self._random,
            now_ms=self._clock.monotonic_ms(),
            next_offset=self._raft.log_end_offset,
            kraft_version=self._raft.kraft_version,
            leader_id=-1 if leader_id is None else leader_id,
            kraft_upgrade_problem=self._raft.kraft_upgrade_problem,
            wall_clock_ms=self._clock.wall_ms(),
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
    """Return what goes into the log in one append each."""
    if not records:
        return []
    if is_atomic or len(records) <= RECORDS_PER_BATCH_MAX:
        return [records]
    return [
        records[start : start + RECORDS_PER_BATCH_MAX]
        for start in range(0, len(records), RECORDS_PER_BATCH_MAX)
    ]
