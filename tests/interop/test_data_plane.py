"""Random requests for records, beside a real broker: equal answers, and equal bytes on disk."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest
from tests.interop.clients.confluent import ConfluentDriver
from tests.interop.data_plane_script import TOPICS, Script, Step
from tests.support.clients.driver import TopicWish
from tests.support.header_variants import header_variants
from tests.support.node import BothNodes, Node
from tests.support.raw_client import RawClient
from tests.support.record_requests import produce
from tests.support.topics import topic_id, wait_until_led

from kvorum.storage.log.producer_snapshot import decode_producer_snapshot
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from kvorum.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeProducersResponsePartitionResponse,
)
from kvorum.wire.messages.fetch import FetchRequest, FetchResponse
from kvorum.wire.messages.list_offsets import (
    ListOffsetsRequest,
    ListOffsetsResponse,
)
from kvorum.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from kvorum.wire.messages.produce import (
    ProduceRequest,
    ProduceResponse,
    ProduceResponsePartitionProduceResponse,
)
from kvorum.wire.primitives import Message
from kvorum.wire.records import read_batches
from kvorum.wire.uuid_text import ZERO_UUID

RESPONSES: Final[dict[type[Message], type[Message]]] = {
    ProduceRequest: ProduceResponse,
    FetchRequest: FetchResponse,
    ListOffsetsRequest: ListOffsetsResponse,
    OffsetForLeaderEpochRequest: OffsetForLeaderEpochResponse,
    DeleteRecordsRequest: DeleteRecordsResponse,
    DescribeProducersRequest: DescribeProducersResponse,
}
STEPS: Final = int(os.environ.get("KVORUM_DATA_PLANE_STEPS", "2500"))
SEED: Final = int(os.environ.get("KVORUM_DATA_PLANE_SEED", "1"))
LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3
STAMPED: Final = "stamped"
"""The topic whose records have the time at which each server got them."""


@pytest.fixture(scope="module")
def nodes(both_nodes: BothNodes) -> Iterator[tuple[Node, Node]]:
    with both_nodes() as (real, ours):
        for node in (real, ours):
            with ConfluentDriver(node.address) as driver:
                wishes = [TopicWish(name, configs=dict(TOPICS[name])) for name in TOPICS]
                assert {done.code for done in driver.create_topics(wishes).values()} == {0}
            with RawClient(node.address) as client:
                wait_until_led(client, *TOPICS)
        yield real, ours


def comparable(response: Any, names: Mapping[bytes, str]) -> object:
    """Return the part of an answer in which both servers must agree; `names` are of its topics."""
    match response:
        case FetchResponse():
            return fetched(response, names)
        case ProduceResponse():
            mask_times(response)
            for produced in response.responses:
                produced.name = name_of(produced.name, produced.topic_id, names)
                produced.topic_id = ZERO_UUID
        case ListOffsetsResponse():
            stamped = [topic for topic in response.topics if topic.name == STAMPED]
            for partition in (one for topic in stamped for one in topic.partitions):
                if partition.timestamp >= 0:
                    # Which records a millisecond holds depends on when a server got them.
                    partition.timestamp, partition.offset = 1, 0
        case DescribeProducersResponse():
            for topic in response.topics:
                for described in topic.partitions:
                    mask_producers(described, is_stamped=topic.name == STAMPED)
        case _:
            pass
    return repr(response)


def name_of(name: str, topic_id: bytes, names: Mapping[bytes, str]) -> str:
    """Return the name of a topic in a response, and the id itself where no topic has it."""
    return name if topic_id == ZERO_UUID else names.get(topic_id, topic_id.hex())


def fetched(response: FetchResponse, names: Mapping[bytes, str]) -> list[object]:
    return [
        (
            response.error_code,
            name,
            partition.partition_index,
            partition.error_code,
            partition.high_watermark,
            partition.last_stable_offset,
            partition.log_start_offset,
            partition.aborted_transactions,
            whole_batches(partition.records, name),
        )
        for topic in response.responses
        for name in (name_of(topic.topic, topic.topic_id, names),)
        for partition in topic.partitions
    ]


def mask_times(response: ProduceResponse) -> None:
    for topic in response.responses:
        for partition in topic.partition_responses:
            mask_times_of(partition)


def mask_times_of(partition: ProduceResponsePartitionProduceResponse) -> None:
    partition.log_append_time_ms = min(partition.log_append_time_ms, 1)
    partition.error_message = masked(partition.error_message)
    for record in partition.record_errors:
        record.batch_index_error_message = masked(record.batch_index_error_message)


def mask_producers(
    described: DescribeProducersResponsePartitionResponse, *, is_stamped: bool
) -> None:
    described.active_producers.sort(key=lambda one: one.producer_id)
    for producer in described.active_producers if is_stamped else ():
        producer.last_timestamp = 1


def is_of_deleted_record(theirs: RawClient, step: Step) -> bool:
    """Return whether Kafka looks for a time among records that DeleteRecords has deleted.

    Their segments go with its next retention run only. Until then it may find one of them, or look
    no further.
    """
    if not isinstance(step.request, ListOffsetsRequest):
        return False
    wishes = step.request.topics[0].partitions
    if wishes[0].timestamp < 0 and wishes[0].timestamp != MAX_TIMESTAMP:
        return False
    found = theirs.ask(step.request, ListOffsetsResponse, step.version)
    wishes[0].timestamp = EARLIEST
    start = theirs.ask(step.request, ListOffsetsResponse, step.version)
    return found.topics[0].partitions[0].offset < start.topics[0].partitions[0].offset


def masked(text: str | None) -> str | None:
    """Leave out the server's own times."""
    return None if text is None else re.sub(r"within \[.*?\]", "within []", text)


def whole_batches(records: Any, topic: str) -> list[object]:
    """Return the batches of a response; Kafka may cut the last one off."""
    batches = read_batches(memoryview(records or b""), is_cut_allowed=True)
    if topic == STAMPED:
        return [(batch.base_offset, batch.size) for batch in batches]
    return [bytes(batch.data) for batch in batches]


def test_header_fields_at_their_limits_are_answered_as_by_kafka(
    nodes: tuple[Node, Node],
) -> None:
    differing: dict[str, tuple[object, object]] = {}
    codes: set[int] = set()
    with ExitStack() as stack:
        theirs, mine = (stack.enter_context(RawClient(node.address)) for node in nodes)
        for node in nodes:
            driver = stack.enter_context(ConfluentDriver(node.address))
            assert driver.create_topics([TopicWish("limits")])["limits"].code == 0
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
        sides = [(client, *names_and_ids(client)) for client in (theirs, mine)]
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


def names_and_ids(client: RawClient) -> tuple[dict[bytes, str], dict[str, bytes]]:
    """Return the names of a server's topics by their ids, and the ids by the names."""
    ids = {name: topic_id(client, name) for name in TOPICS}
    return {known: name for name, known in ids.items()}, ids


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
