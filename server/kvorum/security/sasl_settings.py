"""The settings of SASL: the mechanisms of a listener, and the login of a client."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated


@dataclass(frozen=True, slots=True, kw_only=True)
class MechanismSettings:
    """The settings of one mechanism; `jaas_config`, None where it is not set, has passwords.

    A connection has to authenticate again within `session_ms_max`; it need not for 0 or less.
    """

    session_ms_max: Annotated[int, "connections.max.reauth.ms"]
    jaas_config: str | None = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslSettings:
    """The mechanisms of a listener, in their order, and the limit of unauthenticated clients."""

    enabled_mechanisms: Annotated[tuple[str, ...], "sasl.enabled.mechanisms"]
    receive_bytes_max: Annotated[int, "sasl.server.max.receive.size"]
    mechanisms: Mapping[str, MechanismSettings]


@dataclass(frozen=True, slots=True)
class SaslLoginSettings:
    """The mechanism by which a client logs in, and the text of its login module, if that is set."""

    mechanism: str
    jaas_config: str | None = field(repr=False)
