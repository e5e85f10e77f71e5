"""The users that TLS clients are, or their refusal, at a real node and at ours."""

import ssl
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import product
from pathlib import Path
from typing import Final

import pytest
from tests.interop.listener_pairs import Sides, running_sides
from tests.support.certificates import PASSWORD, Authority
from tests.support.kafka.java import Java, ToolRunner
from tests.support.raw_client import RawClient
from tests.support.tls_nodes import VERSIONS, Keys, Listeners, TlsClient

from kvorum.wire.messages.api_versions import ApiVersionsRequest
from kvorum.wire.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)

pytestmark = pytest.mark.slow

NAMES: Final = (
    "NEEDS",
    "ASKS",
    "OPEN",
    "MAPS",
    "REFUSES",
    "STORES",
    "OLD",
    "SUITE",
    "KEYLESS",
    "BROKEN",
)
BY_LISTENER: Final[Mapping[str, Mapping[str, str]]] = {
    "needs": {"ssl.client.auth": "required"},
    "asks": {"ssl.client.auth": "requested"},
    "open": {},
    "maps": {
        "ssl.client.auth": "required",
        "ssl.principal.mapping.rules": "RULE:^CN=(.*?),O=Acme.*$/$1/U",
    },
    "refuses": {
        "ssl.client.auth": "requested",
        "ssl.principal.mapping.rules": "RULE:^CN=nobody$/x/",
    },
    "old": {"ssl.enabled.protocols": "TLSv1.2"},
    "suite": {"ssl.cipher.suites": "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"},
    "broken": {"ssl.enabled.protocols": "TLSv1.2,TLSv9"},
}
LET_IN: Final = "let in as "
NOT_LET_IN: Final = "not let in"
CLOSED: Final = "closed at the first request"


def settings(keys: Keys, folder: Path, listeners: Listeners) -> dict[str, str]:
    stores = {
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(folder / "node.p12"),
        "ssl.keystore.password": PASSWORD,
        # Java reads the store all the same.
        "ssl.truststore.type": "JKS",
        "ssl.truststore.location": str(folder / "authority.p12"),
        "ssl.truststore.password": PASSWORD,
        "ssl.client.auth": "required",
    }
    inline = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": keys.node_certified.key_text,
        "ssl.keystore.certificate.chain": keys.node_certified.certificate_text,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": keys.authority.certificate_text,
    }
    by_listener = {**BY_LISTENER, "stores": stores}
    by_listener |= {
        name: {**inline, **by_listener.get(name, {})}
        for name in map(str.lower, NAMES)
        if name not in {"stores", "keyless"}
    }
    return {
        **listeners.settings(),
        "delegation.token.secret.key": "secret",
        **{
            f"listener.name.{name}.{key}": value.replace("\n", "\\n")
            for name, values in by_listener.items()
            for key, value in values.items()
        },
    }


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return Keys(tmp_path_factory.mktemp("keys"))


@pytest.fixture(scope="module")
def sides(
    keys: Keys, java: Java, kafka_tools: ToolRunner, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Sides]:
    folder = tmp_path_factory.mktemp("nodes")
    keys.node_certified.write_pkcs12(folder / "node.p12")
    keys.authority.write_pkcs12(folder / "authority.p12")
    found = Sides(Listeners(NAMES), Listeners(NAMES))
    with running_sides(
        found, folder, partial(settings, keys, folder), java=java, tools=kafka_tools
    ):
        yield found


@pytest.fixture(scope="module")
def certificates(keys: Keys) -> Mapping[str, Path | None]:
    """Return the files of clients by what is right or wrong with them."""
    return {
        "none": None,
        "good": keys.client("alice"),
        "special": keys.client('A "b", c+d=#\\'),
        "expired": keys.write(keys.authority.certify("late", is_expired=True), "late"),
        "of another authority": keys.write(Authority("other").certify("alice"), "other"),
    }


def outcome(port: int, context: ssl.SSLContext) -> str:
    """Return who the client is let in as, if it is."""
    try:
        client = TlsClient(port, context)
    except (ssl.SSLError, ConnectionError):
        return NOT_LET_IN
    with client:
        return _user(client)


def _user(client: RawClient) -> str:
    try:
        versions = ApiVersionsRequest("test", "1")
        client.send(versions, 3)
        if client.read_frame() is None:
            return CLOSED
        answer = client.ask(CreateDelegationTokenRequest(), CreateDelegationTokenResponse, 3)
    except (ssl.SSLError, ConnectionError):
        # In TLS 1.3 a client learns that it is not let in when it reads.
        return NOT_LET_IN
    name = answer.principal_name if answer.error_code == 0 else f"error {answer.error_code}"
    return f"{LET_IN}{name}"


@pytest.mark.parametrize("name", NAMES)
def test_clients_with_each_certificate_are_let_in_or_not_as_by_kafka(
    sides: Sides, keys: Keys, certificates: Mapping[str, Path | None], name: str
) -> None:
    outcomes: dict[str, list[str]] = {}
    for listeners in sides:
        found = outcomes[f"{len(outcomes)}"] = []
        for (what, file), version in product(certificates.items(), VERSIONS):
            context = keys.context(file)
            context.minimum_version = version
            context.maximum_version = version
            found.append(f"{what} {version.name}: {outcome(listeners.ports[name], context)}")
    theirs, ours = outcomes.values()
    assert ours == theirs
    assert any(LET_IN in each for each in theirs) is (name not in {"KEYLESS", "BROKEN"})
