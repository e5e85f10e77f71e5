"""One voter on a real directory: formatted, refused, restarted, crashed, on disks that fail."""

import asyncio
import errno
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.node.raft.cluster import Lab, Replica, static_settings
from tests.support.batch_maker import make_batch
from tests.support.faulty_files import FaultyFiles, MemoryFile
from tests.support.golden_data import metadata_directories

from kvorum.node.raft import ProposalTooLargeError, RaftStoppedError
from kvorum.node.raft.control_records import (
    control_batch,
    quorum_controls,
    voter_set_of,
    voters_record_of,
)
from kvorum.node.raft.opened_directory import open_directory
from kvorum.node.tasks import run
from kvorum.raft import NotLeaderError
from kvorum.raft.effects import AppendEpochStart
from kvorum.storage.errors import StorageError
from kvorum.storage.files import OpenFile, RealFileSystem
from kvorum.storage.log.log_config import LogConfig
from kvorum.storage.metadata_log.metadata_log import MetadataLog
from kvorum.wire.messages.fetch import FetchRequest
from kvorum.wire.messages.leader_change_message import LeaderChangeMessage
from kvorum.wire.records import RecordBatch, decode_control_record, read_batches
from kvorum.wire.uuid_text import METADATA_TOPIC_ID

STANDALONE = Path("standalone-4.3.1", "metadata", "broker-11", "__cluster_metadata-0")
FIRST_SEGMENT = "00000000000000000000.log"
HERE = Path("/data/__cluster_metadata-0")


@pytest.fixture
async def replica(lab: Lab) -> Replica:
    """The lone voter, which leads."""
    return await lab.leading_voter()


def state_file(replica: Replica) -> Path:
    return replica.directory / "__cluster_metadata-0" / "quorum-state"


def read_state(replica: Replica) -> dict[str, Any]:
    state: dict[str, Any] = json.loads(state_file(replica).read_text())
    return state


def write_state(replica: Replica, **changes: int) -> None:
    """Change the stored election record, as a process does that dies right afterwards."""
    state = read_state(replica)
    del state["kvorumChecksum"]
    state_file(replica).write_text(json.dumps(state | changes))


async def test_it_leads_at_once_and_commits(replica: Replica) -> None:
    assert replica.node.epoch == 1
    assert await replica.commit(b"a", b"b") == 2
    assert replica.listener.values == [b"a", b"b"]
    assert replica.node.high_watermark == 3
    assert replica.node.leader_id == 1
    await replica.stop()
    assert replica.listener.epochs_lost == [1]
    state = read_state(replica)
    assert state.pop("kvorumChecksum")
    assert state == {
        "clusterId": "",
        "leaderId": 1,
        "leaderEpoch": 1,
        "votedId": -1,
        "appliedOffset": 0,
        "currentVoters": [{"voterId": 1}],
        "data_version": 0,
    }


async def test_after_a_restart_everything_is_there_in_the_next_epoch(lab: Lab) -> None:
    replica = await lab.voter()
    for epoch in range(1, 6):
        await replica.lead()
        assert replica.node.epoch == epoch
        await replica.commit(f"value of {epoch}".encode())
        assert len(replica.listener.values) == epoch
        await replica.stop()


async def test_a_copy_taken_while_it_runs_holds_all_that_was_committed(lab: Lab) -> None:
    replica = await lab.leading_voter()
    for round_number in range(10):
        await replica.commit(b"%d" % round_number)
        # The files that kill -9 would leave at this moment.
        copy = await lab.voter(f"copy-{round_number}")
        shutil.copytree(replica.directory, copy.directory)
        await copy.lead()
        assert copy.listener.values == [b"%d" % i for i in range(round_number + 1)]
        assert copy.node.epoch == 2
        await copy.stop()


async def test_proposals_are_refused_where_they_must_be(replica: Replica) -> None:
    with pytest.raises(NotLeaderError):
        replica.node.propose([b"a"], epoch=2)
    with pytest.raises(ProposalTooLargeError):
        replica.node.propose([bytes(8 * 1024 * 1024 + 1)], epoch=1)
    with pytest.raises(ValueError, match="without records"):
        replica.node.propose([], epoch=1)
    assert replica.node.log_end_offset == 1
    await replica.stop()
    with pytest.raises(RaftStoppedError):
        replica.node.propose([b"a"], epoch=1)


async def test_proposals_share_syncs_and_keep_their_order(lab: Lab) -> None:
    replica = await lab.voter()
    replica.files = files = CountingFiles()
    await replica.lead()
    before = files.sync_count
    values = [b"%d" % i for i in range(500)]
    for value in values:
        replica.node.propose([value], epoch=1)
    await replica.listener.until(lambda: replica.listener.next_offset == 501)
    assert replica.listener.values == values
    assert files.sync_count - before < 20


async def test_the_listener_may_propose_as_soon_as_it_leads(lab: Lab) -> None:
    replica = await lab.voter()

    def propose_at_once(epoch: int) -> None:
        replica.node.propose([b"first"], epoch=epoch)

    replica.listener.on_gained = propose_at_once
    await replica.start()
    await replica.listener.until(lambda: replica.listener.values == [b"first"])


async def test_a_failed_sync_stops_it_loudly_and_commits_nothing(lab: Lab) -> None:
    replica = await lab.voter()
    replica.files = files = CountingFiles()
    await replica.lead()
    files.is_broken = True
    replica.node.propose([b"lost?"], epoch=1)
    await replica.listener.until(lambda: bool(replica.listener.failures))
    assert "Input/output error" in str(replica.listener.failures[0])
    assert replica.listener.values == []
    assert replica.node.is_stopped
    with pytest.raises(RaftStoppedError):
        replica.node.propose([b"more"], epoch=1)
    files.is_broken = False
    await replica.stop()
    await replica.lead()
    assert replica.listener.values in ([], [b"lost?"])


async def test_a_listener_that_fails_stops_it(lab: Lab) -> None:
    replica = await lab.voter()

    def fail(epoch: int) -> None:
        raise RuntimeError(f"cannot lead {epoch}")

    replica.listener.on_gained = fail
    await replica.start()
    await replica.listener.until(lambda: bool(replica.listener.failures))
    assert str(replica.listener.failures[0]) == "cannot lead 1"


async def test_a_crash_between_the_election_record_and_the_log_costs_an_epoch_and_nothing_else(
    replica: Replica,
) -> None:
    await replica.commit(b"kept")
    await replica.stop()
    # The record of epoch 2 was written, the process died before its first batch was.
    write_state(replica, leaderEpoch=2)
    await replica.lead()
    assert replica.node.epoch == 3
    assert replica.listener.values == [b"kept"]


async def test_a_candidate_that_crashed_keeps_its_vote(replica: Replica) -> None:
    await replica.stop()
    write_state(replica, leaderId=-1, leaderEpoch=5, votedId=1)
    await replica.lead()
    # It stands in the very epoch that it gave its vote in.
    assert replica.node.epoch == 5


async def test_a_former_voters_directory_serves_an_observer(replica: Replica) -> None:
    await replica.stop()
    write_state(replica, votedId=1)
    replica.can_vote = False
    await replica.start()
    assert not replica.node.is_leader
    assert replica.node.epoch == 1


async def test_closing_twice_and_before_the_start_is_allowed(lab: Lab) -> None:
    replica = await lab.voter()
    await replica.start()
    await asyncio.gather(replica.stop(), replica.stop())
    await replica.stop()


async def test_a_snapshot_takes_the_place_of_the_log(replica: Replica) -> None:
    last = await replica.commit(b"a", b"b", b"c")
    assert await replica.snapshot(last + 1, [b"a", b"b"], [b"c"])
    assert not await replica.snapshot(last + 1)
    await replica.commit(b"d")
    await replica.stop()
    await replica.lead()
    assert replica.listener.snapshots == [last + 1]
    assert replica.listener.values == [b"a", b"b", b"c", b"d"]


async def test_cleaning_lets_the_log_begin_at_a_later_snapshot(lab: Lab) -> None:
    replica = await lab.voter()
    replica.log = LogConfig(retention_ms=-1, retention_bytes=1000, segment_bytes=400)
    await replica.lead()
    for round_number in range(4):
        last = await replica.commit(b"%d" % round_number * 300)
        assert await replica.snapshot(last + 1, [b"state %d" % round_number])
    assert replica.node.clean()
    assert not replica.node.clean()
    await replica.commit(b"later")
    observer = lab.observer(9, replica.server)
    await observer.start()
    await observer.listener.until(lambda: observer.listener.values[-1:] == [b"later"])
    assert observer.listener.values == [b"state 3", b"later"]
    await replica.stop()
    await replica.lead()
    assert replica.listener.values == [b"state 3", b"later"]


async def test_who_resigns_leads_again_in_a_later_epoch(replica: Replica) -> None:
    replica.node.resign(99)
    assert replica.node.is_leader
    replica.node.resign(1)
    assert not replica.node.is_leader
    await replica.listener.until(lambda: len(replica.listener.epochs_led) == 2)
    assert replica.listener.epochs_lost == [1]
    assert replica.node.epoch > 1
    assert await replica.commit(b"again") > 0


async def test_a_fetch_without_a_waiting_client_is_forgotten(lab: Lab) -> None:
    replica = await lab.leading_voter()
    wish = FetchRequest.FetchPartition(current_leader_epoch=1, fetch_offset=1, last_fetched_epoch=1)
    topic = FetchRequest.FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=[wish])
    request = FetchRequest(max_wait_ms=3_600_000, topics=[topic])
    waiting = asyncio.create_task(
        run(replica.node.handle_request(request, version=17, listener_name="CONTROLLER"))
    )
    await asyncio.sleep(0)
    assert not waiting.done()
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    await replica.commit(b"goes on")


class CountingFiles(RealFileSystem):
    """The real file system, counting syncs, and refusing them on demand."""

    sync_count = 0
    is_broken = False

    def open(self, path: Path, *, create: bool = False, read_only: bool = False) -> OpenFile:
        return CountingFile(self, super().open(path, create=create, read_only=read_only))


class CountingFile:
    """An open file that asks its file system before it syncs."""

    def __init__(self, files: CountingFiles, file: OpenFile) -> None:
        self._files, self._sync = files, file.sync
        self.read_at, self.write_at, self.truncate = file.read_at, file.write_at, file.truncate
        self.size, self.close = file.size, file.close
        self.shared_descriptor = file.shared_descriptor

    def sync(self) -> None:
        self._files.sync_count += 1
        if self._files.is_broken:
            raise OSError(errno.EIO, "Input/output error")
        self._sync()


def first_batch(directory: Path) -> RecordBatch:
    return next(read_batches((directory / FIRST_SEGMENT).read_bytes(), is_cut_allowed=True))


def epoch_start_of(batch: RecordBatch) -> AppendEpochStart | None:
    """Return the effect whose batch this must be, if it begins an epoch."""
    message = decode_control_record(next(batch.records())).message
    if not isinstance(message, LeaderChangeMessage):
        return None
    controls = quorum_controls(batch)
    return AppendEpochStart(
        base_offset=batch.base_offset,
        epoch=batch.partition_leader_epoch,
        leader_id=message.leader_id,
        voter_ids=tuple(voter.voter_id for voter in message.voters),
        granting_ids=tuple(voter.voter_id for voter in message.granting_voters),
        kraft_version=controls.kraft_versions[0][1] if controls.kraft_versions else 0,
        voters=controls.voters[0][1] if controls.voters else None,
    )


def test_every_epoch_of_real_kafka_begins_with_the_batch_we_would_write(golden_sets: Path) -> None:
    count = 0
    for directory in metadata_directories(golden_sets):
        for segment in directory.glob("*.log"):
            for batch in read_batches(segment.read_bytes(), is_cut_allowed=True):
                start = epoch_start_of(batch) if batch.is_control else None
                if start is not None:
                    ours = control_batch(start, timestamp_ms=batch.base_timestamp)
                    assert ours == bytes(batch.data), (segment, batch.base_offset)
                    count += 1
    assert count >= 20


def test_voter_sets_of_real_kafka_come_back_as_they_were(golden_sets: Path) -> None:
    ((_, voters),) = quorum_controls(first_batch(golden_sets / STANDALONE)).voters
    assert voter_set_of(voters_record_of(voters)) == voters
    assert voters.ids == (11,)


async def test_the_first_leader_copies_the_voters_into_the_log(lab: Lab, golden_sets: Path) -> None:
    golden = first_batch(golden_sets / STANDALONE)
    ((_, voters),) = quorum_controls(golden).voters
    (voter,) = voters.voters
    replica = await lab.voter(node_id=11)
    log_directory = replica.directory / "__cluster_metadata-0"
    log_directory.mkdir(parents=True)
    for name in golden_sets.joinpath(STANDALONE).glob("*-0000000000.checkpoint"):
        shutil.copy(name, log_directory)
    assert list(log_directory.iterdir()), "the golden node was not formatted with a voter set"
    replica.static_voters = ()
    replica.directory_id = voter.key.directory_id
    replica.local_listeners = tuple(
        (endpoint.name, endpoint.host, endpoint.port) for endpoint in voter.endpoints
    )
    await replica.lead()
    assert replica.node.kraft_version == 1
    await replica.stop()
    ours = first_batch(log_directory)
    start = epoch_start_of(golden)
    assert start is not None
    assert bytes(ours.data) == control_batch(start, timestamp_ms=ours.base_timestamp)
    state = json.loads((log_directory / "quorum-state").read_text())
    assert state.pop("kvorumChecksum")
    golden_state = json.loads((golden_sets / STANDALONE / "quorum-state").read_text())
    assert state == {**golden_state, "leaderEpoch": 1}


@pytest.mark.parametrize(
    "state",
    [b"", b"rubbish", b'{"data_version":7}', b'{"leaderId":1,"data_version":1}'],
    ids=["empty", "rubbish", "unknown version", "incomplete"],
)
def test_a_quorum_state_that_cannot_be_read_leaves_the_log_alone(state: bytes) -> None:
    files = FaultyFiles()
    log = MetadataLog.open(HERE, files=files, now_ms=0).local_log
    log.append(make_batch(0))
    log.flush()
    left = files.after_process_crash()
    left.names[HERE / f"{0:020d}.log"].content.extend(make_batch(1)[:-5])
    left.names[HERE / f"{0:020d}.log.deleted"] = MemoryFile(b"of a former run")
    left.names[HERE / "quorum-state"] = MemoryFile(state)
    before = {path: bytes(file.content) for path, file in left.names.items()}
    with pytest.raises(StorageError):
        open_directory(static_settings(HERE), files=left, now_ms=0)
    assert {path: bytes(file.content) for path, file in left.names.items()} == before
