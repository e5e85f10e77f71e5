"""The settings of a node's authorizer and delegation tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from kvorum.metadata.delegation_tokens import TokenSettings
from kvorum.metadata.principal import Principal
from kvorum.metadata.standard_authorizer import AuthorizerRules
from kvorum.node.config.errors import ConfigError
from kvorum.node.config.values import BrokerValues

AUTHORIZER_CLASS: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
SUPER_USERS_KEY: Final = "super.users"
WITHOUT_ENTRIES_KEY: Final = "allow.everyone.if.no.acl.found"
AUTHORIZER_KEYS: Final = frozenset({SUPER_USERS_KEY, WITHOUT_ENTRIES_KEY})
"""Keys that only the authorizer reads, so that none of Kafka's tables lists them."""


@dataclass(frozen=True, slots=True)
class SecuritySettings:
    """The authorizer, None without one, and the secret and lifetimes of delegation tokens."""

    authorizer: AuthorizerRules | None = None
    tokens: TokenSettings = field(default_factory=TokenSettings)


def security_settings(values: BrokerValues, *, must_be_servable: bool) -> SecuritySettings:
    """Read ``authorizer.class.name`` with its keys, and ``delegation.token.*``.

    Without `must_be_servable` an authorizer that only Kafka has is ignored.
    """
    secret_key = values.optional_text("delegation.token.secret.key")
    return SecuritySettings(
        authorizer=_authorizer(values, must_be_servable=must_be_servable),
        tokens=TokenSettings(
            secret_key=secret_key.encode() if secret_key else None,
            lifetime_ms_max=values.integer("delegation.token.max.lifetime.ms"),
            expiry_ms=values.integer("delegation.token.expiry.time.ms"),
            expiry_check_interval_ms=values.integer("delegation.token.expiry.check.interval.ms"),
        ),
    )


def _authorizer(values: BrokerValues, *, must_be_servable: bool) -> AuthorizerRules | None:
    name = values.text("authorizer.class.name")
    if not name or (name != AUTHORIZER_CLASS and not must_be_servable):
        return None
    if name != AUTHORIZER_CLASS:
        raise ConfigError(
            f"authorizer.class.name is {name}, but {AUTHORIZER_CLASS} is the only authorizer that "
            "kvorum has"
        )
    return AuthorizerRules(
        super_users=_super_users(values.texts),
        allows_without_entries=values.texts.get(WITHOUT_ENTRIES_KEY, "").strip().lower() == "true",
    )


def _super_users(texts: Mapping[str, str]) -> frozenset[str]:
    """Return the semicolon-separated users, each with its type."""
    users = frozenset(
        user.strip() for user in texts.get(SUPER_USERS_KEY, "").split(";") if user.strip()
    )
    for user in users:
        try:
            Principal.from_text(user)
        except ValueError as error:
            raise ConfigError(f"{SUPER_USERS_KEY}: {error}") from error
    return users
