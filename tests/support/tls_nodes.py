"""Nodes with listeners that speak TLS or SASL, and TLS clients with Python's own ssl."""

import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final

from tests.support.certificates import NODE_NAME, Authority, Certified
from tests.support.ports import free_ports
from tests.support.raw_client import TIMEOUT_SECONDS, RawClient

VERSIONS: Final = (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)
NODE_SUBJECT: Final = "User:CN=localhost,O=Acme,C=DE"
"""The user that a node is to others, by its certificate."""


@dataclass(frozen=True)
class Keys:
    """An authority, and the PEM files of a node, of the authority, and of clients by name."""

    folder: Path
    authority: Authority = field(default_factory=Authority)
    node_certified: Certified = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "node_certified", self.authority.certify(NODE_NAME))
        self.authority.write_pem(self.trusted)
        self.node_certified.write_pem(self.node)

    @property
    def node(self) -> Path:
        return self.folder / "node.pem"

    @property
    def trusted(self) -> Path:
        return self.folder / "authority.pem"

    def client(self, name: str) -> Path:
        """Return the file of a client that the authority has certified."""
        return self.write(self.authority.certify(name), name)

    def write(self, certified: Certified, name: str) -> Path:
        return certified.write_pem(self.folder / f"{name}.pem")

    def settings(self) -> dict[str, str]:
        """Return the settings of a node's stores."""
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.node),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.trusted),
        }

    def context(self, client: Path | None = None) -> ssl.SSLContext:
        """Return the context of a client that trusts the authority, with a certificate or none."""
        context = ssl.create_default_context(cafile=str(self.trusted))
        if client is not None:
            context.load_cert_chain(client)
        return context


@dataclass(frozen=True)
class Listeners:
    """The listeners of a combined node: PLAINTEXT, CONTROLLER, and those that authenticate.

    These speak SSL unless `protocols` has another one for their name.
    """

    names: tuple[str, ...]
    protocols: Mapping[str, str] = field(default_factory=dict[str, str])
    ports: Mapping[str, int] = field(init=False)

    def __post_init__(self) -> None:
        names = ("PLAINTEXT", "CONTROLLER", *self.names)
        ports = MappingProxyType(dict(zip(names, free_ports(len(names)), strict=True)))
        object.__setattr__(self, "ports", ports)

    @property
    def own_ports(self) -> tuple[int, int]:
        """The ports of the broker and of the controller in plain text."""
        return self.ports["PLAINTEXT"], self.ports["CONTROLLER"]

    def settings(self) -> dict[str, str]:
        listeners = ",".join(f"{name}://127.0.0.1:{port}" for name, port in self.ports.items())
        protocols = [f"{name}:{self.protocols.get(name, 'SSL')}" for name in self.names]
        return {
            "listeners": listeners,
            "advertised.listeners": listeners,
            "inter.broker.listener.name": "PLAINTEXT",
            "listener.security.protocol.map": ",".join(
                ("PLAINTEXT:PLAINTEXT", "CONTROLLER:PLAINTEXT", *protocols)
            ),
        }


def served_serial(port: int, context: ssl.SSLContext) -> int:
    """Return the serial number of the certificate that a new connection gets."""
    with TlsClient(port, context) as client:
        assert isinstance(client.socket, ssl.SSLSocket)
        shown = client.socket.getpeercert()
        assert shown is not None
        return int(str(shown["serialNumber"]), 16)


class TlsClient(RawClient):
    """A raw client that speaks TLS; raises ssl.SSLError where the handshake fails."""

    def __init__(self, port: int, context: ssl.SSLContext) -> None:
        super().__init__(f"127.0.0.1:{port}")
        try:
            self.socket: socket.socket = context.wrap_socket(self.socket, server_hostname=NODE_NAME)
        except BaseException:
            self.socket.close()
            raise
        self.socket.settimeout(TIMEOUT_SECONDS)
