"""The admin client: calls with retries and a deadline."""

from __future__ import annotations

import random
from collections.abc import Callable
from types import TracebackType
from typing import Self, TypeVar

from kvorum.cli.admin.call import Call, ask
from kvorum.cli.admin.error_classes import ERRORS_PACKAGE
from kvorum.cli.admin.errors import CallFailedError, Failure
from kvorum.cli.admin.node_finder import NodeFinder
from kvorum.cli.admin.nodes import AdminClock, Backoff, Connections
from kvorum.cli.admin.settings import AdminSettings
from kvorum.wire.primitives import Message

Answer = TypeVar("Answer")
Response = TypeVar("Response", bound=Message)
_TIMEOUT = f"{ERRORS_PACKAGE}.TimeoutException"


class AdminClient:
    """A client of one cluster; use it as an asynchronous context manager."""

    def __init__(self, settings: AdminSettings, *, warn: Callable[[str], None]) -> None:
        chance = random.SystemRandom()
        self._settings = settings
        self._clock = AdminClock()
        self._backoff = Backoff(settings, chance)
        self._connections = Connections(settings, clock=self._clock, warn=warn)
        self._finder = NodeFinder(
            settings, connections=self._connections, clock=self._clock, chance=chance
        )
        self._requests_sent = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._connections.close()

    async def call(self, call: Call[Response, Answer]) -> Answer:
        """Return the result of a call; CallFailedError if it is refused or the deadline passes."""
        deadline_ms = self._clock.now_ms() + self._settings.api_timeout_ms
        tries = 0
        while True:
            try:
                return await self._attempt(call, deadline_ms)
            except CallFailedError as error:
                if error.failure.is_elsewhere:
                    self._finder.forget()
                pause_ms = self._backoff.pause_ms(tries)
                tries += 1
                is_late = self._clock.left_ms(deadline_ms) == 0
                if not is_late and not error.failure.is_retriable:
                    raise
                if is_late or tries > self._settings.retries_max:
                    raise self._given_up(call.name, deadline_ms, tries, pause_ms, error) from error
                await self._clock.pause(pause_ms, deadline_ms=deadline_ms)

    async def _attempt(self, call: Call[Response, Answer], deadline_ms: int) -> Answer:
        node, connection = await self._finder.find(
            call.name, node_id=call.node_id, deadline_ms=deadline_ms
        )
        self._requests_sent += 1
        timeout_ms = min(self._clock.left_ms(deadline_ms), self._settings.request_timeout_ms)
        return await ask(
            call,
            node,
            connection,
            timeout_ms=timeout_ms,
            request_number=self._requests_sent,
        )

    def _given_up(
        self, name: str, deadline_ms: int, tries: int, pause_ms: int, error: CallFailedError
    ) -> CallFailedError:
        if error.failure.class_name == _TIMEOUT:
            return error
        now_ms = self._clock.now_ms()
        call = (
            f"Call(callName={name}, deadlineMs={deadline_ms}, tries={tries}, "
            f"nextAllowedTryMs={now_ms + pause_ms})"
        )
        text = f"{call} timed out at {now_ms} after {tries} attempt(s)"
        return CallFailedError(Failure(class_name=_TIMEOUT, text=text), cause=error.failure)
