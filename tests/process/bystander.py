"""A client that asks small things all the time: how long it waits tells if others are served."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Final, Self

from tests.unit.node.raw_client import RawClient

from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kvorum.wire.messages.metadata import MetadataRequest, MetadataResponse

PAUSE_S: Final = 0.05
ANSWER_MAX_S: Final = 2.0
"""How long another client may wait: twenty times what it does on an idle machine, as tests run
beside others, and less than where one request stops the event loop."""


class Bystander:
    """Asks ApiVersions and Metadata by turns on one connection, while it is entered."""

    def __init__(self, address: str) -> None:
        self.slowest_s = 0.0
        """The longest wait for an answer, one that was never given included."""
        self.answer_count = 0
        self._address = address
        self._is_over = threading.Event()
        self._problem = "not one request was answered"
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._is_over.set()
        self._thread.join()
        if kind is None:
            assert not self._problem, self._problem

    def _run(self) -> None:
        try:
            with RawClient(self._address) as client:
                client.socket.settimeout(60)
                while not self._is_over.wait(PAUSE_S):
                    self._ask(client)
        except (OSError, AssertionError) as error:
            self._problem = f"{type(error).__name__}: {error}"

    def _ask(self, client: RawClient) -> None:
        started = time.monotonic()
        if self.answer_count % 2:
            versions = client.ask(ApiVersionsRequest("bystander", "1"), ApiVersionsResponse, 4)
            assert versions.error_code == ErrorCode.NONE
        else:
            assert client.ask(MetadataRequest(topics=[]), MetadataResponse, 12).brokers
        self.slowest_s = max(self.slowest_s, time.monotonic() - started)
        self.answer_count += 1
        self._problem = ""
