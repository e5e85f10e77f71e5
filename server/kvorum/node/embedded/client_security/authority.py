"""An authority of a cluster's own: its certificate, and those that it signs."""

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
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kvorum.node.embedded.client_security.secret_files import write_secret

CERTIFICATE_FILE: Final = "authority.pem"
KEY_FILE: Final = "authority.key"
NAME: Final = "kvorum"
LIFETIME: Final = timedelta(days=3_650)
LIFETIME_OF_OTHERS: Final = timedelta(days=365)
"""Their certificates are made again at each start."""
CLOCK_SKEW: Final = timedelta(days=1)
"""The time by which a client's clock may be behind."""


@dataclass(frozen=True, slots=True)
class Authority:
    """An authority that signs the certificates of brokers and clients."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    def certify(self, path: Path, name: str, *, hosts: Sequence[str] = ()) -> None:
        """Write a new key and its certificate to a file in PEM, which its owner alone may read.

        `name` is the common name; `hosts` are the names and addresses it is reached by.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(
            name, key.public_key(), issuer=self.certificate.subject, lifetime=LIFETIME_OF_OTHERS
        )
        builder = builder.add_extension(
            x509.BasicConstraints(ca=False, path_length=None), critical=True
        )
        builder = builder.add_extension(_key_usage(is_authority=False), critical=True)
        builder = builder.add_extension(
            x509.ExtendedKeyUsage(
                [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
            ),
            critical=False,
        )
        builder = builder.add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()),
            critical=False,
        )
        if hosts:
            names = x509.SubjectAlternativeName(map(_general_name, hosts))
            builder = builder.add_extension(names, critical=False)
        certificate = builder.sign(self.key, SHA256())
        write_secret(path, _key_text(key) + certificate.public_bytes(Encoding.PEM))


def authority_of(folder: Path) -> Authority:
    """Return the authority whose files are in a folder; make it if they are missing."""
    certificate_path = folder / CERTIFICATE_FILE
    key_path = folder / KEY_FILE
    if not certificate_path.exists():
        _store_new_authority(certificate_path, key_path)
    key = load_pem_private_key(key_path.read_bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    return Authority(x509.load_pem_x509_certificate(certificate_path.read_bytes()), key)


def _store_new_authority(certificate_path: Path, key_path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    builder = _builder(NAME, key.public_key(), issuer=_name(NAME), lifetime=LIFETIME)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_key_usage(is_authority=True), critical=True)
    write_secret(key_path, _key_text(key))
    certificate_path.write_bytes(builder.sign(key, SHA256()).public_bytes(Encoding.PEM))


def _builder(
    name: str, key: ec.EllipticCurvePublicKey, *, issuer: x509.Name, lifetime: timedelta
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(
        issuer_name=issuer,
        subject_name=_name(name),
        public_key=key,
        serial_number=x509.random_serial_number(),
        not_valid_before=now - CLOCK_SKEW,
        not_valid_after=now - CLOCK_SKEW + lifetime,
    )
    return builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)


def _key_usage(*, is_authority: bool) -> x509.KeyUsage:
    """Return what a key is for: certificates and their revocation, or the signatures of TLS."""
    return x509.KeyUsage(
        digital_signature=not is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        encipher_only=False,
        decipher_only=False,
    )


def _key_text(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)
