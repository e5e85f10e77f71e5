"""A client of controllers that also acts as a broker, so that partitions can be placed."""

from __future__ import annotations

import itertools
import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress

from benchmarks.node_start import CLUSTER_ID
from tests.support.played_broker import (
    BROKER_ID,
    HEARTBEAT_VERSION,
    REGISTRATION_VERSION,
    heartbeat,
    registration,
)
from tests.support.raw_client import RawClient

from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.broker_heartbeat import BrokerHeartbeatResponse
from kvorum.wire.messages.broker_registration import BrokerRegistrationResponse
from kvorum.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from kvorum.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from kvorum.wire.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse

ANSWER_SECONDS_MAX = 3.0
RETRY_SECONDS = 0.002
PATIENCE_SECONDS = 300.0
CAUGHT_UP_MS = 1000
METADATA_TOPIC = "__cluster_metadata"


class NobodyAnswersError(Exception):
    """No controller carried out a request within a long time."""


class ControllerClient:
    """A client that finds the active controller; it keeps a connection to each controller."""

    def __init__(self, label: str, *, broker_id: int = BROKER_ID) -> None:
        self._label = label
        self._broker_id = broker_id
        self._connections: dict[str, RawClient] = {}
        self._numbers = itertools.count()
        self._broker_epoch = -1

    def close(self) -> None:
        for address in list(self._connections):
            self._forget(address)

    def next_name(self) -> str:
        return f"{self._label}-{next(self._numbers)}"

    def for_same_broker(self) -> ControllerClient:
        """Return another client, for another thread, that acts as the same broker."""
        other = ControllerClient(self._label, broker_id=self._broker_id)
        other._broker_epoch = self._broker_epoch
        return other

    def create_topic(self, addresses: Iterable[str], name: str | None = None) -> float:
        """Ask the controllers in turn for a topic; return the time of the acknowledgement."""
        name = self.next_name() if name is None else name
        is_retry = False
        deadline = time.perf_counter() + PATIENCE_SECONDS
        for address in itertools.cycle(addresses):
            code = self._try_topic(address, name)
            # An earlier request may have created the topic: one without a response, or one that a
            # leader refused because it resigned meanwhile.
            if code == ErrorCode.NONE or (is_retry and code == ErrorCode.TOPIC_ALREADY_EXISTS):
                return time.perf_counter()
            is_retry = is_retry or code in {None, ErrorCode.NOT_CONTROLLER}
            if time.perf_counter() > deadline:
                raise NobodyAnswersError(f"the last response had the code {code}")
            time.sleep(RETRY_SECONDS)
        raise NobodyAnswersError("there are no controllers")

    def delete_topics(self, addresses: Iterable[str], names: list[str]) -> None:
        """Send the deletion of topics to every controller; only the active one carries it out."""
        request = DeleteTopicsRequest(topic_names=names, timeout_ms=5000)
        for address in addresses:
            with suppress(OSError, AssertionError):
                self._connection(address).ask(request, DeleteTopicsResponse, 5)

    def _try_topic(self, address: str, name: str) -> int | None:
        topic = CreateTopicsRequest.CreatableTopic(name, num_partitions=1, replication_factor=1)
        request = CreateTopicsRequest(topics=[topic], timeout_ms=5000)
        try:
            response = self._connection(address).ask(request, CreateTopicsResponse, 7)
        except (OSError, AssertionError):
            self._forget(address)
            return None
        return response.topics[0].error_code

    def play_broker(self, addresses: Collection[str]) -> None:
        """Register a broker unless it is registered, and keep it unfenced for some seconds."""
        deadline = time.perf_counter() + PATIENCE_SECONDS
        while not self.beat_once(addresses):
            if time.perf_counter() > deadline:
                raise NobodyAnswersError("no broker can be registered")
            time.sleep(10 * RETRY_SECONDS)

    def beat_once(self, addresses: Collection[str]) -> bool:
        """Register if needed, send a heartbeat, and return whether the broker is unfenced."""
        for address in list(addresses):
            try:
                if self._heartbeat(address):
                    return True
            except (OSError, AssertionError):
                self._forget(address)
        return False

    def _heartbeat(self, address: str) -> bool:
        connection = self._connection(address)
        if self._broker_epoch < 0:
            registered = connection.ask(
                registration(cluster_id=CLUSTER_ID, broker_id=self._broker_id),
                BrokerRegistrationResponse,
                REGISTRATION_VERSION,
            )
            if registered.error_code != ErrorCode.NONE:
                return False
            self._broker_epoch = registered.broker_epoch
        beat = heartbeat(broker_epoch=self._broker_epoch, broker_id=self._broker_id)
        response = connection.ask(beat, BrokerHeartbeatResponse, HEARTBEAT_VERSION)
        return response.error_code == ErrorCode.NONE and not response.is_fenced

    def settled_leader(self, addresses: Mapping[int, str]) -> int:
        """Wait until all controllers follow one of them closely; return the leader's id."""
        deadline = time.perf_counter() + PATIENCE_SECONDS
        while time.perf_counter() < deadline:
            for node_id, address in addresses.items():
                described = self.describe(address)
                if described is not None and _is_settled(described, node_id, len(addresses)):
                    return node_id
            time.sleep(0.05)
        raise NobodyAnswersError("the quorum does not settle")

    def describe(self, address: str) -> DescribeQuorumResponse.PartitionData | None:
        partition = DescribeQuorumRequest.PartitionData(partition_index=0)
        topic = DescribeQuorumRequest.TopicData(METADATA_TOPIC, [partition])
        request = DescribeQuorumRequest(topics=[topic])
        try:
            response = self._connection(address).ask(request, DescribeQuorumResponse, 2)
        except (OSError, AssertionError):
            self._forget(address)
            return None
        return response.topics[0].partitions[0] if response.topics else None

    def _connection(self, address: str) -> RawClient:
        if address not in self._connections:
            connection = RawClient(address)
            connection.socket.settimeout(ANSWER_SECONDS_MAX)
            self._connections[address] = connection
        return self._connections[address]

    def _forget(self, address: str) -> None:
        connection = self._connections.pop(address, None)
        if connection is not None:
            connection.socket.close()


def _is_settled(
    described: DescribeQuorumResponse.PartitionData, node_id: int, voter_count: int
) -> bool:
    """Return whether a leader reports that all voters were at its log end a moment ago."""
    if described.error_code != ErrorCode.NONE or described.leader_id != node_id:
        return False
    voters = described.current_voters
    newest = max(voter.last_fetch_timestamp for voter in voters)
    return (
        len(voters) == voter_count
        and len({voter.log_end_offset for voter in voters}) == 1
        and all(newest - voter.last_fetch_timestamp < CAUGHT_UP_MS for voter in voters)
    )
