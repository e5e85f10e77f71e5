"""The files of a broker: few descriptors, damaged logs, compaction, and snapshots of metadata."""

import asyncio
import errno
import os
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import pytest
from tests.node.embedded_cluster import append, running_node
from tests.support.raw_client import RawClient
from tests.support.record_requests import (
    FETCH_VERSION,
    PRODUCE_VERSION,
    batch,
    fetch,
    keyed_batch,
    produce,
    values,
)
from tests.support.replicated_topics import OVERRIDES, create_replicated, log_bytes, wait_for_isr
from tests.support.topics import create, create_topic, delete_topic, read_topics
from tests.support.waiting import wait_for, wait_for_async

from kvorum.metadata.record_frame import decode_record
from kvorum.storage.directory.open_files import OpenFiles
from kvorum.storage.errors import PoisonedError
from kvorum.storage.files import OpenFile, RealFileSystem
from kvorum.storage.log.local_log import LocalLog
from kvorum.storage.small_files.offset_checkpoint_file import (
    RECOVERY_POINT_CHECKPOINT,
    OffsetCheckpointFile,
)
from kvorum.storage.topic_partition import TopicPartition
from kvorum.testing import AsyncCluster, Cluster
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.fetch import FetchRequest, FetchResponse
from kvorum.wire.messages.produce import ProduceRequest, ProduceResponse
from kvorum.wire.messages.topic_record import TopicRecord
from kvorum.wire.records import read_batches

OPEN_MAX = 5
PARTITION_COUNT = 40
LEADER, FOLLOWER = 101, 102
TOPIC = "kept"
COUNT = 60
KEYS = 3
OFTEN = {"metadata.log.max.record.bytes.between.snapshots": "4000"}
TOPICS = 60


def produce_to_all(address: str, topic: str) -> set[int]:
    """Write a record, its partition's number, to every partition; return the error codes."""
    data = [
        ProduceRequest.PartitionProduceData(index, batch(str(index).encode()))
        for index in range(PARTITION_COUNT)
    ]
    body = ProduceRequest(
        None, -1, 5000, [ProduceRequest.TopicProduceData(topic, partition_data=data)]
    )
    with RawClient(address) as client:
        (answered,) = client.ask(body, ProduceResponse, PRODUCE_VERSION).responses
    return {one.error_code for one in answered.partition_responses}


def fetch_all(address: str, topic: str) -> Mapping[int, list[bytes | None]]:
    wishes = [
        FetchRequest.FetchPartition(index, fetch_offset=0, partition_max_bytes=1 << 20)
        for index in range(PARTITION_COUNT)
    ]
    request = FetchRequest(
        max_bytes=1 << 20, topics=[FetchRequest.FetchTopic(topic, partitions=wishes)]
    )
    with RawClient(address) as client:
        (answered,) = client.ask(request, FetchResponse, FETCH_VERSION).responses
    return {one.partition_index: values(one) for one in answered.partitions}


def open_log_files(folder: Path) -> int:
    """Count the files of topics' logs that this process has open."""
    links = [path for path in Path("/proc/self/fd").iterdir() if path.is_symlink()]
    return sum(
        folder in path.parents and not path.parent.name.startswith("__cluster_metadata")
        for path in map(Path.readlink, links)
        if path.suffix in {".log", ".index", ".timeindex"}
    )


@pytest.mark.skipif(sys.platform != "linux", reason="others do not tell which files are open")
async def test_many_more_partitions_than_open_files_are_served(tmp_path: Path) -> None:
    open_files = OpenFiles(OPEN_MAX)
    async with running_node(tmp_path, open_files=open_files) as embedded:
        address = embedded.bootstrap_servers
        await asyncio.to_thread(create, address, "wide", partition_count=PARTITION_COUNT)
        assert await asyncio.to_thread(produce_to_all, address, "wide") == {ErrorCode.NONE}
        found = await asyncio.to_thread(fetch_all, address, "wide")
        assert found == {index: [str(index).encode()] for index in range(PARTITION_COUNT)}
        # A file is let go with the response that was sent from it.
        await wait_for_async(lambda: open_files.count <= OPEN_MAX, "nothing is being sent")
        assert 0 < open_log_files(tmp_path) <= OPEN_MAX


class ShortOfDescriptors(RealFileSystem):
    """A file system that opens no file of the topic `late` until the process may have more."""

    is_short = True

    def open(self, path: Path, *, create: bool = False, read_only: bool = False) -> OpenFile:
        if self.is_short and path.parent.name.startswith("late-"):
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return super().open(path, create=create, read_only=read_only)


def write(address: str, topic: str) -> int:
    """Produce a record, and return the error code."""
    with RawClient(address) as client:
        return produce(client, topic, batch(b"value")).error_code


async def test_a_partition_that_gets_no_descriptor_is_hosted_once_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("kvorum.node.broker.broker_metadata_publisher.REFUSED_RETRY_MS", 10)
    files = ShortOfDescriptors()

    async with running_node(tmp_path, files=files) as embedded:
        address = embedded.bootstrap_servers
        await asyncio.to_thread(create, address, "late")
        assert await asyncio.to_thread(write, address, "late") == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert "limit of open files" in caplog.text
        await asyncio.to_thread(create, address, "other")
        assert await asyncio.to_thread(write, address, "other") == ErrorCode.NONE
        files.is_short = False
        await asyncio.to_thread(
            wait_for,
            lambda: write(address, "late") == ErrorCode.NONE,
            "the refused partition is hosted",
        )


async def test_a_broker_goes_on_without_a_partition_whose_log_has_failed_when_it_is_to_lead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assign_epoch = LocalLog.assign_epoch

    def failing(log: LocalLog, epoch: int) -> None:
        if log.directory.name.startswith("failed-"):
            raise PoisonedError("the log cannot be used any more", file=log.directory)
        assign_epoch(log, epoch)

    monkeypatch.setattr(LocalLog, "assign_epoch", failing)

    async with running_node(tmp_path) as embedded:
        address = embedded.bootstrap_servers
        await asyncio.to_thread(create, address, "failed")
        assert await asyncio.to_thread(write, address, "failed") == ErrorCode.KAFKA_STORAGE_ERROR
        assert "A partition cannot be led" in caplog.text
        await asyncio.to_thread(create, address, "other")
        assert await asyncio.to_thread(write, address, "other") == ErrorCode.NONE


def stored_recovery_point(folder: Path) -> int:
    file = OffsetCheckpointFile(folder / RECOVERY_POINT_CHECKPOINT, RealFileSystem(), advice="")
    return file.read().get(TopicPartition(TOPIC, 0), 0)


def test_a_damaged_log_is_set_aside_and_fetched_again(tmp_path: Path) -> None:
    overrides = {
        **OVERRIDES,
        "kvorum.damaged.logs.set.aside": "true",
        "log.flush.offset.checkpoint.interval.ms": "50",
    }
    with Cluster(controllers=1, brokers=2, folder=tmp_path, overrides=overrides) as cluster:
        create_replicated(cluster, TOPIC, [LEADER, FOLLOWER], {"flush.messages": "1"})
        append(cluster, TOPIC, b"one")
        append(cluster, TOPIC, b"two")
        data = tmp_path / f"broker-{FOLLOWER}" / "data"
        wait_for(lambda: stored_recovery_point(data) == 2, "the follower's records are durable")
        cluster.kill(FOLLOWER)
        wait_for_isr(cluster, TOPIC, {LEADER})
        sound = log_bytes(tmp_path, LEADER, TOPIC)
        (file,) = data.glob(f"{TOPIC}-0/*.log")
        damaged = bytes([*sound[:-1], sound[-1] ^ 1])
        file.write_bytes(damaged)
        cluster.restart(FOLLOWER)
        wait_for_isr(cluster, TOPIC, {LEADER, FOLLOWER})
        assert log_bytes(tmp_path, FOLLOWER, TOPIC) == sound
        (aside,) = data.glob(f"{TOPIC}-0.*-stray/*.log")
        assert aside.read_bytes() == damaged


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    overrides = {
        "log.cleaner.backoff.ms": "20",
        "log.segment.delete.delay.ms": "100",
        # Nothing else than the delay may have files removed.
        "log.flush.offset.checkpoint.interval.ms": "3600000",
        "log.retention.check.interval.ms": "3600000",
    }
    with Cluster(overrides=overrides) as cluster:
        yield cluster


@pytest.fixture
def broker(cluster: Cluster) -> Iterator[RawClient]:
    with RawClient(cluster.bootstrap_servers) as client:
        yield client


def create_compacted(broker: RawClient, name: str, configs: dict[str, str]) -> None:
    create_topic(broker, name, configs=configs)
    wait_for(lambda: fetch(broker, name, 0).error_code == 0, "it is hosted")


def fill(broker: RawClient, name: str) -> None:
    for number in range(COUNT):
        sent = produce(broker, name, keyed_batch(b"%d" % (number % KEYS), b"%d" % number))
        assert sent.base_offset == number


def read(broker: RawClient, name: str) -> dict[int, bytes | None]:
    found: dict[int, bytes | None] = {}
    offset = 0
    while offset < COUNT:
        data = fetch(broker, name, offset)
        assert data.error_code == ErrorCode.NONE
        for one in read_batches(data.records or b""):
            found.update((record.offset, record.value) for record in one.records())
            offset = one.next_offset
    return found


def is_gone(broker: RawClient, name: str) -> bool:
    return fetch(broker, name, 0).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_of_each_key_the_latest_record_stays(broker: RawClient) -> None:
    small = {"internal.segment.bytes": "600"}
    create_compacted(broker, "compacted", {"cleanup.policy": "compact", **small})
    create_compacted(broker, "kept", small)
    fill(broker, "compacted")
    fill(broker, "kept")
    # The active segment stays as it is; each one before it holds some seven batches.
    wait_for(lambda: len(read(broker, "compacted")) < KEYS + 10, "it is compacted")
    values = read(broker, "compacted")
    assert values.items() >= {one: b"%d" % one for one in range(COUNT - KEYS, COUNT)}.items()
    assert len(read(broker, "kept")) == COUNT
    assert produce(broker, "compacted", keyed_batch(b"0", b"more")).base_offset == COUNT


def test_a_topic_is_deleted_while_it_is_compacted(cluster: Cluster, broker: RawClient) -> None:
    configs = {"cleanup.policy": "compact,delete", "internal.segment.bytes": "600"}
    for turn in range(5):
        name = f"topic-{turn}"
        create_compacted(broker, name, configs)
        fill(broker, name)
        with RawClient(cluster.controller_servers) as controller:
            delete_topic(controller, name)
        wait_for(partial(is_gone, broker, name), "the topic is gone")
    create_compacted(broker, "next", configs)
    fill(broker, "next")
    wait_for(lambda: len(read(broker, "next")) < COUNT, "it is compacted")


def test_what_is_deleted_goes_once_its_delay_is_over(cluster: Cluster, broker: RawClient) -> None:
    """Segments that compaction has replaced, and then the whole topic."""
    create_compacted(
        broker, "topic", {"cleanup.policy": "compact", "internal.segment.bytes": "600"}
    )
    fill(broker, "topic")

    def files(pattern: str) -> list[str]:
        return [path.name for path in cluster.folder.rglob(pattern)]

    wait_for(lambda: len(read(broker, "topic")) < KEYS + 10, "it is compacted")
    wait_for(lambda: not files("*.deleted"), "replaced segments are gone")
    assert files("topic-0")
    with RawClient(cluster.controller_servers) as controller:
        delete_topic(controller, "topic")
    wait_for(partial(is_gone, broker, "topic"), "the topic is gone")
    wait_for(lambda: not files("topic-0*"), "the topic's folder is gone")


def checkpoints(folder: Path) -> list[Path]:
    """Return the finished snapshots but the first, oldest first."""
    log = folder / "data" / "__cluster_metadata-0"
    return [file for file in sorted(log.glob("*.checkpoint")) if "0" * 20 not in file.name]


def names_in(checkpoint: Path) -> set[str]:
    found: set[str] = set()
    for one in read_batches(checkpoint.read_bytes()):
        if not one.is_control:
            for record in one.records():
                message, _ = decode_record(record.value or b"")
                if isinstance(message, TopicRecord):
                    found.add(message.name)
    return found


async def test_snapshots_hold_what_was_committed_and_a_node_starts_from_them(
    tmp_path: Path,
) -> None:
    made = [f"topic-{number}" for number in range(TOPICS)]
    async with AsyncCluster(folder=tmp_path, overrides=OFTEN) as cluster:
        for name in made:
            await asyncio.to_thread(create, cluster.bootstrap_servers, name)
    newest = checkpoints(tmp_path)[-1]
    assert names_in(newest) == set(made[: len(names_in(newest))])
    assert names_in(newest)
    async with AsyncCluster(folder=tmp_path, overrides=OFTEN) as cluster:
        assert (await asyncio.to_thread(read_topics, cluster.bootstrap_servers)).keys() == set(made)
