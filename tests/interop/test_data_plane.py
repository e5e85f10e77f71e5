"""Random requests for records to leaders that change, and to followers, beside real brokers."""

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest
from tests.interop.broker_cluster import BrokerCluster, RunBrokers
from tests.interop.clients.confluent import make_topics
from tests.interop.data_plane_script import TOPICS, Script, Step
from tests.interop.traffic import log_bytes
from tests.support.clients.driver import TopicWish
from tests.support.header_variants import header_variants
from tests.support.node import BothNodes, Node
from tests.support.raw_client import RawClient
from tests.support.record_requests import batch, fetch, list_offset, produce
from tests.support.topics import create_topic, topic_id, wait_until_led
from tests.support.waiting import wait_for

from kvorum.storage.log.producer_snapshot import decode_producer_snapshot
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from kvorum.wire.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from kvorum.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
)
from kvorum.wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from kvorum.wire.messages.fetch import FetchRequest, FetchResponse
from kvorum.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kvorum.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponsePartition,
)
from kvorum.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from kvorum.wire.messages.produce import ProduceRequest, ProduceResponse
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
STAMPED: Final = "stamped"
"""The topic whose records have the time at which each server got them."""
EARLIEST, MAX_TIMESTAMP = -2, -3


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


def mask_times_of(partition: ProduceResponse.PartitionProduceResponse) -> None:
    partition.log_append_time_ms = min(partition.log_append_time_ms, 1)
    partition.error_message = masked(partition.error_message)
    for record in partition.record_errors:
        record.batch_index_error_message = masked(record.batch_index_error_message)


def mask_producers(
    described: DescribeProducersResponse.PartitionResponse, *, is_stamped: bool
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


def names_and_ids(
    client: RawClient, topics: Iterable[str]
) -> tuple[dict[bytes, str], dict[str, bytes]]:
    """Return the names of a server's topics by their ids, and the ids by the names."""
    ids = {name: topic_id(client, name) for name in topics}
    return {known: name for name, known in ids.items()}, ids


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


BROKERS: Final = (11, 12)
NAMES: Final = ("plain", "rolled", "small")
"""The topics of the script, by their names in it."""
TERMS: Final = int(os.environ.get("KVORUM_DATA_PLANE_TERMS", "8"))
STEPS_IN_TERM: Final = 60
NEW_TOPICS: Final = 20
TO_FOLLOWER: Final = 0.3
LATEST: Final = -1
ANY_REPLICA: Final = -2
"""The replica id of what looks at a log from outside: it learns the log's end."""
MEANWHILE: Final = {
    ErrorCode.NONE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.OFFSET_NOT_AVAILABLE,
}
"""The answers to ListOffsets between two leaders."""
FIRST_ASKED: Final = ("produce", "list", "fetch")
NOT_YET: Final = {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_LEADER_OR_FOLLOWER}
"""The refusals of a leader that does not know yet of a topic that was created just now."""


@dataclass
class Side:
    """Two brokers of one kind, with a connection to each."""

    cluster: BrokerCluster
    clients: dict[int, RawClient]
    leader: int = BROKERS[0]

    @property
    def follower(self) -> int:
        (other,) = set(BROKERS) - {self.leader}
        return other

    def create(self, name: str, replicas: Sequence[int]) -> None:
        configs = TOPICS.get(name, {})
        create_topic(self.clients[self.leader], name, replicas=replicas, configs=configs)

    def described(self, name: str, broker: int) -> MetadataResponsePartition | None:
        request = MetadataRequest([MetadataRequestTopic(name=name)])
        (topic,) = self.clients[broker].ask(request, MetadataResponse, 12).topics
        return topic.partitions[0] if topic.partitions else None

    def wait_until_led(self, *names: str) -> int:
        """Wait until both brokers serve the leader's topics; return the epoch that these have."""

        def epochs() -> set[int | None]:
            return {self._epoch_seen(name, broker) for name in names for broker in BROKERS}

        wait_for(
            lambda: len(epochs()) == 1 and None not in epochs(),
            f"{self.leader} leads {names}",
            otherwise=epochs,
        )
        (epoch,) = epochs()
        assert epoch is not None
        return epoch

    def _epoch_seen(self, name: str, broker: int) -> int | None:
        seen = self.described(name, broker)
        if seen is None or seen.leader_id != self.leader or set(seen.isr_nodes) != set(BROKERS):
            return None
        # The other broker follows once it refuses what a leader is asked for.
        code, _ = list_offset(self.clients[broker], name, LATEST)
        expected = ErrorCode.NONE if broker == self.leader else ErrorCode.NOT_LEADER_OR_FOLLOWER
        return seen.leader_epoch if code == expected else None

    def settle(self, *names: str) -> None:
        """Wait until the follower has everything, and knows that it is committed."""
        for name in names:
            wait_for(partial(self._is_settled, name), f"the replicas of {name} agree")

    def _is_settled(self, name: str) -> bool:
        leader, follower = self.clients[self.leader], self.clients[self.follower]
        _, end = list_offset(leader, name, LATEST, replica_id=ANY_REPLICA)
        seen = [fetch(client, name, end) for client in (leader, follower)]
        return all(
            each.error_code == ErrorCode.NONE
            and each.high_watermark == end
            and each.log_start_offset == seen[0].log_start_offset
            for each in seen
        )

    def elect(self, *names: str) -> None:
        """Let the follower lead, as soon as a record is committed of which it may not know that.

        Meanwhile no broker goes back behind what is committed.
        """
        any_broker = self.clients[self.leader]
        order = [self.follower, self.leader]
        partition = AlterPartitionReassignmentsRequest.ReassignablePartition(0, order)
        wish = AlterPartitionReassignmentsRequest(
            timeout_ms=10_000,
            topics=[
                AlterPartitionReassignmentsRequest.ReassignableTopic(name, [partition])
                for name in names
            ],
        )
        assert any_broker.ask(wish, AlterPartitionReassignmentsResponse, 0).error_code == 0
        committed = {
            name: produce(any_broker, name, batch(b"last")).base_offset + 1 for name in names
        }
        partitions = [ElectLeadersRequest.TopicPartitions(name, [0]) for name in names]
        election = ElectLeadersRequest(0, partitions, 10_000)
        assert any_broker.ask(election, ElectLeadersResponse, 2).error_code == ErrorCode.NONE
        self.leader = self.follower

        def is_over() -> bool:
            answers = [
                (name, *list_offset(client, name, LATEST))
                for name in names
                for client in self.clients.values()
            ]
            for name, code, offset in answers:
                assert code in MEANWHILE, answers
                assert code != ErrorCode.NONE or offset >= committed[name], answers
            return sum(code == ErrorCode.NONE for _, code, _ in answers) == len(names)

        wait_for(is_over, f"{self.leader} alone answers for {names}")


@pytest.fixture(scope="module")
def sides(run_brokers: RunBrokers) -> Iterator[list[Side]]:
    """Real brokers and ours, in this order, each on a controller of ours."""
    with ExitStack() as stack:
        made: list[Side] = []
        for ours in ((), BROKERS):
            cluster = stack.enter_context(run_brokers(brokers=len(BROKERS), ours=ours))
            clients = {
                node_id: stack.enter_context(RawClient(cluster.brokers[node_id].address))
                for node_id in BROKERS
            }
            made.append(Side(cluster, clients))
        yield made


@pytest.mark.slow
def test_leaders_that_change_answer_as_kafkas(sides: list[Side]) -> None:
    for side in sides:
        for name in NAMES:
            side.create(name, BROKERS)
    script = Script(Random(SEED), int(time.time() * 1000), NAMES)
    differences: list[str] = []
    for _ in range(TERMS):
        (script.leader_epoch,) = {side.wait_until_led(*NAMES) for side in sides}
        for step in script.steps(STEPS_IN_TERM):
            is_to_leader = script.random.random() >= TO_FOLLOWER
            expected, got = (_answer(side, step, is_to_leader=is_to_leader) for side in sides)
            real_leader = sides[0].clients[sides[0].leader]
            if got != expected and not is_of_deleted_record(real_leader, step):
                differences.append(
                    f"epoch {script.leader_epoch}, to leader: {is_to_leader}: {step}\n"
                    f"  expected {expected}\n  got      {got}"
                )
        for side in sides:
            side.elect(*NAMES)
    assert differences == [], "\n".join(differences[:5]) + f"\n{len(differences)} differences"
    assert script.leader_epoch >= TERMS - 1
    for name in NAMES:
        logs = {
            log_bytes(side.cluster.brokers[node_id].folder, name)
            for side in sides
            for node_id in BROKERS
        }
        assert len(logs) == 1, name


def _answer(side: Side, step: Step, *, is_to_leader: bool) -> object:
    client = side.clients[side.leader if is_to_leader else side.follower]
    names, ids = names_and_ids(client, NAMES)
    response = client.ask(step.addressed(ids), RESPONSES[type(step.request)], step.version)
    if isinstance(step.request, ProduceRequest | DeleteRecordsRequest):
        side.settle(*NAMES)
    if isinstance(response, ProduceResponse | FetchResponse):
        for endpoint in response.node_endpoints:
            endpoint.port = 0
    return comparable(response, names)


@pytest.mark.slow
def test_a_topic_serves_from_its_first_answer_on(sides: list[Side]) -> None:
    """Ours serves whatever is asked first; Kafka may refuse it, and clients then ask again."""
    for side in sides:
        for number in range(NEW_TOPICS):
            name, leader = f"new-{number}", BROKERS[number % 2]
            side.create(name, [leader, *(set(BROKERS) - {leader})])
            codes = _codes_until_served(side, name, leader, first=FIRST_ASKED[number % 3])
            seen = [code for _, code in codes]
            assert set(seen) <= NOT_YET | {ErrorCode.NONE}, codes
            assert set(seen[seen.index(ErrorCode.NONE) :]) == {ErrorCode.NONE}, codes
            if side.cluster.brokers[leader].kind == "kvorum":
                assert set(seen) == {ErrorCode.NONE}, codes
            stored = codes.count(("produce", ErrorCode.NONE))
            assert list_offset(side.clients[leader], name, LATEST) == (ErrorCode.NONE, stored)


def _codes_until_served(side: Side, name: str, leader: int, *, first: str) -> list[tuple[str, int]]:
    """Return what is asked in turn, from the topic's naming on, with the code of each answer."""
    client = side.clients[leader]
    requests: dict[str, Callable[[], int]] = {
        "produce": lambda: produce(client, name, batch(b"first")).error_code,
        "list": lambda: list_offset(client, name, LATEST)[0],
        "fetch": lambda: fetch(client, name, 0).error_code,
    }
    start = FIRST_ASKED.index(first)
    order = FIRST_ASKED[start:] + FIRST_ASKED[:start]
    codes: list[tuple[str, int]] = []

    def is_served() -> bool:
        kind = order[len(codes) % len(order)]
        codes.append((kind, requests[kind]()))
        last = [code for _, code in codes[-len(order) :]]
        return last == [ErrorCode.NONE] * len(order)

    wait_for(lambda: side.described(name, leader), f"{name} is named")
    wait_for(is_served, f"{name} is served", otherwise=lambda: codes)
    return codes
