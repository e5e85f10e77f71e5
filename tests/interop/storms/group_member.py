"""A member of a consumer group in a process of its own, which says what it does in lines of JSON.

`python -m tests.interop.storms.group_member SERVERS GROUP TOPIC CLIENT_ID` reads until its standard
input ends. Each line has `at`, a time of the clock that all processes of the machine share, and one
of these, by partition: `taken`, where the member takes over, asked for after `at`; `read`, the
first and last offset of records; `committed`, what was acknowledged before `at`.
"""

import json
import sys
import threading
import time
from typing import Final

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

BATCH_MAX: Final = 500
POLL_S: Final = 0.2
CALL_TIMEOUT_S: Final = 10.0


def say(at: float, what: str, values: dict[int, object]) -> None:
    if values:
        sys.stdout.write(json.dumps({"at": at, what: values}) + "\n")
        sys.stdout.flush()


def take_over(consumer: Consumer, partitions: list[TopicPartition]) -> None:
    """Say where the group is in partitions that the member gets."""
    at = time.monotonic()
    try:
        found = consumer.committed(partitions, CALL_TIMEOUT_S)
    except KafkaException:
        # The coordinator is down, or the member has lost the partitions meanwhile.
        return
    # None at all is a negative offset.
    say(at, "taken", {one.partition: max(one.offset, 0) for one in found if one.error is None})


def read(messages: list[Message]) -> None:
    """Say which records have come."""
    spans: dict[int, object] = {}
    offsets: dict[int, list[int]] = {}
    for message in messages:
        offsets.setdefault(message.partition() or 0, []).append(message.offset() or 0)
    for partition, found in offsets.items():
        assert found == list(range(found[0], found[-1] + 1)), (partition, found)
        spans[partition] = [found[0], found[-1]]
    say(time.monotonic(), "read", spans)


def commit(consumer: Consumer) -> None:
    """Commit, and say what was acknowledged."""
    try:
        stored = consumer.commit(asynchronous=False) or []
    except KafkaException:
        # The group has another epoch, or its coordinator moves: nothing was acknowledged.
        return
    acknowledged = [one for one in stored if one.error is None and one.offset >= 0]
    say(time.monotonic(), "committed", {one.partition: one.offset for one in acknowledged})


def main() -> None:
    servers, group, topic, client_id = sys.argv[1:]
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": group,
            "client.id": client_id,
            "group.protocol": "consumer",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "socket.timeout.ms": 5000,
            "log_level": 0,
        }
    )
    consumer.subscribe([topic], on_assign=take_over)
    is_over = threading.Event()

    def end_with_input() -> None:
        sys.stdin.read()
        is_over.set()

    threading.Thread(target=end_with_input, daemon=True).start()
    while not is_over.is_set():
        messages = [one for one in consumer.consume(BATCH_MAX, POLL_S) if one.error() is None]
        read(messages)
        if messages:
            commit(consumer)
    consumer.close()


if __name__ == "__main__":
    main()
