"""Clusters with security for their clients, and stock clients with the settings they give."""

import importlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from tests.support.kafka.java import ToolRunner
from tests.support.waiting import PATIENCE_S

from kvorum.storage.small_files.java_properties import store_java_properties
from kvorum.testing import Cluster

MODES: Final = ("tls", "mtls", "scram")
TOPIC: Final = "orders"
REFUSED_S: Final = 2.0
OWN: Final = {
    "tls": ("ssl.ca.location",),
    "mtls": ("ssl.certificate.location", "ssl.key.location"),
    "scram": ("sasl.password",),
}
"""The settings of clients that no other client has."""
confluent: Any = importlib.import_module("confluent_kafka")
admin: Any = importlib.import_module("confluent_kafka.admin")


@pytest.fixture(scope="module", params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def cluster(mode: str) -> Iterator[Cluster]:
    with Cluster(brokers=2, security=mode) as running:
        running.create_topic(TOPIC, replication_factor=2)
        yield running


def produce_one(settings: Mapping[str, str]) -> None:
    errors: list[object] = []

    def note(error: object, _record: object) -> None:
        errors.append(error)

    producer = confluent.Producer(settings)
    producer.produce(TOPIC, b"v", on_delivery=note)
    producer.flush(PATIENCE_S)
    assert errors == [None]


def first_value(settings: Mapping[str, str]) -> bytes:
    consumer = confluent.Consumer(
        {**settings, "group.id": "g", "auto.offset.reset": "earliest"},
    )
    consumer.subscribe([TOPIC])
    message = consumer.poll(PATIENCE_S)
    consumer.close()
    assert message is not None
    return bytes(message.value())


def test_librdkafka_works_with_its_settings(cluster: Cluster) -> None:
    produce_one(cluster.client_settings())
    assert first_value(cluster.client_settings("librdkafka")) == b"v"


def test_kafka_python_works_with_its_settings(cluster: Cluster) -> None:
    library: Any = importlib.import_module("kafka")
    client = library.KafkaAdminClient(**cluster.client_settings("python"))
    assert TOPIC in client.list_topics()
    client.close()


def test_kafkas_tools_work_with_the_settings_for_java(
    cluster: Cluster, kafka_tools: ToolRunner, tmp_path: Path
) -> None:
    config = tmp_path / "client.properties"
    properties = cluster.client_settings("java").items()
    config.write_text(store_java_properties(properties, comments=[]))
    options = ("--bootstrap-server", cluster.bootstrap_servers, "--command-config", str(config))
    assert TOPIC in kafka_tools.printed("kafka-topics", *options, "--list").splitlines()


def test_a_client_that_lacks_its_own_settings_is_refused(cluster: Cluster, mode: str) -> None:
    settings = cluster.client_settings()
    for key in OWN[mode]:
        del settings[key]
    if mode == "scram":
        settings["sasl.password"] = "of somebody else"
    with pytest.raises(confluent.KafkaException):
        admin.AdminClient(settings).list_topics(timeout=REFUSED_S)
