"""Kafka's rules for the connections that a client's address may have (KafkaConfig)."""

import re
from typing import Final

from kvorum.metadata.config_definitions.errors import InvalidConfigError
from kvorum.metadata.config_definitions.pairs import parse_map
from kvorum.metadata.config_definitions.settings import ValueOf
from kvorum.wire.java_text import parse_java_integer

CONNECTIONS_PER_ADDRESS: Final = "max.connections.per.ip"
CONNECTIONS_OF_ADDRESSES: Final = "max.connections.per.ip.overrides"
_HOST_CHARACTERS: Final = re.compile(r"[0-9a-zA-Z\-%._:]*\Z")


def connections_of_addresses(text: str) -> dict[str, int]:
    """Read the maxima of single addresses; raises InvalidConfigError."""
    overrides: dict[str, int] = {}
    for host, count in parse_map(CONNECTIONS_OF_ADDRESSES, text).items():
        try:
            overrides[host] = parse_java_integer(count, bits=32)
        except ValueError:
            raise InvalidConfigError(f'For input string: "{count}"') from None
    if invalid := [host for host in overrides if not _HOST_CHARACTERS.match(host)]:
        raise InvalidConfigError(
            f"{CONNECTIONS_OF_ADDRESSES} contains invalid addresses : {','.join(invalid)}"
        )
    return overrides


def check_connections_per_address(value_of: ValueOf) -> None:
    """Raise InvalidConfigError where no address could have a connection."""
    if value_of(CONNECTIONS_PER_ADDRESS) == 0 and not value_of(CONNECTIONS_OF_ADDRESSES):
        raise InvalidConfigError(
            f"{CONNECTIONS_PER_ADDRESS} can be set to zero only if {CONNECTIONS_OF_ADDRESSES} "
            "property is set."
        )
