"""Killed in the middle of a stream of CreateTopics, again and again, on the same data."""

from collections import Counter
from pathlib import Path

import pytest
from tests.support.killed_dev_node import address_of, dev_node, kill_again_and_again
from tests.support.topics import read_topics

from kvorum.metadata.record_frame import decode_record
from kvorum.wire.messages.topic_record import TopicRecord
from kvorum.wire.records import read_batches

ROUNDS = 50


def created(folder: Path) -> Counter[str]:
    """Count the TopicRecords of each name in the log."""
    counts: Counter[str] = Counter()
    for file in sorted((folder / "data" / "__cluster_metadata-0").glob("*.log")):
        for batch in read_batches(file.read_bytes()):
            batch.verify()
            if not batch.is_control:
                for record in batch.records():
                    message, _ = decode_record(record.value or b"")
                    if isinstance(message, TopicRecord):
                        counts[message.name] += 1
    return counts


@pytest.mark.slow
def test_what_was_acknowledged_is_there_after_every_kill(tmp_path: Path) -> None:
    acknowledged, asked = kill_again_and_again(tmp_path, ROUNDS)
    with dev_node(tmp_path) as last:
        found = read_topics(address_of(last)).keys()
        assert last.terminate().exit_code == 0
    assert len(acknowledged) > ROUNDS
    assert acknowledged <= found <= asked
    assert created(tmp_path) == Counter(found)
