"""Addresses inside configuration values: ``host:port`` and ``id@host:port``."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from kvorum.metadata.address import Address
from kvorum.metadata.config_definitions.errors import InvalidConfigError
from kvorum.wire.java_text import parse_java_integer

_HOST_AND_PORT = re.compile(
    r"(?:[0-9a-zA-Z\-%._]*://)?\[?(?P<host>[0-9a-zA-Z\-%._:]*)\]?:(?P<port>[0-9]+)\Z"
)
_PORT_MAX = 65535
_VOTERS = "controller.quorum.voters"
_BOOTSTRAP = "controller.quorum.bootstrap.servers"
_VOTER_FORM = "Each entry should be in the form `{id}@{host}:{port}`."
_NOT_ROUTABLE = "0.0.0.0"  # noqa: S104 - compared with, never bound


class QuorumVoterEntry(NamedTuple):
    """One voter of a static quorum, as ``controller.quorum.voters`` names it."""

    node_id: int
    host: str
    port: int


def parse_quorum_voters(
    entries: Iterable[str], *, must_be_routable: bool = True
) -> tuple[QuorumVoterEntry, ...]:
    """Read ``controller.quorum.voters``; for an id that is given twice, the last entry counts."""
    voters = {voter.node_id: voter for voter in map(_parse_voter, entries)}
    for voter in voters.values():
        if must_be_routable and voter.host == _NOT_ROUTABLE:
            raise InvalidConfigError(f"Host string ({voter.host}) is not routeable")
    return tuple(voters.values())


def parse_bootstrap_server(entry: str) -> Address:
    """Read one entry of ``controller.quorum.bootstrap.servers``."""
    address = parse_host_port(entry)
    if address is None:
        raise InvalidConfigError(
            f"Failed to parse host name from {entry} for the configuration {_BOOTSTRAP}. "
            'Each entry should be in the form "{host}:{port}"'
        )
    return address


def parse_host_port(text: str) -> Address | None:
    """Read ``host:port`` (IPv6 in brackets, a URL scheme is skipped); None for any other text."""
    match = _HOST_AND_PORT.match(text)
    if match is None:
        return None
    digits = match["port"]
    if len(digits) > 10 or int(digits) > _PORT_MAX:
        raise InvalidConfigError(f"port out of range:{digits}")
    return Address(match["host"], int(digits))


def _parse_voter(entry: str) -> QuorumVoterEntry:
    parts = entry.rstrip("@").split("@")
    if len(parts) != 2:
        raise InvalidConfigError(f"Invalid configuration value for {_VOTERS}. {_VOTER_FORM}")
    try:
        node_id = parse_java_integer(parts[0], bits=32)
    except ValueError as error:
        raise InvalidConfigError(
            f"Failed to parse voter ID as an integer from {parts[0]}"
        ) from error
    address = parse_host_port(parts[1])
    if address is None:
        raise InvalidConfigError(
            f"Failed to parse host name from entry {entry} for the configuration {_VOTERS}. "
            f"{_VOTER_FORM}"
        )
    return QuorumVoterEntry(node_id, address.host, address.port)
