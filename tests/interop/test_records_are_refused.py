"""Partitions carry no records yet: a producer or consumer hears so at once and does not hang."""

import importlib
import time
from contextlib import closing
from typing import Any

import pytest
from tests.interop.clients.confluent import ConfluentDriver
from tests.interop.clients.driver import TopicWish
from tests.interop.kvorum_node import KvorumNode

pytestmark = pytest.mark.interop

TOPIC = "records-refused"
ANSWER_TIME_MAX_S = 5
INVALID_REQUEST = 42
# Nothing that would have to be asked for before a record can be sent.
PLAIN_PRODUCER = {"enable_idempotence": False, "retries": 0}


@pytest.fixture(scope="module")
def servers(kvorum_node: KvorumNode) -> str:
    """The bootstrap servers of a node that has the topic."""
    with ConfluentDriver(kvorum_node.bootstrap_servers) as driver:
        assert driver.create_topics([TopicWish(TOPIC)])[TOPIC].code == 0
    return kvorum_node.bootstrap_servers


def test_a_record_of_librdkafkas_producer_is_refused(servers: str) -> None:
    library: Any = importlib.import_module("confluent_kafka")
    refusals: list[int] = []

    def delivered(error: Any, _message: Any) -> None:
        refusals.append(error.code())

    producer = library.Producer({"bootstrap.servers": servers, "log_level": 0})
    producer.produce(TOPIC, b"value", on_delivery=delivered)
    assert producer.flush(ANSWER_TIME_MAX_S) == 0
    assert refusals == [INVALID_REQUEST]


def test_librdkafkas_consumer_gets_an_error(servers: str) -> None:
    library: Any = importlib.import_module("confluent_kafka")
    settings = {"bootstrap.servers": servers, "group.id": TOPIC, "log_level": 0}
    consumer = library.Consumer(settings)
    consumer.subscribe([TOPIC])
    message = consumer.poll(ANSWER_TIME_MAX_S)
    consumer.close()
    assert message.error().code() == INVALID_REQUEST
    assert "carry no records" in message.error().str()


def test_a_record_of_kafka_pythons_producer_is_refused(servers: str) -> None:
    library: Any = importlib.import_module("kafka")
    errors: Any = importlib.import_module("kafka.errors")
    with closing(library.KafkaProducer(bootstrap_servers=servers, **PLAIN_PRODUCER)) as producer:
        sent = producer.send(TOPIC, b"value")
        with pytest.raises(errors.InvalidRequestError):
            sent.get(ANSWER_TIME_MAX_S)


def test_kafka_pythons_consumer_gets_an_error(servers: str) -> None:
    library: Any = importlib.import_module("kafka")
    errors: Any = importlib.import_module("kafka.errors")
    started = time.monotonic()
    with closing(library.KafkaConsumer(bootstrap_servers=servers)) as consumer:
        partition = library.TopicPartition(TOPIC, 0)
        consumer.assign([partition])
        consumer.seek(partition, 0)
        with pytest.raises(errors.InvalidRequestError):
            consumer.poll(ANSWER_TIME_MAX_S * 1000)
    assert time.monotonic() - started < ANSWER_TIME_MAX_S
