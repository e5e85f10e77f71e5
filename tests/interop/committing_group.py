"""A group of consumers, each of which commits what it has read before it reads on."""

import threading
from collections import Counter
from collections.abc import Mapping
from typing import Final, Self

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition
from tests.support.threads import Threads
from tests.support.waiting import PATIENCE_S, wait_for

POLL_S: Final = 0.2
BATCH_MAX: Final = 500


class CommittingGroup:
    """Members that read a topic whose values are their own offsets; use as a context.

    `lost_commits` lists partitions that a member took over at an offset below one whose commit
    had been acknowledged before, and of records that were not what their offsets say.
    """

    def __init__(self, servers: str, topic: str, group: str, *, members: int) -> None:
        self.commits = 0
        self.takeovers = 0
        self.doubled = 0
        self.lost_commits: list[str] = []
        self._topic = topic
        self._settings = {
            "bootstrap.servers": servers,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "session.timeout.ms": 6000,
            "socket.timeout.ms": 5000,
            "log_level": 0,
        }
        self._lock = threading.Lock()
        self._acknowledged: Counter[int] = Counter()
        self._seen: dict[int, set[int]] = {}
        self._is_over = threading.Event()
        self._members = members
        self._threads = Threads()

    def __enter__(self) -> Self:
        for _ in range(self._members):
            self._threads.start(self._run)
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._threads.join()

    def wait_for(self, counts: Mapping[int, int]) -> None:
        """Wait until so many records of each partition are read, and committed."""

        def missing() -> dict[int, tuple[int, int]]:
            with self._lock:
                return {
                    partition: (len(self._seen.get(partition, ())), self._acknowledged[partition])
                    for partition, count in counts.items()
                    if not len(self._seen.get(partition, ()))
                    == count
                    == self._acknowledged[partition]
                }

        wait_for(
            lambda: not missing(),
            f"the group has read and committed {counts}",
            otherwise=lambda: f"it has read and committed too little: {missing()}",
        )

    def _run(self) -> None:
        consumer = Consumer(self._settings)
        consumer.subscribe([self._topic], on_assign=self._take_over)
        while not self._is_over.is_set():
            messages = consumer.consume(BATCH_MAX, POLL_S)
            self._note([message for message in messages if message.error() is None])
            if messages:
                self._commit(consumer)
        consumer.close()

    def _take_over(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        with self._lock:
            before = {one.partition: self._acknowledged[one.partition] for one in partitions}
        try:
            found = consumer.committed(partitions, PATIENCE_S / 3)
        except KafkaException:
            return  # The coordinator is down; the assignment fails, and there will be another one.
        with self._lock:
            self.takeovers += len(partitions)
            self.lost_commits += [
                f"partition {one.partition}: taken over at {one.offset}, {known} was committed"
                for one in found
                # None at all is a negative offset.
                if one.error is None and max(one.offset, 0) < (known := before[one.partition])
            ]

    def _note(self, messages: list[Message]) -> None:
        with self._lock:
            for message in messages:
                partition, offset = message.partition() or 0, message.offset() or 0
                seen = self._seen.setdefault(partition, set())
                self.doubled += offset in seen
                seen.add(offset)
                if message.value() != str(offset).encode():
                    self.lost_commits.append(f"{partition}, {offset}: {message.value()!r}")

    def _commit(self, consumer: Consumer) -> None:
        try:
            stored = consumer.commit(asynchronous=False) or []
        except KafkaException:
            return  # The group rebalances, or its coordinator moves: nothing was acknowledged.
        with self._lock:
            for one in stored:
                if one.error is None and one.offset >= 0:
                    self.commits += 1
                    known = self._acknowledged[one.partition]
                    self._acknowledged[one.partition] = max(known, one.offset)
