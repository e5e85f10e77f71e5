"""Copies records in transactions with kafka-python.

Where its coordinator dies, kafka-python 3.0.12 may wait for it without end, on real brokers too:
the process ends then.
"""

import faulthandler
import importlib
import threading
from typing import Any, Final

from tests.interop.copiers.arguments import (
    AT_ONCE,
    POLL_S,
    CopierArguments,
    consumer_settings,
    copier_arguments,
)
from tests.support.waiting import PATIENCE_S

STUCK_S: Final = 20.0
"""The time after which a transaction, or a start, is not believed to go on."""


def copy_some(library: Any, consumer: Any, producer: Any, arguments: CopierArguments) -> None:
    """Copy what a poll gives, if anything, in a transaction."""
    faulthandler.dump_traceback_later(STUCK_S, exit=True)
    found = consumer.poll(timeout_ms=int(POLL_S * 1000), max_records=AT_ONCE)
    if not found:
        return
    producer.begin_transaction()
    sent = [
        producer.send(arguments.target, record.value, partition=record.partition)
        for records in found.values()
        for record in records
    ]
    offsets = {
        place: library.OffsetAndMetadata(records[-1].offset + 1, "", -1)
        for place, records in found.items()
    }
    producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
    for each in sent:
        each.get(timeout=PATIENCE_S)
    threading.Event().wait(arguments.hold_s)
    producer.commit_transaction()


def main(arguments: CopierArguments) -> None:
    """Copy until an error or a signal."""
    library: Any = importlib.import_module("kafka")
    faulthandler.dump_traceback_later(STUCK_S, exit=True)
    producer = library.KafkaProducer(
        bootstrap_servers=arguments.servers, transactional_id=arguments.name
    )
    producer.init_transactions()
    consumer = library.KafkaConsumer(arguments.source, **consumer_settings(arguments))
    while True:
        copy_some(library, consumer, producer, arguments)


if __name__ == "__main__":
    main(copier_arguments())
