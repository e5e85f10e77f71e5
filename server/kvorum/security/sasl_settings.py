"""The settings of SASL, of one listener: its mechanisms and what each of them knows."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslSettings:
    """The mechanisms of a listener, and the limits of clients that are not authenticated.

    `jaas_configs` are by mechanism, without those that are not set; they have passwords.
    """

    enabled_mechanisms: Annotated[tuple[str, ...], "sasl.enabled.mechanisms"]
    receive_bytes_max: Annotated[int, "sasl.server.max.receive.size"]
    jaas_configs: Mapping[str, str] = field(repr=False)
