"""In which order the driver does what the core wants."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest
from tests.node.raft.cluster import CLUSTER_ID, LISTENER, RecordingListener, static_settings

from kvorum.node.raft.control_records import read_fetched
from kvorum.node.raft.directory import batches_of, open_directory
from kvorum.node.raft.driver import Driver
from kvorum.node.raft.errors import RaftStoppedError
from kvorum.node.raft.inbound_requests import read_request
from kvorum.node.raft.peer_exchange import PeerResult
from kvorum.node.raft.settings import identity_of
from kvorum.node.raft.translation import begin_quorum_epoch, vote
from kvorum.raft import Endpoint, OffsetAndEpoch, RaftCore, ReplicaKey
from kvorum.raft import messages as core
from kvorum.raft.effects import Send
from kvorum.storage.errors import CorruptLogError
from kvorum.storage.files import RealFileSystem
from kvorum.storage.small_files.quorum_state import QUORUM_STATE_FILE
from kvorum.wire.errors import CorruptBatchError
from kvorum.wire.messages.vote import VoteResponse
from kvorum.wire.primitives import Message
from kvorum.wire.records import build_data_batch

Work = tuple[Callable[[], object], Callable[[Exception | None], None]]


class ManualRuntime:
    """Time stands still, and work waits, until a test says otherwise."""

    def __init__(self) -> None:
        self.now_ms = 0.0
        self.work: list[Work] = []

    def monotonic_ms(self) -> float:
        return self.now_ms

    def wall_ms(self) -> int:
        return int(self.now_ms)

    def call_soon(self, callback: Callable[[], None]) -> None:
        callback()

    def call_at(self, deadline_ms: float, callback: Callable[[], None]) -> ManualRuntime:
        del deadline_ms, callback
        return self

    def cancel(self) -> None:
        """Nothing rings here by itself."""

    def run_blocking(
        self, work: Callable[[], object], then: Callable[[Exception | None], None]
    ) -> None:
        self.work.append((work, then))

    def when_idle(self, callback: Callable[[], None]) -> None:
        self.do_work()
        callback()

    def do_work(self) -> None:
        """Do all the work that waits, and what follows from it."""
        while self.work:
            work, then = self.work.pop(0)
            work()
            then(None)


class DrivenDriver:
    """The driver with everything around it; `sent` are the requests that have not been answered."""

    def __init__(self, folder: Path) -> None:
        self.runtime, self.listener = ManualRuntime(), RecordingListener()
        self.sent: list[Send] = []
        self.answers: list[Message | RaftStoppedError] = []
        self.settings = static_settings(folder / "__cluster_metadata-0", voter_count=3)
        opened = open_directory(self.settings, files=RealFileSystem(), now_ms=0)
        core = RaftCore(
            identity_of(self.settings),
            config=self.settings.raft,
            log=opened.view,
            history=opened.history,
            random=Random(1),
        )
        self.driver = Driver(
            core=core,
            opened=opened,
            listener=self.listener,
            runtime=self.runtime,
            connect=self._connect,
        )
        self.driver.begin(core.start(0.0, stored=opened.stored))
        self.runtime.do_work()

    def _connect(self, on_result: Callable[[int, PeerResult], None]) -> DrivenDriver:
        self._on_result = on_result
        return self

    def send(self, send: Send) -> None:
        """Take a request to a peer."""
        self.sent.append(send)

    def advance(self, elapsed_ms: float) -> None:
        """Let time pass, and the core do what is due."""
        self.runtime.now_ms += elapsed_ms
        self.driver.call(lambda: self.driver.core.tick(self.runtime.now_ms))

    def receive(self, request: Message, *, version: int) -> None:
        """Let a request of a peer arrive; its answer goes to `answers`."""
        asked = read_request(request, cluster_id=CLUSTER_ID)
        assert not isinstance(asked, Message)
        driver = self.driver
        token = driver.inbound.add(
            request, version=version, listener_name=LISTENER, respond=self.answers.append
        )
        driver.call(lambda: driver.core.receive(driver.now(), token=token, request=asked))

    def respond(self, send: Send, response: core.Response, data: bytes = b"") -> None:
        """Let the response to a request arrive, with records in it."""
        self.sent.remove(send)
        self._on_result(send.number, PeerResult(response, records=read_fetched(memoryview(data))))

    def win(self) -> None:
        """Give it every vote that it asks for."""
        self.advance(2 * self.settings.raft.election_timeout_ms)
        while votes := [one for one in self.sent if isinstance(one.request, core.VoteRequest)]:
            leader = core.KnownLeader(self.driver.core.role.epoch)
            self.respond(votes[0], core.VoteResponse(core.Error.NONE, leader, is_granted=True))
            self.runtime.do_work()
        self.sent.clear()

    def fetch_response(
        self,
        epoch: int,
        *,
        high_watermark: int | None = None,
        diverging: OffsetAndEpoch | None = None,
        data: bytes = b"",
    ) -> None:
        """Answer its fetch as leader 2 of an epoch."""
        (send,) = (one for one in self.sent if isinstance(one.request, core.FetchRequest))
        response = core.FetchResponse(
            core.Error.NONE,
            core.KnownLeader(epoch, 2, (Endpoint(LISTENER, "host2", 9093),)),
            high_watermark=high_watermark,
            diverging=diverging,
            batches=read_fetched(memoryview(data)).batches,
        )
        self.respond(send, response, data)
        self.runtime.do_work()

    def close(self) -> None:
        """Give up the files."""
        self.driver.stop()
        self.driver.leave()
        self.driver.log.local_log.close()


@pytest.fixture
def driven(tmp_path: Path) -> Iterator[DrivenDriver]:
    driven = DrivenDriver(tmp_path)
    yield driven
    driven.close()


def test_a_vote_is_answered_when_it_is_stored(driven: DrivenDriver) -> None:
    wanted = core.VoteRequest(
        epoch=5,
        replica=ReplicaKey(3, b"\x03" * 16),
        voter=None,
        log_end=OffsetAndEpoch(0, 0),
        is_pre_vote=False,
    )
    driven.receive(vote.write_request(wanted, cluster_id=CLUSTER_ID), version=2)
    assert driven.answers == []
    driven.runtime.do_work()
    stored = (driven.settings.directory / QUORUM_STATE_FILE).read_text()
    assert '"votedId":3' in stored
    assert '"leaderEpoch":5' in stored
    (answer,) = driven.answers
    assert isinstance(answer, VoteResponse)
    assert answer.topics[0].partitions[0].vote_granted


def test_a_record_that_was_cut_off_is_never_told_of(driven: DrivenDriver) -> None:
    driven.win()
    assert driven.driver.core.role.leader_id == 1
    driven.driver.propose([b"lost"], epoch=1)
    driven.runtime.do_work()
    begin = core.BeginQuorumEpochRequest(2, 2, None, (Endpoint(LISTENER, "host2", 9093),))
    driven.receive(begin_quorum_epoch.write_request(begin, cluster_id=CLUSTER_ID), version=1)
    driven.runtime.do_work()
    driven.fetch_response(2, diverging=OffsetAndEpoch(0, 0))
    assert driven.driver.log.local_log.log_end_offset == 0
    first = build_data_batch([b"first"], base_offset=0, epoch=2, timestamp_ms=0)
    second = build_data_batch([b"kept"], base_offset=1, epoch=2, timestamp_ms=0)
    driven.fetch_response(2, high_watermark=1, data=first + second)
    assert driven.listener.values == [b"first"]
    driven.fetch_response(2, high_watermark=2)
    assert driven.listener.values == [b"first", b"kept"]


def damaged(data: bytes) -> memoryview:
    changed = bytearray(data)
    changed[-3] ^= 1
    return memoryview(bytes(changed))


def test_fetched_records_are_checked_before_they_are_stored() -> None:
    data = build_data_batch([b"something"], base_offset=0, epoch=1, timestamp_ms=0)
    assert len(read_fetched(memoryview(data)).batches) == 1
    with pytest.raises(CorruptBatchError):
        read_fetched(damaged(data))


def test_records_are_checked_before_they_are_applied(driven: DrivenDriver) -> None:
    data = build_data_batch([b"something"], base_offset=0, epoch=1, timestamp_ms=0)
    assert len(list(batches_of(driven.driver.log, memoryview(data)))) == 1
    with pytest.raises(CorruptLogError):
        list(batches_of(driven.driver.log, damaged(data)))
