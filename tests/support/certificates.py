"""Certificates of authorities that tests make up, and the files that nodes and clients read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.hazmat.primitives.serialization.pkcs12 import (
    PKCS12Certificate,
    serialize_java_truststore,
    serialize_key_and_certificates,
)
from cryptography.x509.oid import NameOID

DAY: Final = timedelta(days=1)
PASSWORD: Final = "of a store"
"""The password of the stores that have one."""
NODE_NAME: Final = "localhost"
THIS_MACHINE: Final = (NODE_NAME, "127.0.0.1")


@dataclass(frozen=True)
class Certified:
    """A private key with its certificate, and that of the authority."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @property
    def key_text(self) -> str:
        encoded = self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return encoded.decode()

    @property
    def certificate_text(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()

    def write_pem(self, path: Path) -> Path:
        """Write key and certificate into a file, as the stores of the type PEM have them."""
        path.write_text(self.key_text + self.certificate_text)
        return path

    def write_pkcs12(self, path: Path, password: str = PASSWORD) -> Path:
        path.write_bytes(
            serialize_key_and_certificates(
                b"own",
                self.key,
                self.certificate,
                None,
                BestAvailableEncryption(password.encode()),
            )
        )
        return path


class Authority:
    """An authority that certifies the nodes and clients of a test, on this machine."""

    def __init__(self, name: str = "authority") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(name)
        self.certificate = self._sign(self._name, self._key.public_key())

    @property
    def certificate_text(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()

    def write_pem(self, path: Path) -> Path:
        path.write_text(self.certificate_text)
        return path

    def write_pkcs12(self, path: Path, password: str = PASSWORD) -> Path:
        """Write a store that Java trusts."""
        trusted = [PKCS12Certificate(self.certificate, b"authority")]
        encryption = BestAvailableEncryption(password.encode())
        path.write_bytes(serialize_java_truststore(trusted, encryption))
        return path

    def certify(
        self, name: str, *, hosts: Sequence[str] = THIS_MACHINE, is_expired: bool = False
    ) -> Certified:
        """Return a new key and its certificate, for a subject with this common name."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._sign(_name(name), key.public_key(), hosts=hosts, is_expired=is_expired)
        return Certified(key, certificate)

    def _sign(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePublicKey,
        *,
        hosts: Sequence[str] = (),
        is_expired: bool = False,
    ) -> x509.Certificate:
        now = datetime.now(UTC)
        is_authority = not hosts
        builder = x509.CertificateBuilder(
            issuer_name=self._name,
            subject_name=subject,
            public_key=key,
            serial_number=x509.random_serial_number(),
            not_valid_before=now - 2 * DAY,
            not_valid_after=now + (-DAY if is_expired else DAY),
        ).add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        if not is_authority:
            builder = builder.add_extension(
                x509.SubjectAlternativeName(map(_general_name, hosts)), critical=False
            )
        return builder.sign(self._key, SHA256())


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _name(common_name: str) -> x509.Name:
    return x509.Name(
        [
            x509.NameAttribute(NameOID.COUNTRY_NAME, "DE"),
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Acme"),
            x509.NameAttribute(NameOID.COMMON_NAME, common_name),
        ]
    )
