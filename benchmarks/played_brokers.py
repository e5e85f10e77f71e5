"""Simulated brokers: they only register and send heartbeats, so that partitions can be placed."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Self

from benchmarks.controller_client import ControllerClient
from benchmarks.quorum_processes import QuorumProcesses

FIRST_BROKER_ID = 100
BEAT_SECONDS = 1.0


class PlayedBrokers:
    """A number of simulated brokers of one quorum; within the context a thread keeps them unfenced.

    While the quorum is down they wait; afterwards they continue with the same epochs.
    """

    def __init__(self, quorum: QuorumProcesses, *, count: int) -> None:
        self._quorum = quorum
        self._clients = [
            ControllerClient("broker", broker_id=FIRST_BROKER_ID + number)
            for number in range(count)
        ]
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._keep, daemon=True)

    def __enter__(self) -> Self:
        for client in self._clients:
            client.play_broker(self._quorum.running.values())
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()
        for client in self._clients:
            client.close()

    def _keep(self) -> None:
        while not self._over.wait(BEAT_SECONDS):
            for client in self._clients:
                client.beat_once(self._quorum.running.values())
