"""The settings of a cluster that some clients log in to, by SCRAM, in sessions that end."""

from __future__ import annotations

from random import Random
from typing import Final, NamedTuple

SASL_LISTENER: Final = "LOGIN"
MECHANISM: Final = "SCRAM-SHA-256"
HAS_LOGINS: Final = 0.2
"""The share of worlds in which some clients log in."""
FAILURE_DELAY_MS: Final = 50
_SESSIONS_MS: Final = (1_100, 1_600, 2_400)
"""Longer than the second within which a client does not begin to log in again."""


class LoginSettings(NamedTuple):
    """The time that a session lasts, which begins with a login."""

    session_ms: int

    @classmethod
    def draw(cls, random: Random) -> LoginSettings | None:
        """Draw the settings of a cluster, None for one without clients that log in."""
        if random.random() >= HAS_LOGINS:
            return None
        return cls(random.choice(_SESSIONS_MS))

    def of_broker(self, broker_id: int, other_listener: str) -> dict[str, str]:
        """Return the configuration of a broker, which has another listener without SASL too."""
        return {
            "listeners": (
                f"{other_listener}://b{broker_id}:9092,{SASL_LISTENER}://b{broker_id}:9094"
            ),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "connections.max.reauth.ms": str(self.session_ms),
            "connection.failed.authentication.delay.ms": str(FAILURE_DELAY_MS),
            "sasl.enabled.mechanisms": MECHANISM,
            f"listener.name.{SASL_LISTENER.lower()}.{MECHANISM.lower()}.sasl.jaas.config": (
                "org.apache.kafka.common.security.scram.ScramLoginModule required;"
            ),
        }
