"""Kafka's tools and ours that log in by tokens of OAUTHBEARER, from each place that gives them."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from tests.interop.listener_pairs import Sides, running_sides
from tests.interop.quorum_tools import assert_alike
from tests.support.kafka.java import Java, ToolRunner
from tests.support.node_process import write_properties
from tests.support.oauth_tokens import OAUTH_CONFIG, OAUTH_MODULE
from tests.support.tls_nodes import Listeners

from kvorum.node.embedded.client_security.client_access import User
from kvorum.node.embedded.client_security.token_issuer import AUDIENCE, TokenIssuer

pytestmark = pytest.mark.slow

PACKAGE: Final = "org.apache.kafka.common.security.oauthbearer"
VALIDATOR: Final = f"{PACKAGE}.OAuthBearerValidatorCallbackHandler"
LOGIN_HANDLER: Final = f"{PACKAGE}.OAuthBearerLoginCallbackHandler"
ALLOWED: Final = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
OUR_ALLOWED: Final = "kvorum.sasl.oauthbearer.allowed.urls"
TOKEN_URL: Final = "sasl.oauthbearer.token.endpoint.url"
CLIENT_ID: Final = "sasl.oauthbearer.client.credentials.client.id"
CLIENT_SECRET: Final = "sasl.oauthbearer.client.credentials.client.secret"
SECRET: Final = "secret of alice"
ALICE: Final = 'unsecuredLoginStringClaim_sub="alice"'
PROTOCOLS: Final = {"SIGNED": "SASL_PLAINTEXT", "ANY": "SASL_PLAINTEXT"}


class Places(NamedTuple):
    """The places that give tokens: an issuer, and a folder of files."""

    issuer: TokenIssuer
    files: Path

    def urls(self) -> str:
        """Return the URLs that may be read."""
        names = ("good", "strange", "none", "rubbish")
        files = [(self.files / name).as_uri() for name in names]
        return ",".join([self.issuer.token_url, self.issuer.key_set_file.as_uri(), *files])

    def settings(self, listeners: Listeners) -> dict[str, str]:
        """Return the settings of a node: one listener verifies tokens, one does not."""
        signed = {
            "sasl.server.callback.handler.class": VALIDATOR,
            "sasl.oauthbearer.jwks.endpoint.url": self.issuer.key_set_file.as_uri(),
            "sasl.oauthbearer.expected.audience": AUDIENCE,
            "sasl.oauthbearer.expected.issuer": self.issuer.url,
        }
        return {
            **listeners.settings(),
            OUR_ALLOWED: self.urls(),
            **{
                f"listener.name.{name}.{key}": value
                for name in ("signed", "any")
                for key, value in {
                    "sasl.enabled.mechanisms": "OAUTHBEARER",
                    "oauthbearer.sasl.jaas.config": OAUTH_CONFIG,
                }.items()
            },
            **{f"listener.name.signed.oauthbearer.{key}": value for key, value in signed.items()},
        }


def unsecured(options: str) -> dict[str, str]:
    return {"sasl.jaas.config": f"{OAUTH_MODULE} required {options};"}


def at(url: str, **credentials: str) -> dict[str, str]:
    """Return the settings of tokens from a URL, with `id` and `secret` where it asks for them."""
    keys = {"id": CLIENT_ID, "secret": CLIENT_SECRET}
    return {
        **unsecured(""),
        "sasl.login.callback.handler.class": LOGIN_HANDLER,
        TOKEN_URL: url,
        "sasl.login.retry.backoff.max.ms": "300",
        **{keys[name]: value for name, value in credentials.items()},
    }


RIGHT: Final[Mapping[str, tuple[str, dict[str, str]]]] = {
    "unsecured": ("ANY", unsecured(f'{ALICE} unsecuredLoginExtension_trace="1"')),
    "by credentials": ("SIGNED", at("TOKEN", id="alice", secret=SECRET)),
    "in a file": ("SIGNED", at("FILES/good")),
}
WRONG: Final[Mapping[str, tuple[str, dict[str, str]]]] = {
    "unsecured where it is verified": ("SIGNED", unsecured(ALICE)),
    "of a stranger": ("SIGNED", at("FILES/strange")),
    "wrong secret": ("SIGNED", at("TOKEN", id="alice", secret="guess")),
    "no id": ("SIGNED", at("TOKEN")),
    "no secret": ("SIGNED", at("TOKEN", id="alice")),
    "nothing there": ("SIGNED", at("ISSUER/none", id="alice", secret=SECRET)),
    "no file": ("SIGNED", at("FILES/none")),
    "no URL": ("SIGNED", at("")),
    "no protocol of a URL": ("SIGNED", at("a/b")),
    "unknown protocol of a URL": ("SIGNED", at("ftp://a/b")),
    "no login module": ("ANY", {}),
}


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Places]:
    folder = tmp_path_factory.mktemp("places")
    issuer = TokenIssuer(folder, User("alice", SECRET))
    issuer.start()
    (folder / "good").write_text(f"{issuer.token()}\n")
    stranger_folder = tmp_path_factory.mktemp("stranger")
    stranger = TokenIssuer(stranger_folder, User("alice", SECRET))
    (folder / "strange").write_text(stranger.token())
    stranger.stop()
    yield Places(issuer, folder)
    issuer.stop()


@pytest.fixture(scope="module")
def judged(
    places: Places, java: Java, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Sides, ToolRunner]]:
    """Yield a real node and ours, and Kafka's tools, which may read the URLs of the places."""
    found = Sides(Listeners(("SIGNED", "ANY"), PROTOCOLS), Listeners(("SIGNED", "ANY"), PROTOCOLS))
    folder = tmp_path_factory.mktemp("nodes")
    urls = f"{places.urls()},{places.issuer.url}/none"
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("JAVA_TOOL_OPTIONS", f"-D{ALLOWED}={urls}")
        with (
            ToolRunner(java) as tools,
            running_sides(found, folder, places.settings, java=java, tools=tools),
        ):
            yield found, tools


@pytest.mark.parametrize("what", [*RIGHT, *WRONG])
def test_tools_end_alike_at_a_real_node_and_at_ours(
    judged: tuple[Sides, ToolRunner], places: Places, tmp_path: Path, what: str
) -> None:
    sides, tools = judged
    listener, texts = {**RIGHT, **WRONG}[what]
    settings = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        OUR_ALLOWED: f"{places.urls()},{places.issuer.url}/none",
        **texts,
    }
    url = settings.get(TOKEN_URL, "").replace("TOKEN", places.issuer.token_url)
    url = url.replace("ISSUER", places.issuer.url).replace("FILES", places.files.as_uri())
    if url:
        settings[TOKEN_URL] = url
    file = tmp_path / "client.properties"
    write_properties(file, settings)
    for side in sides:
        address = f"localhost:{side.ports[listener]}"
        arguments = ["cluster-id", "--bootstrap-server", address, "--command-config", str(file)]
        exit_code = 1 if what in WRONG else 0
        assert_alike("kafka-cluster", arguments, tools, exit_code, secret=SECRET)
