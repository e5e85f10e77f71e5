"""From produce to consume: records at an even pace, each with the time at which it was sent."""

from __future__ import annotations

import statistics
import struct
import threading
import time
from typing import Any, Final

from confluent_kafka import Consumer, Producer, TopicPartition

RECORDS_PER_S: Final = 1000
SECONDS: Final = 15
WARM_UP_SECONDS: Final = 3
POLL_S: Final = 10.0
_TIME: Final = struct.Struct(">d")


def p99_ms(servers: str, topic: str) -> float:
    """Return the 99th percentile of the time from produce to consume, in milliseconds."""
    settings = {"bootstrap.servers": servers, "group.id": "end-to-end", "fetch.wait.max.ms": 500}
    consumer: Any = Consumer({**settings, "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    count = RECORDS_PER_S * (WARM_UP_SECONDS + SECONDS)
    producing = threading.Thread(target=_produce, args=(servers, topic, count), daemon=True)
    producing.start()
    latencies: list[float] = []
    while len(latencies) < count:
        message = consumer.poll(POLL_S)
        if message is None or message.error():
            raise RuntimeError(f"{len(latencies)} of {count} records came")
        latencies.append(time.perf_counter() - _TIME.unpack_from(message.value())[0])
    producing.join()
    consumer.close()
    measured = latencies[RECORDS_PER_S * WARM_UP_SECONDS :]
    return statistics.quantiles(measured, n=100)[98] * 1000


def _produce(servers: str, topic: str, count: int) -> None:
    # As many requests at a time as Java's producer sends, so that records are collected meanwhile:
    # a broker answers those of one connection one after the other.
    settings = {"bootstrap.servers": servers, "linger.ms": 0, "max.in.flight": 5}
    producer = Producer(settings)
    begun = time.perf_counter()
    for number in range(count):
        due = begun + number / RECORDS_PER_S
        while (now := time.perf_counter()) < due:
            producer.poll(due - now)
        producer.produce(topic, _TIME.pack(time.perf_counter()) + bytes(92), partition=0)
    producer.flush(POLL_S)
