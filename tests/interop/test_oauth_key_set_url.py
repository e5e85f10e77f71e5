"""Signed tokens at a real node and at ours, verified by the keys at a URL, which are replaced."""

import json
from collections.abc import Iterator
from typing import Final, NamedTuple

import pytest
from tests.interop.listener_pairs import Sides, running_sides
from tests.support.answering_server import Answer, AnsweringServer, answering
from tests.support.kafka.java import Java, ToolRunner
from tests.support.node import STANDALONE, Node
from tests.support.oauth_tokens import OAUTH_CONFIG, bearer_outcome, message
from tests.support.oauth_tokens import Answer as SaslAnswer
from tests.support.tls_nodes import Listeners
from tests.support.token_issuer import Issuer, new_rsa_key
from tests.support.waiting import wait_for

pytestmark = pytest.mark.slow

HANDLER: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
ALLOWED: Final = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
GIVEN_UP: Final = b"\x01"
KEYS: Final = [new_rsa_key(name) for name in ("first", "second", "third")]
ISSUER: Final = Issuer(KEYS)
UNKNOWN: Final = new_rsa_key("unknown")


class Places(NamedTuple):
    """The server of the keys for each side: the real node, and ours."""

    real: AnsweringServer
    ours: AnsweringServer

    def publish(self, count: int) -> None:
        """Have both give the first keys of the issuer."""
        body = json.dumps({"keys": json.loads(ISSUER.key_set())["keys"][:count]}).encode()
        for server in self:
            server.answers[:] = [Answer(body=body)]

    def asked_counts(self) -> list[int]:
        return [len(server.asked) for server in self]


def settings(listeners: Listeners, url: str) -> dict[str, str]:
    own = {
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "oauthbearer.sasl.jaas.config": OAUTH_CONFIG,
        "oauthbearer.sasl.server.callback.handler.class": HANDLER,
        "sasl.oauthbearer.jwks.endpoint.url": url,
        "sasl.oauthbearer.allow.unverified.audience": "true",
        "sasl.oauthbearer.allow.unverified.issuer": "true",
    }
    return {
        **listeners.settings(),
        "kvorum.sasl.oauthbearer.allowed.urls": url,
        **{f"listener.name.signed.{key}": value for key, value in own.items()},
    }


def signed_listeners() -> Listeners:
    return Listeners(("SIGNED",), {"SIGNED": "SASL_PLAINTEXT"})


@pytest.fixture(scope="module")
def judged(java: Java, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Sides, Places]]:
    """Yield a real node and ours, with the servers of their keys."""
    sides = Sides(signed_listeners(), signed_listeners())
    with answering(Answer()) as for_real, answering(Answer()) as for_ours:
        places = Places(for_real, for_ours)
        places.publish(1)

        def configure(listeners: Listeners) -> dict[str, str]:
            server = for_real if listeners is sides.real else for_ours
            return settings(listeners, server.url)

        with pytest.MonkeyPatch.context() as patched:
            patched.setenv("JAVA_TOOL_OPTIONS", f"-D{ALLOWED}={for_real.url}")
            with (
                ToolRunner(java) as tools,
                running_sides(
                    sides,
                    tmp_path_factory.mktemp("nodes"),
                    configure,
                    java=java,
                    tools=tools,
                ),
            ):
                yield sides, places


def outcomes(sides: Sides, number: int) -> list[list[SaslAnswer]]:
    """Return what both sides answer to a token by one of the keys."""
    messages = (message(ISSUER.token(key=KEYS[number])), GIVEN_UP)
    return [bearer_outcome(side.ports["SIGNED"], messages) for side in sides]


def test_a_token_by_a_new_key_is_refused_and_then_taken_as_by_kafka(
    judged: tuple[Sides, Places],
) -> None:
    sides, places = judged
    let_in, as_well = outcomes(sides, 0)
    assert let_in == as_well
    refused, also = outcomes(sides, 1)
    assert refused == also != let_in
    before = places.asked_counts()
    places.publish(2)
    refused_again, also = outcomes(sides, 1)
    assert refused_again == also == refused, "the key was looked for a moment ago"
    assert places.asked_counts() == before
    refused_once, also = outcomes(sides, 2)
    assert refused_once == also == refused, "but this one was not: the keys are had again"
    wait_for(lambda: outcomes(sides, 1)[0] != refused, "the real node has the new keys")
    wait_for(lambda: outcomes(sides, 1)[1] != refused, "ours has the new keys")
    assert outcomes(sides, 0) == outcomes(sides, 1)


def test_ours_goes_on_with_its_keys_while_there_are_no_others(
    judged: tuple[Sides, Places],
) -> None:
    sides, places = judged
    for server in places:
        server.answers[:] = [Answer(status=404)]
    before = places.asked_counts()
    unknown = (message(ISSUER.token(key=UNKNOWN)), GIVEN_UP)
    assert len({str(bearer_outcome(each.ports["SIGNED"], unknown)) for each in sides}) == 1
    wait_for(
        lambda: all(now > then for now, then in zip(places.asked_counts(), before, strict=True)),
        "both have asked for the missing key",
    )
    taken, as_well = outcomes(sides, 0)
    assert taken == as_well
    assert taken[0] is not None
    assert taken[0][2] == b""


def test_a_node_without_the_keys_does_not_start(tmp_path_factory: pytest.TempPathFactory) -> None:
    listeners = signed_listeners()
    with answering(Answer(body=b"no keys")) as server:
        folder = tmp_path_factory.mktemp("refused")
        node = Node(folder, settings(listeners, server.url), ports=listeners.own_ports)
        node.format(STANDALONE).launch()
        wait_for(lambda: not node.process.is_running, "the node has ended")
        node.kill()
    assert f"The node has no key set at {server.url}: Could not refresh JWKS" in node.log_text
