"""Addresses as Java writes them in its messages."""

from __future__ import annotations

import ipaddress
import socket

from kvorum.metadata.address import Address


def java_address(address: Address) -> str:
    """Return ``name/address:port``; without the name if the host is an address itself."""
    name = "" if _literal(address.host) is not None else address.host
    found = _literal(address.host) or _resolved(address)
    if found is None:
        return f"{address.host}/<unresolved>:{address.port}"
    if isinstance(found, ipaddress.IPv6Address):
        groups = ":".join(f"{int(group, 16):x}" for group in found.exploded.split(":")[:8])
        return f"{name}/[{groups}]:{address.port}"
    return f"{name}/{found}:{address.port}"


def _literal(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None


def _resolved(address: Address) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Resolve a name; among several addresses, prefer IPv4, as Java does."""
    try:
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return None
    texts = [str(each[4][0]) for each in sorted(found, key=lambda one: one[0] != socket.AF_INET)]
    return _literal(texts[0]) if texts else None
