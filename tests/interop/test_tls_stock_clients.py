"""The outcomes of stock clients at listeners with TLS, of a real node and of ours.

Kafka names to clients the authorities that it trusts, and Java and librdkafka do not show a
certificate of another one. Our listeners name none: such a certificate is shown, and refused.
"""

import importlib
import ssl
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from tests.interop.clients.authentications import LET_IN
from tests.interop.clients.login_program import KAFKAJS, LoginProgram
from tests.interop.listener_pairs import Sides, running_sides
from tests.support.certificates import Authority
from tests.support.kafka.java import Java, ToolRunner
from tests.support.tls_nodes import Keys, Listeners
from tests.support.waiting import PATIENCE_S, wait_for

from kvorum.storage.small_files.java_properties import store_java_properties

pytestmark = pytest.mark.slow

NAMES: Final = ("NEEDS", "ASKS", "OPEN")
CLIENT_AUTH: Final = {"NEEDS": "required", "ASKS": "requested", "OPEN": "none"}
WORKS: Final = "works"
REFUSED: Final = "refused"
SIDES: Final = ("real", "ours")
KINDS: Final = ("good", "none", "expired", "of another authority", "trusting another authority")
STEP_S: Final = 0.1


class Certificates(NamedTuple):
    """The files of a client: what it trusts, and what it shows, if anything."""

    trusted: Path
    own: Path | None


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return Keys(tmp_path_factory.mktemp("keys"))


@pytest.fixture(scope="module")
def sides(
    keys: Keys, java: Java, kafka_tools: ToolRunner, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Sides]:
    folder = tmp_path_factory.mktemp("nodes")
    auth = {f"listener.name.{name.lower()}.ssl.client.auth": CLIENT_AUTH[name] for name in NAMES}
    found = Sides(Listeners(NAMES), Listeners(NAMES))

    def settings(listeners: Listeners) -> dict[str, str]:
        return {**keys.settings(), **auth, **listeners.settings()}

    with running_sides(found, folder, settings, java=java, tools=kafka_tools):
        yield found


@pytest.fixture(scope="module")
def clients(keys: Keys) -> Mapping[str, Certificates]:
    """Return the certificates of clients by what is right or wrong with them."""
    other = Authority("other")
    expired = keys.write(keys.authority.certify("late", is_expired=True), "late")
    good = keys.client("alice")
    return {
        "good": Certificates(keys.trusted, good),
        "none": Certificates(keys.trusted, None),
        "expired": Certificates(keys.trusted, expired),
        "of another authority": Certificates(
            keys.trusted, keys.write(other.certify("alice"), "other-alice")
        ),
        "trusting another authority": Certificates(
            other.write_pem(keys.folder / "other.pem"), good
        ),
    }


def ask_librdkafka(port: int, certificates: Certificates) -> str:
    errors: list[object] = []
    settings = {
        "bootstrap.servers": f"localhost:{port}",
        "security.protocol": "SSL",
        "ssl.ca.location": str(certificates.trusted),
        "error_cb": errors.append,
        "log_level": 0,
    }
    if certificates.own is not None:
        settings["ssl.certificate.location"] = str(certificates.own)
        settings["ssl.key.location"] = str(certificates.own)
    module: Any = importlib.import_module("confluent_kafka")
    admin: Any = importlib.import_module("confluent_kafka.admin").AdminClient(settings)

    def outcome() -> str | None:
        try:
            admin.list_topics(timeout=STEP_S)
        except module.KafkaException:
            admin.poll(0)
            return REFUSED if errors else None
        return WORKS

    return wait_for(outcome, "librdkafka works or is refused")


async def ask_aiokafka(port: int, certificates: Certificates) -> str:
    module: Any = importlib.import_module("aiokafka")
    errors: Any = importlib.import_module("aiokafka.errors")
    client = module.AIOKafkaProducer(
        bootstrap_servers=f"localhost:{port}",
        security_protocol="SSL",
        ssl_context=_context(certificates),
        request_timeout_ms=int(PATIENCE_S * 1000),
    )
    try:
        await client.start()
    except errors.KafkaConnectionError:
        return REFUSED
    else:
        return WORKS
    finally:
        await client.stop()


def ask_program(program: LoginProgram, port: int, certificates: Certificates) -> str:
    own = None if certificates.own is None else str(certificates.own)
    said = program.outcome(port, trusted=str(certificates.trusted), shown=own)
    return WORKS if said == LET_IN else REFUSED


def _context(certificates: Certificates) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(certificates.trusted))
    if certificates.own is not None:
        context.load_cert_chain(certificates.own)
    return context


def java_settings(port: int, certificates: Certificates) -> Mapping[str, str]:
    settings = {
        "bootstrap.servers": f"localhost:{port}",
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(certificates.trusted),
    }
    if certificates.own is not None:
        settings |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(certificates.own)}
    return settings


def expected(*, shows_other: bool) -> Mapping[tuple[str, str], str]:
    """Return the outcomes by listener and by what is right or wrong with the client.

    `shows_other` is whether it shows a certificate of another authority where it is asked for one.
    """
    refused = {
        "NEEDS": {"none", "expired", "of another authority", "trusting another authority"},
        "ASKS": {"expired", "trusting another authority"},
        "OPEN": {"trusting another authority"},
    }
    if shows_other:
        refused["ASKS"].add("of another authority")
    return {
        (name, what): REFUSED if what in refused[name] else WORKS
        for name, what in product(NAMES, KINDS)
    }


@pytest.mark.parametrize("side", SIDES)
def test_librdkafka(sides: Sides, clients: Mapping[str, Certificates], side: str) -> None:
    ports = getattr(sides, side).ports
    found = {
        (name, what): ask_librdkafka(ports[name], certificates)
        for name, (what, certificates) in product(NAMES, clients.items())
    }
    assert found == expected(shows_other=side == "ours")


@pytest.mark.parametrize("side", SIDES)
async def test_aiokafka(sides: Sides, clients: Mapping[str, Certificates], side: str) -> None:
    ports = getattr(sides, side).ports
    found = {
        (name, what): await ask_aiokafka(ports[name], certificates)
        for name, (what, certificates) in product(NAMES, clients.items())
    }
    assert found == expected(shows_other=True)


@pytest.mark.parametrize("side", SIDES)
def test_clients_in_other_languages(
    sides: Sides, clients: Mapping[str, Certificates], login_program: LoginProgram, side: str
) -> None:
    ports = getattr(sides, side).ports
    found = {
        (name, what): ask_program(login_program, ports[name], certificates)
        for name, (what, certificates) in product(NAMES, clients.items())
    }
    # Go shows no certificate of an authority that was not named.
    shows_other = side == "ours" or login_program.client == KAFKAJS
    assert found == expected(shows_other=shows_other)


@pytest.mark.parametrize("side", SIDES)
def test_the_java_client(
    java: Java, sides: Sides, clients: Mapping[str, Certificates], side: str
) -> None:
    ports = getattr(sides, side).ports
    asked = list(product(NAMES, KINDS))
    lines = [
        store_java_properties(java_settings(ports[name], clients[what]).items(), comments=[])
        for name, what in asked
    ]
    answers = java.answers("SslClients", asked=(line.encode().hex() for line in lines))
    assert dict(zip(asked, answers, strict=True)) == expected(shows_other=side == "ours")
