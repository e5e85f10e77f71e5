"""The mechanisms of SASL that are served, and the login modules that they are configured with."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from kvorum.metadata.credentials_image import SCRAM_DIGESTS, ScramMechanism

PLAIN: Final = "PLAIN"
SCRAM: Final[Mapping[str, ScramMechanism]] = MappingProxyType(
    {mechanism.mechanism_name: mechanism for mechanism in SCRAM_DIGESTS}
)
OAUTHBEARER: Final = "OAUTHBEARER"
SERVED_MECHANISMS: Final = (PLAIN, *SCRAM, OAUTHBEARER)
LOGIN_MECHANISMS: Final = (PLAIN, *SCRAM)
"""The mechanisms by which nodes and commands log in."""
PLAIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"
OAUTH_MODULE: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
