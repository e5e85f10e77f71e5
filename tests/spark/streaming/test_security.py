"""The options of a secured stream."""

import pickle
from collections.abc import Mapping

import pytest

from kvorum.quorum_client.client import QuorumClient
from kvorum.quorum_client.errors import ClientOptionError, QuorumError
from kvorum.security.client_settings import ClientSecuritySettings
from kvorum.security.oauth_login import RETRIEVING_HANDLER, OAuthLogin
from kvorum.security.sasl_login import SaslLogin
from kvorum.security.sasl_login_modules import OAUTH_MODULE
from kvorum.security.security_protocol import SecurityProtocol
from kvorum.spark.errors import OptionError
from kvorum.spark.streaming.options import directory_options, quorum_options, stream_options
from kvorum.spark.streaming.security_options import security_options

PASSWORD = "open sesame"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


def sasl(jaas: str, mechanism: str = "PLAIN") -> dict[str, str]:
    return {
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": mechanism,
        "kafka.sasl.jaas.config": jaas,
    }


def test_without_options_a_listener_is_plaintext() -> None:
    assert security_options({"controllers": "a:1"}) == ClientSecuritySettings()


def test_names_and_protocols_count_in_any_case_and_stores_are_pem() -> None:
    options = {"Kafka.Security.Protocol": "ssl", "kafka.ssl.TRUSTSTORE.location": "ca.pem"}
    found = security_options(options)
    assert found.protocol is SecurityProtocol.SSL
    assert found.ssl is not None
    assert (found.ssl.trust_store.type, found.ssl.trust_store.location) == ("PEM", "ca.pem")


def test_settings_go_to_the_executors_as_they_are() -> None:
    jaas = f'{PLAIN} required username="me" password="{PASSWORD}";'
    options = {**sasl(jaas), "kafka.ssl.key.password": PASSWORD}
    found = security_options(options)
    assert pickle.loads(pickle.dumps(found)) == found


@pytest.mark.parametrize(
    ("written", "user", "password"),
    [
        ('username="me" password="open sesame"', "me", PASSWORD),
        ("password='open sesame' username=me", "me", PASSWORD),
        (r'username="m\"e" password="a\\b" serviceName="x"', 'm"e', "a\\b"),
    ],
)
def test_the_login_is_written_as_for_kafka(written: str, user: str, password: str) -> None:
    found = security_options(sasl(f"{PLAIN} required\n {written} ;"))
    assert found.login == SaslLogin("PLAIN", user, password)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"kafka.security.protocol": "TLS"}, "(case insensitive): SASL_SSL, PLAINTEXT"),
        ({"kafka.sasl.mechanism": "PLAIN"}, "does not go with 'kafka.security.protocol' PLAINTEXT"),
        ({"kafka.ssl.key.password": PASSWORD}, "'kafka.ssl.key.password' does not go with"),
        (sasl(f'{PLAIN} required password="{PASSWORD}";'), "needs the options username and"),
        (sasl(f'{PLAIN} required username="a" password="{PASSWORD}"'), "not terminated by"),
        (sasl(f'{PLAIN} required username="a" password="{PASSWORD};'), "not terminated by"),
        (sasl(f'{SCRAM} required username="a" password="{PASSWORD}";'), "PlainLoginModule"),
        (sasl(f'{PLAIN} required username="a" password="{PASSWORD}";', "GSSAPI"), "PLAIN, SCRAM"),
        ({"kafka.security.protocol": "SASL_SSL"}, "'kafka.sasl.jaas.config': Could not find"),
    ],
)
def test_wrong_options_are_named_without_what_is_secret(
    options: Mapping[str, str], said: str
) -> None:
    with pytest.raises(ClientOptionError) as raised:
        quorum_options({"controllers": "a:1", **options})
    assert said in str(raised.value)
    assert PASSWORD not in str(raised.value)


def test_a_login_by_tokens_takes_the_keys_of_kafkas_clients() -> None:
    url = "https://issuer.example/token"
    keys = {
        "sasl.login.callback.handler.class": RETRIEVING_HANDLER,
        "sasl.oauthbearer.token.endpoint.url": url,
        "kvorum.sasl.oauthbearer.allowed.urls": url,
        "sasl.oauthbearer.client.credentials.client.id": "me",
        "sasl.oauthbearer.client.credentials.client.secret": PASSWORD,
    }
    options = {f"kafka.{name}": value for name, value in keys.items()}
    module = sasl(f"{OAUTH_MODULE} required;", "OAUTHBEARER")
    assert isinstance(security_options({**module, **options}).login, OAuthLogin)
    with pytest.raises(ClientOptionError, match=r"'kafka\.\*': The class .* be accessed"):
        security_options({**module, **options, "kafka.kvorum.sasl.oauthbearer.allowed.urls": ""})


def test_what_is_secret_is_in_no_text() -> None:
    options = {
        "controllers": "a:1",
        **sasl(f'{PLAIN} required username="me" password="{PASSWORD}";'),
        "kafka.ssl.key.password": PASSWORD,
    }
    found = quorum_options(options)
    assert found.security.login == SaslLogin("PLAIN", "me", PASSWORD)
    assert PASSWORD not in repr(found) + str(found.security)
    assert stream_options(options)


def test_directories_have_no_security() -> None:
    with pytest.raises(OptionError, match=r"'kafka.security.protocol' goes together"):
        directory_options({"path": "logs", "kafka.security.protocol": "SSL"})


def test_a_file_of_certificates_that_is_missing_is_named() -> None:
    options = {
        "controllers": "127.0.0.1:1",
        "kafka.security.protocol": "SSL",
        "kafka.ssl.truststore.location": "/no/ca.pem",
    }
    with pytest.raises(QuorumError, match=r"TLS: .*/no/ca\.pem"):
        QuorumClient(quorum_options(options)).find_cluster_id()
