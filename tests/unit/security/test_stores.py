"""Key stores as text, whose base64 or whose order of certificates is wrong."""

from typing import Final

import pytest
from tests.support.certificates import Authority

from kvorum.security.errors import InvalidSslSettingsError
from kvorum.security.ssl_settings import KeyStoreSettings
from kvorum.security.stores import load_key_store

AUTHORITY: Final = Authority()
OWN: Final = AUTHORITY.certify("localhost")
KEY: Final = OWN.key_text
CHAIN: Final = OWN.certificate_text


def block(label: str, base64: str) -> str:
    return f"-----BEGIN {label}-----\n{base64}\n-----END {label}-----\n"


def load(key: str, chain: str) -> None:
    """Load a key store whose key and certificates are texts."""
    load_key_store(
        KeyStoreSettings(
            type="PEM",
            location=None,
            password=None,
            key=key,
            certificate_chain=chain,
            key_password=None,
        )
    )


def test_a_key_with_its_certificates_from_its_own_to_the_authoritys_is_loaded() -> None:
    load(KEY, CHAIN + AUTHORITY.certificate_text)


@pytest.mark.parametrize(
    ("key", "chain", "reason"),
    [
        (block("PRIVATE KEY", "ABCDE"), CHAIN, "Last unit does not have enough valid bits"),
        (KEY, block("CERTIFICATE", "ABCDE"), "Last unit does not have enough valid bits"),
        (KEY, block("CERTIFICATE", "=ABCD"), "wrong 4-byte ending unit"),
        (KEY, AUTHORITY.certificate_text + CHAIN, "Certificate chain is not valid"),
        (KEY, CHAIN + Authority("other").certificate_text, "Certificate chain is not valid"),
        (KEY, CHAIN + AUTHORITY.certificate_text * 2, "Certificate chain is not valid"),
    ],
    ids=[
        "the key has a digit too many",
        "a certificate has a digit too many",
        "a certificate has padding in it",
        "the authority's certificate is first",
        "the second certificate is not the issuer's",
        "a certificate is there twice",
    ],
)
def test_a_damaged_text_and_a_chain_out_of_order_are_refused(
    key: str, chain: str, reason: str
) -> None:
    with pytest.raises(InvalidSslSettingsError, match=f"^Invalid PEM keystore configs: .*{reason}"):
        load(key, chain)
