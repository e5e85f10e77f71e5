"""A share coordinator beside a real one: equal answers and equal records."""

from collections import Counter
from itertools import zip_longest
from random import Random
from typing import Any, Final

import pytest
from tests.interop.asked_broker import serves_share
from tests.interop.clients.confluent import make_topics
from tests.interop.coordinated_nodes import batches
from tests.interop.share_state_script import TOPICS, UNKNOWN, Answer, Script, Side
from tests.support.clients.driver import TopicWish
from tests.support.node import BothNodes, Node
from tests.support.raw_client import RawClient
from tests.support.record_requests import list_offset

from kvorum.coordinator.coordinator_type import CoordinatorType
from kvorum.coordinator.share_partition_key import SharePartitionKey
from kvorum.internal_topics.coordinator_records import SHARE_GROUP_STATE
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from kvorum.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kvorum.wire.messages.metadata import MetadataRequest, MetadataResponse
from kvorum.wire.messages.share_snapshot_key import ShareSnapshotKey
from kvorum.wire.uuid_text import uuid_to_text

STEPS: Final = 1500
SETTINGS: Final = {
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.segment.bytes": "2000000",
    "share.coordinator.snapshot.update.records.per.snapshot": "5",
}
PRUNE_INTERVAL: Final = "share.coordinator.state.topic.prune.interval.ms"
EARLIEST: Final = -2
"""The time that stands for the start of a log."""
UNKNOWN_ID: Final = b"none has this id"
OF_TOPICS: Final = 2
SET_FOR_TOPIC: Final = 1
TIMESTAMPS: Final = ("createTimestamp", "writeTimestamp")
BAD_KEYS: Final = ("", "mine", "a:b", ":AAECAwQFBgcICQoLDA0ODw:0", "g:AAEC:0", "g:0:0:0")


def prepare(node: Node, client: RawClient) -> Side:
    """Make the topics, and wait until their share partitions have a coordinator."""
    wishes = [TopicWish(name, partitions=count) for name, count in TOPICS.items()]
    make_topics(node.address, *wishes)
    described = client.ask(
        MetadataRequest([MetadataRequest.MetadataRequestTopic(name=name) for name in TOPICS]),
        MetadataResponse,
        12,
    )
    ids = {topic.name or "": topic.topic_id for topic in described.topics}
    share = SharePartitionKey("group", ids["one"], 0)

    node.process.wait_until(lambda: serves_share(client, share), "share partitions are served")
    return Side(client, {**ids, UNKNOWN: UNKNOWN_ID})


def records(side: Side) -> Answer:
    """Return the records of the coordinator, with topics by name and without times."""
    found = batches(side.client, SHARE_GROUP_STATE.name, 0)
    assert not isinstance(found, int)
    return [
        (batch.base_sequence, batch.producer_id, _record(side, one.key, one.value))
        for batch in found
        for one in batch.records()
    ]


def _record(side: Side, key: bytes | None, value: bytes | None) -> Answer:
    assert key is not None
    decoded = SHARE_GROUP_STATE.decode_key(key)
    text = str(decoded)
    for name, topic_id in side.topic_ids.items():
        text = text.replace(uuid_to_text(topic_id), name)
    if value is None:
        return text, None
    version, fields = SHARE_GROUP_STATE.decode_value(decoded.type_id, value)
    times = [fields.pop(name) for name in TIMESTAMPS if name in fields]
    return text, version, fields, all(times) and len(set(times)) <= 1


def topic_configs(client: RawClient) -> dict[str, str | None]:
    """Return the configuration that the topic of the state was created with."""
    resource = DescribeConfigsRequest.DescribeConfigsResource(OF_TOPICS, SHARE_GROUP_STATE.name)
    (described,) = client.ask(
        DescribeConfigsRequest([resource]), DescribeConfigsResponse, 4
    ).results
    return {one.name: one.value for one in described.configs if one.config_source == SET_FOR_TOPIC}


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_same_requests_have_the_same_answers(both_nodes: BothNodes) -> None:
    seen: Counter[tuple[str, Any]] = Counter()
    with (
        both_nodes(SETTINGS) as (theirs, ours),
        RawClient(theirs.address) as judge,
        RawClient(ours.address) as client,
    ):
        real, own = prepare(theirs, judge), prepare(ours, client)
        assert topic_configs(client) == topic_configs(judge)
        bad_keys = FindCoordinatorRequest("", CoordinatorType.SHARE.value, list(BAD_KEYS))
        refused = [one.ask(bad_keys, FindCoordinatorResponse, 6) for one in (judge, client)]
        assert refused[0] == refused[1]
        differing: list[str] = []
        for number, step in enumerate(Script(Random(1)).steps(STEPS)):
            expected, found = step.take(real), step.take(own)
            if found != expected:
                differing.append(f"step {number}: {step}\n  ours {found}\n  real {expected}")
            seen.update((step.rpc.verb, one["error_code"]) for _, one in expected)
        assert not differing, f"{len(differing)}\n" + "\n".join(differing[:10])
        differing = [
            f"ours {one}\n  real {other}"
            for one, other in zip_longest(records(own), records(real))
            if one != other
        ]
        assert not differing, f"{len(differing)} of the records\n" + "\n".join(differing[:10])
    for kind in (("write", 0), ("write", 42), ("write", 74), ("write", 124), ("read", 74)):
        assert seen[kind] > STEPS // 100, seen


def lowest_needed(client: RawClient, log_start_offset: int) -> int | None:
    """Return the offset of the oldest of the last snapshots, by the records that are left.

    None means that the log starts later by now.
    """
    found = batches(client, SHARE_GROUP_STATE.name, 0, log_start_offset)
    if isinstance(found, int):
        assert found == ErrorCode.OFFSET_OUT_OF_RANGE
        return None
    snapshots: dict[bytes, int] = {}
    for record in (one for batch in found for one in batch.records()):
        assert record.key is not None
        if SHARE_GROUP_STATE.type_id(record.key) != ShareSnapshotKey.API_KEY:
            continue
        if record.value is None:
            snapshots.pop(record.key, None)
        else:
            snapshots[record.key] = record.offset
    return min(snapshots.values())


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_same_records_are_deleted(both_nodes: BothNodes) -> None:
    with (
        both_nodes(SETTINGS | {PRUNE_INTERVAL: "500"}) as (theirs, ours),
        RawClient(theirs.address) as judge,
        RawClient(ours.address) as client,
    ):
        sides = prepare(theirs, judge), prepare(ours, client)
        for step in Script(Random(2)).steps(STEPS // 3):
            for side in sides:
                step.take(side)
        starts: list[int] = []
        for node, side in zip((theirs, ours), sides, strict=True):

            def pruned(client: RawClient = side.client) -> int | None:
                code, offset = list_offset(client, SHARE_GROUP_STATE.name, EARLIEST)
                assert code == ErrorCode.NONE
                is_over = offset > 0 and offset == lowest_needed(client, offset)
                return offset if is_over else None

            starts.append(node.process.wait_until(pruned, "what nothing needs is deleted"))
        assert starts[0] == starts[1]
