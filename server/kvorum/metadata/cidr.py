"""Ranges of addresses as the hosts of ACLs: ``10.0.0.0/8``, ``2001:db8::/32`` (KIP-1276)."""

import ipaddress
import re
from functools import lru_cache
from typing import Final, TypeAlias

from kvorum.wire.java_text import parse_java_integer

_Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network
_ADDRESS: Final = re.compile(r"(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})", re.ASCII)
_RANGE: Final = re.compile(rf"{_ADDRESS.pattern}/(\d{{1,2}})", re.ASCII)
_IPV6_BITS: Final = 128
_PREFIX_BITS: Final = 32
"""The size of the number that Kafka reads a prefix length as."""


class CidrError(ValueError):
    """A range that cannot be read; the text is that of Kafka."""


@lru_cache(maxsize=1024)
def parse_cidr(text: str) -> _Network:
    """Return the range; raises CidrError. Bits after the prefix count for nothing, as in Kafka."""
    return _ipv6_network(text) if ":" in text else _ipv4_network(text)


def is_in_range(host: str, cidr: str) -> bool:
    """Return whether `cidr` is a range, and has the address `host`.

    As in Kafka, 0.0.0.0 is in no range.
    """
    if "/" not in cidr:
        return False
    try:
        network = parse_cidr(cidr)
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    is_ipv4_zero = isinstance(address, ipaddress.IPv4Address) and address.is_unspecified
    return address in network and not is_ipv4_zero


def _ipv4_network(text: str) -> _Network:
    found = _RANGE.fullmatch(text)
    if found is None:
        raise CidrError(f"Could not parse [{text}]")
    *octets, prefix = (int(number) for number in found.groups())
    for value, limit in (*((octet, 255) for octet in octets), (prefix, 32)):
        if value > limit:
            raise CidrError(f"Value [{value}] not in range [0,{limit}]")
    return ipaddress.IPv4Network((bytes(octets), prefix), strict=False)


def _ipv6_network(text: str) -> _Network:
    address, _, length = text.partition("/")
    try:
        prefix = parse_java_integer(length, bits=_PREFIX_BITS)
    except ValueError:
        raise CidrError(f"Could not parse [{text}] - invalid prefix length") from None
    if not 0 <= prefix <= _IPV6_BITS:
        raise CidrError(f"Could not parse [{text}] - prefix length must be between 0 and 128")
    try:
        parsed = ipaddress.IPv6Address(address)
    except ValueError:
        raise CidrError(f"Could not parse [{address}]") from None
    if parsed.ipv4_mapped is not None:
        raise CidrError(f"Could not parse [{address}] - not an IPv6 address")
    return ipaddress.IPv6Network((parsed, prefix), strict=False)
