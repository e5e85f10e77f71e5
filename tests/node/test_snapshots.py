"""Snapshots that a node takes of its metadata, and starts from."""

import asyncio
from pathlib import Path

from tests.support.topics import create, read_topics

from kvorum.metadata.record_frame import decode_record
from kvorum.testing import AsyncCluster
from kvorum.wire.messages.topic_record import TopicRecord
from kvorum.wire.records import read_batches

OFTEN = {"metadata.log.max.record.bytes.between.snapshots": "4000"}
TOPICS = 60


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
