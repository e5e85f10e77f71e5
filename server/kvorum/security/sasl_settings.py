"""The settings of SASL: the mechanisms of a listener, and the login of a client."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Final

from kvorum.security.oauth_login_settings import OAuthLoginSettings
from kvorum.security.oauth_settings import OAuthSettings

VERIFYING_HANDLER: Final = (
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
)
"""The class of Kafka's that has tokens of OAUTHBEARER verified; without it they are not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MechanismSettings:
    """The settings of one mechanism; `jaas_config`, None where it is not set, has passwords.

    A connection has to authenticate again within `session_ms_max`; it need not for 0 or less.
    `callback_handler` is the name of a class of Kafka's, None where it is not set.
    """

    session_ms_max: Annotated[int, "connections.max.reauth.ms"]
    oauth: OAuthSettings
    callback_handler: str | None
    jaas_config: str | None = field(repr=False)

    @property
    def verifies_tokens(self) -> bool:
        """Whether tokens of OAUTHBEARER have to be signed."""
        return self.callback_handler == VERIFYING_HANDLER


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslSettings:
    """The mechanisms of a listener, in their order, and the limit of unauthenticated clients."""

    enabled_mechanisms: Annotated[tuple[str, ...], "sasl.enabled.mechanisms"]
    receive_bytes_max: Annotated[int, "sasl.server.max.receive.size"]
    mechanisms: Mapping[str, MechanismSettings]


@dataclass(frozen=True, slots=True)
class SaslLoginSettings:
    """The mechanism by which a client logs in, and the text of its login module, if that is set.

    `oauth` says how tokens are had, for OAUTHBEARER.
    """

    mechanism: str
    jaas_config: str | None = field(repr=False)
    oauth: OAuthLoginSettings
