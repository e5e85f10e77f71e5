"""The names of cipher suites in Kafka's keys, as OpenSSL knows them."""

import ssl

import pytest

from kvorum.security.cipher_suites import check_tls_1_3_suites, openssl_name
from kvorum.security.errors import InvalidSslSettingsError


@pytest.mark.parametrize(
    ("suite", "name"),
    [
        ("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "ECDHE-ECDSA-AES256-GCM-SHA384"),
        ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305"),
        ("TLS_DHE_RSA_WITH_AES_128_GCM_SHA256", "DHE-RSA-AES128-GCM-SHA256"),
        ("TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384", "ECDHE-RSA-AES256-SHA384"),
        ("TLS_RSA_WITH_AES_128_CBC_SHA", "AES128-SHA"),
        ("TLS_RSA_WITH_AES_256_GCM_SHA384", "AES256-GCM-SHA384"),
    ],
)
def test_a_suite_has_openssls_name(suite: str, name: str) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_ciphers(f"{name}@SECLEVEL=0")
    assert openssl_name(suite) == name
    assert name in {one["name"] for one in context.get_ciphers()}


@pytest.mark.parametrize("suite", ["FOO", "TLS_DH_anon_WITH_AES_128_CBC_SHA", "ALL", "!aNULL"])
def test_other_words_are_no_suites(suite: str) -> None:
    assert openssl_name(suite) is None


def test_some_suites_of_tls_1_3_cannot_be_had_without_the_others() -> None:
    check_tls_1_3_suites(["TLS_RSA_WITH_AES_128_CBC_SHA"])
    with pytest.raises(InvalidSslSettingsError, match="add TLS_AES_128_GCM_SHA256, TLS_CHACHA20"):
        check_tls_1_3_suites(["TLS_AES_256_GCM_SHA384"])
