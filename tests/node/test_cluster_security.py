"""Clusters whose clients have security: their files, restarts, faults, and existing data."""

import socket
import ssl
import stat
import threading
from pathlib import Path
from typing import Final

import pytest
from tests.support.waiting import wait_for

from kvorum.node.embedded.client_security.mode import SecurityMode
from kvorum.node.embedded.client_security.secured_listener import secured_listener
from kvorum.node.embedded.cluster import EmbeddedCluster
from kvorum.node.embedded.existing_data import WrongSecurityError
from kvorum.node.embedded.node import ClusterSize
from kvorum.node.errors import NodeStartError
from kvorum.testing import AsyncCluster, Cluster

ONE_NODE: Final = ClusterSize(controllers=1, brokers=1)
TOPIC: Final = "t"
PUBLIC_FILES: Final = {"authority.pem", "jwks.json", "issuer.port"}
LAG_MS: Final = 1_000


def test_brokers_that_are_cut_off_do_not_reach_each_other_by_the_internal_listener() -> None:
    lag = {"replica.lag.time.max.ms": LAG_MS}
    with Cluster(brokers=2, security="tls", overrides=lag) as cluster:
        cluster.create_topic(TOPIC, replication_factor=2)
        cluster.partition([101], [102])

        def is_in_sync(count: int) -> bool:
            topic = cluster.node(1).shared_server.loader.published.topics.by_name(TOPIC)
            assert topic is not None
            return len(topic.partitions[0].isr) == count

        wait_for(lambda: is_in_sync(1), "one broker is out of sync")
        cluster.heal()
        wait_for(lambda: is_in_sync(2), "it is in sync again")


def test_the_thread_that_shakes_hands_ends_with_its_node() -> None:
    with Cluster(security="tls") as cluster:
        context = ssl.create_default_context(cafile=cluster.client_settings()["ssl.ca.location"])
        host, _, port = cluster.bootstrap_servers.partition(":")
        with (
            socket.create_connection((host, int(port))) as connection,
            context.wrap_socket(connection, server_hostname=host),
        ):
            assert handshaking_threads()
    wait_for(lambda: not handshaking_threads(), "the thread is gone")


def handshaking_threads() -> list[threading.Thread]:
    return [
        thread for thread in threading.enumerate() if thread.name.startswith("kvorum-handshakes")
    ]


async def test_a_node_comes_back_with_its_security(tmp_path: Path) -> None:
    async with AsyncCluster(folder=tmp_path, security="scram") as cluster:
        before = cluster.client_settings()
        await cluster.kill(1)
        await cluster.restart(1)
        await cluster.create_topic(TOPIC)
        assert cluster.client_settings() == before
    async with AsyncCluster(folder=tmp_path, security="scram") as again:
        assert again.client_settings()["sasl.password"] == before["sasl.password"]
        assert again.leader_of(TOPIC) == 1


@pytest.mark.parametrize("wanted", [None, SecurityMode.MTLS])
def test_the_data_of_another_security_is_refused(
    tmp_path: Path, wanted: SecurityMode | None
) -> None:
    EmbeddedCluster(tmp_path, size=ONE_NODE, security=SecurityMode.SCRAM).discard()
    with pytest.raises(WrongSecurityError, match="is of a cluster with security scram, not with"):
        EmbeddedCluster(tmp_path, size=ONE_NODE, security=wanted)


def test_the_data_of_plain_clients_has_no_security_later(tmp_path: Path) -> None:
    EmbeddedCluster(tmp_path, size=ONE_NODE).discard()
    with pytest.raises(WrongSecurityError, match="of a cluster with plain clients, not with secur"):
        EmbeddedCluster(tmp_path, size=ONE_NODE, security=SecurityMode.TLS)


def test_a_cluster_that_cannot_be_prepared_leaves_the_port_of_its_issuer(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(NodeStartError, match=f"port {port} is taken"):
            EmbeddedCluster(tmp_path, size=ONE_NODE, broker_port=port, security=SecurityMode.OAUTH)
    of_issuer = int((tmp_path / "security" / "issuer.port").read_text())
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", of_issuer))


def test_an_unknown_security_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="there is no security 'ssl': tls, mtls, scram, oauth"):
        Cluster(security="ssl")


def test_the_settings_of_an_unknown_library_are_refused_with_the_known_ones() -> None:
    with Cluster() as cluster:
        assert cluster.client_settings("java")["security.protocol"] == "PLAINTEXT"
        with pytest.raises(ValueError, match="for 'go': librdkafka, java, python"):
            cluster.client_settings("go")


@pytest.mark.parametrize("mode", SecurityMode)
def test_secrets_are_for_the_owner_alone(tmp_path: Path, mode: SecurityMode) -> None:
    made = secured_listener(mode, tmp_path, "127.0.0.1")
    if made.issuer is not None:
        made.issuer.stop()
    modes = {
        path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "security").iterdir()
    }
    assert {name for name, bits in modes.items() if bits & 0o077} <= PUBLIC_FILES


def test_a_certificate_names_the_advertised_host_also_where_it_has_changed(tmp_path: Path) -> None:
    """Checked by OpenSSL's strict rules, which Python follows from 3.13 on."""
    for host in ("kafka.example", "other.example"):
        security = secured_listener(SecurityMode.TLS, tmp_path, host)
        server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        server.load_cert_chain(security.properties["ssl.keystore.location"])
        client = ssl.create_default_context(cafile=security.access.authority)
        client.verify_flags |= ssl.VERIFY_X509_STRICT
        for name in (host, "localhost", "127.0.0.1"):
            shake_hands(client, server, name)
        with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
            shake_hands(client, server, "another.example")


def shake_hands(client: ssl.SSLContext, server: ssl.SSLContext, host: str) -> None:
    to_client = ssl.MemoryBIO()
    to_server = ssl.MemoryBIO()
    ours = client.wrap_bio(to_client, to_server, server_hostname=host)
    theirs = server.wrap_bio(to_server, to_client, server_side=True)
    for side in (ours, theirs, ours):
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
