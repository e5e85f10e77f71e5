"""One replica without an event loop: its begin, waits, stalls, end, in time that a test moves."""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from tests.node.raft.cluster import CLUSTER_ID, LISTENER, RecordingListener, static_settings
from tests.node.raft.stepped_runtime import SteppedRuntime
from tests.support.waiting import let_others_run

from kvorum.node.asyncio_runtime import AsyncioRuntime
from kvorum.node.clock import SystemClock
from kvorum.node.raft.errors import RaftStoppedError
from kvorum.node.raft.opened_directory import open_directory
from kvorum.node.raft.outbound_requests import PeerResult
from kvorum.node.raft.raft_client import CLEANING_INTERVAL_MS, RaftClient
from kvorum.node.raft.raft_node import BEAT_MS, StallWatch
from kvorum.node.raft.translation import fetch
from kvorum.raft import NotLeaderError, OffsetAndEpoch, ReplicaKey
from kvorum.raft import messages as core
from kvorum.raft.effects import Send
from kvorum.storage.files import RealFileSystem
from kvorum.storage.log.log_config import LogConfig
from kvorum.wire.messages.fetch import FetchRequest
from kvorum.wire.primitives import Message

STALL_SECONDS = 0.5


class SilentLinks:
    """RequestManager that never answer."""

    def __init__(self, on_result: Callable[[int, PeerResult], None]) -> None:
        self.sent: list[Send] = []
        self.on_result = on_result

    def send(self, send: Send) -> None:
        self.sent.append(send)


class Run:
    """A voter on a directory, not begun yet."""

    def __init__(self, folder: Path, *, voter_count: int = 1, log: LogConfig | None = None) -> None:
        self.runtime, self.listener = SteppedRuntime(), RecordingListener()
        settings = static_settings(folder / "__cluster_metadata-0", voter_count=voter_count)
        self.settings = replace(settings, log=log or LogConfig())
        self.client = RaftClient(
            self.settings,
            opened=open_directory(self.settings, files=RealFileSystem(), now_ms=0),
            listener=self.listener,
            runtime=self.runtime,
            connect=SilentLinks,
            random=Random(1),
        )
        self.ends: list[Exception | None] = []

    def lead(self) -> None:
        self.client.begin()
        self.runtime.do_work()
        self.runtime.advance(0)
        assert self.client.is_leader

    def snapshot(
        self,
        end_offset: int,
        values: Iterable[list[bytes]],
        then: Callable[[Exception | None], None],
    ) -> bool:
        return self.client.write_snapshot(
            OffsetAndEpoch(end_offset, 1),
            last_contained_log_timestamp_ms=7,
            values=values,
            then=then,
        )

    def commit(self, *values: bytes) -> None:
        self.client.propose(values, epoch=self.client.epoch)
        self.runtime.advance(0)
        self.runtime.do_work()
        self.runtime.advance(0)

    def close(self) -> None:
        if not self.ends:
            self.client.shut_down(self.ends.append, hands_over=False)
            self.runtime.do_work()


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    run = Run(tmp_path)
    yield run
    run.close()


def test_a_replica_is_whole_before_it_takes_part(run: Run) -> None:
    assert run.client.epoch == run.client.log_end_offset == 1
    assert run.client.voter_ids() == {1}
    assert run.client.metrics.state
    assert not run.client.is_stopped
    assert run.listener.epochs_led == []
    run.lead()
    assert run.listener.epochs_led == [1]


def test_a_replica_that_never_took_part_leaves_without_a_word(run: Run) -> None:
    run.client.shut_down(run.ends.append)
    assert run.client.is_stopped
    run.runtime.do_work()
    assert run.ends == [None]
    assert run.listener.epochs_lost == []


def test_a_replica_waits_for_work_under_way_before_it_closes_its_log(run: Run) -> None:
    run.lead()
    run.client.propose([b"a"], epoch=1)
    assert run.runtime.work != []
    run.client.shut_down(run.ends.append, hands_over=False)
    assert run.client.is_stopped
    assert run.listener.epochs_lost == []
    run.runtime.do_work()
    assert run.ends == [None]
    assert run.listener.epochs_lost == [1]


def test_files_that_cleaning_deletes_go_in_a_thread(tmp_path: Path) -> None:
    run = Run(tmp_path, log=LogConfig(segment_bytes=500, retention_bytes=1, retention_ms=-1))
    run.lead()
    for _ in range(2):
        run.commit(b"a" * 300)
        run.snapshot(run.client.log_end_offset, [[b"a"]], lambda _: None)
        run.runtime.do_work()
    files = sorted(run.settings.directory.glob("*.log"))
    assert run.client.clean()
    assert sorted(run.settings.directory.glob("*.log")) == files
    run.runtime.do_work()
    assert sorted(run.settings.directory.glob("*.log")) == files[-1:]
    run.close()


def test_a_leader_that_cannot_hand_over_stops_when_its_patience_ends(tmp_path: Path) -> None:
    run = Run(tmp_path, voter_count=3)
    run.client.begin()
    run.runtime.advance(10_000)
    run.runtime.do_work()
    assert not run.client.is_leader
    run.client.shut_down(run.ends.append)
    run.runtime.do_work()
    run.runtime.advance(run.settings.raft.shutdown_timeout_ms)
    run.runtime.do_work()
    assert run.ends == [None]
    run.runtime.advance(10 * CLEANING_INTERVAL_MS)
    assert run.ends == [None]


def test_a_lone_leader_has_no_voter_to_wait_for(run: Run) -> None:
    run.lead()
    run.client.shut_down(run.ends.append)
    run.runtime.advance(0)
    run.runtime.do_work()
    assert run.ends == [None]
    assert run.listener.epochs_lost == [1]


def test_nothing_is_asked_of_a_replica_that_has_stopped(run: Run) -> None:
    run.lead()
    run.close()
    for ask in (
        lambda: run.client.propose([b"a"], epoch=1),
        lambda: run.client.resign(1),
        lambda: run.client.upgrade_kraft_version(1, epoch=1),
        run.client.clean,
    ):
        with pytest.raises(RaftStoppedError):
            ask()


def test_a_snapshot_is_written_beside_everything_else(run: Run) -> None:
    run.lead()
    run.commit(b"a", b"b")
    end, written = OffsetAndEpoch(3, 1), list[Exception | None]()
    assert run.snapshot(3, [[b"a", b"b"]], written.append)
    assert written == []
    assert end not in run.client.core.log.snapshots
    run.runtime.do_work()
    assert written == [None]
    assert end in run.client.core.log.snapshots
    assert run.client.snapshot_bytes > 0
    assert not run.snapshot(3, [[b"a", b"b"]], written.append)


def test_a_snapshot_whose_values_fail_is_not_kept(run: Run) -> None:
    run.lead()
    run.commit(b"a")
    written = list[Exception | None]()

    def values() -> Iterator[list[bytes]]:
        yield [b"a"]
        raise ValueError("no more")

    run.snapshot(2, values(), written.append)
    run.runtime.do_work()
    assert [str(error) for error in written] == ["no more"]
    assert list(run.client.core.log.snapshots) == []
    assert run.client.snapshot_bytes == 0
    assert not run.client.is_stopped


def test_the_log_is_cleaned_every_minute(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run.lead()
    cleaned = list[float]()
    clean = run.client.clean

    def noted() -> bool:
        cleaned.append(run.runtime.now_ms)
        return clean()

    monkeypatch.setattr(run.client, "clean", noted)
    for _ in range(3):
        run.runtime.advance(CLEANING_INTERVAL_MS)
        run.runtime.do_work()
    assert cleaned == [CLEANING_INTERVAL_MS * count for count in (1, 2, 3)]
    run.close()
    run.runtime.advance(CLEANING_INTERVAL_MS)
    assert len(cleaned) == 3


def test_a_cleaning_that_fails_stops_the_replica(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run.lead()

    def fail() -> bool:
        raise OSError("the disk is gone")

    monkeypatch.setattr(run.client, "clean", fail)
    run.runtime.advance(CLEANING_INTERVAL_MS)
    assert str(run.client.failure) == "the disk is gone"
    assert run.client.is_stopped


def fetch_request() -> FetchRequest:
    """Return an observer's fetch from the end of the log, which waits for records."""
    asked = core.FetchRequest(
        replica=ReplicaKey(9, b"\x09" * 16),
        epoch=1,
        position=OffsetAndEpoch(1, 1),
        max_wait_ms=500,
        bytes_max=1_000,
        high_watermark=1,
    )
    return fetch.write_request(asked, cluster_id=CLUSTER_ID, version=17)


def test_a_request_is_answered_now_or_forgotten(run: Run) -> None:
    answers = list[Message | RaftStoppedError]()
    run.lead()

    def ask(request: Message, *, version: int) -> int | None:
        return run.client.receive(
            request, version=version, listener_name=LISTENER, respond=answers.append
        )

    assert ask(FetchRequest(cluster_id="another"), version=17) is None
    assert len(answers) == 1
    waiting = ask(fetch_request(), version=17)
    assert waiting is not None
    assert len(answers) == 1
    run.client.forget(waiting)
    run.commit(b"a")
    assert len(answers) == 1
    assert ask(fetch_request(), version=17) is not None
    assert len(answers) == 2


def test_what_a_leader_of_another_epoch_is_asked_is_refused(run: Run) -> None:
    run.lead()
    with pytest.raises(NotLeaderError):
        run.client.propose([b"a"], epoch=2)
    with pytest.raises(NotLeaderError):
        run.client.upgrade_kraft_version(1, epoch=2)


async def test_a_stall_is_reported_before_the_timers_that_ran_out_in_it() -> None:
    told: list[object] = []
    over = asyncio.Event()
    watch = StallWatch(AsyncioRuntime(SystemClock(), thread_name="tests"), told.append)
    loop = asyncio.get_running_loop()
    loop.call_later(STALL_SECONDS / 2, told.append, "a timer")
    loop.call_later(STALL_SECONDS, over.set)
    # The pause of this test: nothing of this process runs meanwhile.
    time.sleep(STALL_SECONDS)  # noqa: ASYNC251 - as said
    await over.wait()
    watch.stop()
    stall_ms, *rest = told
    assert isinstance(stall_ms, float)
    assert stall_ms >= STALL_SECONDS * 1000 - BEAT_MS - 1
    assert rest[0] == "a timer"


async def test_nothing_is_reported_after_the_end() -> None:
    told: list[float] = []
    StallWatch(AsyncioRuntime(SystemClock(), thread_name="tests"), told.append).stop()
    time.sleep(STALL_SECONDS)  # noqa: ASYNC251 - as above
    await let_others_run()
    assert told == []
