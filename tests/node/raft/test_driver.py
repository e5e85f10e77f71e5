"""In which order the driver does what the core wants, and how the listener gets the log."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random

import pytest
from tests.node.raft.cluster import CLUSTER_ID, LISTENER, RecordingListener, static_settings
from tests.node.raft.stepped_runtime import SteppedRuntime

from kvorum.node.raft.applier import Applier, SnapshotReady, committed_batch
from kvorum.node.raft.driver import Driver
from kvorum.node.raft.errors import RaftStoppedError
from kvorum.node.raft.fetched_records import read_fetched
from kvorum.node.raft.inbound_requests import read_request
from kvorum.node.raft.listener import CommittedBatch, LoadedSnapshot
from kvorum.node.raft.log_batches import batches_of
from kvorum.node.raft.opened_directory import open_directory
from kvorum.node.raft.outbound_requests import PeerResult
from kvorum.node.raft.settings import identity_of
from kvorum.node.raft.translation import begin_quorum_epoch, vote
from kvorum.raft import Endpoint, OffsetAndEpoch, RaftCore, ReplicaKey
from kvorum.raft import messages as core
from kvorum.raft.effects import Committed, LeaderChanged, Send
from kvorum.storage.errors import CorruptLogError
from kvorum.storage.files import RealFileSystem
from kvorum.storage.log.log_config import LogConfig
from kvorum.storage.metadata_log.metadata_log import MetadataLog
from kvorum.storage.metadata_log.snapshot_writer import SnapshotWriter
from kvorum.storage.small_files.quorum_state import QUORUM_STATE_FILE
from kvorum.wire.errors import CorruptBatchError
from kvorum.wire.messages.vote import VoteResponse
from kvorum.wire.primitives import Message
from kvorum.wire.records import build_data_batch, read_batches


class DrivenDriver:
    """The driver with everything around it; `sent` are the requests that have not been answered."""

    def __init__(self, folder: Path) -> None:
        self.runtime, self.listener = SteppedRuntime(), RecordingListener()
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
        self.sent.append(send)

    def advance(self, elapsed_ms: float) -> None:
        self.runtime.advance(elapsed_ms)

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
    assert driven.driver.log.log_end_offset == 0
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


class Hearing:
    """Notes the offsets it hears of."""

    def __init__(self) -> None:
        self.offsets: list[tuple[int, int]] = []

    def on_commit(self, batches: Sequence[CommittedBatch]) -> Iterator[None] | None:
        self.offsets += [(batch.base_offset, batch.last_offset) for batch in batches]
        return None

    def on_snapshot(self, snapshot: LoadedSnapshot) -> None:
        raise AssertionError(snapshot)

    def on_leadership_gained(self, epoch: int) -> None:
        raise AssertionError(epoch)

    def on_leadership_lost(self, epoch: int) -> None:
        raise AssertionError(epoch)

    def on_leader_change(self, leader_id: int | None, epoch: int) -> None:
        raise AssertionError((leader_id, epoch))

    def on_failure(self, error: Exception) -> None:
        raise AssertionError(error)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[MetadataLog]:
    log = MetadataLog.open(
        tmp_path / "__cluster_metadata-0", files=RealFileSystem(), config=LogConfig(), now_ms=1
    )
    yield log
    log.local_log.close()


def append(log: MetadataLog, base_offset: int, *values: bytes) -> None:
    data = build_data_batch(list(values), base_offset=base_offset, epoch=1, timestamp_ms=1)
    log.local_log.append(data)


@pytest.mark.parametrize("is_own", [False, True])
def test_a_high_watermark_within_a_batch_waits_for_the_rest_of_it(
    log: MetadataLog, *, is_own: bool
) -> None:
    """Only on the word of a liar; it must not stop a replica, nor show what is not committed."""
    for base_offset in (0, 3):
        append(log, base_offset, b"a", b"b", b"c")
    hearing = Hearing()
    applier = Applier(log, hearing)
    for found in read_batches(log.local_log.read(0, 1000)) if is_own else ():
        applier.remember(committed_batch(found))
    for high_watermark in (1, 4, 5, 6):
        applier.add(Committed(high_watermark))
        while applier.has_work:
            applier.step()
        assert applier.next_offset == high_watermark // 3 * 3
    assert hearing.offsets == [(0, 2), (3, 5)]


class SlowHearing(Hearing):
    """Takes three steps over each commit."""

    def on_commit(self, batches: Sequence[CommittedBatch]) -> Iterator[None]:
        yield
        yield
        super().on_commit(batches)

    def on_leader_change(self, leader_id: int | None, epoch: int) -> None:
        del leader_id
        self.offsets.append((-1, epoch))


def test_nothing_is_handed_on_before_the_last_piece_of_the_one_before(log: MetadataLog) -> None:
    append(log, 0, b"a", b"b")
    hearing = SlowHearing()
    applier = Applier(log, hearing)
    applier.add(Committed(2))
    applier.add(LeaderChanged(leader_id=1, epoch=4))
    heard: list[int] = []
    while applier.has_work:
        assert (applier.next_offset == 2) is bool(hearing.offsets)
        applier.step()
        heard.append(len(hearing.offsets))
    assert heard == [0, 0, 1, 2]
    assert hearing.offsets == [(0, 1), (-1, 4)]


def test_a_stop_leaves_the_pieces_that_are_left_undone(log: MetadataLog) -> None:
    append(log, 0, b"a", b"b")
    hearing = SlowHearing()
    applier = Applier(log, hearing)
    applier.add(Committed(2))
    applier.step()
    applier.stop()
    assert not applier.has_work
    assert hearing.offsets == []


class LoadingHearing(SlowHearing):
    """Notes the ends of snapshots too."""

    def on_snapshot(self, snapshot: LoadedSnapshot) -> None:
        self.offsets.append((snapshot.end_offset, -1))


def install_snapshot(log: MetadataLog, snapshot_id: OffsetAndEpoch) -> SnapshotReady:
    """Replace the log by a snapshot, as after a download."""
    raw = log.snapshots.create(snapshot_id)
    assert raw is not None
    writer = SnapshotWriter(raw, epoch=snapshot_id.epoch, last_contained_timestamp_ms=1, now_ms=1)
    writer.finish(now_ms=1)
    raw.freeze()
    assert log.truncate_to_latest_snapshot(now_ms=1)
    return SnapshotReady(snapshot_id)


def test_a_snapshot_takes_the_place_of_records_that_are_not_applied_yet(log: MetadataLog) -> None:
    append(log, 0, b"a", b"b")
    append(log, 2, b"c", b"d")
    hearing = LoadingHearing()
    applier = Applier(log, hearing)
    applier.add(Committed(2))
    applier.step()
    applier.add(Committed(4))
    applier.add(install_snapshot(log, OffsetAndEpoch(9, 1)))
    applier.add(Committed(9))
    while applier.has_work:
        applier.step()
    assert hearing.offsets == [(0, 1), (9, -1)]
    assert applier.next_offset == 9


def test_a_snapshot_that_is_replaced_before_its_turn_is_left_out(log: MetadataLog) -> None:
    append(log, 0, b"a", b"b")
    hearing = LoadingHearing()
    applier = Applier(log, hearing)
    applier.add(Committed(2))
    applier.step()
    applier.add(install_snapshot(log, OffsetAndEpoch(9, 1)))
    applier.add(Committed(9))
    applier.add(install_snapshot(log, OffsetAndEpoch(20, 1)))
    applier.add(Committed(20))
    while applier.has_work:
        applier.step()
    assert hearing.offsets == [(0, 1), (20, -1)]
    assert applier.next_offset == 20
