"""Records of share groups beside a real broker: equal answers to fetches and acknowledgements."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from random import Random
from typing import Any, Final

import pytest
from tests.interop.asked_broker import serves_share
from tests.interop.clients.confluent import make_topics
from tests.interop.share_fetch_script import (
    ACCEPT,
    GROUPS,
    TOPICS,
    UNKNOWN,
    Acknowledge,
    Append,
    Batches,
    Delivered,
    Fetch,
    Script,
    Side,
    fields_of,
)
from tests.support.clients.driver import TopicWish
from tests.support.node import BothNodes, Node
from tests.support.raw_client import RawClient
from tests.support.waiting import wait_for

from kvorum.coordinator.share_partition_key import SharePartitionKey
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
)
from kvorum.wire.messages.metadata import MetadataRequest, MetadataResponse
from kvorum.wire.messages.read_share_group_state import (
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
)
from kvorum.wire.messages.share_fetch import ShareFetchRequest, ShareFetchResponse
from kvorum.wire.records import Compression

STEPS: Final = 1500
HOUR_MS: Final = "3600000"
SETTINGS: Final = {
    "group.share.max.record.lock.duration.ms": HOUR_MS,
    "group.share.record.lock.duration.ms": HOUR_MS,
    "group.share.delivery.count.limit": "4",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
RECORD_LOCKS: Final = "group.share.partition.max.record.locks"
SCARCE_LOCKS: Final = "100"
UNKNOWN_ID: Final = b"none has this id"
BARRIER: Final = "barrier"
"""The name of a group, its one member and its one topic, for `Barrier`."""
BARRIER_TOPIC: Final[Mapping[str, int]] = {BARRIER: 1}


def prepare(node: Node, client: RawClient) -> Side:
    """Make the topics, and begin the state of each share partition at the start of its log."""
    all_topics = {**TOPICS, **BARRIER_TOPIC}
    wishes = [TopicWish(name, partitions=count) for name, count in all_topics.items()]
    make_topics(node.address, *wishes)
    described = client.ask(
        MetadataRequest([MetadataRequest.MetadataRequestTopic(name=name) for name in all_topics]),
        MetadataResponse,
        12,
    )
    ids = {topic.name or "": topic.topic_id for topic in described.topics}
    share = SharePartitionKey(GROUPS[0], ids["one"], 0)
    node.process.wait_until(lambda: serves_share(client, share), "share partitions are served")
    request = InitializeShareGroupStateRequest
    topics_of_groups = {**dict.fromkeys(GROUPS, TOPICS), BARRIER: BARRIER_TOPIC}
    for group, counts in topics_of_groups.items():
        topics = [
            request.InitializeStateData(
                ids[name], [request.PartitionData(index, 1, 0) for index in range(count)]
            )
            for name, count in counts.items()
        ]
        answered = client.ask(request(group, topics), InitializeShareGroupStateResponse, 0)
        assert not any(one.error_code for topic in answered.results for one in topic.partitions)
        wait_for(partial(_is_loaded, client, group, counts, ids), "the states are read")
    return Side(client, {**ids, UNKNOWN: UNKNOWN_ID})


def _is_loaded(
    client: RawClient, group: str, counts: Mapping[str, int], ids: dict[str, bytes]
) -> bool:
    """Return whether a broker fetches from all share partitions of a group."""
    request = ShareFetchRequest
    topics = [
        request.FetchTopic(ids[name], [request.FetchPartition(index) for index in range(count)])
        for name, count in counts.items()
    ]
    answered = client.ask(
        request(group, "warming", 0, 300, 1, 1000, 10, 10, topics=topics), ShareFetchResponse, 1
    )
    places = [one for topic in answered.responses for one in topic.partitions]
    client.ask(request(group, "warming", -1), ShareFetchResponse, 1)
    return len(places) == sum(counts.values()) and not any(one.error_code for one in places)


def states(side: Side) -> list[Any]:
    """Return what the share coordinator has kept of all share partitions."""
    request = ReadShareGroupStateRequest
    found: list[Any] = []
    for group in GROUPS:
        topics = [
            request.ReadStateData(
                side.topic_ids[name], [request.PartitionData(index, 0) for index in range(count)]
            )
            for name, count in TOPICS.items()
        ]
        answered = side.client.ask(request(group, topics), ReadShareGroupStateResponse, 0)
        found += [
            (group, side.names[topic.topic_id], fields_of(one))
            for topic in answered.results
            for one in topic.partitions
        ]
    return sorted(found, key=str)


class Barrier:
    """Waits until a broker has done with the records of a session that has ended.

    When the coordinator has them, the broker may not have read the answer yet: then a write of
    another share partition is awaited, whose answer comes after that one.
    """

    def __init__(self, side: Side) -> None:
        self._side = side
        self._epoch = 0

    def wait(self, released: Sequence[Delivered]) -> None:
        """Return after each of the records is one that a fetch may have again, or never will."""
        wait_for(partial(_are_written, self._side, released), "the states of released records")
        Append(BARRIER, 0, (1,), Compression.NONE).take(self._side)
        offset = wait_for(self._fetched_offset, "a record to acknowledge")
        batches = [Batches(BARRIER, 0, [(offset, offset, [ACCEPT])])]
        step = Acknowledge(BARRIER, BARRIER, self._next_epoch(), 2, False, batches)
        code, _, _, ((_, partition),) = step.take(self._side)
        assert (code, partition["error_code"]) == (ErrorCode.NONE, ErrorCode.NONE)

    def _fetched_offset(self) -> int | None:
        """Return the offset of the next record, None if it was not there at once."""
        place = (BARRIER, 0)
        step = Fetch(BARRIER, BARRIER, self._next_epoch(), 2, 1, 1, 1, False, [place], (), ())
        _, _, _, partitions = step.take(self._side)
        for _, partition in partitions:
            for batch in partition["acquired_records"]:
                return int(batch["first_offset"])
        return None

    def _next_epoch(self) -> int:
        self._epoch += 1
        return self._epoch - 1


def _are_written(side: Side, released: Sequence[Delivered]) -> bool:
    """Return whether the coordinator knows the last deliveries of all these records."""
    kept = {(group, name, state["partition"]): state for group, name, state in states(side)}
    return all(_is_written(kept[one.group, *one.place], one) for one in released)


def _is_written(state: dict[str, Any], delivered: Delivered) -> bool:
    counts: dict[int, int] = {}
    for batch in state["state_batches"]:
        offsets = range(batch["first_offset"], batch["last_offset"] + 1)
        delivery_count: int = batch["delivery_count"]
        counts.update(dict.fromkeys(offsets, delivery_count))
    return all(
        offset < state["start_offset"] or counts.get(offset, 0) >= delivered.delivery_count
        for offset in delivered.offsets
    )


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("is_room_scarce", [False, True], ids=["room for all", "scarce room"])
def test_the_same_requests_have_the_same_answers(
    both_nodes: BothNodes, *, is_room_scarce: bool
) -> None:
    seen: Counter[tuple[str, Any]] = Counter()
    script = Script(Random(1), is_room_scarce=is_room_scarce)
    settings = {**SETTINGS, RECORD_LOCKS: SCARCE_LOCKS} if is_room_scarce else SETTINGS
    with (
        both_nodes(settings) as (theirs, ours),
        RawClient(theirs.address) as judge,
        RawClient(ours.address) as client,
    ):
        real, own = prepare(theirs, judge), prepare(ours, client)
        barriers = Barrier(real), Barrier(own)
        steps = list(script.first_steps())
        for number in range(STEPS):
            step = steps.pop(0) if steps else script.step()
            expected, found = step.take(real), step.take(own)
            assert found == expected, f"step {number}: {step}\n  ours {found}\n  real {expected}"
            script.saw(step, expected)
            if script.released:
                for barrier in barriers:
                    barrier.wait(script.released)
            if not isinstance(step, Append):
                code, _, _, partitions = expected
                seen[type(step).__name__, code] += 1
                for _, one in partitions:
                    seen["partition", one["error_code"]] += 1
                    seen["acquired", bool(one.get("acquired_records"))] += isinstance(step, Fetch)
        assert states(own) == states(real)
    for kind in (("Fetch", 122), ("Acknowledge", 123), ("partition", 42), ("partition", 121)):
        assert seen[kind], seen
    assert seen["acquired", True] > STEPS // 10, seen
