"""Settings that verify no tokens: both a real node and ours end, and log the same."""

import re
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from tests.support.kafka.java import Java, ToolRunner
from tests.support.node import LEVELS_OF_OURS, STANDALONE, Node
from tests.support.oauth_tokens import OAUTH_CONFIG
from tests.support.tls_nodes import Listeners
from tests.support.token_issuer import Issuer
from tests.support.waiting import wait_for

pytestmark = pytest.mark.slow

HANDLER: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
OWN_KEY: Final = "key 'kvorum.sasl.oauthbearer.allowed.urls'"
PROPERTY: Final = "system property 'org.apache.kafka.sasl.oauthbearer.allowed.urls'"
URL: Final = "oauthbearer.sasl.oauthbearer.jwks.endpoint.url"
AUDIENCE: Final = "sasl.oauthbearer.expected.audience"
ISSUER: Final = "sasl.oauthbearer.expected.issuer"
BEGINNING: Final = re.compile("(The class|The OAuth val)")
LOGGER: Final = re.compile(r" \((?:org\.apache\.kafka|kafka|kvorum)\.[\w.]+\)$")
REFUSED: Final[dict[str, dict[str, str | None]]] = {
    "The OAuth validator for the broker requires": {URL: None},
    'that the token\'s audience ("aud") claim can be verified': {AUDIENCE: None, URL: "file:///x"},
    'that the token\'s issuer ("iss") claim can be verified': {ISSUER: None},
    "The URL cannot be accessed due to restrictions": {URL: "file:///other"},
    "that contains an invalid protocol (ftp)": {URL: "ftp://issuer.example/keys"},
    "doesn't exist": {URL: "file:///nowhere/keys.json"},
}
"""Changes of the settings of a listener, by a part of the line about them; None takes a key out."""


@contextmanager
def allowing(urls: str) -> Generator[None]:
    """Let Java processes that begin meanwhile read keys from these URLs."""
    with pytest.MonkeyPatch.context() as patched:
        name = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
        patched.setenv("JAVA_TOOL_OPTIONS", f"-D{name}={urls}")
        yield


def log_of(node: Node) -> str:
    """Return the log of a node that ends as it starts."""
    node.launch()
    wait_for(lambda: not node.process.is_running or None, "the node has ended")
    text = node.log_text
    node.kill()
    return text


def line_with(part: str, text: str) -> str:
    """Return the text of the line with this part, without what each log has around it."""
    line = next(line for line in text.splitlines() if part in line and BEGINNING.search(line))
    found = BEGINNING.split(line, maxsplit=1)
    return LOGGER.sub("", "".join(found[1:])).replace(OWN_KEY, PROPERTY)


@pytest.mark.parametrize("part", REFUSED)
def test_settings_that_verify_nothing_are_refused_as_by_kafka(
    java: Java, kafka_tools: ToolRunner, tmp_path: Path, part: str
) -> None:
    keys = tmp_path / "keys.json"
    keys.write_text(Issuer().key_set())
    urls = f"{keys.as_uri()},ftp://issuer.example/keys,file:///nowhere/keys.json"
    own: dict[str, str | None] = {
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "oauthbearer.sasl.jaas.config": OAUTH_CONFIG,
        "oauthbearer.sasl.server.callback.handler.class": HANDLER,
        URL: keys.as_uri(),
        AUDIENCE: "kafka",
        ISSUER: "https://issuer.example",
        **REFUSED[part],
    }
    lines: list[str] = []
    for kind, tool in ((java, kafka_tools), (None, None)):
        listeners = Listeners(("OPEN",), {"OPEN": "SASL_PLAINTEXT"})
        settings = {
            **listeners.settings(),
            "kvorum.sasl.oauthbearer.allowed.urls": urls,
            **{f"listener.name.open.{key}": text for key, text in own.items() if text is not None},
        }
        folder = tmp_path / ("ours" if kind is None else "real")
        node = Node(folder, settings, java=kind, ports=listeners.own_ports)
        levels = () if kind is None else LEVELS_OF_OURS
        with allowing(urls):
            lines.append(line_with(part, log_of(node.format((*STANDALONE, *levels), tools=tool))))
    assert lines[1] == lines[0]
