"""Records and transactions by Confluent's client."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from typing import Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    Message,
    Producer,
    TopicPartition,
)
from tests.support.waiting import PATIENCE_S, wait_for

POLL_TIMEOUT_S = 0.2
Place = tuple[str, int]
"""A topic and the index of a partition."""


def _named(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {key.replace("_", "."): value for key, value in settings.items()}


def send(servers: str, topic: str, records: Sequence[Mapping[str, Any]], **settings: Any) -> None:
    """Have each record acknowledged: a flush alone also ends where records were given up.

    Of settings the dots are written as underscores.
    """
    errors: list[object] = []

    def delivered(error: object, _: object) -> None:
        errors.append(error)

    producer = Producer({"bootstrap.servers": servers, **_named(settings)})
    for record in records:
        producer.produce(topic, **record, on_delivery=delivered)
    assert producer.flush(PATIENCE_S) == 0
    assert errors == [None] * len(records)


def read_to_end(
    servers: str, places: Iterable[Place], *, isolation: str = "read_uncommitted"
) -> list[Message]:
    """Return what a consumer receives up to the end of each partition."""
    settings = {"bootstrap.servers": servers, "group.id": "none", "enable.auto.commit": False}
    ending = {"isolation.level": isolation, "enable.partition.eof": True, "log_level": 0}
    found: list[Message] = []
    awaited = set(places)

    def is_read() -> bool:
        while (message := consumer.poll(POLL_TIMEOUT_S)) is not None:
            error = message.error()
            if error is None:
                found.append(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                awaited.discard((message.topic() or "", message.partition() or 0))
        return not awaited

    with closing(Consumer({**settings, **ending})) as consumer:
        consumer.assign([TopicPartition(*place, OFFSET_BEGINNING) for place in awaited])
        wait_for(is_read, "each partition is read to its end", otherwise=lambda: awaited)
    return found


def transactional_producer(servers: str, name: str, **settings: Any) -> Producer:
    """Return the producer of a transactional id, which may begin a transaction."""
    named = {"bootstrap.servers": servers, "transactional.id": name, "log_level": 0}
    producer = Producer({**named, **_named(settings)})
    producer.init_transactions(PATIENCE_S)
    return producer


def end_transaction(producer: Producer, *, is_committed: bool) -> None:
    (producer.commit_transaction if is_committed else producer.abort_transaction)(PATIENCE_S)
