"""A Kafka that keeps its promises, played in memory, with clients whose histories are sound.

Partitions have markers and aborted records, which no client sees. Clients assign and subscribe,
poll and send, in transactions and without. Operations fail, time out with or without effect, and
are cut off by a crash.
"""

from collections.abc import Generator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.unit.client_histories.history_lines import Line, invoked, polled

Steps = list[Any]
Task = Generator[None]
POLLED_MAX = 4
CRASHES = 0.01
"""The part of all steps in which a client crashes."""
END = object()


@dataclass(eq=False)
class Transaction:
    """A transaction of one producer, and the partitions that it has sent to."""

    partitions: list["Partition"] = field(default_factory=list["Partition"])
    is_committed: bool = False

    def markers(self) -> Task:
        """Write the markers that are missing, one after the other."""
        for partition in self.partitions:
            yield None
            if self not in partition.ends:
                partition.end(self)


@dataclass(eq=False)
class Partition:
    """A log: pairs of a value, or None for a marker, and a transaction, or None."""

    key: int
    records: list[tuple[int | None, Transaction | None]] = field(
        default_factory=list[tuple[int | None, Transaction | None]]
    )
    ends: dict[Transaction, bool] = field(default_factory=dict[Transaction, bool])
    """Whether each transaction whose marker is in the log was committed."""
    committed_offset: int = 0
    """The offset that the group has committed."""
    value: int = 0

    def append(self, transaction: Transaction | None) -> tuple[int, int]:
        """Append a new value, and return its offset and itself."""
        if transaction is not None and self not in transaction.partitions:
            transaction.partitions.append(self)
        self.records.append((self.value, transaction))
        self.value += 1
        return len(self.records) - 1, self.value - 1

    def end(self, transaction: Transaction) -> None:
        self.records.append((None, None))
        self.ends[transaction] = transaction.is_committed

    def read(self, position: int, count: int) -> tuple[list[tuple[int, int]], int]:
        """Return what a consumer reads from a position on, and its next position."""
        found: list[tuple[int, int]] = []
        while position < len(self.records) and len(found) < count:
            value, transaction = self.records[position]
            if transaction is not None and transaction not in self.ends:
                break
            if value is not None and (transaction is None or self.ends[transaction]):
                found.append((position, value))
            position += 1
        return found, position


class PlayedKafka:
    """A cluster and its clients, whose steps a random number generator puts in an order."""

    def __init__(self, random: Random, *, keys: int, clients: int) -> None:
        self.random = random
        self.partitions = [Partition(key) for key in range(1, keys + 1)]
        self.lines: list[Line] = []
        self.background: list[Task] = []
        self._processes = 0
        self._clients = clients

    def play(self, operations: int) -> list[Line]:
        """Return the history of some operations and of a last read of everything."""
        clients: list[Client] = []
        tasks: list[Task] = []
        while len(self.lines) < 2 * operations:
            while len(clients) < self._clients:
                clients.append(self._new_client())
                tasks.append(clients[-1].run())
            place = self.random.randrange(len(clients))
            has_crashed = self.random.random() < CRASHES
            if has_crashed or next(tasks[place], END) is END:
                self.background.append(clients.pop(place).transaction.markers())
                del tasks[place]
            self._go_on_in_background()
        # The other clients are cut off, and the coordinator ends their transactions.
        self.background += [client.transaction.markers() for client in clients]
        while self.background:
            self._go_on_in_background()
        self._new_client().read_everything()
        return self.lines

    def _go_on_in_background(self) -> None:
        if self.background:
            task = self.random.choice(self.background)
            if next(task, END) is END:
                self.background.remove(task)

    def _new_client(self) -> "Client":
        self._processes += 1
        return Client(self, self._processes)


class Client:
    """A producer and a consumer; both end where the outcome of a send is unknown."""

    def __init__(self, kafka: PlayedKafka, process: int) -> None:
        self.kafka = kafka
        self.random = kafka.random
        self.process = process
        self.positions: dict[Partition, int] = {}
        self.is_subscribed = False
        self.rebalanced: set[int] = set()
        self.transaction = Transaction()

    def run(self) -> Task:
        """Do operations until one ends the client."""
        is_running = True
        while is_running:
            chosen = self.random.random()
            if chosen < 0.1 or not self.positions:
                self._choose_keys()
            elif chosen < 0.12:
                self._write("invoke", "crash", [])
                self._write("info", "crash", [])
                return
            elif chosen < 0.3:
                is_running = yield from self._send()
            elif chosen < 0.5:
                is_running = yield from self._operate("poll", sends=0)
            else:
                is_running = yield from self._operate("txn", sends=self.random.randint(0, 3))
            yield None

    def read_everything(self) -> None:
        """Read all partitions to their ends."""
        for partition in self.kafka.partitions:
            self.positions[partition] = 0
        keys = [partition.key for partition in self.kafka.partitions]
        self._write("invoke", "assign", keys)
        self._write("ok", "assign", keys)
        while any(position < len(one.records) for one, position in self.positions.items()):
            self._write("invoke", "poll", [["poll"]])
            self._write("ok", "poll", [self._poll()])

    def _write(self, outcome: str, function: str, steps: Steps) -> None:
        line = {"p": self.process, "type": outcome, "f": function, "v": steps}
        if self.rebalanced and outcome != "invoke":
            line["rebalanced"] = sorted(self.rebalanced)
            self.rebalanced = set()
        self.kafka.lines.append(line)

    def _choose_keys(self) -> None:
        """Assign or subscribe to some keys; those that were there before keep their positions."""
        chosen = self._some_partitions()
        self.is_subscribed = self.random.random() < 0.4
        function = "subscribe" if self.is_subscribed else "assign"
        keys = [partition.key for partition in chosen]
        self._write("invoke", function, keys)
        outcome = "info" if self.random.random() < 0.1 else "ok"
        self._write(outcome, function, keys)
        is_kept = outcome == "ok"
        self.positions = {
            one: self.positions[one] if is_kept and one in self.positions else self._start(one)
            for one in chosen
        }

    def _some_partitions(self) -> list[Partition]:
        partitions = self.kafka.partitions
        return self.random.sample(partitions, self.random.randint(1, len(partitions)))

    def _start(self, partition: Partition) -> int:
        """Return a position for a partition in which the consumer has none."""
        if self.is_subscribed:
            return partition.committed_offset
        return self.random.randint(0, len(partition.records))

    def _send(self) -> Generator[None, None, bool]:
        partition = self.random.choice(self.kafka.partitions)
        outcome = self._outcome()
        appends = outcome == "ok" or (outcome == "info" and self.random.random() < 0.6)
        offset, value = partition.append(None) if appends else (None, partition.value)
        if not appends:
            # The value is used up all the same.
            partition.value += 1
        shown = offset if outcome == "ok" and self.random.random() < 0.9 else None
        steps = [["send", partition.key, [shown, value]]]
        self._write("invoke", "send", invoked(steps))
        yield None
        self._write(outcome, "send", steps if outcome == "ok" else invoked(steps))
        return outcome != "info"

    def _outcome(self) -> str:
        return self.random.choices(["ok", "fail", "info"], [8, 1, 1])[0]

    def _operate(self, function: str, *, sends: int) -> Generator[None, None, bool]:
        """Poll and send, in a transaction if there are sends; return whether the client goes on."""
        kinds = ["send"] * sends + ["poll"] * self.random.randint(1, 3)
        self.random.shuffle(kinds)
        targets = [self.random.choice(self.kafka.partitions) for _ in kinds]
        # The values are known when a transaction begins, and are appended one by one.
        before = dict(self.positions)
        self.transaction = Transaction()
        place = len(self.kafka.lines)
        self._write("invoke", function, [])
        steps: Steps = []
        for kind, target in zip(kinds, targets, strict=True):
            yield None
            if kind == "send":
                steps.append(["send", target.key, list(target.append(self.transaction))])
            else:
                steps.append(self._poll())
        self.kafka.lines[place]["v"] = invoked(steps)
        return (yield from self._end(function, steps, before))

    def _end(
        self, function: str, steps: Steps, before: dict[Partition, int]
    ) -> Generator[None, None, bool]:
        outcome = self._outcome()
        is_unknown = outcome == "info" and bool(self.transaction.partitions)
        # A client that crashes from here on has its transaction ended in this way all the same.
        self.transaction.is_committed = outcome == "ok" or (
            is_unknown and self.random.random() < 0.5
        )
        is_early = is_unknown or self.random.random() < 0.5
        if is_early:
            self._finish(function, outcome, steps, before)
        if is_unknown:
            return False
        yield from self.transaction.markers()
        if not is_early:
            self._finish(function, outcome, steps, before)
        return True

    def _finish(
        self, function: str, outcome: str, steps: Steps, before: dict[Partition, int]
    ) -> None:
        shown = steps if outcome == "ok" else self.random.choice([steps, invoked(steps)])
        self._write(outcome, function, shown)
        if outcome != "ok":
            self.positions = before
        elif self.is_subscribed:
            for partition, position in self.positions.items():
                partition.committed_offset = position

    def _poll(self) -> list[Any]:
        """Read from some partitions; a subscribed consumer may get others before it does."""
        if self.is_subscribed and self.random.random() < 0.2:
            self._rebalance()
        found: dict[int, list[tuple[int, int]]] = {}
        for partition, position in self.positions.items():
            records, after = partition.read(position, self.random.randint(1, POLLED_MAX))
            self.positions[partition] = after
            found[partition.key] = records
        return polled(found)

    def _rebalance(self) -> None:
        chosen = self._some_partitions()
        gained = {one for one in chosen if self.random.random() < 0.5 or one not in self.positions}
        lost = self.positions.keys() - set(chosen)
        self.rebalanced |= {partition.key for partition in gained | lost}
        self.positions = {
            one: one.committed_offset if one in gained else self.positions[one] for one in chosen
        }


def sound_lines(seed: int, *, operations: int, keys: int = 4, clients: int = 5) -> list[Line]:
    """Return the history of a seed."""
    return PlayedKafka(Random(seed), keys=keys, clients=clients).play(operations)
