"""The authorizer and the tokens of a node, as its properties file sets them."""

import pytest
from tests.unit.node.config.properties import BOTH

from kvorum.metadata.delegation_tokens import TokenSettings
from kvorum.metadata.standard_authorizer import AuthorizerRules
from kvorum.node.config import ConfigError, NodeConfig, SecuritySettings
from kvorum.node.config.known import known_but_unused, unknown

AUTHORIZER = {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}


def security(texts: dict[str, str]) -> SecuritySettings:
    """Return what `texts` say, beside what every node needs."""
    return NodeConfig.from_properties(BOTH | texts).security


def test_authorizer_and_secret_are_set_only_by_their_keys() -> None:
    assert security({"super.users": "User:root"}) == SecuritySettings(None, TokenSettings())
    assert security({"delegation.token.secret.key": ""}).tokens.secret_key is None


@pytest.mark.parametrize(
    ("text", "users"),
    [
        ("", frozenset[str]()),
        ("User:a", {"User:a"}),
        (" User:a ; Group:b;;User:c:d ", {"User:a", "Group:b", "User:c:d"}),
        ("User:a,User:b", {"User:a,User:b"}),
    ],
)
def test_super_users_stand_between_semicolons(text: str, users: set[str]) -> None:
    rules = security(AUTHORIZER | {"super.users": text}).authorizer
    assert rules == AuthorizerRules(frozenset(users))


@pytest.mark.parametrize(
    ("text", "is_allowed"), [(" TRUE ", True), ("true", True), ("yes", False), ("", False)]
)
def test_what_holds_without_entries(text: str, *, is_allowed: bool) -> None:
    rules = security(AUTHORIZER | {"allow.everyone.if.no.acl.found": text}).authorizer
    assert rules == AuthorizerRules(allows_without_entries=is_allowed)


def test_tokens_have_kafkas_keys() -> None:
    texts = {
        "delegation.token.secret.key": "s3cret",
        "delegation.token.max.lifetime.ms": "3",
        "delegation.token.expiry.time.ms": "2",
        "delegation.token.expiry.check.interval.ms": "1",
    }
    assert security(texts).tokens == TokenSettings(b"s3cret", 3, 2, 1)
    assert "s3cret" not in repr(security(texts))


def test_a_user_without_a_type_is_refused() -> None:
    with pytest.raises(ConfigError) as caught:
        security(AUTHORIZER | {"super.users": "User:a;root"})
    assert str(caught.value) == (
        "super.users: expected a string in format principalType:principalName but got root"
    )


def test_another_authorizer_is_refused_where_it_has_to_serve() -> None:
    texts = {"authorizer.class.name": "com.example.Mine"}
    with pytest.raises(ConfigError, match=r"authorizer\.class\.name is com\.example\.Mine, "):
        security(texts)
    config = NodeConfig.from_properties(BOTH | texts, must_be_servable=False)
    assert config.security.authorizer is None


def test_the_keys_of_the_authorizer_are_known() -> None:
    names = {*AUTHORIZER, "super.users", "allow.everyone.if.no.acl.found"}
    assert (known_but_unused(names), unknown(names)) == ((), ())
