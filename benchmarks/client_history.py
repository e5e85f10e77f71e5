"""`kvorum check-history` on a made history: the time that it takes, and the most memory.

``python -m benchmarks.client_history --operations 1000000`` makes the history and checks it. It is
that of transactions of two sends and a poll of up to six values, of twenty clients at a time. A
tenth of them abort. A key gets a thousand writes, and then another one takes its place, as in the
tests of Jepsen.
"""

import argparse
import resource
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Final

CLIENTS: Final = 20
SENDS: Final = 2
POLLED_MAX: Final = 6
ABORTS: Final = 0.1
WRITES_OF_KEY: Final = 1_000
NANOSECONDS: Final = 1_000_000
"""The time from one line to the next."""
_KIB_PER_MIB: Final = 1024


@dataclass(slots=True)
class _Key:
    """A partition: what a consumer has yet to read of it, and where it ends."""

    number: int
    waiting: deque[str] = field(default_factory=deque[str])
    """The committed records that are not polled yet, each as its offset and value."""
    end: int = 0
    values: int = 0

    def take_value(self) -> int:
        self.values += 1
        return self.values - 1


@dataclass(slots=True)
class _Client:
    """A producer, and the consumer of one key after the other."""

    process: int
    keys: deque[_Key]
    sends: list[tuple[_Key, int]] = field(default_factory=list[tuple[_Key, int]])
    is_open: bool = False
    answer: tuple[str, str] | None = None
    """The outcome and the value of a transaction that has ended, and whose line is yet to come."""


class MadeHistory:
    """The lines of a cluster that keeps its promises."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._now = 0
        self._keys = 0
        self._clients = [_Client(number, deque([self._new_key()])) for number in range(CLIENTS)]

    def lines(self, operations: int) -> Iterator[str]:
        """Yield the lines of some operations, and of the last polls."""
        for client in self._clients:
            yield from self._assign(client)
        invoked = 0
        while invoked < operations or any(client.is_open for client in self._clients):
            client = self._random.choice(self._clients)
            if client.answer is not None:
                yield self._complete(client, *client.answer)
            elif client.is_open:
                client.answer = self._end(client)
            elif invoked < operations:
                invoked += 1
                yield from self._begin(client)
        for client in self._clients:
            yield from self._read_to_the_end(client)

    def _new_key(self) -> _Key:
        self._keys += 1
        return _Key(self._keys)

    def _line(self, client: _Client, kind: str, function: str, value: str) -> str:
        self._now += NANOSECONDS
        return (
            f'{{"t":{self._now},"p":{client.process},"type":"{kind}","f":"{function}",'
            f'"v":[{value}]}}\n'
        )

    def _assign(self, client: _Client) -> Iterator[str]:
        key = str(client.keys[0].number)
        yield self._line(client, "invoke", "assign", key)
        yield self._line(client, "ok", "assign", key)

    def _begin(self, client: _Client) -> Iterator[str]:
        """Invoke a transaction; before it the client turns to its next key, if it is due."""
        if len(client.keys) > 1 and not client.keys[0].waiting and self._is_quiet(client.keys[0]):
            client.keys.popleft()
            yield from self._assign(client)
        client.is_open = True
        client.sends = []
        for _ in range(SENDS):
            owner = self._random.choice(self._clients)
            if owner.keys[-1].values >= WRITES_OF_KEY:
                owner.keys.append(self._new_key())
            client.sends.append((owner.keys[-1], owner.keys[-1].take_value()))
        sends = ",".join(f'["send",{key.number},{value}]' for key, value in client.sends)
        yield self._line(client, "invoke", "txn", f'{sends},["poll"]')

    def _is_quiet(self, key: _Key) -> bool:
        """Return whether no transaction is open that sends to a key."""
        return all(key is not one for client in self._clients for one, _ in client.sends)

    def _complete(self, client: _Client, outcome: str, value: str) -> str:
        client.is_open = False
        client.answer = None
        return self._line(client, outcome, "txn", value)

    def _end(self, client: _Client) -> tuple[str, str]:
        """Commit or abort a transaction; others may read it before its client has the answer."""
        is_commit = self._random.random() >= ABORTS
        polled = self._poll(client, POLLED_MAX)
        sends: list[str] = []
        for key, value in client.sends:
            sends.append(f'["send",{key.number},[{key.end},{value}]]')
            if is_commit:
                key.waiting.append(f"[{key.end},{value}]")
            key.end += 1
        for key in {one.number: one for one, _ in client.sends}.values():
            # The marker.
            key.end += 1
        client.sends = []
        if not is_commit:
            # The consumer goes back, and is given the same records by its next poll.
            client.keys[0].waiting.extendleft(reversed(polled))
        steps = f"{','.join(sends)},{self._polled(client, polled)}"
        return ("ok" if is_commit else "fail"), steps

    def _poll(self, client: _Client, records_max: int) -> list[str]:
        waiting = client.keys[0].waiting
        return [waiting.popleft() for _ in range(min(records_max, len(waiting)))]

    def _polled(self, client: _Client, records: list[str]) -> str:
        return f'["poll",{{"{client.keys[0].number}":[{",".join(records)}]}}]'

    def _read_to_the_end(self, client: _Client) -> Iterator[str]:
        while client.keys:
            while client.keys[0].waiting:
                yield self._line(client, "invoke", "poll", '["poll"]')
                polled = self._poll(client, POLLED_MAX)
                yield self._line(client, "ok", "poll", self._polled(client, polled))
            client.keys.popleft()
            if client.keys:
                yield from self._assign(client)


def write_history(path: Path, operations: int) -> None:
    """Write a history of some operations."""
    made = MadeHistory(Random(1))
    with path.open("w", encoding="utf-8") as file:
        file.writelines(made.lines(operations))


def main() -> None:
    """Make a history, check it, and print what that took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operations", type=int, default=1_000_000)
    arguments = parser.parse_args()
    with TemporaryDirectory() as folder:
        path = Path(folder) / "history.jsonl"
        write_history(path, arguments.operations)
        began = time.perf_counter()
        command = [sys.executable, "-m", "kvorum.cli", "check-history", str(path)]
        subprocess.run(command, check=True)
        seconds = time.perf_counter() - began
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor_seconds = used.ru_utime + used.ru_stime
    peak_mib = used.ru_maxrss / _KIB_PER_MIB
    print(f"{seconds:.0f} s, {processor_seconds:.0f} s of processor time, {peak_mib:.0f} MiB")


if __name__ == "__main__":
    main()
