"""The log directory of a broker of ours that has carried data of all codecs."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from kvorum.testing import Cluster

CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
RECORDS: Final = 120
SEGMENT_BYTES: Final = "2000"
TIMEOUT_S: Final = 30


def write_node(folder: Path) -> Path:
    """Run a cluster of one node for a while, and return the node's log directory."""
    with Cluster(folder=folder) as cluster:
        servers = {"bootstrap.servers": cluster.bootstrap_servers}
        small = {"internal.segment.bytes": SEGMENT_BYTES}
        topics = [NewTopic(f"packed-{codec}", 2, 1, config=small) for codec in CODECS]
        admin: Any = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        for each in admin.create_topics(topics, request_timeout=TIMEOUT_S).values():
            each.result(TIMEOUT_S)
        for codec in CODECS:
            _produce(servers, codec)
        _consume_and_commit(servers)
    (found,) = {path.parent for path in folder.rglob("meta.properties")}
    return found


def _produce(servers: dict[str, str], codec: str) -> None:
    settings = {"compression.type": codec, "enable.idempotence": "true", "linger.ms": "1"}
    producer = Producer({**servers, **settings})
    for number in range(RECORDS):
        producer.produce(f"packed-{codec}", b"value %d " % number * 5, key=b"%d" % (number % 7))
        if number % 10 == 0:
            producer.flush(TIMEOUT_S)
    assert producer.flush(TIMEOUT_S) == 0


def _consume_and_commit(servers: dict[str, str]) -> None:
    consumer = Consumer({**servers, "group.id": "readers", "auto.offset.reset": "earliest"})
    consumer.subscribe([f"packed-{codec}" for codec in CODECS])
    read = consumer.consume(RECORDS, timeout=TIMEOUT_S)
    assert len(read) == RECORDS
    consumer.commit(asynchronous=False)
    consumer.close()
