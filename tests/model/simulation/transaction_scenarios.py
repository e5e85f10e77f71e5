"""Small scenarios of a coordinator and its partitions, each of which one mistake makes unsound.

They need messages in an order that worlds rarely have.
"""

from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

from tests.model.simulation.made_transactions import MadeTransactions

from kvorum.client_histories.anomalies import Anomaly

Play = Callable[[], MadeTransactions]


class Scenario(NamedTuple):
    """A mistake by its name, the anomaly that fits it, and how its history is made."""

    mistake: str
    anomaly: Anomaly
    play: Play


def _write_and_commit(cluster: MadeTransactions, *indexes: int) -> None:
    """Let a later producer write, so that something is read behind what came before."""
    producer = cluster.producer()
    producer.begin()
    for index in indexes:
        producer.write(index, b"later %d" % index)
    producer.end(is_commit=True)
    cluster.end_transactions()


def late_marker() -> MadeTransactions:
    """Write a marker twice, the second time into the producer's next transaction."""
    cluster = MadeTransactions()
    producer = cluster.producer()
    producer.begin()
    producer.write(0, b"first")
    producer.end(is_commit=True)
    (prepared,) = cluster.coordinator.ending
    cluster.end_transactions()
    producer.begin()
    producer.write(0, b"second")
    producer.write(1, b"second")
    cluster.write_markers(prepared, [0])
    cluster.read()
    producer.end(is_commit=False)
    cluster.end_transactions()
    return cluster


def late_batch() -> MadeTransactions:
    """Let a batch arrive after its transaction was aborted."""
    cluster = MadeTransactions(0)
    producer = cluster.producer()
    producer.begin()
    producer.write(0, b"in time")
    late = producer.batch(0, b"late")
    producer.end(is_commit=False)
    cluster.end_transactions()
    producer.deliver(0, late)
    _write_and_commit(cluster, 0)
    return cluster


def zombie() -> MadeTransactions:
    """Let a producer go on after another one has begun."""
    cluster = MadeTransactions()
    former = cluster.producer()
    cluster.producer()
    former.begin()
    former.fail()
    former.write(0, b"zombie")
    former.end(is_commit=True)
    cluster.end_transactions()
    return cluster


def commit_after_time_out() -> MadeTransactions:
    """Ask for a commit after the coordinator has aborted the transaction."""
    cluster = MadeTransactions()
    producer = cluster.producer()
    producer.begin()
    producer.write(0, b"too slow")
    cluster.abort_by_time()
    producer.end(is_commit=True)
    _write_and_commit(cluster, 0)
    return cluster


def outcome_that_is_lost(*, is_loaded: bool) -> MadeTransactions:
    """Lose the coordinator after it has written an outcome that is not committed.

    It `is_loaded` by a second coordinator before.
    """
    cluster = MadeTransactions()
    producer = cluster.producer()
    producer.begin()
    producer.write(0, b"torn")
    producer.write(1, b"torn")
    cluster.coordinator.is_held = True
    producer.end(is_commit=True)
    producer.give_up()
    if is_loaded:
        cluster.coordinator.load()
    cluster.end_transactions([0])
    cluster.read()
    cluster.lose_last_record()
    cluster.abort_by_time()
    _write_and_commit(cluster, 0, 1)
    return cluster


def partition_that_is_lost() -> MadeTransactions:
    """Write to a partition whose addition is lost with the coordinator."""
    cluster = MadeTransactions(1)
    producer = cluster.producer()
    producer.begin()
    producer.write(0, b"known")
    cluster.coordinator.is_held = True
    batch = producer.batch(1, b"lost")
    producer.add(1)
    producer.deliver(1, batch)
    cluster.lose_last_record()
    cluster.abort_by_time()
    producer.fail()
    _write_and_commit(cluster, 0, 1)
    return cluster


def late_completion() -> MadeTransactions:
    """Hear for a second time that the markers are written, within the next transaction."""
    cluster = MadeTransactions()
    producer = cluster.producer()
    producer.begin()
    producer.write(0, b"first")
    producer.end(is_commit=True)
    (prepared,) = cluster.coordinator.ending
    cluster.end_transactions()
    producer.begin()
    producer.write(0, b"second")
    producer.end(is_commit=True)
    coordinator = cluster.coordinator
    coordinator.do(lambda: coordinator.shard.complete(prepared, coordinator.now))
    # If that has ended the transaction, another coordinator writes no markers of it.
    coordinator.load()
    cluster.coordinator.pass_time(0)
    cluster.end_transactions()
    return cluster


def partition_of_a_zombie() -> MadeTransactions:
    """Let a zombie write while the producer after it has a transaction open."""
    cluster = MadeTransactions()
    former = cluster.producer()
    producer = cluster.producer()
    former.begin()
    former.fail()
    producer.begin()
    producer.write(0, b"new")
    former.write(1, b"zombie")
    producer.end(is_commit=True)
    cluster.end_transactions()
    return cluster


def end_by_a_zombie() -> MadeTransactions:
    """Let a zombie ask for a commit while the producer after it has a transaction open."""
    cluster = MadeTransactions()
    former = cluster.producer()
    producer = cluster.producer()
    former.begin()
    former.fail()
    producer.begin()
    producer.write(0, b"new")
    former.end(is_commit=True)
    producer.end(is_commit=False)
    cluster.end_transactions()
    return cluster


SCENARIOS: Final = (
    Scenario("a marker of the epoch that it ends is taken", Anomaly.G1A, late_marker),
    Scenario("a batch of no transaction is taken", Anomaly.G1A, late_batch),
    Scenario("a producer begins in the epoch of the one before it", Anomaly.G1A, zombie),
    Scenario("a commit is acknowledged of what was aborted", Anomaly.UNSEEN, commit_after_time_out),
    Scenario(
        "markers are written before the outcome is committed",
        Anomaly.LOST_WRITE,
        partial(outcome_that_is_lost, is_loaded=False),
    ),
    Scenario(
        "a new coordinator writes markers of what is not committed",
        Anomaly.LOST_WRITE,
        partial(outcome_that_is_lost, is_loaded=True),
    ),
    Scenario(
        "a partition counts as added before that is committed",
        Anomaly.G1A,
        partition_that_is_lost,
    ),
    Scenario(
        "the end of an older transaction completes a newer one", Anomaly.UNSEEN, late_completion
    ),
    Scenario("partitions are added in any epoch", Anomaly.G1A, partition_of_a_zombie),
    Scenario("a transaction is ended in any epoch", Anomaly.G1A, end_by_a_zombie),
)
