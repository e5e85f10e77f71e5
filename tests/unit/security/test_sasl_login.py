"""The login out of the text of sasl.jaas.config, and the secrets that nothing shows."""

from typing import Final

import pytest

from kvorum.security.jaas_config import InvalidJaasConfigError
from kvorum.security.sasl_login import SaslLogin
from kvorum.security.sasl_login_modules import (
    PLAIN_MODULE,
    SCRAM_MODULE,
    NoLoginModuleError,
    read_login_module,
)
from kvorum.security.scram_messages import ClientFirst

PASSWORD: Final = "open sesame"


@pytest.mark.parametrize(
    ("mechanism", "module"),
    [("PLAIN", PLAIN_MODULE), ("SCRAM-SHA-256", SCRAM_MODULE), ("SCRAM-SHA-512", SCRAM_MODULE)],
)
def test_the_login_is_that_of_the_module(mechanism: str, module: str) -> None:
    text = f'{module} required username="a=b" password="{PASSWORD}" user_c="d";'
    assert SaslLogin.from_jaas_config(mechanism, text) == SaslLogin(mechanism, "a=b", PASSWORD)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f'{PLAIN_MODULE} required password="{PASSWORD}";', "needs the options username and"),
        (f'{PLAIN_MODULE} required username="a";', "needs the options username and password"),
        (f'{SCRAM_MODULE} required username="a" password="{PASSWORD}";', "not org.apache.kafka"),
        (f'{PLAIN_MODULE} required username="a" password="{PASSWORD}"', "not terminated"),
        ("", "Login module not specified"),
    ],
)
def test_a_text_without_a_login_is_refused_without_its_secrets(text: str, said: str) -> None:
    with pytest.raises(InvalidJaasConfigError, match=said) as raised:
        SaslLogin.from_jaas_config("PLAIN", text)
    assert PASSWORD not in str(raised.value)


@pytest.mark.parametrize(("value", "is_by_token"), [("True", True), ("no", False)])
def test_a_login_by_delegation_token_says_so(value: str, is_by_token: bool) -> None:
    text = f'{SCRAM_MODULE} required username="id" password="{PASSWORD}" tokenauth="{value}";'
    login = SaslLogin.from_jaas_config("SCRAM-SHA-256", text)
    first = ClientFirst.decode(login.begin().evaluate(b""))
    assert (first.user, first.is_by_token) == ("id", is_by_token)


def test_no_text_of_a_login_has_the_password() -> None:
    login = SaslLogin("PLAIN", "a", PASSWORD)
    assert PASSWORD not in f"{login}{login!r}"


def test_each_authentication_has_a_nonce_of_its_own() -> None:
    login = SaslLogin("SCRAM-SHA-256", "a", PASSWORD)
    assert login.begin().evaluate(b"") != login.begin().evaluate(b"")


@pytest.mark.parametrize("name", ["JndiLoginModule", "LdapLoginModule", "Krb5LoginModule"])
def test_a_module_of_java_is_not_loaded(name: str) -> None:
    with pytest.raises(NoLoginModuleError, match=f"No LoginModule found for .*{name}$"):
        read_login_module(f"com.sun.security.auth.module.{name} required;")
