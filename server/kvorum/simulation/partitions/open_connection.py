"""A client's connection to one process of a broker, of whose end the process learns."""

from dataclasses import dataclass, field

from kvorum.node.serving.disconnect_listeners import DisconnectListeners


@dataclass(frozen=True, slots=True)
class OpenConnection:
    """The process by its number among those of its broker, and those who act upon the end."""

    incarnation: int
    disconnect: DisconnectListeners = field(default_factory=DisconnectListeners)
