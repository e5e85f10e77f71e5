"""Kafka's tools and ours at a node of ours by TLS: --command-config with right and wrong stores."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest
from tests.interop.quorum_tools import comparable, run_ours, run_real, without_progress
from tests.support.certificates import PASSWORD, Authority
from tests.support.kafka.java import ToolResult, ToolRunner
from tests.support.node import Node
from tests.support.node_process import write_properties
from tests.support.tls_nodes import Keys, Listeners

pytestmark = pytest.mark.slow

COMMANDS: Final = {
    "kafka-cluster": ("cluster-id", "list-endpoints"),
    "kafka-features": ("describe",),
    "kafka-metadata-quorum": ("describe --replication",),
}
CAUSE: Final = "Caused by: "
SSL: Final = {"security.protocol": "SSL", "request.timeout.ms": "5000"}
WRONG: Final = (
    *("untrusted", "without certificate", "stranger", "missing", "no password", "two keys"),
)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return Keys(tmp_path_factory.mktemp("keys"))


@pytest.fixture(scope="module")
def listeners() -> Listeners:
    return Listeners(("NEEDS",))


@pytest.fixture(scope="module")
def node(
    keys: Keys, listeners: Listeners, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Node]:
    settings = {**keys.settings(), **listeners.settings(), "ssl.client.auth": "required"}
    folder = tmp_path_factory.mktemp("node")
    with Node(folder, settings, ports=listeners.own_ports).format() as running:
        yield running


def clients(keys: Keys) -> Mapping[str, Mapping[str, str]]:
    """Return the settings of clients by what is right or wrong with them."""
    own = keys.authority.certify("admin")
    stranger = Authority("other").certify("admin")
    trusted = keys.settings()
    del trusted["ssl.keystore.location"], trusted["ssl.keystore.type"]

    def shown(name: str, path: Path) -> Mapping[str, str]:
        return {**SSL, **trusted, "ssl.keystore.type": name, "ssl.keystore.location": str(path)}

    pkcs12 = own.write_pkcs12(keys.folder / "admin.p12")
    pem = own.write_pem(keys.folder / "admin.pem")
    twice = keys.folder / "twice.pem"
    twice.write_text(own.key_text + pem.read_text())
    return {
        "pem": shown("PEM", pem),
        "pkcs12": {**shown("PKCS12", pkcs12), "ssl.keystore.password": PASSWORD},
        "untrusted": SSL,
        "without certificate": {**SSL, **trusted},
        "stranger": shown("PEM", stranger.write_pem(keys.folder / "stranger.pem")),
        "missing": shown("PEM", Path("/nowhere/admin.pem")),
        "no password": shown("PKCS12", pkcs12),
        "two keys": shown("PEM", twice),
    }


@pytest.mark.usefixtures("node")
@pytest.mark.parametrize("what", ["pem", "pkcs12", *WRONG])
def test_tools_end_alike_with_each_kind_of_stores(
    keys: Keys, listeners: Listeners, kafka_tools: ToolRunner, what: str
) -> None:
    file = keys.folder / "client.properties"
    write_properties(file, clients(keys)[what])
    server = f"localhost:{listeners.ports['NEEDS']}"
    for tool, commands in COMMANDS.items():
        for command in commands:
            options = ["--bootstrap-server", server, "--command-config", str(file)]
            words = command.split()
            arguments = [*words, *options] if tool == "kafka-cluster" else [*options, *words]
            theirs = without_progress(comparable(run_real(arguments, kafka_tools, tool)))
            ours = without_progress(comparable(run_ours(arguments, tool)))
            assert theirs.exit_code == (1 if what in WRONG else 0)
            assert (ours.exit_code, ours.stdout) == (theirs.exit_code, theirs.stdout)
            assert error_class(ours) == error_class(theirs)
            if CAUSE in ours.stderr:
                (cause,) = causes(ours)
                assert any(cause.startswith(each) for each in causes(theirs)), (cause, theirs)


def error_class(result: ToolResult) -> str:
    """Return the class of an error; its text in TLS 1.3 says when Java has learnt of it."""
    return result.stderr.partition("\n")[0].partition(":")[0]


def causes(result: ToolResult) -> list[str]:
    return [line for line in result.stderr.splitlines() if line.startswith(CAUSE)]
