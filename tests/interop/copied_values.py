"""Values of a topic that an application copies to another one, in transactions, each once."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final

from tests.interop.broker_cluster import THREE_REPLICAS, BrokerCluster, RunBrokers, faults
from tests.interop.clients.confluent import read_to_end, send
from tests.support.waiting import wait_for

SOURCE: Final = "source"
COPIES: Final = "copies"
_AT_ONCE: Final = 20
_BROKERS: Final = (11, 12, 13)


@contextmanager
def copying_brokers(run_brokers: RunBrokers) -> Generator[BrokerCluster]:
    """Run three brokers of ours that have both topics; in the end none has logged a fault."""
    with run_brokers("kvorum", brokers=3, ours=_BROKERS, settings=THREE_REPLICAS) as cluster:
        for topic in (SOURCE, COPIES):
            cluster.make_topic(topic, ":".join(map(str, _BROKERS)))
        yield cluster
        for broker in cluster.brokers.values():
            assert faults(broker) == []


def _look_at_nothing() -> None:
    """Leave an application to itself."""


class CopiedValues:
    """The values of the source's partition 0, and their copies.

    While copies are waited for, `look_after` is called again and again.
    """

    def __init__(self, servers: str, look_after: Callable[[], None] = _look_at_nothing) -> None:
        self.written: list[str] = []
        self._servers = servers
        self._look_after = look_after

    def begin(self) -> None:
        """Write until the last value is copied in a transaction that is open."""
        wait_for(self._has_begun, "a transaction is open")

    def _has_begun(self) -> bool:
        """Write some more; return whether their copies are not committed yet."""
        first = len(self.written)
        self.write(*(f"value {number}" for number in range(first, first + _AT_ONCE)))
        self._wait_until_copied("read_uncommitted")
        return self.copies()[-1:] != self.written[-1:]

    def end(self) -> None:
        """Wait until the copy of the last value is committed."""
        self._wait_until_copied("read_committed")

    def write(self, *more: str) -> None:
        """Write values to the source."""
        self.written += more
        send(self._servers, SOURCE, [{"value": value, "partition": 0} for value in more])

    def _wait_until_copied(self, isolation: str) -> None:
        def is_copied() -> bool:
            self._look_after()
            return self.copies(isolation)[-1:] == self.written[-1:]

        wait_for(
            is_copied,
            f"the last value is copied, {isolation}",
            otherwise=lambda: self.copies(isolation),
        )

    def copies(self, isolation: str = "read_committed") -> list[str]:
        """Return the copies that a reader gets."""
        messages = read_to_end(self._servers, [(COPIES, 0)], isolation=isolation)
        return [(message.value() or b"").decode() for message in messages]

    def count_of_aborted(self) -> int:
        """Return how many copies are there that belong to no committed transaction."""
        return len(self.copies("read_uncommitted")) - len(self.copies())
