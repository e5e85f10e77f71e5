"""Records written to a quorum of controllers the whole time: quotas of numbered users."""

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Self

from tests.support.raw_client import RawClient
from tests.support.threads import Threads
from tests.support.waiting import wait_for_change

from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
)

VERSION: Final = 1
USERS_PER_REQUEST: Final = 3


class QuotaWriter:
    """A thread that sets one quota for each user of a row of numbers; use as a context."""

    def __init__(self, addresses: Callable[[], list[str]]) -> None:
        self.acknowledged: list[str] = []
        """The users whose records are committed."""
        self._addresses = addresses
        self._next_number = 0
        self._is_ending = threading.Event()
        self._progress = threading.Condition()
        self._threads = Threads()

    def __enter__(self) -> Self:
        self._threads.start(self._write_all)
        return self

    def __exit__(self, *_: object) -> None:
        self._is_ending.set()
        self._threads.join()

    def wait_for_more(self, count: int) -> None:
        """Wait until `count` more users are acknowledged."""
        with self._progress:
            wanted = len(self.acknowledged) + count
        wait_for_change(
            self._progress,
            lambda: len(self.acknowledged) >= wanted,
            f"{wanted} users are acknowledged",
            otherwise=lambda: len(self.acknowledged),
        )

    def write_one_more(self) -> None:
        """Write the records of one request, once the thread has ended."""
        assert not self._threads.are_alive
        with RawClient(self._addresses()[0]) as client:
            assert self._write(client)

    def _write_all(self) -> None:
        while not self._is_ending.is_set():
            for address in self._addresses():
                with suppress(OSError, AssertionError), RawClient(address) as client:
                    while not self._is_ending.is_set() and self._write(client):
                        pass

    def _write(self, client: RawClient) -> bool:
        # Whether or not this request is acknowledged, no user is written twice.
        number = self._next_number
        self._next_number += USERS_PER_REQUEST
        users = [f"user-{number + index}" for index in range(USERS_PER_REQUEST)]
        answer = client.ask(_request(users), AlterClientQuotasResponse, VERSION)
        if any(entry.error_code != ErrorCode.NONE for entry in answer.entries):
            return False
        with self._progress:
            self.acknowledged += users
            self._progress.notify_all()
        self._is_ending.wait(0.01)
        return True


def _request(users: list[str]) -> AlterClientQuotasRequest:
    operation = AlterClientQuotasRequest.OpData("consumer_byte_rate", 1000.0)
    entries = [
        AlterClientQuotasRequest.EntryData(
            [AlterClientQuotasRequest.EntityData("user", user)], [operation]
        )
        for user in users
    ]
    return AlterClientQuotasRequest(entries)
