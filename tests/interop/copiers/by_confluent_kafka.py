"""Copies records in transactions with confluent-kafka: librdkafka's producer and consumer."""

import threading

from confluent_kafka import Consumer, KafkaException, Producer
from tests.interop.clients.confluent import end_transaction, transactional_producer
from tests.interop.copiers.arguments import (
    AT_ONCE,
    POLL_S,
    SESSION_TIMEOUT_MS,
    CopierArguments,
    copier_arguments,
)
from tests.support.waiting import PATIENCE_S


def copy_some(consumer: Consumer, producer: Producer, arguments: CopierArguments) -> None:
    """Copy what a poll gives, if anything, in a transaction."""
    messages = consumer.consume(AT_ONCE, POLL_S)
    for message in messages:
        if error := message.error():
            raise KafkaException(error)
    if not messages:
        return
    producer.begin_transaction()
    for message in messages:
        producer.produce(arguments.target, message.value(), partition=message.partition() or 0)
    offsets = consumer.position(consumer.assignment())
    group = consumer.consumer_group_metadata()
    producer.send_offsets_to_transaction(offsets, group, PATIENCE_S)
    producer.flush(PATIENCE_S)
    threading.Event().wait(arguments.hold_s)
    end_transaction(producer, is_committed=True)


def main(arguments: CopierArguments) -> None:
    """Copy until an error or a signal."""
    producer = transactional_producer(arguments.servers, arguments.name)
    consumer = Consumer(
        {
            "bootstrap.servers": arguments.servers,
            "group.id": arguments.name,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "session.timeout.ms": SESSION_TIMEOUT_MS,
        }
    )
    consumer.subscribe([arguments.source])
    while True:
        copy_some(consumer, producer, arguments)


if __name__ == "__main__":
    main(copier_arguments())
