"""A node's connections to other nodes, after its certificate was renewed."""

import asyncio
import logging
import ssl
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from tests.support.certificates import NODE_NAME, THIS_MACHINE, Authority, Certified
from tests.support.tls_nodes import Keys
from tests.support.waiting import PATIENCE_S

from kvorum.metadata.address import Address
from kvorum.metadata.configs_image import ResourceType, replay_config
from kvorum.metadata.image import MetadataImage
from kvorum.node.config import NodeConfig
from kvorum.node.outbound.client_connection import ClientConnectionError
from kvorum.node.outbound.outgoing import Outgoing
from kvorum.node.serving.listener_tls import tls_of_node
from kvorum.node.tls_renewal import Connecting, TlsRenewal
from kvorum.security.client_security import ClientSecurity
from kvorum.wire.messages.config_record import ConfigRecord

LISTENER: Final = "INTERNAL"
TIMEOUT_MS: Final = int(PATIENCE_S * 1000)


def config_of(keys: Keys) -> NodeConfig:
    return NodeConfig.from_properties(
        {
            "process.roles": "broker",
            "node.id": "1",
            "listeners": f"{LISTENER}://127.0.0.1:0",
            "advertised.listeners": f"{LISTENER}://127.0.0.1:9092",
            "inter.broker.listener.name": LISTENER,
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": "127.0.0.1:9093",
            "listener.security.protocol.map": f"{LISTENER}:SSL,CONTROLLER:PLAINTEXT",
            "log.dirs": str(keys.folder / "data"),
            **keys.settings(),
        }
    )


class Peer:
    """A broker that notes the certificates it is shown, and ends each connection."""

    def __init__(self, keys: Keys) -> None:
        self.shown: list[int] = []
        self._context = ssl.create_default_context(
            ssl.Purpose.CLIENT_AUTH, cafile=str(keys.trusted)
        )
        self._context.load_cert_chain(keys.write(keys.authority.certify(NODE_NAME), "peer"))
        self._context.verify_mode = ssl.CERT_REQUIRED

    async def shown_by(self, outgoing: Outgoing) -> int:
        """Return the serial number of the certificate that a new connection shows."""

        def note(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            certificate: dict[str, Any] = writer.get_extra_info("peercert")
            self.shown.append(int(certificate["serialNumber"], 16))
            writer.close()

        server = await asyncio.start_server(note, "127.0.0.1", 0, ssl=self._context)
        async with server:
            port = server.sockets[0].getsockname()[1]
            with suppress(ClientConnectionError):
                await outgoing.open(
                    Address("127.0.0.1", port), client_id="1", timeout_ms=TIMEOUT_MS
                )
        return self.shown[-1]


class Renewing:
    """The TLS of a node without anything else of it."""

    def __init__(self, keys: Keys) -> None:
        config = config_of(keys)
        tls = tls_of_node(config)
        assert tls.to_brokers is not None
        self.outgoing = Outgoing(ClientSecurity(tls=tls.to_brokers.context))
        connecting = Connecting(LISTENER, tls.to_brokers, self.outgoing)
        self._renewal = TlsRenewal(config, tls.listeners, [connecting])
        self._image = MetadataImage()

    def alter(self, value: str, key: str = "foo.bar") -> None:
        record = ConfigRecord(ResourceType.BROKER, "1", key, value)
        configs = replay_config(self._image.configs, record)
        self._image = replace(self._image, configs=configs)
        self._renewal.on_image(self._image)


def put(keys: Keys, certified: Certified) -> int:
    keys.write(certified, keys.node.stem)
    return certified.certificate.serial_number


async def test_new_connections_show_the_renewed_certificate(tmp_path: Path) -> None:
    """KAFKA-8336: the client's side of connections between brokers kept the one before."""
    keys = Keys(tmp_path)
    renewing = Renewing(keys)
    peer = Peer(keys)
    first = keys.node_certified.certificate.serial_number
    assert await peer.shown_by(renewing.outgoing) == first
    following = put(keys, keys.authority.certify(NODE_NAME, hosts=THIS_MACHINE))
    assert await peer.shown_by(renewing.outgoing) == first
    renewing.alter("1")
    assert await peer.shown_by(renewing.outgoing) == following


async def test_a_certificate_that_the_other_brokers_would_not_trust_is_not_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    keys = Keys(tmp_path)
    renewing = Renewing(keys)
    peer = Peer(keys)
    put(keys, Authority("other").certify(NODE_NAME, hosts=THIS_MACHINE))
    with caplog.at_level(logging.ERROR):
        renewing.alter("1")
    assert "Error updating node with new configuration: listener INTERNAL: Valid" in caplog.text
    shown = await peer.shown_by(renewing.outgoing)
    assert shown == keys.node_certified.certificate.serial_number


async def test_a_location_that_no_file_can_have_is_not_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A controller stores it, and brokers learn of it at each of their starts."""
    keys = Keys(tmp_path)
    renewing = Renewing(keys)
    peer = Peer(keys)
    with caplog.at_level(logging.ERROR):
        renewing.alter("a\0b", key=f"listener.name.{LISTENER.lower()}.ssl.keystore.location")
    assert "Unable to read file a\0b" in caplog.text
    shown = await peer.shown_by(renewing.outgoing)
    assert shown == keys.node_certified.certificate.serial_number
