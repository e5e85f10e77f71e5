"""The listeners of embedded nodes: their names, and the one of clients."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kvorum.node.embedded.client_security.mode import SecurityMode
from kvorum.node.errors import NodeStartError

if TYPE_CHECKING:
    from kvorum.node.embedded.client_security.secured_listener import SecuredListener

LOOPBACK: Final = "127.0.0.1"
EVERY_ADDRESS: Final = "0.0.0.0"  # noqa: S104 - a user may ask for it
PLAINTEXT: Final = "PLAINTEXT"
CONTROLLER_LISTENER: Final = "CONTROLLER"
PLAIN_LISTENER: Final = "PLAINTEXT"
"""The listener of brokers for all, where clients have no security."""
INTERNAL_LISTENER: Final = "INTERNAL"
"""The listener for other brokers, on the loopback interface, where clients have another one."""
REMEDY: Final = "choose another port"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientListener:
    """The address that brokers listen at, the name by which clients reach them, and security."""

    listens_at: str = LOOPBACK
    advertised: str = LOOPBACK
    remedy: str = REMEDY
    """The advice where an address cannot be had."""
    security: SecuredListener | None = None

    @property
    def name(self) -> str:
        """The name of the listener."""
        return PLAIN_LISTENER if self.security is None else self.security.listener

    @property
    def broker_listeners(self) -> tuple[str, ...]:
        """The names of the listeners that a broker has."""
        return (self.name,) if self.security is None else (self.name, INTERNAL_LISTENER)

    @property
    def internal_name(self) -> str:
        """The name of the listener that brokers, and the cluster itself, connect to."""
        return self.broker_listeners[-1]

    @property
    def protocols(self) -> dict[str, str]:
        """The security protocol of each listener."""
        protocols = dict.fromkeys((*self.broker_listeners, CONTROLLER_LISTENER), PLAINTEXT)
        if self.security is not None:
            protocols[self.name] = self.security.protocol
        return protocols

    @property
    def nearest(self) -> str:
        """The address for clients on this machine."""
        return LOOPBACK if self.listens_at == EVERY_ADDRESS else self.listens_at


ON_LOOPBACK: Final = ClientListener()


def secured(clients: ClientListener, mode: SecurityMode, folder: Path) -> ClientListener:
    """Return a listener with security for the cluster in a folder; raises NodeStartError."""
    try:
        from kvorum.node.embedded.client_security.secured_listener import secured_listener  # noqa: PLC0415 - needs an extra
    except ModuleNotFoundError as error:
        raise NodeStartError(
            f"clients with security need the package {error.name}: install kvorum with its extra "
            "'security'"
        ) from error
    return replace(clients, security=secured_listener(mode, folder, clients.advertised))
