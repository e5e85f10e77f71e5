"""Consumers at the start of the metadata log, which snapshots let move forward."""

import asyncio
from contextlib import closing

import pytest
from tests.interop.trimmed_metadata_log import SETTINGS, move_start
from tests.support.clients.metadata_readers import (
    EARLIEST,
    LATEST,
    READERS,
    ConfluentReader,
    KafkaPythonReader,
    Read,
    read_all,
    records_on_disk,
)
from tests.support.metadata_consumer import fetch, fetch_request, list_offsets
from tests.support.raw_client import RawClient
from tests.support.topics import create_topic
from tests.support.waiting import wait_for

from kvorum.testing import AsyncCluster
from kvorum.wire.error_codes import ErrorCode


def fill(controller_servers: str, prefix: str) -> None:
    """Write enough for several snapshots."""
    with RawClient(controller_servers) as controller:
        for number in range(80):
            create_topic(controller, f"{prefix}-{number}")


def reset_reads(
    kind: type[ConfluentReader | KafkaPythonReader], servers: str, reset: str, create: str
) -> list[Read]:
    """Begin at offset 0, which is gone; return the first records after the client found out."""
    with closing(kind(servers, 0, reset=reset)) as reader:
        for _ in range(20):
            reader.poll()
        # A reader that goes on at the end has nothing until there is something new.
        with RawClient(servers) as broker:
            create_topic(broker, create)
        wait_for(lambda: reader.poll() or reader.records, "something is read")
        return reader.records


@pytest.mark.slow
@pytest.mark.parametrize("kind", READERS)
async def test_deleted_offsets_are_out_of_range_and_the_client_starts_again(
    kind: type[ConfluentReader | KafkaPythonReader],
) -> None:
    async with AsyncCluster(overrides=SETTINGS) as cluster:
        (node_id,) = cluster.node_ids
        servers = cluster.bootstrap_servers
        await asyncio.to_thread(fill, cluster.controller_servers, "first")
        start = await move_start(cluster.node(node_id))
        end = cluster.node(node_id).shared_server.raft.log.local_log.log_end_offset
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


@pytest.mark.slow
async def test_a_consumer_reads_on_while_files_that_it_has_read_go() -> None:
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
