"""Streams over controllers of both kinds whose listener wants TLS, SASL, or both."""

import os
import subprocess
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from tests.interop.stream_rows import stream_over
from tests.support.node import CLUSTER_ID, STANDALONE, Kind
from tests.support.ports import listens
from tests.support.quorum.quorum import MakeQuorum, Quorum
from tests.support.raw_client import RawClient
from tests.support.topics import WITH_AUTHORIZER, add_entries, entry
from tests.support.waiting import wait_for

from kvorum.inspection.metadata_source_error import MetadataSourceError
from kvorum.inspection.shell.quorum import LiveQuorum
from kvorum.metadata.acl_codes import CLUSTER_NAME, AclOperation, AclResourceType, PermissionType
from kvorum.quorum_client.errors import QuorumError

pytestmark = pytest.mark.slow
PASSWORD = 'pass"word, and = more'
QUOTED = PASSWORD.replace('"', '\\"')
MODULES = "org.apache.kafka.common.security"
PLAIN_USER = f'{MODULES}.plain.PlainLoginModule required username="reader" password="{QUOTED}";'
SCRAM_USER = f'{MODULES}.scram.ScramLoginModule required username="reader" password="{QUOTED}";'
SCRAM_PASSWORD = "secret"
BY_BOTH = pytest.mark.parametrize("kind", ["kafka", "kvorum"])


@pytest.fixture(scope="module")
def identity(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a certificate for 127.0.0.1, and with its key: once open, once encrypted."""
    folder = tmp_path_factory.mktemp("identity")
    openssl(folder, "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=controller",
            "-addext subjectAltName=IP:127.0.0.1 -keyout key.pem -out certificate.pem")  # fmt: skip
    openssl(folder, "pkcs8 -topk8 -in key.pem -out encrypted.pem -passout env:PASSWORD")
    certificate = (folder / "certificate.pem").read_text()
    for name in ("key.pem", "encrypted.pem"):
        (folder / name).write_text((folder / name).read_text() + certificate)
    return folder


def openssl(folder: Path, *arguments: str) -> None:
    command = ["openssl", *" ".join(arguments).split()]
    environment = {**os.environ, "PASSWORD": PASSWORD}
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)


def tls_of_controller(identity: Path) -> dict[str, str]:
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(identity / "key.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(identity / "certificate.pem"),
    }


def tls_of_stream(identity: Path) -> dict[str, str]:
    return {"kafka.ssl.truststore.location": str(identity / "certificate.pem")}


@contextmanager
def secured(
    make_quorum: MakeQuorum, kind: Kind, settings: Mapping[str, str], *format_options: str
) -> Generator[dict[str, str]]:
    """Run a controller; yield the options of a stream that say where it is."""
    with make_quorum(kind, 1, settings) as quorum:
        quorum.format(1, *STANDALONE, *format_options)
        quorum.start()
        quorum.wait_for(lambda: listens(quorum.addresses), "the controller listens")
        yield {"controllers": quorum.addresses, "retryTimeoutMs": "30000"}


def types_of(options: Mapping[str, str]) -> set[str]:
    stream = stream_over(options)
    try:
        return {row["type"] for row in stream.advance()}
    finally:
        stream.stop()


def failure(options: Mapping[str, str]) -> str:
    """Return the error of a stream that gets no rows; it has no secret in it."""
    with pytest.raises(QuorumError) as raised:
        types_of({**options, "retryTimeoutMs": "0"})
    assert PASSWORD not in str(raised.value)
    return str(raised.value)


@BY_BOTH
def test_tls_with_the_certificates_of_both_sides(
    make_quorum: MakeQuorum, kind: Kind, identity: Path
) -> None:
    settings = {
        "listener.security.protocol.map": "CONTROLLER:SSL",
        "ssl.client.auth": "required",
        **tls_of_controller(identity),
    }
    with secured(make_quorum, kind, settings) as where:
        assert "not PLAINTEXT" in failure(where)
        where["kafka.security.protocol"] = "SSL"
        assert "certificate verify failed" in failure(where)
        options = {
            **where,
            **tls_of_stream(identity),
            "kafka.ssl.keystore.location": str(identity / "encrypted.pem"),
            "kafka.ssl.key.password": PASSWORD,
        }
        assert "FEATURE_LEVEL_RECORD" in types_of(options)
        # The certificate has the address, and no name.
        named = {**options, "controllers": where["controllers"].replace("127.0.0.1", "localhost")}
        assert "Hostname mismatch" in failure(named)
        unchecked = {**named, "kafka.ssl.endpoint.identification.algorithm": ""}
        assert "FEATURE_LEVEL_RECORD" in types_of(unchecked)
        wrong = {**options, "kafka.ssl.key.password": "other"}
        assert "Private key could not be loaded" in failure(wrong)


@BY_BOTH
def test_a_password_by_plain(make_quorum: MakeQuorum, kind: Kind) -> None:
    jaas = f'{PLAIN_USER[:-1]} user_reader="{QUOTED}";'.replace("\\", "\\\\")
    settings = {
        "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.controller.plain.sasl.jaas.config": jaas,
    }
    with secured(make_quorum, kind, settings) as where:
        options = {
            **where,
            "kafka.security.protocol": "SASL_PLAINTEXT",
            "kafka.sasl.mechanism": "PLAIN",
            "kafka.sasl.jaas.config": PLAIN_USER,
        }
        assert "FEATURE_LEVEL_RECORD" in types_of(options)
        wrong = PLAIN_USER.replace('"reader"', '"other"')
        assert "Invalid username or password" in failure(
            {**options, "kafka.sasl.jaas.config": wrong}
        )
        scram = {"kafka.sasl.mechanism": "SCRAM-SHA-256", "kafka.sasl.jaas.config": SCRAM_USER}
        assert "enabled mechanisms are [PLAIN]" in failure({**options, **scram})


@BY_BOTH
def test_the_shell_logs_in_by_the_keys_of_kafkas_clients(
    make_quorum: MakeQuorum, kind: Kind
) -> None:
    def shown(login: str) -> int:
        settings = {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": login,
        }
        with closing(LiveQuorum(where["controllers"], settings)) as quorum:
            quorum.catch_up()
            return quorum.folded.end.offset

    with secured(make_quorum, kind, SASL) as where:
        right = (
            f'{MODULES}.plain.PlainLoginModule required username="controller" password="secret";'
        )
        assert shown(right) > 0
        with pytest.raises(MetadataSourceError, match="Invalid username or password"):
            shown(right.replace("secret", PASSWORD.replace('"', "")))
        with pytest.raises(MetadataSourceError, match=r"--command-config: .* not terminated"):
            shown(right.removesuffix(";"))


@BY_BOTH
@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_password_by_scram_over_tls(
    make_quorum: MakeQuorum, kind: Kind, identity: Path, mechanism: str
) -> None:
    login = SCRAM_USER.replace(QUOTED, SCRAM_PASSWORD)
    settings = {
        "listener.security.protocol.map": "CONTROLLER:SASL_SSL",
        "sasl.enabled.mechanisms": mechanism,
        "sasl.mechanism.controller.protocol": mechanism,
        f"listener.name.controller.{mechanism.lower()}.sasl.jaas.config": login,
        **tls_of_controller(identity),
    }
    credential = f"{mechanism}=[name=reader,password={SCRAM_PASSWORD}]"
    with secured(make_quorum, kind, settings, "--add-scram", credential) as where:
        options = {
            **where,
            **tls_of_stream(identity),
            "kafka.security.protocol": "SASL_SSL",
            "kafka.sasl.mechanism": mechanism,
            "kafka.sasl.jaas.config": login,
        }
        # Users are known once the controller leads.
        comes_to_be(options, "some rows")
        assert "USER_SCRAM_CREDENTIAL_RECORD" in types_of(options)
        wrong = login.replace(SCRAM_PASSWORD, "other")
        assert f"SASL {mechanism}: " in failure({**options, "kafka.sasl.jaas.config": wrong})


SASL = {
    "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.controller.protocol": "PLAIN",
    "listener.name.controller.plain.sasl.jaas.config": (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        'username="controller" password="secret" user_controller="secret";'
    ),
}


@pytest.fixture(params=["kvorum", "kafka"])
def quorum(request: pytest.FixtureRequest, make_quorum: MakeQuorum) -> Iterator[Quorum]:
    with make_quorum(request.param, 1, WITH_AUTHORIZER) as found:
        found.form([1])
        found.start()
        found.settled(found.keys(1))
        yield found


def add_entry(address: str, operation: AclOperation, permission: PermissionType) -> None:
    with RawClient(address) as client:
        add_entries(
            client, entry(AclResourceType.CLUSTER, CLUSTER_NAME, operation, permission=permission)
        )


def result(options: Mapping[str, str]) -> str:
    """Return the error of a stream, or how it fared without one."""
    stream = stream_over(options)
    try:
        return "some rows" if stream.advance() else "nothing"
    except QuorumError as error:
        return str(error)
    finally:
        stream.stop()


def comes_to_be(options: Mapping[str, str], said: str) -> None:
    """Wait for a result: an authorizer takes entries a moment after they are acknowledged."""
    wait_for(
        lambda: said in result(options),
        f"{said!r} is the result",
        otherwise=lambda: result(options),
    )


def test_what_is_not_allowed_is_named(quorum: Quorum) -> None:
    address = quorum.addresses
    options = {"controllers": address, "retryTimeoutMs": "10000"}
    add_entry(address, AclOperation.ALTER, PermissionType.ALLOW)
    comes_to_be(options, "authorizer must allow ClusterAction")
    add_entry(address, AclOperation.CLUSTER_ACTION, PermissionType.ALLOW)
    comes_to_be(options, "some rows")
    stream = stream_over(options)
    assert stream.advance()
    add_entry(address, AclOperation.ALTER, PermissionType.DENY)
    comes_to_be(options, "give option 'cluster.id'")
    comes_to_be({**options, "cluster.id": CLUSTER_ID}, "some rows")
    # The checkpoint has the id.
    stream.restart()
    assert "ACCESS_CONTROL_ENTRY_RECORD" in {row["type"] for row in stream.advance()}
    stream.stop()


def test_a_listener_that_wants_sasl_is_reported(make_quorum: MakeQuorum) -> None:
    with make_quorum("kafka", 1, SASL) as quorum:
        quorum.form([1])
        quorum.start()
        quorum.wait_for(lambda: listens(quorum.addresses), "the controller listens")
        options = {"controllers": quorum.addresses, "retryTimeoutMs": "1000"}
        comes_to_be(options, "listeners do that are not PLAINTEXT")
