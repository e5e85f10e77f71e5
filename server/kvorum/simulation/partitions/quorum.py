"""The metadata log and its controllers: the real controller's decisions, an imitated quorum.

Appended records are committed a little later, in order. A new controller keeps some of the former
controller's uncommitted records, and drops the rest. The former controller may go on for a while in
the belief that it leads, and answer requests that need no commit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import NamedTuple, TypeAlias

from kvorum.controller.broker_heartbeat_manager import BrokerHeartbeatManager
from kvorum.controller.requests import handle
from kvorum.controller.result import ControllerResult, Pieces, at_once
from kvorum.controller.settings import ControllerRequestContext, ControllerSettings
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.record_types import RecordAndVersion
from kvorum.simulation.events import Events
from kvorum.simulation.partitions.network import Reply
from kvorum.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from kvorum.wire.primitives import Message

PeriodicTask: TypeAlias = Callable[
    [MetadataImage, ControllerRequestContext], Pieces[ControllerResult[bool]]
]


class _Appended(NamedTuple):
    """A record in the log; the log may be cut behind it where `is_end` is set."""

    record: RecordAndVersion
    is_end: bool


@dataclass(slots=True)
class _Waiting:
    end_offset: int
    response: Message
    reply: Reply


class Controller:
    """One term of an active controller, with the image that its own records make."""

    def __init__(
        self, image: MetadataImage, next_offset: int, settings: ControllerSettings
    ) -> None:
        self.image = image
        self.next_offset = next_offset
        self.settings = settings
        self.sessions = BrokerHeartbeatManager(settings.session_timeout_ms)
        self.is_resigned = False
        self.waiting: list[_Waiting] = []

    def resign(self) -> None:
        """Learn that another controller leads: every waiting request ends without an answer."""
        self.is_resigned = True
        waiting, self.waiting = self.waiting, []
        for one in waiting:
            one.reply(None)


class ControllerQuorum:
    """The log, its committed part, and the controller that may append to it."""

    def __init__(
        self,
        settings: ControllerSettings,
        *,
        events: Events,
        random: Random,
        on_commit: Callable[[RecordAndVersion], None],
    ) -> None:
        self._settings, self._events, self._random = settings, events, random
        self._on_commit = on_commit
        self._uncommitted: list[_Appended] = []
        self.committed: list[RecordAndVersion] = []
        self.committed_image = MetadataImage()
        self.active = Controller(self.committed_image, 0, settings)

    def _context(self, controller: Controller, api_version: int) -> ControllerRequestContext:
        """Return the context of one call of the controller."""
        return ControllerRequestContext(
            settings=self._settings,
            sessions=controller.sessions,
            random=self._random,
            now_ms=self._events.now_ms,
            next_offset=controller.next_offset,
            api_version=api_version,
            kraft_version=1,
        )

    def ask(self, controller: Controller, request: Message, reply: Reply) -> None:
        """Handle a request as soon as it arrives at a controller."""
        if controller.is_resigned:
            reply(None)
            return
        if isinstance(request, BrokerHeartbeatRequest):
            contact = controller.sessions.contact
            contact(request.broker_id, request.broker_epoch, self._events.now_ms)
        context = self._context(controller, type(request).MAX_VERSION)
        result = handle(controller.image, request, context)
        self.append(controller, result.records, is_atomic=result.is_atomic)
        # An answer without records also waits for the records that the decision saw.
        if controller is self.active and not self._uncommitted:
            reply(result.response)
        elif controller is self.active or result.records or controller.waiting:
            waiting = _Waiting(controller.next_offset, result.response, reply)
            controller.waiting.append(waiting)
        else:
            reply(result.response)

    def run(self, task: PeriodicTask) -> None:
        """Let the active controller do what it does unasked."""
        active = self.active
        result = at_once(task(active.image, self._context(active, 0)))
        self.append(active, result.records, is_atomic=result.is_atomic)

    def append(
        self, controller: Controller, records: tuple[RecordAndVersion, ...], *, is_atomic: bool
    ) -> None:
        """Apply records to the controller's image; the active one also appends them to the log."""
        for index, record in enumerate(records):
            message, version = record
            controller.image = controller.image.apply(message, version, controller.next_offset)
            controller.next_offset += 1
            if controller is self.active:
                is_end = not is_atomic or index == len(records) - 1
                self._uncommitted.append(_Appended(record, is_end))
        if records and controller is self.active:
            end_offset = controller.next_offset
            self._events.after(
                self._random.uniform(1, 15), lambda: self._commit(controller, end_offset)
            )

    def fail_over(self, *, zombie_ms: float) -> None:
        """Activate another controller, with some of the uncommitted records."""
        old = self.active
        ends = [0, *(at + 1 for at, one in enumerate(self._uncommitted) if one.is_end)]
        del self._uncommitted[self._random.choice(ends) :]
        image, offset = self.committed_image, len(self.committed)
        for (message, version), _ in self._uncommitted:
            image = image.apply(message, version, offset)
            offset += 1
        self.active = new = Controller(image, offset, self._settings)
        new.sessions.start(image.cluster, self._events.now_ms)
        self._events.after(self._random.uniform(1, 15), lambda: self._commit(new, offset))
        self._events.after(zombie_ms, old.resign)

    def _commit(self, controller: Controller, end_offset: int) -> None:
        if controller is not self.active:
            return
        while self._uncommitted and len(self.committed) < end_offset:
            record = self._uncommitted.pop(0).record
            message, version = record
            self.committed_image = self.committed_image.apply(message, version, len(self.committed))
            self.committed.append(record)
            self._on_commit(record)
        while controller.waiting and controller.waiting[0].end_offset <= len(self.committed):
            one = controller.waiting.pop(0)
            one.reply(one.response)
