"""Random requests for records to leaders that change, and to followers, beside real brokers."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Final

import pytest
from tests.interop.broker_cluster import BrokerCluster, RunBrokers
from tests.interop.data_plane_answers import (
    RESPONSES,
    comparable,
    is_of_deleted_record,
    names_and_ids,
)
from tests.interop.data_plane_script import TOPICS, Script, Step
from tests.interop.replicated_records import log_bytes
from tests.support.raw_client import RawClient
from tests.support.record_requests import batch, fetch, list_offset, produce
from tests.support.topics import create_topic
from tests.support.waiting import wait_for

from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from kvorum.wire.messages.delete_records import DeleteRecordsRequest
from kvorum.wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from kvorum.wire.messages.fetch import FetchResponse
from kvorum.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponsePartition,
)
from kvorum.wire.messages.produce import ProduceRequest, ProduceResponse

BROKERS: Final = (11, 12)
NAMES: Final = ("plain", "rolled", "small")
"""The topics of the script, by their names in it."""
SEED: Final = int(os.environ.get("KVORUM_DATA_PLANE_SEED", "1"))
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
        epochs = {side.wait_until_led(*NAMES) for side in sides}
        (script.leader_epoch,) = epochs
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
    """Until then it refuses with codes after which every client asks for the leader again."""
    for side in sides:
        for number in range(NEW_TOPICS):
            name, leader = f"new-{number}", BROKERS[number % 2]
            side.create(name, [leader, *(set(BROKERS) - {leader})])
            codes = _codes_until_served(side, name, leader)
            assert set(codes) <= NOT_YET | {ErrorCode.NONE}, codes
            first = codes.index(ErrorCode.NONE)
            assert set(codes[first:]) == {ErrorCode.NONE}, codes
            stored = codes[::3].count(ErrorCode.NONE)
            assert list_offset(side.clients[leader], name, LATEST) == (ErrorCode.NONE, stored)


def _codes_until_served(side: Side, name: str, leader: int) -> list[int]:
    """Return the codes of Produce, ListOffsets and Fetch in turn, from the topic's naming on."""
    client = side.clients[leader]
    requests: tuple[Callable[[], int], ...] = (
        lambda: produce(client, name, batch(b"first")).error_code,
        lambda: list_offset(client, name, LATEST)[0],
        lambda: fetch(client, name, 0).error_code,
    )
    codes: list[int] = []

    def is_served() -> bool:
        codes.append(requests[len(codes) % len(requests)]())
        return codes[-len(requests) :] == [ErrorCode.NONE] * len(requests)

    wait_for(lambda: side.described(name, leader), f"{name} is named")
    wait_for(is_served, f"{name} is served", otherwise=lambda: codes)
    return codes
