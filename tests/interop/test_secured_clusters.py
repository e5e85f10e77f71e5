"""Clusters with security for their clients, and stock clients with the settings they give."""

import importlib
import json
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest
from tests.support.kafka.java import Java
from tests.support.waiting import PATIENCE_S

from kvorum.storage.small_files.java_properties import store_java_properties
from kvorum.testing import Cluster

MODES: Final = ("tls", "mtls", "scram", "oauth")
TOPIC: Final = "orders"
REFUSED_S: Final = 2.0
OWN: Final = {
    "tls": ("ssl.ca.location",),
    "mtls": ("ssl.certificate.location", "ssl.key.location"),
    "scram": ("sasl.password",),
    "oauth": ("sasl.oauthbearer.client.secret",),
}
"""The settings of clients that no other client has."""
ALLOWED_URLS: Final = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
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


def token_provider(settings: Mapping[str, str]) -> Any:
    """Return what gives kafka-python a token, with the settings for librdkafka."""
    base: Any = importlib.import_module("kafka.net.sasl.oauth").AbstractTokenProvider
    name = settings["sasl.oauthbearer.client.id"]
    secret = settings["sasl.oauthbearer.client.secret"]
    form = {"grant_type": "client_credentials", "client_id": name, "client_secret": secret}
    url = settings["sasl.oauthbearer.token.endpoint.url"]

    class Provider(base):  # type: ignore[misc]  # the library has no types
        def token(self) -> str:
            with urlopen(url, urlencode(form).encode(), timeout=PATIENCE_S) as answer:
                granted = json.load(answer)
            return str(granted["access_token"])

    return Provider()


def test_kafka_python_works_with_its_settings(cluster: Cluster, mode: str) -> None:
    settings: dict[str, Any] = {**cluster.client_settings("python")}
    library: Any = importlib.import_module("kafka")
    if mode == "oauth":
        settings["sasl_oauth_token_provider"] = token_provider(cluster.client_settings())
    client = library.KafkaAdminClient(**settings)
    assert TOPIC in client.list_topics()
    client.close()


def test_kafkas_tools_work_with_the_settings_for_java(
    cluster: Cluster, java: Java, tmp_path: Path
) -> None:
    config = tmp_path / "client.properties"
    settings = cluster.client_settings("java")
    config.write_text(store_java_properties(settings.items(), comments=[]))
    options = ("--bootstrap-server", cluster.bootstrap_servers, "--command-config", str(config))
    program, *others = java.command("org.apache.kafka.tools.TopicCommand", *options, "--list")
    allowed = f"-D{ALLOWED_URLS}={settings.get('sasl.oauthbearer.token.endpoint.url', '')}"
    done = subprocess.run(
        [program, allowed, *others], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert TOPIC in done.stdout.splitlines(), done.stderr


def test_a_client_that_lacks_its_own_settings_is_refused(cluster: Cluster, mode: str) -> None:
    settings = cluster.client_settings()
    for key in OWN[mode]:
        del settings[key]
    if mode == "scram":
        settings["sasl.password"] = "of somebody else"
    with pytest.raises(confluent.KafkaException):
        admin.AdminClient(settings).list_topics(timeout=REFUSED_S)
