"""Clients that create topics until the node is gone, and remember what it acknowledged."""

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.support.raw_client import RawClient
from tests.support.topics import TopicFacts, create_request
from tests.support.waiting import PATIENCE_S, wait_for_change

from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.create_topics import CreateTopicsResponse

TOPICS_EACH = 2
IS_THERE = frozenset({ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS})
# A broker that a busy machine kept from its heartbeats is fenced for a moment; a client asks again.
ASK_AGAIN = frozenset({ErrorCode.INVALID_REPLICATION_FACTOR, ErrorCode.REQUEST_TIMED_OUT})


@dataclass
class Ledger:
    """What clients were told, and what they asked for without an answer."""

    acknowledged: dict[str, TopicFacts] = field(default_factory=dict[str, TopicFacts])
    pending: set[str] = field(default_factory=set[str])
    requests_answered: int = 0
    problems: list[str] = field(default_factory=list[str])


class Stream:
    """Several clients at once that create topics on one node, each request after the other."""

    def __init__(self, address: str, *, label: str, clients: int, ledger: Ledger) -> None:
        self._address = address
        self._label = label
        self._ledger = ledger
        self._answered = 0
        self._changed = threading.Condition()
        self._is_over = False
        retries = sorted(ledger.pending)
        self._threads = [
            threading.Thread(target=self._run, args=[number, retries[number::clients]], daemon=True)
            for number in range(clients)
        ]

    def start(self) -> None:
        """Let the clients go."""
        for thread in self._threads:
            thread.start()

    def wait_for_answers(self, count: int) -> None:
        """Return once so many requests of this stream were answered."""
        wait_for_change(
            self._changed,
            lambda: self._answered >= count or bool(self._ledger.problems),
            f"{count} requests are answered",
            otherwise=lambda: f"{self._answered} were",
        )
        assert self._ledger.problems == []

    def join(self) -> None:
        """Wait until every client has noticed that the node is gone."""
        self._is_over = True
        for thread in self._threads:
            thread.join(PATIENCE_S)
            assert not thread.is_alive()
        assert self._ledger.problems == []

    def _run(self, number: int, retries: list[str]) -> None:
        sequence = 0
        try:
            with RawClient(self._address) as client:
                if retries:
                    self._create(client, retries)
                while not self._is_over:
                    names = [
                        f"{self._label}-{number}-{sequence}-{index}" for index in range(TOPICS_EACH)
                    ]
                    self._create(client, names)
                    sequence += 1
        except (OSError, EOFError):
            return
        except Exception as error:  # noqa: BLE001 - the test reports it
            self._note_problem(f"{type(error).__name__}: {error}")

    def _create(self, client: RawClient, names: Iterable[str]) -> None:
        request = create_request([])
        for name in names:
            request.topics += create_request([name], partition_count=partition_count(name)).topics
        with self._changed:
            self._ledger.pending.update(topic.name for topic in request.topics)
        client.send(request, 7)
        frame = client.read_frame()
        if frame is None:
            raise EOFError
        self._note(frame)

    def _note(self, frame: bytes) -> None:
        # Flexible response header: correlation id and an empty set of tags.
        response, _ = CreateTopicsResponse.decode_from(frame, 5, 7)
        with self._changed:
            for topic in response.topics:
                self._note_topic(topic)
            self._ledger.requests_answered += 1
            self._answered += 1
            self._changed.notify_all()

    def _note_topic(self, topic: CreateTopicsResponse.CreatableTopicResult) -> None:
        if topic.error_code in IS_THERE:
            self._ledger.pending.discard(topic.name)
        if topic.error_code == ErrorCode.NONE:
            if topic.name in self._ledger.acknowledged:
                self._ledger.problems.append(f"{topic.name} was created twice")
            facts = TopicFacts(topic.topic_id, topic.num_partitions)
            self._ledger.acknowledged[topic.name] = facts
        elif topic.error_code not in IS_THERE | ASK_AGAIN:
            self._ledger.problems.append(f"{topic.name}: error {topic.error_code}")

    def _note_problem(self, text: str) -> None:
        with self._changed:
            self._ledger.problems.append(text)
            self._changed.notify_all()


def partition_count(name: str) -> int:
    """Return how many partitions a topic is to have: 1 or 2, by its name's last digit."""
    return 1 + int(name.rpartition("-")[2])
