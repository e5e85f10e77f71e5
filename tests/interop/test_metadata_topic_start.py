"""Consumers at the start of the metadata log, which snapshots let move forward."""

from __future__ import annotations

import asyncio
from contextlib import closing

import pytest
from tests.interop.clients.metadata_readers import (
    EARLIEST,
    LATEST,
    READERS,
    ConfluentReader,
    KafkaPythonReader,
    Read,
    read_all,
    records_on_disk,
)
from tests.support.waiting import wait_for, wait_for_async
from tests.unit.node.metadata_consumer import (
    create_topic,
    fetch,
    fetch_request,
    list_offsets,
)
from tests.unit.node.raw_client import RawClient

from kvorum.node.kafka_raft_server import KafkaRaftServer
from kvorum.testing import AsyncCluster
from kvorum.wire.error_codes import ErrorCode

pytestmark = [pytest.mark.interop, pytest.mark.asyncio]

SETTINGS = {
    "kvorum.metadata.topic.readable": "true",
    "metadata.max.idle.interval.ms": "0",
    "metadata.log.max.record.bytes.between.snapshots": "2000",
    # Nothing is kept that a snapshot contains, and files go at once.
    "metadata.max.retention.bytes": "1",
    "internal.metadata.delete.delay.millis": "0",
    "internal.metadata.log.segment.bytes": "4000",
}


def fill(controller_servers: str, prefix: str) -> None:
    """Write enough for several snapshots."""
    with RawClient(controller_servers) as controller:
        for number in range(80):
            create_topic(controller, f"{prefix}-{number}")


async def move_start(node: KafkaRaftServer) -> int:
    """Have the node clean its log as it does once a minute; return where the log starts then."""
    raft = node.shared_server.raft
    before = raft.log.start_offset

    def cleaned() -> int | None:
        raft.clean()
        return raft.log.start_offset if raft.log.start_offset > before else None

    # A snapshot is being written in another thread.
    return await wait_for_async(cleaned, "a snapshot lets the log's start move")


def reset_reads(
    kind: type[ConfluentReader | KafkaPythonReader], servers: str, reset: str, create: str
) -> list[Read]:
    """Begin at offset 0, which is gone; return the first records after the client found out."""
    with closing(kind(servers, 0, reset=reset)) as reader:
        for _ in range(20):
            reader.poll()
        # Whoever goes on at the end has nothing until there is something new.
        with RawClient(servers) as broker:
            create_topic(broker, create)
        wait_for(lambda: reader.poll() or reader.records or None, "something is read")
        return reader.records


@pytest.mark.parametrize("kind", READERS)
async def test_what_is_gone_is_out_of_range_and_the_client_starts_anew(
    kind: type[ConfluentReader | KafkaPythonReader],
) -> None:
    async with AsyncCluster(overrides=SETTINGS) as cluster:
        (node_id,) = cluster.node_ids
        servers = cluster.bootstrap_servers
        await asyncio.to_thread(fill, cluster.controller_servers, "first")
        start = await move_start(cluster.node(node_id))
        end = cluster.node(node_id).shared_server.raft.log.end_offset
        assert 0 < start < end

        def look() -> None:
            with RawClient(servers) as broker:
                gone = fetch(broker, fetch_request(start - 1))
                assert gone.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
                there = fetch(broker, fetch_request(start))
                assert (there.error_code, there.log_start_offset) == (ErrorCode.NONE, start)
                for place in (-2, -4):
                    (earliest,) = list_offsets(broker, place)
                    assert earliest.offset == start
                # The oldest record that is there is the first for any earlier time.
                (by_time,) = list_offsets(broker, 0)
                assert by_time.offset == start

        await asyncio.to_thread(look)
        directory = next(cluster.folder.rglob("__cluster_metadata-0"))
        on_disk = [one for one in records_on_disk(directory) if one.offset >= start]
        assert await asyncio.to_thread(read_all, kind, servers, end - 1) == on_disk
        anew = await asyncio.to_thread(reset_reads, kind, servers, EARLIEST, "one")
        assert anew[: len(on_disk)] == on_disk
        newest = await asyncio.to_thread(reset_reads, kind, servers, LATEST, "two")
        assert newest[0].offset > on_disk[-1].offset


async def test_a_consumer_reads_on_while_files_behind_it_go() -> None:
    async with AsyncCluster(overrides=SETTINGS) as cluster:
        (node_id,) = cluster.node_ids
        servers, read = cluster.bootstrap_servers, list[int]()

        def read_slowly() -> None:
            with RawClient(servers) as broker:
                offset = 0
                while offset < 700:
                    got = fetch(broker, fetch_request(offset, max_bytes=1, min_bytes=1))
                    if got.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                        (earliest,) = list_offsets(broker, -2)
                        assert earliest.offset > offset
                        offset = earliest.offset
                        read.append(-1)
                        continue
                    assert got.error_code == ErrorCode.NONE
                    if got.records:
                        read.append(offset)
                        offset = int.from_bytes(got.records[:8]) + 1
                        offset += int.from_bytes(got.records[23:27])

        reading = asyncio.create_task(asyncio.to_thread(read_slowly))
        for number in range(6):
            await asyncio.to_thread(fill, cluster.controller_servers, f"round-{number}")
            await move_start(cluster.node(node_id))
        await reading
        offsets = [offset for offset in read if offset >= 0]
        assert offsets == sorted(set(offsets))
        assert not cluster.node(node_id).shared_server.raft.is_stopped
