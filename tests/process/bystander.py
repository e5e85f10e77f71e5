"""A client that asks small things all the time: its answers show whether it is served meanwhile."""

import threading
import time
from typing import Final, Self

from tests.support.fixtures import Report
from tests.support.raw_client import RawClient
from tests.support.resources import Memory, processor_seconds
from tests.support.waiting import Threads, wait_for

from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kvorum.wire.messages.metadata import MetadataRequest, MetadataResponse

MIB: Final = 2**20
PAUSE_S: Final = 0.05
WORK_MAX_S: Final = 2.0
"""The time that a node may work on other things before it answers: twenty times what it does, and
less than where one request stops the event loop. It is the node's own processor time, of which a
machine that is busy with others gives less."""


class Bystander:
    """Asks ApiVersions and Metadata by turns on one connection, while it is entered."""

    def __init__(self, address: str, pid: int) -> None:
        self.slowest_s = 0.0
        """The longest wait for an answer, to be reported."""
        self.most_work_s = 0.0
        """The most processor time that the node took while an answer was waited for."""
        self.answer_count = 0
        self._address = address
        self._pid = pid
        self._is_over = threading.Event()
        self._problem = "not one request was answered"
        self._threads = Threads()

    def __enter__(self) -> Self:
        self._threads.start(self._run)
        wait_for(self._is_answered, "the bystander is answered")
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._is_over.set()
        self._threads.join()
        if kind is None:
            assert not self._problem, self._problem

    def _is_answered(self) -> bool:
        assert self.answer_count or self._threads.are_alive, self._problem
        return self.answer_count > 0

    def _run(self) -> None:
        try:
            with RawClient(self._address) as client:
                self._ask(client)
                while not self._is_over.wait(PAUSE_S):
                    self._ask(client)
        except (OSError, AssertionError) as error:
            self._problem = f"{type(error).__name__}: {error}"

    def _ask(self, client: RawClient) -> None:
        started, used_s = time.monotonic(), processor_seconds(self._pid)
        if self.answer_count % 2:
            versions = client.ask(ApiVersionsRequest("bystander", "1"), ApiVersionsResponse, 4)
            assert versions.error_code == ErrorCode.NONE
        else:
            # A busy machine fences the broker now and then: the response then names no broker.
            client.ask(MetadataRequest(topics=[]), MetadataResponse, 12)
        self.slowest_s = max(self.slowest_s, time.monotonic() - started)
        self.most_work_s = max(self.most_work_s, processor_seconds(self._pid) - used_s)
        self.answer_count += 1
        self._problem = ""


class Watch:
    """The memory of a node and the answers to a bystander while something is done to the node."""

    def __init__(self, address: str, pid: int) -> None:
        self.bystander = Bystander(address, pid)
        self._memory = Memory(pid)
        self._memory.forget_peak()
        self._before = self._memory.resident_bytes()

    def check(self, report: Report, growth_max: int, what: str) -> None:
        """Report how it was, and check that neither suffered."""
        grown = self._memory.peak_bytes() - self._before
        report(
            f"{what}: the node grew from {self._before / MIB:.0f} MiB by {grown / MIB:.1f} MiB at "
            f"most, the slowest of {self.bystander.answer_count} answers to another client took "
            f"{self.bystander.slowest_s * 1000:.0f} ms"
        )
        assert grown < growth_max
        assert self.bystander.most_work_s < WORK_MAX_S
