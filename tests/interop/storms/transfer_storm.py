"""Brokers that are killed at random beneath transfers between accounts, in transactions.

`python -m tests.interop.storms.transfer_storm --minutes 10 --ours 11,12,13` does for long, and with
some real brokers if wanted, what the test does for a short while. A transfer takes from an account
in one partition and gives to one in another. Each order is copied, in a transaction with the
group's offset, by an application that is killed too.
"""

import importlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from random import Random
from typing import Any, Final, Self

from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from tests.interop.broker_cluster import THREE_REPLICAS, BrokerCluster
from tests.interop.clients.confluent import read_to_end, transactional_producer
from tests.interop.storms.storm_command import EVERYBODY, StormRun, run_storm, storm_parser
from tests.interop.written_history import WrittenHistory
from tests.support.node import Kind
from tests.support.waiting import PATIENCE_S, Threads, wait_for

from kvorum.client_histories.anomalies import Legality, Settings
from kvorum.client_histories.check import check_history
from kvorum.client_histories.reader import read_history

ACCOUNTS: Final = "accounts"
ORDERS: Final = "orders"
COPIES: Final = "copies"
PARTITIONS: Final = 3
TRANSFERRING: Final = 3
"""The applications that transfer."""
GROUP: Final = "copying"
ABORTED: Final = 0.2
KILLED: Final = 0.1
"""The shares of transactions that are aborted, and that their application does not live to end."""
ORDERS_AT_ONCE: Final = 10
POLL_S: Final = 0.2
POLLED_MAX: Final = 500
NUMBERS_OF_ONE: Final = 10_000_000
"""The numbers of transfers that one application may use."""
TRY_S: Final = 5.0
"""The time that a client's call may take before the application is started again."""
_PAUSE_S: Final = (1.0, 6.0)
_DOWN_S: Final = (0.2, 2.0)


class Application:
    """An application that works in transactions until the context ends; it starts again and again.

    `work` begins and ends transactions with a producer, which has the number of a process, until
    it raises KafkaException.
    """

    def __init__(
        self,
        servers: str,
        name: str,
        work: Callable[[Producer, int], None],
        history: WrittenHistory,
    ) -> None:
        self._history = history
        self._servers = servers
        self._name = name
        self._work = work
        self._is_over = threading.Event()
        self._threads = Threads()
        self.starts = 0

    def __enter__(self) -> Self:
        self._threads.start(self._run)
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._threads.join()

    def _run(self) -> None:
        while not self._is_over.is_set():
            try:
                producer = transactional_producer(
                    self._servers, self._name, transaction_timeout_ms=10_000, linger_ms=0
                )
                self.starts += 1
                process = self._history.new_process()
                while not self._is_over.is_set():
                    self._work(producer, process)
            except KafkaException:
                # As after a crash, the next one does not know how the transaction has ended.
                continue


class KilledError(KafkaException):
    """The application is killed within a transaction."""


class Transfers:
    """Transfers from one account to another; each record has the transfer's number as its key."""

    def __init__(self, first: int, random: Random, history: WrittenHistory) -> None:
        self._random = random
        self._history = history
        self._numbers = count(first)
        self.committed: list[int] = []
        self.aborted: list[int] = []

    def work(self, producer: Producer, process: int) -> None:
        random = self._random
        number = next(self._numbers)
        amount = random.randrange(1, 100)
        giver, taker = random.sample(range(PARTITIONS), 2)
        sends = [(giver, number), (taker, number)]
        with self._history.transaction(process, sends) as transfer:
            offsets: dict[tuple[int, int], int] = {}

            def delivered(error: KafkaError | None, message: Message) -> None:
                if error is None:
                    offsets[message.partition() or 0, number] = message.offset() or 0

            producer.begin_transaction()
            for partition, change in ((giver, -amount), (taker, amount)):
                producer.produce(
                    ACCOUNTS, f"{change}", f"{number}", partition, on_delivery=delivered
                )
            fate = random.random()
            if fate < KILLED:
                producer.flush(random.random() * TRY_S)
                # No commit was tried: the next application aborts it.
                transfer.failed()
                raise KilledError
            if fate < KILLED + ABORTED:
                producer.flush(TRY_S)
                producer.abort_transaction(TRY_S)
                transfer.failed()
                self.aborted.append(number)
            else:
                producer.commit_transaction(TRY_S)
                transfer.sent(offsets)
                self.committed.append(number)


class Watcher:
    """A reader of committed transfers while the storm is on; use as a context."""

    def __init__(self, servers: str, history: WrittenHistory) -> None:
        self._history = history
        self._settings = {
            "bootstrap.servers": servers,
            "group.id": "none",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "log_level": 0,
        }
        self._is_over = threading.Event()
        self._threads = Threads()

    def __enter__(self) -> Self:
        self._threads.start(self._run)
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._threads.join()

    def _run(self) -> None:
        consumer = Consumer(self._settings)
        process = self._history.new_process()
        consumer.assign([TopicPartition(ACCOUNTS, one, 0) for one in range(PARTITIONS)])
        self._history.assign(process, range(PARTITIONS))
        while not self._is_over.is_set():
            with self._history.poll(process) as poll:
                messages = consumer.consume(POLLED_MAX, POLL_S)
                poll.polled(_offsets_and_numbers(messages))
        consumer.close()


class Copies:
    """Copies of orders, each exactly once."""

    def __init__(self, servers: str, random: Random) -> None:
        self._random = random
        self._settings = {
            "bootstrap.servers": servers,
            "group.id": GROUP,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "session.timeout.ms": 6000,
            "socket.timeout.ms": 5000,
            "log_level": 0,
        }

    def work(self, producer: Producer, _process: int) -> None:
        """Copy until the application is killed: the next one goes on where the group is."""
        consumer = Consumer(self._settings)
        places = [TopicPartition(ORDERS, partition) for partition in range(PARTITIONS)]
        try:
            committed = consumer.committed(places, TRY_S)
            consumer.assign(
                [TopicPartition(one.topic, one.partition, max(one.offset, 0)) for one in committed]
            )
            while self._random.random() > KILLED:
                self._copy(consumer, producer)
        finally:
            consumer.close()

    def _copy(self, consumer: Consumer, producer: Producer) -> None:
        messages = [one for one in consumer.consume(ORDERS_AT_ONCE, 1.0) if one.error() is None]
        if not messages:
            return
        producer.begin_transaction()
        for message in messages:
            producer.produce(COPIES, message.value(), partition=message.partition() or 0)
        producer.send_offsets_to_transaction(
            consumer.position(consumer.assignment()), consumer.consumer_group_metadata(), TRY_S
        )
        producer.commit_transaction(TRY_S)


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferFigures:
    """Count what happened in a storm, and what was wrong after it."""

    kills: int
    starts: int
    committed: int
    aborted: int
    copied: int
    flaws: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"{self.kills} kills of brokers, {self.starts} starts of applications; "
            f"{self.committed:,} transfers committed, {self.aborted:,} aborted, "
            f"{self.copied:,} orders copied: {len(self.flaws)} flaws"
        )


@contextmanager
def transferring_cluster(kind: Kind, folder: Path, **options: Any) -> Generator[BrokerCluster]:
    """Run three brokers on one controller, with BrokerCluster's options; they have the topics."""
    made = BrokerCluster(kind, folder, brokers=3, settings=THREE_REPLICAS, **options)
    with made.running() as cluster:
        for topic in (ACCOUNTS, ORDERS, COPIES):
            words = f"--create --topic {topic} --partitions {PARTITIONS} --replication-factor 3"
            cluster.tool("kafka-topics", *words.split())
            cluster.wait_for_partitions(topic, leaders=set(EVERYBODY), isr=set(EVERYBODY))
        yield cluster


def storm(
    cluster: BrokerCluster, random: Random, history: Path, *, seconds: float, kills_min: int
) -> TransferFigures:
    """Kill brokers for so long and so often beneath transfers and copies, then count what is wrong.

    The cluster has the topics, and nothing in them yet. The file gets the history of the transfers.
    """
    with WrittenHistory(history) as written:
        figures = _storm(cluster, random, written, seconds=seconds, kills_min=kills_min)
    with history.open("rb") as lines:
        report = check_history(read_history(lines), Settings())
    anomalies = [
        f"{kind.anomaly.label}: {cases} cases in {history}"
        for kind, cases in report.counts.items()
        if kind.legality is Legality.NEVER
    ]
    return replace(figures, flaws=(*figures.flaws, *anomalies))


def _storm(
    cluster: BrokerCluster,
    random: Random,
    history: WrittenHistory,
    *,
    seconds: float,
    kills_min: int,
) -> TransferFigures:
    kills = 0
    transfers = [
        Transfers(one * NUMBERS_OF_ONE, Random(random.random()), history)
        for one in range(1, TRANSFERRING + 1)
    ]
    copies = Copies(cluster.servers, Random(random.random()))
    works = [one.work for one in transfers]
    orders = _place_orders(cluster.servers, 200 + int(20 * seconds))
    with ExitStack() as stack:
        applications = [
            stack.enter_context(Application(cluster.servers, f"app{number}", work, history))
            for number, work in enumerate([*works, copies.work])
        ]
        stack.enter_context(Watcher(cluster.servers, history))
        wait_for(lambda: all(one.committed for one in transfers), "every application has committed")
        end = time.monotonic() + seconds
        while time.monotonic() < end or kills < kills_min:
            time.sleep(random.uniform(*_PAUSE_S))
            victim = cluster.brokers[random.choice(sorted(EVERYBODY))]
            victim.kill()
            time.sleep(random.uniform(*_DOWN_S))
            victim.start()
            kills += 1
        cluster.wait_for_brokers(*EVERYBODY)
        wait_for(
            lambda: len(_values(cluster.servers, COPIES)) >= len(orders),
            "every order is copied",
            otherwise=lambda: len(_values(cluster.servers, COPIES)),
        )
    _wait_until_stable(cluster.servers)
    committed = [number for one in transfers for number in one.committed]
    aborted = [number for one in transfers for number in one.aborted]
    copied = _values(cluster.servers, COPIES)
    flaws = [
        *_flaws_of_transfers(cluster.servers, history, committed, aborted),
        *_flaws_of_copies(orders, copied),
    ]
    return TransferFigures(
        kills=kills,
        starts=sum(one.starts for one in applications),
        committed=len(committed),
        aborted=len(aborted),
        copied=len(copied),
        flaws=tuple(flaws),
    )


def _place_orders(servers: str, count: int) -> list[str]:
    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True})
    orders = [f"order {number}" for number in range(count)]
    for number, order in enumerate(orders):
        producer.produce(ORDERS, order, partition=number % PARTITIONS)
    assert producer.flush(PATIENCE_S) == 0
    return orders


def _values(servers: str, topic: str) -> list[str]:
    places = [(topic, partition) for partition in range(PARTITIONS)]
    messages = read_to_end(servers, places, isolation="read_committed")
    return [(message.value() or b"").decode() for message in messages]


def _wait_until_stable(servers: str) -> None:
    """Wait until no transaction of transfers is open, and all markers are written.

    The last application of each id may have left one open, which its time-out ends, and a client
    hears of its commit before the markers are there.
    """
    # The library has no types for these.
    admin: Any = AdminClient({"bootstrap.servers": servers})
    offset_spec: Any = importlib.import_module("confluent_kafka.admin").OffsetSpec
    latest = offset_spec.latest()
    asked = {TopicPartition(ACCOUNTS, partition): latest for partition in range(PARTITIONS)}

    def ends(isolation: IsolationLevel) -> list[int]:
        found = admin.list_offsets(asked, isolation_level=isolation)
        return [one.result().offset for one in found.values()]

    wait_for(
        lambda: ends(IsolationLevel.READ_COMMITTED) == ends(IsolationLevel.READ_UNCOMMITTED),
        "no transfer is open",
        not_yet=(KafkaException,),
    )


def _flaws_of_transfers(
    servers: str, history: WrittenHistory, committed: Collection[int], aborted: Collection[int]
) -> Generator[str]:
    """Yield what a reader of committed records sees of transfers that were not whole."""
    places = [(ACCOUNTS, partition) for partition in range(PARTITIONS)]
    process = history.new_process()
    history.assign(process, range(PARTITIONS))
    with history.poll(process) as poll:
        messages = read_to_end(servers, places, isolation="read_committed")
        poll.polled(_offsets_and_numbers(messages))
    changes: dict[int, list[int]] = {}
    for message in messages:
        changes.setdefault(int(message.key() or b"0"), []).append(int(message.value() or b"0"))
    for number, seen in changes.items():
        if len(seen) != 2 or sum(seen) != 0:
            yield f"transfer {number} is torn or doubled: {seen}"
    yield from (f"transfer {one} is lost" for one in committed if one not in changes)
    yield from (f"transfer {one} was aborted, and is read" for one in aborted if one in changes)


def _offsets_and_numbers(messages: Collection[Message]) -> dict[int, list[tuple[int, int]]]:
    """Return offset and transfer of each record, by partition."""
    found: dict[int, list[tuple[int, int]]] = {}
    for message in messages:
        if message.error() is None:
            record = message.offset() or 0, int(message.key() or b"0")
            found.setdefault(message.partition() or 0, []).append(record)
    return found


def _flaws_of_copies(orders: Collection[str], copied: Collection[str]) -> Generator[str]:
    counts = Counter(copied)
    yield from (f"{one} is copied {counts[one]} times" for one in orders if counts[one] != 1)


def _pass_over(run: StormRun) -> tuple[TransferFigures, Sequence[str]]:
    with transferring_cluster(
        run.controllers, run.folder, java=run.java, tools=run.tools, ours=run.ours
    ) as cluster:
        history = run.folder / "history.jsonl"
        figures = storm(cluster, run.random, history, seconds=run.seconds, kills_min=2)
    return figures, figures.flaws


if __name__ == "__main__":
    run_storm(storm_parser(__doc__), _pass_over)
