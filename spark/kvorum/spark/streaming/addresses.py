"""Addresses of controllers, as options and answers contain them."""

from __future__ import annotations

from typing import NamedTuple

from kvorum.spark.errors import OptionError

PORT_MAX = 65535


class Address(NamedTuple):
    """A host and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        """Return the address as an option has it; an IPv6 host in brackets."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def parse_addresses(text: str) -> tuple[Address, ...]:
    """Return the addresses of a list such as ``a:9093,[::1]:9093``; `OptionError` for no such list.

    An address that is listed twice is returned once.
    """
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        raise OptionError("option 'controllers' is empty: name controllers as host:port,host:port")
    return tuple(dict.fromkeys(_parse(part) for part in parts))


def _parse(text: str) -> Address:
    host, _, port = text.rpartition(":")
    is_bracketed = host.startswith("[") and host.endswith("]")
    if is_bracketed:
        host = host[1:-1]
    if not host or (":" in host and not is_bracketed):
        raise OptionError(f"option 'controllers' has {text!r}: an address is host:port")
    if not (port.isascii() and port.isdigit() and 0 < int(port) <= PORT_MAX):
        raise OptionError(f"option 'controllers' has {text!r}: its port is not 1 to {PORT_MAX}")
    return Address(host, int(port))
