"""Clients that wait for the answer of a JoinGroup or a SyncGroup, which a later one may bring."""

from __future__ import annotations

import asyncio
from typing import TypeAlias

from kvorum.groups.effects import JoinPromise, SyncPromise
from kvorum.wire.messages.join_group import JoinGroupResponse
from kvorum.wire.messages.sync_group import SyncGroupResponse

Promise: TypeAlias = JoinPromise | SyncPromise
Answer: TypeAlias = JoinGroupResponse | SyncGroupResponse


class Promises:
    """The future of each promise that is not kept yet.

    As in Kafka, a promise that another request of the same member has replaced is never kept; it
    is forgotten when its client hangs up.
    """

    def __init__(self) -> None:
        self._futures: dict[Promise, asyncio.Future[Answer]] = {}

    def make(self, promise: Promise) -> asyncio.Future[Answer]:
        """Return the future of a new promise."""
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._futures[promise] = future
        return future

    def keep(self, promise: Promise, answer: Answer) -> None:
        """Answer; a client that has gone need not be answered."""
        future = self._futures.pop(promise, None)
        if future is not None and not future.done():
            future.set_result(answer)

    def forget(self, promise: Promise) -> None:
        """Hold a promise no longer."""
        self._futures.pop(promise, None)
