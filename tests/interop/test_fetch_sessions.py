"""Fetch sessions beside a real broker: random requests, right and wrong ones, equal answers."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Final, NamedTuple

import pytest
from tests.interop.clients.confluent import make_topics
from tests.support.clients.driver import TopicWish
from tests.support.node import BothNodes
from tests.support.raw_client import RawClient
from tests.support.topics import delete_topic, topic_id, wait_until_led

from kvorum.wire.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from kvorum.wire.messages.fetch import FetchRequest, FetchResponse
from kvorum.wire.messages.produce import ProduceRequest, ProduceResponse
from kvorum.wire.records import RecordData, build_batch, read_batches

STEPS: Final = int(os.environ.get("KVORUM_FETCH_SESSION_STEPS", "1500"))
SEED: Final = int(os.environ.get("KVORUM_FETCH_SESSION_SEED", "1"))
TOPICS: Final = ("one", "two", "three")
PARTITIONS: Final = 3
FIRST_WITH_IDS: Final = 13
UNKNOWN: Final = "unknown"
IDS_OUTSIDE: Final = (5, -5, 2**31 - 1, -(2**31), 1_000_000_000)


class Asked(NamedTuple):
    topic: str
    partition: int
    offset: int
    max_bytes: int


class Step(NamedTuple):
    """A Fetch request, without what differs between two servers."""

    version: int
    session: int | None
    """The number of the session, None for none; a negative one is an id never given out."""

    epoch: int
    asked: list[Asked]
    forgotten: list[tuple[str, int]]


@dataclass
class Session:
    """The client's side of a session."""

    version: int
    epoch: int = 1
    members: set[tuple[str, int]] = field(default_factory=set[tuple[str, int]])


@dataclass
class Server:
    """One of the two, with its ids of topics, past ones too, and of sessions."""

    client: RawClient
    servers: str
    topic_ids: dict[str, bytes] = field(default_factory=dict[str, bytes])
    names: dict[bytes, str] = field(default_factory=dict[bytes, str])
    sessions: list[int] = field(default_factory=list[int])

    def learn(self, name: str) -> None:
        """Wait until a topic is there, and take note of its id."""
        wait_until_led(self.client, name, partition=PARTITIONS - 1)
        found = topic_id(self.client, name)
        self.topic_ids[name] = found
        self.names[found] = name

    def ask(self, step: Step) -> tuple[int, int, list[object]]:
        """Return the error, the session id and what is comparable of the partitions."""
        with_ids = step.version >= FIRST_WITH_IDS
        topics: list[FetchRequest.FetchTopic] = []
        for one in step.asked:
            name, topic_id = self._named(one.topic, with_ids=with_ids)
            wish = FetchRequest.FetchPartition(one.partition)
            wish.fetch_offset, wish.partition_max_bytes = one.offset, one.max_bytes
            topics.append(FetchRequest.FetchTopic(name, topic_id, [wish]))
        forgotten = [
            FetchRequest.ForgottenTopic(*self._named(topic, with_ids=with_ids), [partition])
            for topic, partition in step.forgotten
        ]
        request = FetchRequest(
            max_wait_ms=0,
            max_bytes=1 << 30,
            session_id=self._session_id(step.session),
            session_epoch=step.epoch,
            topics=topics,
            forgotten_topics_data=forgotten,
        )
        answer = self.client.ask(request, FetchResponse, step.version)
        return answer.error_code, answer.session_id, self._comparable(answer)

    def _session_id(self, number: int | None) -> int:
        if number is None:
            return 0
        return IDS_OUTSIDE[number] if number < 0 else self.sessions[number]

    def _named(self, topic: str, *, with_ids: bool) -> tuple[str, bytes]:
        if not with_ids:
            return topic, bytes(16)
        return "", self.topic_ids.get(topic, b"no topic has it.")

    def _comparable(self, answer: FetchResponse) -> list[object]:
        return [
            (
                topic.topic or self.names.get(topic.topic_id, UNKNOWN),
                partition.partition_index,
                partition.error_code,
                partition.high_watermark,
                partition.last_stable_offset,
                partition.log_start_offset,
                partition.aborted_transactions,
                offsets(partition.records or b""),
            )
            for topic in answer.responses
            for partition in topic.partitions
        ]


def offsets(records: bytes | memoryview) -> list[int]:
    """Return the offsets of the batches of a response; Kafka may cut the last one off."""
    return [batch.base_offset for batch in read_batches(records, is_cut_allowed=True)]


@dataclass
class Script:
    """Makes up requests, as clients that sometimes err."""

    random: Random
    sessions: list[Session] = field(default_factory=list[Session])

    def step(self) -> Step:
        random = self.random
        version = random.choice((7, 11, 12, 13, 16, 18))
        kind = random.random()
        if kind < 0.08 or not self.sessions:
            return Step(version, None, random.choice((0, 0, 0, -1)), self._asked(), [])
        number = random.randrange(max(0, len(self.sessions) - 4), len(self.sessions))
        session = self.sessions[number]
        if kind < 0.12:
            return Step(version, number, random.choice((0, -1)), self._asked(), [])
        if kind < 0.15:
            return Step(version, -random.randrange(1, 6), random.choice((-1, 0, 1)), [], [])
        if kind < 0.18:
            epoch = session.epoch + random.choice((-1, 1, 5))
            return Step(session.version, number, epoch, self._asked(), [])
        if kind < 0.21:
            return Step(version, number, session.epoch, [], [])
        members = sorted(session.members)
        forgotten = random.sample(members, min(len(members), random.choice((0, 0, 0, 1, 2))))
        if random.random() < 0.02:
            forgotten = members
        asked = self._asked() if random.random() < 0.5 else []
        return Step(session.version, number, session.epoch, asked, forgotten)

    def _asked(self) -> list[Asked]:
        random = self.random
        return [
            Asked(
                random.choice((*TOPICS, *TOPICS, UNKNOWN)),
                random.choice((0, 1, 2, 2, 7)),
                random.choice((0, 1, 2, 5, 9, 40)),
                random.choice((1 << 20, 1 << 20, 120, 0)),
            )
            for _ in range(random.choice((1, 2, 3, 6)))
        ]

    def note(self, step: Step, error: int, *, is_new: bool) -> None:
        """Follow the sessions as a client does."""
        if is_new:
            session = Session(step.version)
            session.members = {(one.topic, one.partition) for one in step.asked}
            self.sessions.append(session)
        elif error == 0 and step.epoch > 0 and step.session is not None and step.session >= 0:
            session = self.sessions[step.session]
            session.epoch += 1
            session.members |= {(one.topic, one.partition) for one in step.asked}
            session.members -= set(step.forgotten)


@pytest.fixture(scope="module")
def servers(both_nodes: BothNodes) -> Iterator[tuple[Server, Server]]:
    # So few that some requests find no room for a session.
    slots = {"max.incremental.fetch.session.cache.slots": "64"}
    with (
        both_nodes(slots) as (real, ours),
        RawClient(real.address) as theirs,
        RawClient(ours.address) as mine,
    ):
        both = Server(theirs, real.address), Server(mine, ours.address)
        for topic in TOPICS:
            create(both, topic)
        yield both


def create(both: tuple[Server, Server], topic: str) -> None:
    for server in both:
        make_topics(server.servers, TopicWish(topic, partitions=PARTITIONS))
        server.learn(topic)


def recreate(both: tuple[Server, Server], topic: str) -> None:
    for server in both:
        delete_topic(server.client, topic)
    create(both, topic)


def change_log(random: Random, both: tuple[Server, Server]) -> None:
    """Append to a partition, or delete its first records."""
    topic, partition = random.choice(TOPICS), random.randrange(PARTITIONS)
    if random.random() < 0.15:
        offset = DeleteRecordsRequest.DeleteRecordsPartition(partition, random.choice((1, 3, 6)))
        deleted = DeleteRecordsRequest.DeleteRecordsTopic(topic, [offset])
        for server in both:
            server.client.ask(DeleteRecordsRequest([deleted], 5000), DeleteRecordsResponse, 2)
        return
    records = bytes(build_batch([RecordData(random.randbytes(40), b"key", 1_700_000_000_000)]))
    data = ProduceRequest.PartitionProduceData(partition, records)
    sent = ProduceRequest.TopicProduceData(topic, partition_data=[data])
    for server in both:
        production = ProduceRequest(None, 1, 5000, [sent])
        (answered,) = server.client.ask(production, ProduceResponse, 9).responses
        assert answered.partition_responses[0].error_code == 0


@pytest.mark.slow
def test_answers_are_those_of_kafka(servers: tuple[Server, Server]) -> None:
    theirs, mine = servers
    random = Random(SEED)
    script = Script(random)
    differences: list[str] = []
    listed = 0
    for number in range(STEPS):
        if random.random() < 0.4:
            change_log(random, servers)
        if random.random() < 0.004:
            recreate(servers, random.choice(TOPICS))
        step = script.step()
        error, their_id, expected = theirs.ask(step)
        my_error, my_id, got = mine.ask(step)
        listed += len(got)
        is_new = error == 0 and step.epoch == 0 and their_id != 0
        if (my_error, got, my_id != 0) != (error, expected, their_id != 0):
            differences.append(
                f"step {number}: {step}\n  expected {error} {their_id} {expected}\n"
                f"  got      {my_error} {my_id} {got}"
            )
        if is_new:
            theirs.sessions.append(their_id)
            mine.sessions.append(my_id)
        script.note(step, error, is_new=is_new)
    assert differences == [], "\n".join(differences[:5]) + f"\n{len(differences)} differences"
    assert listed > STEPS
    assert len(script.sessions) > 64
