"""Clients of a quorum: they create topics and remember every answer, or want other voters."""

import threading
from collections.abc import Sequence
from random import Random
from typing import Self

from tests.support.quorum.quorum import Described, Quorum, voter_ids
from tests.support.raw_client import RawClient
from tests.support.topics import create_request
from tests.support.waiting import Threads, wait_for_change

from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from kvorum.wire.messages.create_topics import CreateTopicsResponse
from kvorum.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

ANSWER_TIMEOUT_S = 1.5
# A client that was refused everywhere lets others have the processor for a moment.
PAUSE_S = 0.01
GIVES_UP = 0.1
LEADS_NO_MORE = frozenset({ErrorCode.NOT_CONTROLLER, ErrorCode.REQUEST_TIMED_OUT})
METADATA_TOPIC = "__cluster_metadata"
Ongoing = ListPartitionReassignmentsResponse.OngoingPartitionReassignment


class Writers:
    """Clients of one quorum; as a context they write. Names are unique among all of them.

    A topic is *acknowledged* if a client heard of its creation, or later that it exists. One
    whose request had no answer is tried again, or left alone: then it may be there or not.
    """

    def __init__(self, addresses: Sequence[str], *, count: int, seed: int) -> None:
        self.acknowledged: dict[str, bytes | None] = {}
        self.wished: set[str] = set()
        self.last_leader: str | None = None
        self.retries_that_exist = 0
        self._problems: list[str] = []
        self._addresses = tuple(addresses)
        self._changed = threading.Condition()
        # Set once the clients shall end.
        self.is_over = threading.Event()
        self._period = 0
        self._progress = 0
        self._seeds = range(seed, seed + count)
        self._threads = Threads()

    def __enter__(self) -> Self:
        for number, seed in enumerate(self._seeds):
            self._threads.start(self._run, number, Random(seed))
        return self

    def __exit__(self, _kind: object, error: object, _trace: object) -> None:
        self.is_over.set()
        self._threads.join()
        if error is None:
            assert self._problems == []

    def wait_for_progress(self) -> None:
        """Return once a request that was sent after this call is acknowledged."""
        with self._changed:
            self._period += 1
            self._progress = 0
        wait_for_change(
            self._changed,
            lambda: self._progress > 0 or bool(self._problems),
            "one more request is acknowledged",
        )
        assert self._problems == []

    def _run(self, number: int, random: Random) -> None:
        try:
            _Writer(self, self._addresses, label=f"writer-{number}", random=random).run()
        except BaseException as error:  # noqa: BLE001 - the test reports it
            with self._changed:
                self._problems.append(f"writer {number}: {error!r}")
                self._changed.notify_all()

    def begin(self, names: Sequence[str]) -> int:
        """Note that topics are going to be asked for; return what `note` wants to know."""
        with self._changed:
            self.wished.update(names)
            return self._period

    def note(
        self, topics: Sequence[CreateTopicsResponse.CreatableTopicResult], *, period: int, at: str
    ) -> None:
        """Take in an acknowledgement of every one of these topics."""
        with self._changed:
            for topic in topics:
                self._note_topic(topic)
            self.last_leader = at
            self._progress += period == self._period
            self._changed.notify_all()

    def _note_topic(self, topic: CreateTopicsResponse.CreatableTopicResult) -> None:
        is_created = topic.error_code == ErrorCode.NONE
        if topic.name in self.acknowledged:
            self._problems.append(f"{topic.name} was acknowledged twice")
        self.acknowledged[topic.name] = topic.topic_id if is_created else None
        self.retries_that_exist += not is_created


class _Writer:
    """One client with one connection, to where it thinks the leader is."""

    def __init__(
        self, ledger: Writers, addresses: Sequence[str], *, label: str, random: Random
    ) -> None:
        self._ledger = ledger
        self._addresses = addresses
        self._position = random.randrange(len(addresses))
        self._client: RawClient | None = None
        self._label = label
        self._random = random

    def run(self) -> None:
        """Create topics until the end."""
        sequence = 0
        try:
            while not self._ledger.is_over.is_set():
                count = self._random.randint(1, 2)
                self._create([f"{self._label}-{sequence}-{index}" for index in range(count)])
                sequence += 1
        finally:
            self._disconnect()

    def _create(self, names: Sequence[str]) -> None:
        """Ask for topics, now and then again until one is answered."""
        is_retry = False
        while not self._ledger.is_over.is_set():
            period = self._ledger.begin(names)
            topics = self._ask(names)
            if topics is not None:
                _check_codes(topics, is_retry=is_retry)
                self._ledger.note(topics, period=period, at=self._addresses[self._position])
                return
            if self._random.random() < GIVES_UP:
                return
            is_retry = True
            self._ledger.is_over.wait(PAUSE_S)

    def _ask(
        self, names: Sequence[str]
    ) -> Sequence[CreateTopicsResponse.CreatableTopicResult] | None:
        """Return what the leader says; None, and another controller next, where none says it."""
        try:
            response = self._connected().ask(create_request(names), CreateTopicsResponse, 7)
        except (OSError, AssertionError):
            topics = None
        else:
            topics = response.topics
        if topics is None or any(topic.error_code in LEADS_NO_MORE for topic in topics):
            self._disconnect()
            self._position = (self._position + 1) % len(self._addresses)
            return None
        assert [topic.name for topic in topics] == list(names)
        return topics

    def _connected(self) -> RawClient:
        if self._client is None:
            self._client = RawClient(self._addresses[self._position])
            self._client.socket.settimeout(ANSWER_TIMEOUT_S)
        return self._client

    def _disconnect(self) -> None:
        if self._client is not None:
            self._client.socket.close()
            self._client = None


def _check_codes(
    topics: Sequence[CreateTopicsResponse.CreatableTopicResult], *, is_retry: bool
) -> None:
    """All topics of a request are made together, or were by an earlier try."""
    codes = {topic.error_code for topic in topics}
    allowed = [{ErrorCode.NONE}] + [{ErrorCode.TOPIC_ALREADY_EXISTS}] * is_retry
    assert codes in allowed, f"{topics[0].name}: {codes}, {topics[0].error_message}"


def alter(address: str, replicas: Sequence[int] | None) -> tuple[int, str | None]:
    """Ask one controller for these voters, or cancel with None; return its error and message."""
    partition = AlterPartitionReassignmentsRequest.ReassignablePartition(
        partition_index=0, replicas=None if replicas is None else list(replicas)
    )
    topic = AlterPartitionReassignmentsRequest.ReassignableTopic(METADATA_TOPIC, [partition])
    request = AlterPartitionReassignmentsRequest(timeout_ms=10_000, topics=[topic])
    with RawClient(address) as client:
        response = client.ask(request, AlterPartitionReassignmentsResponse, 1)
    if response.error_code != ErrorCode.NONE:
        return response.error_code, response.error_message
    (answered,) = response.responses[0].partitions
    return answered.error_code, answered.error_message


def ongoing(address: str) -> Ongoing | None:
    """Return the reassignment of the quorum that a controller lists, None without one."""
    with RawClient(address) as client:
        response = client.ask(
            ListPartitionReassignmentsRequest(topics=None), ListPartitionReassignmentsResponse, 0
        )
    assert response.error_code == ErrorCode.NONE
    found = [topic for topic in response.topics if topic.name == METADATA_TOPIC]
    return found[0].partitions[0] if found else None


def listed(quorum: Quorum) -> Ongoing:
    """Return the reassignment of the quorum, once the node that comes to lead lists it."""

    def look() -> Ongoing | None:
        try:
            return ongoing(quorum.leader().address)
        except (OSError, AssertionError):
            return None

    return quorum.wait_for(look, "a reassignment of the quorum is listed")


def want(quorum: Quorum, replicas: Sequence[int]) -> None:
    """State the target voters at the node that comes to lead, until that is acknowledged."""

    def is_written(found: Described) -> bool:
        try:
            code, _ = alter(quorum.members[found.leader_id].address, replicas)
        except (OSError, AssertionError):
            return False
        return code == ErrorCode.NONE

    quorum.until("the target voters are written", is_written)


def wait_until_reached(quorum: Quorum, replicas: Sequence[int]) -> Described:
    """Return what the leader says once exactly these are voters and the targets are cleared."""

    def is_so(found: Described) -> bool:
        try:
            targets = ongoing(quorum.members[found.leader_id].address)
        except (OSError, AssertionError):
            return False
        return voter_ids(found) == {*replicas} and targets is None

    return quorum.until(f"the voters are {replicas}, and nothing more is wanted", is_so)


def kill_the_leader_of_each_step(quorum: Quorum, replicas: Sequence[int]) -> list[int]:
    """Kill the leader after each change of the voters, until they are `replicas`.

    A killed controller is started again at once. Returns who was killed.
    """
    seen = list[set[int]]()
    killed = list[int]()

    def are_voters(found: Described) -> bool:
        voters = voter_ids(found)
        if voters in seen[-1:]:
            return voters == {*replicas}
        seen.append(voters)
        killed.append(found.leader_id)
        quorum.kill(found.leader_id)
        quorum.start(found.leader_id)
        return False

    quorum.until(f"the voters are {replicas}", are_voters)
    return killed
