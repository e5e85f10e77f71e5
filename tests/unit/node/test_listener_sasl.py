"""The mechanisms of a node's listeners: what is refused at the start, and warned of."""

from pathlib import Path
from random import Random
from typing import Final

import pytest
from tests.support.oauth_tokens import OAUTH_CONFIG
from tests.support.token_issuer import Issuer
from tests.support.waiting import StandingClock

from kvorum.metadata.image import MetadataImage
from kvorum.node.config import NodeConfig
from kvorum.node.errors import NodeStartError
from kvorum.node.serving.listener_sasl import ListenerSasl, RefusedTokens, sasl_of_node
from kvorum.security.renewable import Renewable

PREFIX: Final = "listener.name.secret."
HANDLER: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
NODE: Final = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "listeners": "PLAINTEXT://:9092,SECRET://:9094,CONTROLLER://:9093",
    "listener.security.protocol.map": (
        "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SECRET:SASL_PLAINTEXT"
    ),
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.bootstrap.servers": "localhost:9093",
    "log.dirs": "data",
    f"{PREFIX}sasl.enabled.mechanisms": "OAUTHBEARER",
    f"{PREFIX}oauthbearer.sasl.jaas.config": OAUTH_CONFIG,
}
VERIFYING: Final = {
    f"{PREFIX}oauthbearer.sasl.server.callback.handler.class": HANDLER,
    "sasl.oauthbearer.expected.issuer": "https://issuer.example",
    f"{PREFIX}sasl.oauthbearer.expected.audience": "kafka",
}


def listener(changes: dict[str, str]) -> ListenerSasl:
    config = NodeConfig.from_properties(NODE | changes)
    made = sasl_of_node(
        config, MetadataImage, Random(1), StandingClock(), note_renewable=list[Renewable]().append
    )
    return made["SECRET"]


def by_file(path: Path) -> dict[str, str]:
    url = path.as_uri()
    return {
        f"{PREFIX}oauthbearer.sasl.oauthbearer.jwks.endpoint.url": url,
        "kvorum.sasl.oauthbearer.allowed.urls": f"https://issuer.example/keys, {url}",
    }


def test_a_listener_that_verifies_no_tokens_says_so(caplog: pytest.LogCaptureFixture) -> None:
    assert list(listener({}).mechanisms) == ["OAUTHBEARER"]
    assert "anybody can come as any user listener=SECRET" in caplog.text


def test_a_listener_that_verifies_tokens_by_a_file_has_nothing_to_warn_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "keys.json"
    path.write_text(Issuer().key_set())
    assert list(listener({**VERIFYING, **by_file(path)}).mechanisms) == ["OAUTHBEARER"]
    assert caplog.text == ""


def test_a_listener_says_that_it_takes_tokens_of_anybody_for_anybody(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "keys.json"
    path.write_text(Issuer().key_set())
    listener(
        {
            f"{PREFIX}oauthbearer.sasl.server.callback.handler.class": HANDLER,
            "sasl.oauthbearer.allow.unverified.audience": "true",
            "sasl.oauthbearer.allow.unverified.issuer": "true",
            **by_file(path),
        }
    )
    assert "Tokens for any audience are accepted listener=SECRET" in caplog.text
    assert "Tokens of any issuer are accepted listener=SECRET" in caplog.text


def test_a_listener_without_the_means_to_verify_tokens_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NodeStartError, match=r"Listener SECRET cannot use SASL: The OAuth valid"):
        listener(VERIFYING)
    path = tmp_path / "keys.json"
    path.write_text("no keys")
    with pytest.raises(NodeStartError, match="cannot be read as a key set"):
        listener({**VERIFYING, **by_file(path)})
    refused = {**VERIFYING, **by_file(path), "kvorum.sasl.oauthbearer.allowed.urls": "file:///x"}
    with pytest.raises(NodeStartError, match="cannot be accessed due to restrictions"):
        listener(refused)


def test_reasons_for_which_tokens_are_refused_are_logged_now_and_then(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = StandingClock()
    refused = RefusedTokens(clock)
    for _ in range(3):
        refused.note("it has expired")
    assert [record.getMessage() for record in caplog.records] == [
        'A token is refused reason="it has expired"'
    ]
    clock.now_ms += 600_000
    refused.note("it has expired")
    assert "others=2" in caplog.records[-1].getMessage()
