"""The first voters of a dynamic quorum: those that ``--initial-controllers`` names (KIP-853).

With ``--standalone``, this controller alone.
"""

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv6Address
from types import MappingProxyType

from kvorum.metadata.address import Address
from kvorum.node.config import NodeConfig
from kvorum.node.errors import FormatError
from kvorum.wire.java_text import java_trim, parse_java_integer
from kvorum.wire.messages.voters_record import VotersRecord
from kvorum.wire.uuid_text import random_uuid, uuid_from_text, uuid_to_text

_PORT_MAX = 65535
_KRAFT_VERSION_MAX = 1
_HERE = "localhost"


@dataclass(frozen=True, slots=True)
class DynamicVoter:
    """One voter: its node id, its directory id and the address of its controller listener."""

    node_id: int
    host: str
    port: int
    directory_id: bytes

    def __str__(self) -> str:
        address = Address(self.host, self.port)
        return f"{self.node_id}@{address}:{uuid_to_text(self.directory_id)}"


def parse_dynamic_voters(text: str) -> Mapping[int, DynamicVoter]:
    """Read ``id@host:port:directory-id`` entries, comma separated; in order of id."""
    return voters_by_id(parse_dynamic_voter(entry) for entry in java_trim(text).split(",") if entry)


def voters_by_id(voters: Iterable[DynamicVoter]) -> Mapping[int, DynamicVoter]:
    """Return the voters in order of id; FormatError for no voters or a repeated id."""
    found: dict[int, DynamicVoter] = {}
    for voter in voters:
        if voter.node_id in found:
            raise FormatError(f"Node id {voter.node_id} was specified more than once.")
        found[voter.node_id] = voter
    if not found:
        raise FormatError("No voters given.")
    return MappingProxyType(dict(sorted(found.items())))


def standalone_voters(
    config: NodeConfig, *, random_source: random.Random
) -> Mapping[int, DynamicVoter]:
    """Return this controller as the only voter, at the first address it advertises."""
    if not config.is_controller:
        raise FormatError("You can only use --standalone on a controller.")
    listener = config.listeners.advertised_controllers[0]
    directory_id = random_uuid(random_source)
    voter = DynamicVoter(config.node_id, listener.host or _HERE, listener.port, directory_id)
    return voters_by_id([voter])


def parse_dynamic_voter(text: str) -> DynamicVoter:
    """Read one ``id@host:port:directory-id``; an IPv6 host is in brackets."""
    id_text, at, rest = java_trim(text).partition("@")
    if not at:
        raise FormatError("No @ found in dynamic voter string.")
    node_id = _parse_node_id(id_text)
    if not rest:
        raise FormatError("No hostname found after node id.")
    host, rest = _split_host(rest)
    if not rest.startswith(":"):
        raise FormatError("Port section must start with a colon.")
    port_text, colon, directory_text = rest[1:].partition(":")
    if not colon:
        raise FormatError("No colon following port could be found.")
    return DynamicVoter(node_id, host, _parse_port(port_text), _parse_directory(directory_text))


def _parse_node_id(text: str) -> int:
    if not text:
        raise FormatError("Invalid @ at beginning of dynamic voter string.")
    try:
        node_id = parse_java_integer(text, bits=32)
    except ValueError:
        raise FormatError("Failed to parse node id in dynamic voter string.") from None
    if node_id < 0:
        raise FormatError(f"Invalid negative node id {node_id} in dynamic voter string.")
    return node_id


def _split_host(text: str) -> tuple[str, str]:
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        if not bracket:
            raise FormatError("Hostname began with left bracket, but no right bracket was found.")
        return host, rest
    host, colon, rest = text.partition(":")
    if not colon:
        raise FormatError("No colon following hostname could be found.")
    return host, colon + rest


def _parse_port(text: str) -> int:
    try:
        port = parse_java_integer(text, bits=32)
    except ValueError:
        raise FormatError("Failed to parse port in dynamic voter string.") from None
    if not 0 <= port <= _PORT_MAX:
        raise FormatError(f"Invalid port {port} in dynamic voter string.")
    return port


def _parse_directory(text: str) -> bytes:
    try:
        return uuid_from_text(text)
    except ValueError:
        raise FormatError("Failed to parse directory ID in dynamic voter string.") from None


def voters_record(voters: Mapping[int, DynamicVoter], *, listener_name: str) -> VotersRecord:
    """Return the record that contains `voters`, each with an endpoint of the same listener."""
    return VotersRecord(voters=[_voter_fields(each, listener_name) for each in voters.values()])


def _voter_fields(voter: DynamicVoter, listener_name: str) -> VotersRecord.Voter:
    return VotersRecord.Voter(
        voter_id=voter.node_id,
        voter_directory_id=voter.directory_id,
        endpoints=[
            VotersRecord.Endpoint(
                name=listener_name.upper(), host=_java_host(voter.host), port=voter.port
            )
        ],
        k_raft_version_feature=VotersRecord.KRaftVersionFeature(0, _KRAFT_VERSION_MAX),
    )


def _java_host(host: str) -> str:
    """Return the host as Java stores it: an IPv6 address as eight numbers, others unchanged."""
    try:
        address = IPv6Address(host)
    except AddressValueError:
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return ":".join(f"{int(group, 16):x}" for group in address.exploded.split(":"))
