"""Random requests for records, beside a real broker: equal answers, and equal bytes on disk."""

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Final

import pytest
from tests.interop.clients.confluent import make_topics
from tests.interop.data_plane_answers import (
    RESPONSES,
    STAMPED,
    comparable,
    is_of_deleted_record,
    mask_times_of,
    names_and_ids,
)
from tests.interop.data_plane_script import TOPICS, Script
from tests.support.clients.driver import TopicWish
from tests.support.header_variants import header_variants
from tests.support.node import BothNodes, Node
from tests.support.raw_client import RawClient
from tests.support.record_requests import produce
from tests.support.topics import wait_until_led

from kvorum.storage.log.producer_snapshot import decode_producer_snapshot
from kvorum.wire.error_codes import ErrorCode

STEPS: Final = int(os.environ.get("KVORUM_DATA_PLANE_STEPS", "2500"))
SEED: Final = int(os.environ.get("KVORUM_DATA_PLANE_SEED", "1"))


@pytest.fixture(scope="module")
def nodes(both_nodes: BothNodes) -> Iterator[tuple[Node, Node]]:
    with both_nodes() as (real, ours):
        for node in (real, ours):
            wishes = [TopicWish(name, configs=dict(TOPICS[name])) for name in TOPICS]
            make_topics(node.address, *wishes)
            with RawClient(node.address) as client:
                wait_until_led(client, *TOPICS)
        yield real, ours


def test_header_fields_at_their_limits_are_answered_as_by_kafka(nodes: tuple[Node, Node]) -> None:
    differing: dict[str, tuple[object, object]] = {}
    codes: set[int] = set()
    with ExitStack() as stack:
        theirs, mine = (stack.enter_context(RawClient(node.address)) for node in nodes)
        for node in nodes:
            make_topics(node.address, TopicWish("limits"))
        for client in (theirs, mine):
            wait_until_led(client, "limits")
        for name, data in header_variants(int(time.time() * 1000)):
            expected, got = (produce(client, "limits", data) for client in (theirs, mine))
            codes.add(expected.error_code)
            for answered in (expected, got):
                mask_times_of(answered)
            if got != expected:
                differing[name] = expected, got
    # Kafka counts in 32 bits, and such a length makes its size negative: an error of its own.
    assert {name.partition(": ")[2] for name in differing} == {
        "length 2147483646",
        "length 2147483647",
    }, differing
    assert codes >= {ErrorCode.NONE, ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD}


@pytest.mark.slow
def test_answers_and_files_are_those_of_kafka(nodes: tuple[Node, Node]) -> None:
    real, ours = nodes
    script = Script(Random(SEED), int(time.time() * 1000))
    differences: list[str] = []
    with RawClient(real.address) as theirs, RawClient(ours.address) as mine:
        sides = [(client, *names_and_ids(client, TOPICS)) for client in (theirs, mine)]
        for number, step in enumerate(script.steps(STEPS)):
            kind = RESPONSES[type(step.request)]
            expected, got = (
                comparable(client.ask(step.addressed(ids), kind, step.version), names)
                for client, names, ids in sides
            )
            if got != expected and not is_of_deleted_record(theirs, step):
                differences.append(
                    f"step {number}: {step}\n  expected {expected}\n  got      {got}"
                )
    assert differences == [], "\n".join(differences[:5]) + f"\n{len(differences)} differences"
    real.stop()
    ours.stop()
    for topic in TOPICS:
        compare_files(real.data / f"{topic}-0", ours.data / f"{topic}-0", topic)


def compare_files(theirs: Path, ours: Path, topic: str) -> None:
    """Compare what is left of a partition; the real server removes deleted segments later."""
    names = {path.name for path in ours.iterdir() if not path.name.endswith(".deleted")}
    theirs_names = {path.name for path in theirs.iterdir()}
    assert names <= theirs_names, f"{topic}: {sorted(names)} {sorted(theirs_names)}"
    for name in sorted(names - {"partition.metadata"}):
        expected, got = (theirs / name).read_bytes(), (ours / name).read_bytes()
        if name.endswith(".snapshot"):
            known = [decode_producer_snapshot(data, ours / name) for data in (expected, got)]
            if topic != STAMPED:
                assert known[1] == known[0], f"{topic} {name}"
        elif topic == STAMPED and not name.startswith("leader"):
            assert len(got) == len(expected), f"{topic} {name}"
        else:
            assert got == expected, f"{topic} {name}"
