"""A broker compacts logs while it serves them; a node takes snapshots and starts from them."""

import asyncio
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from tests.support.raw_client import RawClient
from tests.support.record_requests import fetch, keyed_batch, produce
from tests.support.topics import create, create_topic, delete_topic, read_topics
from tests.support.waiting import wait_for

from kvorum.metadata.record_frame import decode_record
from kvorum.testing import AsyncCluster, Cluster
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.topic_record import TopicRecord
from kvorum.wire.records import read_batches

COUNT = 60
KEYS = 3
OFTEN = {"metadata.log.max.record.bytes.between.snapshots": "4000"}
TOPICS = 60


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
        for batch in read_batches(data.records or b""):
            found.update((record.offset, record.value) for record in batch.records())
            offset = batch.next_offset
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
    for batch in read_batches(checkpoint.read_bytes()):
        if not batch.is_control:
            for record in batch.records():
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
        found = await asyncio.to_thread(read_topics, cluster.bootstrap_servers)
        assert found.keys() == set(made)
