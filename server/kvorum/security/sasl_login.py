"""The login of a client: a user, its password, and the mechanism of SASL that takes them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from secrets import token_urlsafe
from typing import Final, Self

from kvorum.security.jaas_config import InvalidJaasConfigError
from kvorum.security.plain_client import PlainClient
from kvorum.security.sasl_client import SaslClient
from kvorum.security.sasl_login_modules import (
    PLAIN,
    PLAIN_MODULE,
    SCRAM,
    SCRAM_MODULE,
    read_login_module,
)
from kvorum.security.scram_client import ScramClient
from kvorum.security.scram_messages import BY_TOKEN

_USER: Final = "username"
_PASSWORD: Final = "password"  # noqa: S105 - the name of an option


@dataclass(frozen=True, slots=True)
class SaslLogin:
    """The user of a client and its password, for one of the mechanisms that are served.

    A login `is_by_token` where they are the id and the secret of a delegation token; of the
    mechanisms only SCRAM looks at that, as in Kafka.
    """

    mechanism: str
    user: str
    password: str = field(repr=False)
    is_by_token: bool = False

    @classmethod
    def from_jaas_config(cls, mechanism: str, text: str) -> Self:
        """Read the text of `sasl.jaas.config`; raises InvalidJaasConfigError without secrets."""
        module = read_login_module(text)
        expected = PLAIN_MODULE if mechanism == PLAIN else SCRAM_MODULE
        if module.class_name != expected:
            raise InvalidJaasConfigError(
                f"The login module of mechanism {mechanism} is {expected}, not {module.class_name}"
            )
        if not module.options.keys() >= {_USER, _PASSWORD}:
            raise InvalidJaasConfigError(
                f"The login module of mechanism {mechanism} needs the options {_USER} and "
                f"{_PASSWORD} to log in with"
            )
        return cls(
            mechanism,
            module.options[_USER],
            module.options[_PASSWORD],
            is_by_token=module.options.get(BY_TOKEN, "").lower() == "true",
        )

    def prepare(self, wall_s: Callable[[], float], pause_s: Callable[[float], None]) -> None:
        """Do nothing: a password is ready."""

    def begin(self) -> SaslClient:
        """Begin an authentication."""
        if self.mechanism == PLAIN:
            return PlainClient(self.user, self.password)
        return ScramClient(
            SCRAM[self.mechanism],
            self.user,
            self.password,
            token_urlsafe(),
            is_by_token=self.is_by_token,
        )
