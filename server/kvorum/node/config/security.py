"""The settings of a node's authorizer and delegation tokens."""

from dataclasses import dataclass, field
from typing import Annotated, Final

from kvorum.metadata.config_definitions import ConfigDefinition, ConfigType
from kvorum.metadata.delegation_tokens import TokenSettings
from kvorum.metadata.standard_authorizer import AuthorizerRules, Principal
from kvorum.node.config.errors import ConfigError

AUTHORIZER_CLASS: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
AUTHORIZER_KEY: Final = "authorizer.class.name"
_SUPER_USERS_KEY: Final = "super.users"
_WITHOUT_ENTRIES_KEY: Final = "allow.everyone.if.no.acl.found"
AUTHORIZER_DEFINITIONS: Final = (
    ConfigDefinition(
        _SUPER_USERS_KEY,
        ConfigType.STRING,
        "",
        documentation="Users that may do everything, between semicolons.",
    ),
    ConfigDefinition(
        _WITHOUT_ENTRIES_KEY,
        ConfigType.STRING,
        "false",
        documentation="Allow everyone what no entry of an ACL is about.",
    ),
)
"""Keys that only the authorizer reads, so that none of Kafka's tables lists them."""


def _authorizer(name: str, super_users: str, without_entries: str) -> AuthorizerRules | None:
    """Return the rules; None without an authorizer, and for one that only Kafka has."""
    if name != AUTHORIZER_CLASS:
        return None
    return AuthorizerRules(
        super_users=_super_users(super_users),
        allows_without_entries=without_entries.lower() == "true",
    )


def _super_users(text: str) -> frozenset[str]:
    """Return the semicolon-separated users, each with its type."""
    users = frozenset(user.strip() for user in text.split(";") if user.strip())
    for user in users:
        try:
            Principal.from_text(user)
        except ValueError as error:
            raise ConfigError(f"{_SUPER_USERS_KEY}: {error}") from error
    return users


@dataclass(frozen=True, slots=True)
class SecuritySettings:
    """The authorizer, None without one, and the secret and lifetimes of delegation tokens."""

    authorizer: Annotated[
        AuthorizerRules | None, AUTHORIZER_KEY, _SUPER_USERS_KEY, _WITHOUT_ENTRIES_KEY, _authorizer
    ] = None
    tokens: TokenSettings = field(default_factory=TokenSettings)
